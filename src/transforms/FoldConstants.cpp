// Ops on constants -> constants, computed by the interpreter. Only what every right implementation computes to the same
// bits, only small results, and never a constant that is larger than those it is made of.

#include "Simplify.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

constexpr uint64_t maxResultBytes = 1024;
constexpr int64_t maxScalarOperations = 100'000;

bool isKnown(const HloInstruction *value) {
  return value->opcode() == Opcode::Constant && value->shape().isArray() && !value->literal().isElided();
}

bool isDiscrete(const HloInstruction *value) {
  ElementType type = value->shape().elementType();
  return isInteger(type) || isPred(type);
}

/// Integers have one right answer, and so has what moves, chooses or converts; sums and quotients of floats are rounded
/// once. Functions are not the same everywhere.
bool hasOneAnswer(const HloInstruction &instr) {
  Opcode opcode = instr.opcode();
  if (hasTrait(opcode, OpcodeTrait::Exact) || hasTrait(opcode, OpcodeTrait::Moves) || opcode == Opcode::Convert ||
      opcode == Opcode::BitcastConvert)
    return true;
  bool isArithmetic =
      opcode == Opcode::Add || opcode == Opcode::Subtract || opcode == Opcode::Multiply || opcode == Opcode::Divide;
  if (isArithmetic && isFloat(instr.shape().elementType()))
    return true;
  return (isElementwise(opcode) || opcode == Opcode::Reduce) && isDiscrete(&instr) &&
         llvm::all_of(instr.operands(), isDiscrete);
}

uint64_t bytesOf(const HloInstruction *value) {
  return uint64_t(value->shape().numElements()) * hostBytes(value->shape().elementType());
}

bool isWorthIt(const HloInstruction &instr) {
  uint64_t before = 0;
  int64_t operations = instr.shape().numElements();
  for (const HloInstruction *operand : instr.operands()) {
    before += bytesOf(operand);
    if (instr.opcode() == Opcode::Reduce)
      operations = std::max(operations, operand->shape().numElements());
  }
  return bytesOf(&instr) <= std::min(before, maxResultBytes) && operations <= maxScalarOperations;
}

bool isFoldable(const HloInstruction &instr, const HloEditor &editor) {
  return instr.numOperands() > 0 && instr.shape().isArray() && !instr.shape().hasDynamicDims() &&
         llvm::all_of(instr.operands(), isKnown) && hasOneAnswer(instr) && isWorthIt(instr) &&
         !editor.isOrdered(&instr);
}

/// Of the instruction alone; nothing if the interpreter refuses it.
std::optional<Literal> valueOf(const HloInstruction &instr) {
  HloModule scratch("fold");
  HloComputation *computation = scratch.addComputation("fold");
  HloBuilder builder(*computation);
  llvm::SmallVector<HloInstruction *> operands;
  for (const HloInstruction *operand : instr.operands())
    operands.push_back(builder.clone(*operand, {}));
  computation->setRoot(builder.clone(instr, operands));
  DiagnosticEngine unheard;
  llvm::FailureOr<Literal> value = interpret(*computation, {}, unheard);
  if (failed(value))
    return std::nullopt;
  Literal laidOut(instr.shape());
  llvm::copy(value->bytes(), laidOut.mutableBytes().begin());
  return laidOut;
}

/// One walk is enough: operands come first.
size_t foldIn(HloEditor &editor) {
  size_t folded = 0;
  for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
    next = editor.next(instr);
    if (!isFoldable(*instr, editor) || !(instr == editor.root() || editor.isUsed(instr)))
      continue;
    std::optional<Literal> value = valueOf(*instr);
    if (!value)
      continue;
    HloBuilder builder(editor, instr);
    builder.setRange(instr->range());
    editor.replaceAllUses(instr, builder.constant(std::move(*value)));
    editor.eraseIfDead(instr);
    ++folded;
  }
  return folded;
}

} // namespace

PassResult foldConstants(HloModule &module, HloPassContext &context) {
  size_t folded = 0;
  for (HloComputation *computation : computationsToSimplify(module)) {
    HloEditor editor(*computation);
    folded += foldIn(editor);
  }
  context.statistics.add("constant-folding.folded", folded);
  return changedIf(folded > 0);
}

} // namespace hloc
