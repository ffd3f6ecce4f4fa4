#pragma once
// HloBuilder: makes instructions in a computation, for transforms and tests. Shapes are given, not inferred.
//
//   HloBuilder b(*computation);
//   auto *x = b.parameter(0, Shape::array(ElementType::F32, {4}), "x");
//   auto *y = b.add(Opcode::Negate, x->shape(), {x});
//   computation->setRoot(y);

#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/DenseMap.h"

namespace hloc {

class HloBuilder {
public:
  explicit HloBuilder(HloComputation &computation) : computation(computation) {}

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

  /// Copies `instr` (possibly of another module on the same arena) with other operands, and `shape` if given. Called
  /// computations are mapped through `computations` where present.
  HloInstruction *clone(const HloInstruction &instr, llvm::ArrayRef<HloInstruction *> operands,
                        const llvm::DenseMap<const HloComputation *, HloComputation *> &computations =
                            llvm::DenseMap<const HloComputation *, HloComputation *>(),
                        const Shape *shape = nullptr);

private:
  HloComputation &computation;
  SourceRange range;
};

} // namespace hloc
