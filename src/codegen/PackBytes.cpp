// Truth values of neighbouring bytes, four at a time in a word.
//
// A predicate is a byte of which any that is not zero is true. Emitters unroll a thread's elements, so that code
// compares each byte with zero, and makes a byte of each result:
//
//   %a0 = extractelement <4 x i8> %x, 0      %c0 = icmp ne i8 %a0, 0      %r0 = and i1 %c0, %d0      %z0 = zext i1 %r0
//   to i8
//
// four times, and stores <%z0, %z1, %z2, %z3>. In a word the truth of a byte is its highest bit: that of `x & 0x7f`
// plus 0x7f, or that of `x`. No carry leaves a byte. Logic on truth values is logic on words, whatever is in their
// other bits; these are cleared once before the word is stored.
//
// A reduction asks of many bytes whether all are true, or whether one is: of words, once it has combined them.

#include "ByteWords.h"
#include "LlvmStageParts.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

#include <array>
#include <map>

namespace hloc {

namespace {

using llvm::Instruction;
using llvm::Value;
using namespace llvm::PatternMatch;

/// Instructions between a byte that was loaded and one that is stored; of more, calls would nest too deep.
constexpr unsigned maxDepth = 200;

/// Truth values of the bytes of a word, the lowest one first.
using Lanes = std::array<Value *, bytesOfWord>;

/// Four neighbouring bytes of a vector.
struct Bytes {
  Value *source = nullptr;
  uint64_t first = 0;
  bool areZero = false; ///< true is what is zero
};

/// Of which four bytes `byte` is one, and its number there.
std::optional<std::pair<Bytes, uint64_t>> placeOf(Value *byte) {
  Bytes bytes;
  uint64_t lane = 0;
  if (!match(byte, m_ExtractElt(m_Value(bytes.source), m_ConstantInt(lane))))
    return std::nullopt;
  if (!bytesInWords(bytes.source->getType()))
    return std::nullopt;
  bytes.first = lane / bytesOfWord * bytesOfWord;
  return std::pair(bytes, lane % bytesOfWord);
}

/// What a comparison with zero compares, and whether it asks for equality.
std::optional<std::pair<Value *, bool>> comparedWithZero(Value *truth) {
  llvm::CmpPredicate predicate;
  Value *compared;
  if (!match(truth, m_ICmp(predicate, m_Value(compared), m_ZeroInt())) || !llvm::ICmpInst::isEquality(predicate))
    return std::nullopt;
  return std::pair(compared, predicate == llvm::ICmpInst::ICMP_EQ);
}

/// Which byte a comparison with zero looks at.
std::optional<std::pair<Bytes, uint64_t>> comparedByte(Value *truth) {
  auto compared = comparedWithZero(truth);
  auto place = compared ? placeOf(compared->first) : std::nullopt;
  if (place)
    place->first.areZero = compared->second;
  return place;
}

/// The word whose bytes' highest bits say which bytes of `word` are not zero.
Value *truthOf(llvm::IRBuilder<> &builder, Value *word) {
  Value *carried = builder.CreateAdd(builder.CreateAnd(word, 0x7f7f7f7f), builder.getInt32(0x7f7f7f7f));
  return builder.CreateOr(carried, word);
}
constexpr uint32_t highestBits = 0x80808080;

class StorePacker {
public:
  explicit StorePacker(llvm::StoreInst &store) : store(store), builder(&store) {}

  bool run() {
    auto *type = bytesInWords(store.getValueOperand()->getType());
    if (!type)
      return false;
    std::vector<Value *> truths = storedTruths(type->getNumElements());
    if (truths.empty())
      return false;
    std::vector<Lanes> words;
    for (size_t i = 0; i < truths.size(); i += bytesOfWord)
      words.push_back({truths[i], truths[i + 1], truths[i + 2], truths[i + 3]});
    for (const Lanes &lanes : words)
      if (!canPack(lanes, 0))
        return false;
    llvm::Type *word = builder.getInt32Ty();
    Value *result = llvm::PoisonValue::get(llvm::FixedVectorType::get(word, words.size()));
    for (auto [i, lanes] : llvm::enumerate(words)) {
      Value *truth = builder.CreateLShr(builder.CreateAnd(pack(lanes), highestBits), 7);
      result = words.size() == 1 ? truth : builder.CreateInsertElement(result, truth, uint64_t(i));
    }
    Value *scalars = store.getValueOperand();
    store.setOperand(0, builder.CreateBitCast(result, type));
    llvm::RecursivelyDeleteTriviallyDeadInstructions(scalars);
    return true;
  }

private:
  /// What the stored bytes are 1 for; nothing if one of them is no truth value.
  std::vector<Value *> storedTruths(unsigned lanes) const {
    std::vector<Value *> truths(lanes);
    Value *vector = store.getValueOperand(), *rest, *byte, *truth;
    uint64_t lane;
    while (match(vector, m_InsertElt(m_Value(rest), m_Value(byte), m_ConstantInt(lane))) && lane < lanes) {
      if (!match(byte, m_ZExt(m_Value(truth))) || !truth->getType()->isIntegerTy(1))
        return {};
      if (!truths[lane])
        truths[lane] = truth;
      vector = rest;
    }
    return llvm::is_contained(truths, nullptr) ? std::vector<Value *>() : truths;
  }

