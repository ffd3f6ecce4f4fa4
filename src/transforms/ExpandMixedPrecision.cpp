// Reductions whose results are rounded to another type than their reducer gives -> the same in the reducer's type, and
// a conversion. Kernels have no other form; the value is rounded once either way.
//
//   r = bf16[] reduce(x, init), to_apply=add_f32   ->   s = f32[] reduce(x, init), to_apply=add_f32
//                                                       r = bf16[] convert(s)

#include "Rewriter.h"
#include "hloc/transforms/Transforms.h"

namespace hloc {

namespace {

HloInstruction *reduceThenRound(HloInstruction &instr, HloRewriter &r) {
  const HloInstruction &reduced = *instr.computation(AttributeKey::ToApply)->root();
  if (reduced.numResults() != instr.numResults())
    return nullptr;
  bool differs = false;
  llvm::SmallVector<Shape> shapes;
  for (unsigned i = 0; i < instr.numResults(); ++i) {
    const ElementType type = reduced.resultShape(i).elementType();
    differs |= type != instr.resultShape(i).elementType();
    shapes.push_back(instr.resultShape(i).withElementType(type));
  }
  if (!differs)
    return nullptr;
  HloBuilder &b = r.builder();
  const bool isTuple = instr.shape().isTuple();
  const Shape shape = isTuple ? Shape::tuple(shapes) : shapes.front();
  HloInstruction *made =
      b.clone(instr, instr.operands(), llvm::DenseMap<const HloComputation *, HloComputation *>(), &shape);
  if (!isTuple)
    return b.convert(made, instr.shape().elementType());
  llvm::SmallVector<HloInstruction *> results;
  for (unsigned i = 0; i < shapes.size(); ++i)
    results.push_back(b.convert(b.tupleElement(made, i), instr.resultShape(i).elementType()));
  return b.tuple(results);
}

constexpr RewriteRule rules[] = {
    {"expand-mixed-precision.reduce", Opcode::Reduce, reduceThenRound},
    {"expand-mixed-precision.reduce-window", Opcode::ReduceWindow, reduceThenRound},
};

} // namespace

PassResult expandMixedPrecision(HloModule &module, HloPassContext &context) {
  return rewriteModule(module, rules, context);
}

} // namespace hloc
