#include "hloc/hlo/HloInstruction.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

const AttributeValue *HloInstruction::find(AttributeKey key) const {
  for (const Attribute &attribute : attributeList)
    if (attribute.key == key)
      return &attribute.value;
  return nullptr;
}

llvm::ArrayRef<int64_t> HloInstruction::ints(AttributeKey key) const {
  const AttributeValue *value = find(key);
  return value ? std::get<llvm::ArrayRef<int64_t>>(*value) : llvm::ArrayRef<int64_t>();
}

int64_t HloInstruction::intOr(AttributeKey key, int64_t otherwise) const {
  const AttributeValue *value = find(key);
  return value ? std::get<int64_t>(*value) : otherwise;
}

bool HloInstruction::flag(AttributeKey key, bool otherwise) const {
  const AttributeValue *value = find(key);
  return value ? std::get<bool>(*value) : otherwise;
}

llvm::StringRef HloInstruction::string(AttributeKey key) const {
  const AttributeValue *value = find(key);
  return value ? std::get<llvm::StringRef>(*value) : llvm::StringRef();
}

HloComputation *HloInstruction::computation(AttributeKey key) const {
  const AttributeValue *value = find(key);
  return value ? std::get<HloComputation *>(*value) : nullptr;
}

Window HloInstruction::windowOr(unsigned rank) const {
  if (const AttributeValue *value = find(AttributeKey::Window))
    return *std::get<const Window *>(*value);
  Window window;
  window.dims.resize(rank);
  return window;
}

llvm::SmallVector<HloComputation *, 2> HloInstruction::calledComputations() const {
  llvm::SmallVector<HloComputation *, 2> called;
  for (const Attribute &attribute : attributeList) {
    if (const auto *one = std::get_if<HloComputation *>(&attribute.value))
      called.push_back(*one);
    else if (const auto *several = std::get_if<llvm::ArrayRef<HloComputation *>>(&attribute.value))
      llvm::append_range(called, *several);
  }
  return called;
}

ComparisonType HloInstruction::comparisonType() const {
  if (const AttributeValue *value = find(AttributeKey::Type))
    return static_cast<ComparisonType>(std::get<int64_t>(*value));
  ElementType type = operand(0)->shape().elementType();
  if (isSigned(type))
    return ComparisonType::Signed;
  return isUnsigned(type) || isPred(type) ? ComparisonType::Unsigned : ComparisonType::Float;
}

llvm::StringRef HloInstruction::opName() const {
  llvm::StringRef metadata = string(AttributeKey::Metadata);
  size_t at = metadata.find("op_name=\"");
  return at == llvm::StringRef::npos ? llvm::StringRef()
                                     : metadata.substr(at + 9).take_until([](char c) { return c == '"'; });
}

bool HloInstruction::hasSideEffect() const {
  return hasTrait(code, OpcodeTrait::SideEffect) ||
         (code == Opcode::CustomCall && flag(AttributeKey::CustomCallHasSideEffect));
}

bool HloInstruction::reachesSideEffect() const {
  if (hasSideEffect())
    return true;
  llvm::SmallVector<HloComputation *, 8> pending(calledComputations());
  llvm::SmallPtrSet<HloComputation *, 8> seen(pending.begin(), pending.end());
  while (!pending.empty())
    for (const HloInstruction *instr : pending.pop_back_val()->instructions()) {
      if (instr->hasSideEffect())
        return true;
      for (HloComputation *called : instr->calledComputations())
        if (seen.insert(called).second)
          pending.push_back(called);
    }
  return false;
}

std::string describe(const HloInstruction &instr) {
  return (llvm::Twine(instr.shape().toString()) + " " + text(instr.opcode()) + " `" + instr.name() + "`").str();
}

} // namespace hloc
