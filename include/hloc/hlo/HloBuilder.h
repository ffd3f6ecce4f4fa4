#pragma once
// HloBuilder: makes instructions for transforms and tests: at the end of a computation, or where an editor is at work.
// `add` is told the shape; `infer` and the functions below it find it by the rules of ShapeInference.h.
//
//   HloBuilder b(*computation);
//   auto *x = b.parameter(0, Shape::array(ElementType::F32, {4}), "x");
//   auto *y = b.add(Opcode::Negate, x->shape(), {x});
//   computation->setRoot(y);

#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/DenseMap.h"

namespace hloc {

class HloEditor;

class HloBuilder {
public:
  explicit HloBuilder(HloComputation &computation) : computation(computation) {}
  /// In front of `before`; null: at the end.
  HloBuilder(HloEditor &editor, HloInstruction *before);

  /// Location given to what is built next: usually the range of the instruction being rewritten.
  void setRange(SourceRange where) { range = where; }

  HloInstruction *parameter(int64_t number, const Shape &shape, llvm::StringRef name = "");
  HloInstruction *constant(Literal literal, llvm::StringRef name = "");
  HloInstruction *add(Opcode opcode, const Shape &shape, llvm::ArrayRef<HloInstruction *> operands,
                      llvm::ArrayRef<Attribute> attributes = {}, llvm::StringRef name = "");
  HloInstruction *broadcast(HloInstruction *operand, const Shape &shape, llvm::ArrayRef<int64_t> dimensions);
  HloInstruction *tupleElement(HloInstruction *tuple, int64_t index);
  HloInstruction *tuple(llvm::ArrayRef<HloInstruction *> elements);
  Attribute ints(AttributeKey key, llvm::ArrayRef<int64_t> values);

  /// `declared`: what inferShape reads of it, for opcodes whose result is partly the author's choice. Operands and
  /// attributes that break a rule are a bug of the caller.
  HloInstruction *infer(Opcode opcode, llvm::ArrayRef<HloInstruction *> operands,
                        llvm::ArrayRef<Attribute> attributes = {}, const Shape &declared = Shape());
  HloInstruction *compare(ComparisonDirection direction, HloInstruction *lhs, HloInstruction *rhs);
  HloInstruction *convert(HloInstruction *operand, ElementType type); ///< the operand itself if it is of this type
  HloInstruction *reshape(HloInstruction *operand, llvm::ArrayRef<int64_t> sizes);
  HloInstruction *transpose(HloInstruction *operand, llvm::ArrayRef<int64_t> permutation);
  HloInstruction *slice(HloInstruction *operand, llvm::ArrayRef<SliceDim> ranges);
  HloInstruction *concatenate(llvm::ArrayRef<HloInstruction *> operands, int64_t dimension);
  HloInstruction *reduce(HloInstruction *operand, HloInstruction *init, llvm::ArrayRef<int64_t> dimensions,
                         HloComputation *reducer);
  HloInstruction *scalar(ElementType type, double value); ///< constant; rounded to the type

  /// Copies `instr` (possibly of another module on the same arena) with other operands, and `shape` if given. Called
  /// computations are mapped through `computations` where present.
  HloInstruction *clone(const HloInstruction &instr, llvm::ArrayRef<HloInstruction *> operands,
                        const llvm::DenseMap<const HloComputation *, HloComputation *> &computations =
                            llvm::DenseMap<const HloComputation *, HloComputation *>(),
                        const Shape *shape = nullptr);

private:
  HloInstruction *place(const InstructionSpec &spec);
  HloComputation &computation;
  HloEditor *editor = nullptr;
  HloInstruction *before = nullptr;
  SourceRange range;
};

} // namespace hloc