  static bool areSame(const Lanes &lanes) { return llvm::all_equal(lanes); }
  static Lanes operandsOf(const Lanes &lanes, unsigned number) {
    Lanes result;
    for (unsigned i = 0; i < bytesOfWord; ++i)
      result[i] = llvm::cast<Instruction>(lanes[i])->getOperand(number);
    return result;
  }

  /// The bytes that the lanes compare with zero, in order.
  static std::optional<Bytes> comparedBytes(const Lanes &lanes) {
    std::optional<Bytes> result;
    for (auto [i, truth] : llvm::enumerate(lanes)) {
      auto compared = comparedByte(truth);
      if (!compared || compared->second != i)
        return std::nullopt;
      if (result && (result->source != compared->first.source || result->first != compared->first.first ||
                     result->areZero != compared->first.areZero))
        return std::nullopt;
      result = compared->first;
    }
    return result;
  }

  /// Is it the same logic in all lanes?
  static bool areLogic(const Lanes &lanes) {
    auto *first = llvm::dyn_cast<Instruction>(lanes[0]);
    return first && (first->isBitwiseLogicOp() || llvm::isa<llvm::SelectInst>(first)) &&
           llvm::all_of(lanes, [&](Value *lane) {
             auto *other = llvm::dyn_cast<Instruction>(lane);
             return other && other->getOpcode() == first->getOpcode();
           });
  }

  bool canPack(const Lanes &lanes, unsigned depth) {
    auto [known, isNew] = packable.try_emplace(lanes, false);
    if (!isNew)
      return known->second;
    bool result = areSame(lanes) || comparedBytes(lanes);
    if (!result && areLogic(lanes) && depth < maxDepth) {
      result = true;
      for (unsigned i = 0; i < llvm::cast<Instruction>(lanes[0])->getNumOperands() && result; ++i)
        result = canPack(operandsOf(lanes, i), depth + 1);
    }
    return packable[lanes] = result;
  }

  /// The word whose bytes' highest bits are the lanes.
  Value *pack(const Lanes &lanes) {
    if (Value *known = packed[lanes])
      return known;
    Value *result;
    if (areSame(lanes))
      result = builder.CreateSExt(lanes[0], builder.getInt32Ty());
    else if (std::optional<Bytes> bytes = comparedBytes(lanes)) {
      result = truthOf(builder, wordOf(builder, bytes->source, bytes->first));
      if (bytes->areZero)
        result = builder.CreateNot(result);
    } else
      result = logicOf(*llvm::cast<Instruction>(lanes[0]), lanes);
    return packed[lanes] = result;
  }

  Value *logicOf(Instruction &first, const Lanes &lanes) {
    Value *left = pack(operandsOf(lanes, 0)), *right = pack(operandsOf(lanes, 1));
    if (!llvm::isa<llvm::SelectInst>(first))
      return builder.CreateBinOp(llvm::Instruction::BinaryOps(first.getOpcode()), left, right);
    Value *otherwise = pack(operandsOf(lanes, 2));
    return builder.CreateOr(builder.CreateAnd(left, right), builder.CreateAnd(builder.CreateNot(left), otherwise));
  }

  llvm::StoreInst &store;
  llvm::IRBuilder<> builder;
  std::map<Lanes, bool> packable;
  std::map<Lanes, Value *> packed;
};

/// Of a tree of `and`, whether all that its leaves ask for is so; of a tree of `or`, whether something is.
class TreePacker {
public:
  /// Is it the root of a tree? One of `or` on bytes, compared with zero, stands for one of `or` on what is true of
  /// them.
  static bool isRoot(Instruction &instruction) {
    auto *user = instruction.hasOneUse() ? llvm::dyn_cast<Instruction>(instruction.user_back()) : nullptr;
    std::optional<unsigned> opcode = opcodeOf(instruction);
    return opcode && !(user && user->getType()->isIntegerTy(1) && user->getOpcode() == *opcode);
  }

  explicit TreePacker(Instruction &root) : root(root), builder(&root), opcode(*opcodeOf(root)) {}

  bool run() {
    collect();
    if (allTrue.empty() && someTrue.empty())
      return false;
    Value *result = nullptr;
    auto add = [&](Value *truth) { result = result ? builder.CreateBinOp(operation(), result, truth) : truth; };
    bool isAnd = opcode == Instruction::And;
    if (!allTrue.empty()) {
      Value *truths = joined(Instruction::And, allTrue, [&](Value *word) { return truthOf(builder, word); });
      Value *all = builder.CreateAnd(truths, highestBits), *asked = builder.getInt32(highestBits);
      add(isAnd ? builder.CreateICmpEQ(all, asked) : builder.CreateICmpNE(all, asked));
    }
    if (!someTrue.empty()) {
      Value *some = joined(Instruction::Or, someTrue, [](Value *word) { return word; }), *zero = builder.getInt32(0);
      add(isAnd ? builder.CreateICmpEQ(some, zero) : builder.CreateICmpNE(some, zero));
    }
    for (const Leaf &leaf : others)
      add(truthOfLeaf(leaf));
    root.replaceAllUsesWith(result);
    llvm::RecursivelyDeleteTriviallyDeadInstructions(&root);
    return true;
  }

private:
  /// A truth value; or a byte that is compared with zero, if there is no instruction that does it.
  struct Leaf {
    Value *value;
    bool isByte;
  };
  using Words = llvm::SmallVector<Bytes>;

