// Dots and convolutions of f32 whose text leaves open how precise they are -> those with the algorithm that is wanted
// of them. What has an algorithm keeps it, and so does what asks for more than the default of a precision.
//
//   d = f32[m,n] dot(x, y)   ->   d = f32[m,n] dot(x, y), algorithm=dot_tf32_tf32_f32

#include "hloc/fusion/ContractionPlan.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using enum ElementType;

bool isOpen(const HloInstruction &instr) {
  return instr.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset) == DotAlgorithm::Unset &&
         llvm::all_of(instr.ints(AttributeKey::OperandPrecision),
                      [](int64_t precision) { return precision == int64_t(Precision::Default); });
}

bool hasFewBits(const HloInstruction &value) {
  return value.shape().isArray() && bitWidth(value.shape().elementType()) <= 8;
}

/// A factor of so few bits has scales and sums that somebody has thought about: XLA multiplies these in f32 as well.
bool isMadeOfFewBits(const HloInstruction &factor) {
  const HloInstruction *value = &factor;
  while (hasTrait(value->opcode(), OpcodeTrait::Rearranges))
    value = value->operand(0);
  return hasFewBits(*value) || (value->opcode() == Opcode::Convert && hasFewBits(*value->operand(0)));
}

bool isSingle(const HloInstruction &value) { return value.shape().isArray() && value.shape().elementType() == F32; }

/// Factors may be narrower: the values of an f16 are those of a tf32.
bool isFactor(const HloInstruction &value) {
  return value.shape().isArray() && isFloat(value.shape().elementType()) && value.shape().elementType() != F64;
}

} // namespace

bool isPlainF32Product(const HloInstruction &instr) {
  if ((instr.opcode() != Opcode::Dot && instr.opcode() != Opcode::Convolution) || !isSingle(instr) || !isOpen(instr))
    return false;
  llvm::ArrayRef<HloInstruction *> factors = instr.operands().take_front(2);
  // Nothing is rounded of what is narrow already.
  return llvm::all_of(factors, [](auto *factor) { return isFactor(*factor) && !isMadeOfFewBits(*factor); }) &&
         !ContractionPlan::multipliesWholeFactors(instr);
}

PassResult chooseDotAlgorithms(HloModule &module, HloPassContext &context) {
  size_t chosen = 0;
  if (context.options.f32Dots == F32Dots::F32)
    return PassResult::Unchanged;
  for (const auto &computation : module.computations()) {
    if (llvm::none_of(computation->instructions(), [](auto *instr) { return isPlainF32Product(*instr); }))
      continue;
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
      if (isPlainF32Product(*instr)) {
        editor.setAttribute(instr, {AttributeKey::Algorithm, int64_t(DotAlgorithm::TF32TF32F32)});
        ++chosen;
      }
  }
  context.statistics.add("choose-dot-algorithms.tf32", chosen);
  return changedIf(chosen > 0);
}

} // namespace hloc
