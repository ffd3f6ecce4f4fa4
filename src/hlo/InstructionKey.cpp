#include "hloc/hlo/InstructionKey.h"

#include "hloc/hlo/HloInstruction.h"
#include "hloc/hlo/Literal.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

#include <bit>

namespace hloc {

namespace {

/// Says where the instruction comes from or how it is expected to behave, not what it computes.
bool isDescription(AttributeKey key) {
  return key == AttributeKey::Metadata || key == AttributeKey::Origin || key == AttributeKey::Statistics;
}

auto meaning(const HloInstruction &instr) {
  return llvm::make_filter_range(instr.attributes(), [](const Attribute &each) { return !isDescription(each.key); });
}

uint64_t hashLiteral(const Literal &literal) {
  if (!literal.isTuple())
    return llvm::xxh3_64bits(literal.bytes());
  uint64_t hash = literal.elements().size();
  for (const Literal &element : literal.elements())
    hash = llvm::hash_combine(hash, hashLiteral(element));
  return hash;
}

bool sameLiteral(const Literal &a, const Literal &b) { return &a == &b || (!a.isElided() && !b.isElided() && a == b); }

/// Equal values have equal hashes; kinds that are rare or that seldom differ alone do not go in.
struct ValueHash {
  template <typename T> llvm::hash_code operator()(const T &value) const {
    if constexpr (std::is_same_v<T, double>)
      return llvm::hash_value(std::bit_cast<uint64_t>(value));
    else if constexpr (std::is_integral_v<T> || std::is_same_v<T, llvm::StringRef> ||
                       std::is_same_v<T, llvm::ArrayRef<int64_t>>)
      return llvm::hash_value(value);
    else
      return llvm::hash_value(0);
  }
};

using SameComputation = llvm::function_ref<bool(const HloComputation *, const HloComputation *)>;

struct SameValue {
  const AttributeValue &other;
  SameComputation sameComputation;
  template <typename T> bool operator()(const T &value) const {
    const T &second = std::get<T>(other);
    if constexpr (std::is_same_v<T, double>)
      return std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(second);
    else if constexpr (std::is_same_v<T, const Literal *>)
      return sameLiteral(*value, *second);
    else if constexpr (std::is_same_v<T, const Window *> || std::is_same_v<T, const ConvolutionLabels *> ||
                       std::is_same_v<T, const Shape *>)
      return *value == *second;
    else if constexpr (std::is_same_v<T, HloComputation *>)
      return sameComputation(value, second);
    else if constexpr (std::is_same_v<T, llvm::ArrayRef<HloComputation *>>)
      return llvm::equal(value, second, sameComputation);
    else
      return value == second; // instructions: the same ones
  }
};

} // namespace

uint64_t hashOfWork(const HloInstruction &instr) {
  llvm::hash_code hash = llvm::hash_combine(instr.opcode(), instr.parameterNumber());
  if (instr.shape().isArray())
    hash = llvm::hash_combine(hash, instr.shape().elementType(), instr.shape().dims());
  for (const Attribute &attribute : meaning(instr))
    hash = llvm::hash_combine(hash, attribute.key, std::visit(ValueHash(), attribute.value));
  if (instr.hasLiteral())
    hash = llvm::hash_combine(hash, hashLiteral(instr.literal()));
  return hash;
}

bool doSameWork(const HloInstruction &a, const HloInstruction &b, SameComputation sameComputation) {
  if (a.opcode() != b.opcode() || a.parameterNumber() != b.parameterNumber() || !(a.shape() == b.shape()) ||
      a.hasLiteral() != b.hasLiteral())
    return false;
  auto same = [&](const Attribute &x, const Attribute &y) {
    return x.key == y.key && x.value.index() == y.value.index() &&
           std::visit(SameValue{y.value, sameComputation}, x.value);
  };
  return llvm::equal(meaning(a), meaning(b), same) && (!a.hasLiteral() || sameLiteral(a.literal(), b.literal()));
}

uint64_t InstructionKey::hash() const {
  llvm::hash_code hash = llvm::hash_combine(hashOfWork(*instr), instr->operands());
  for (const HloComputation *callee : instr->calledComputations())
    hash = llvm::hash_combine(hash, callee);
  return hash;
}

bool InstructionKey::operator==(const InstructionKey &other) const {
  auto identical = [](const HloComputation *a, const HloComputation *b) { return a == b; };
  return instr == other.instr ||
         (instr->operands() == other.instr->operands() && doSameWork(*instr, *other.instr, identical));
}

} // namespace hloc