  static std::optional<unsigned> opcodeOf(Instruction &instruction) {
    if (!instruction.getType()->isIntegerTy(1))
      return std::nullopt;
    if (instruction.getOpcode() == Instruction::And || instruction.getOpcode() == Instruction::Or)
      return instruction.getOpcode();
    auto compared = comparedWithZero(&instruction);
    if (!compared || !isUnion(compared->first))
      return std::nullopt;
    return compared->second ? Instruction::And : Instruction::Or;
  }
  static bool isUnion(Value *byte) {
    auto *instruction = llvm::dyn_cast<Instruction>(byte);
    return instruction && instruction->getOpcode() == Instruction::Or && instruction->getType()->isIntegerTy(8);
  }

  llvm::Instruction::BinaryOps operation() const { return llvm::Instruction::BinaryOps(opcode); }
  /// Whether its leaves, which are bytes, ask for zero.
  bool asksForZero() const { return opcode == Instruction::And; }
  Value *truthOfLeaf(const Leaf &leaf) {
    if (!leaf.isByte)
      return leaf.value;
    Value *zero = builder.getInt8(0);
    return asksForZero() ? builder.CreateICmpEQ(leaf.value, zero) : builder.CreateICmpNE(leaf.value, zero);
  }

  /// Sorts the leaves: those that are all bytes of a word, the others.
  void collect() {
    llvm::SmallVector<Leaf> leaves = leavesOfTree();
    std::map<std::tuple<Value *, uint64_t, bool>, std::array<bool, bytesOfWord>> found;
    auto keyOf = [](const Bytes &bytes) { return std::tuple(bytes.source, bytes.first, bytes.areZero); };
    auto placeOfLeaf = [&](const Leaf &leaf) {
      auto place = leaf.isByte ? placeOf(leaf.value) : comparedByte(leaf.value);
      if (place && leaf.isByte)
        place->first.areZero = asksForZero();
      return place;
    };
    for (const Leaf &leaf : leaves)
      if (auto place = placeOfLeaf(leaf))
        found[keyOf(place->first)][place->second] = true;
    for (const Leaf &leaf : leaves) {
      auto place = placeOfLeaf(leaf);
      if (!place || llvm::is_contained(found[keyOf(place->first)], false))
        others.push_back(leaf);
      else if (place->second == 0) // each word once, in the order of the tree: the same code whatever the addresses
        (place->first.areZero == asksForZero() ? someTrue : allTrue).push_back(place->first);
    }
  }

  llvm::SmallVector<Leaf> leavesOfTree() const {
    llvm::SmallVector<Leaf> leaves, open = {{&root, false}};
    while (!open.empty()) {
      Leaf next = open.pop_back_val();
      auto *instruction = llvm::dyn_cast<Instruction>(next.value);
      bool isOwn = next.value == &root || next.value->hasOneUse();
      if (isOwn &&
          (next.isByte ? isUnion(next.value)
                       : instruction && instruction->getType()->isIntegerTy(1) && instruction->getOpcode() == opcode)) {
        for (unsigned i : {1, 0})
          open.push_back({instruction->getOperand(i), next.isByte});
      } else if (auto compared = next.isByte ? std::nullopt : comparedWithZero(next.value);
                 isOwn && compared && compared->second == asksForZero() && isUnion(compared->first)) {
        open.push_back({compared->first, true});
      } else {
        leaves.push_back(next);
      }
    }
    return leaves;
  }

  template <typename Function>
  Value *joined(llvm::Instruction::BinaryOps with, llvm::ArrayRef<Bytes> words, Function function) {
    Value *result = nullptr;
    for (const Bytes &bytes : words) {
      Value *word = function(wordOf(builder, bytes.source, bytes.first));
      result = result ? builder.CreateBinOp(with, result, word) : word;
    }
    return result;
  }

  Instruction &root;
  llvm::IRBuilder<> builder;
  const unsigned opcode;
  Words allTrue, someTrue; ///< asked whether all their bytes are not zero, or whether one is; or the opposite
  llvm::SmallVector<Leaf> others;
};

} // namespace

bool packBytes(llvm::Module &module) {
  std::vector<llvm::StoreInst *> stores;
  std::vector<Instruction *> roots;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
          stores.push_back(store);
  bool changed = false;
  for (llvm::StoreInst *store : stores)
    changed |= StorePacker(*store).run();
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (TreePacker::isRoot(instruction))
          roots.push_back(&instruction);
  for (Instruction *root : roots)
    changed |= TreePacker(*root).run();
  return changed;
}

} // namespace hloc
