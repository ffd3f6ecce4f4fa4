#include "interp/MixedTypes.h"

#include "hloc/hlo/HloComputation.h"

namespace hloc::interp {

llvm::SmallVector<ElementType, 4> typesTaken(const HloInstruction &instr) {
  llvm::SmallVector<ElementType, 4> types;
  for (const HloInstruction *operand : instr.operands())
    types.push_back(operand->shape().elementType());
  auto typeOf = [](const HloComputation &computation, size_t parameter) {
    return computation.parameters()[parameter]->shape().elementType();
  };
  const size_t n = types.size() / 2;
  const HloComputation *function = instr.computation(AttributeKey::ToApply);
  if (instr.opcode() == Opcode::Reduce || instr.opcode() == Opcode::ReduceWindow) {
    for (size_t i = 0; i < types.size(); ++i)
      types[i] = typeOf(*function, i < n ? n + i : i - n);
  } else if (instr.opcode() == Opcode::Scatter) { // (operands..., indices, updates...)
    for (size_t i = 0; i < n; ++i) {
      types[i] = typeOf(*function, i);
      types[n + 1 + i] = typeOf(*function, n + i);
    }
  } else if (instr.opcode() == Opcode::SelectAndScatter) {
    types = {typeOf(*instr.computation(AttributeKey::Select), 0), typeOf(*instr.computation(AttributeKey::Scatter), 1),
             typeOf(*instr.computation(AttributeKey::Scatter), 0)};
  } else {
    return {};
  }
  bool differs = false;
  for (auto [type, operand] : llvm::zip_equal(types, instr.operands()))
    differs |= type != operand->shape().elementType();
  return differs ? types : llvm::SmallVector<ElementType, 4>();
}

Value converted(const Value &array, ElementType type) {
  const Literal &from = array.array();
  if (from.shape().elementType() == type)
    return array;
  return Value(asValue(from, Shape::array(type, from.shape().dims())));
}

Bounded converted(const Bounded &array, ElementType type) {
  if (array.array().shape().elementType() == type)
    return array;
  BoundsPtr bounds;
  if (array.bounds) { // rounding keeps the order
    const Shape shape = Shape::array(type, array.array().shape().dims());
    bounds = std::make_shared<Bounds>(
        Bounds{asBound(asValue(array.bounds->low, shape)), asBound(asValue(array.bounds->high, shape))});
  }
  return Bounded(converted(array.value, type), std::move(bounds));
}

} // namespace hloc::interp
