#include "hloc/hlo/HloBuilder.h"

#include "hloc/hlo/HloEditor.h"
#include "hloc/hlo/ShapeInference.h"
#include "hloc/support/Check.h"

namespace hloc {

HloBuilder::HloBuilder(HloEditor &editor, HloInstruction *before)
    : computation(editor.computation()), editor(&editor), before(before) {}

HloInstruction *HloBuilder::place(const InstructionSpec &spec) {
  return editor ? editor->insert(spec, before) : computation.add(spec);
}

HloInstruction *HloBuilder::parameter(int64_t number, const Shape &shape, llvm::StringRef name) {
  InstructionSpec spec{Opcode::Parameter, name, shape, {}, {}, range, number, nullptr};
  return place(spec);
}

HloInstruction *HloBuilder::constant(Literal literal, llvm::StringRef name) {
  const Literal *saved = computation.module().arena().saveObject(std::move(literal));
  InstructionSpec spec{Opcode::Constant, name, saved->shape(), {}, {}, range, 0, saved};
  return place(spec);
}

HloInstruction *HloBuilder::add(Opcode opcode, const Shape &shape, llvm::ArrayRef<HloInstruction *> operands,
                                llvm::ArrayRef<Attribute> attributes, llvm::StringRef name) {
  InstructionSpec spec{opcode, name, shape, operands, attributes, range, 0, nullptr};
  return place(spec);
}

HloInstruction *HloBuilder::broadcast(HloInstruction *operand, const Shape &shape, llvm::ArrayRef<int64_t> dimensions) {
  return add(Opcode::Broadcast, shape, {operand}, {ints(AttributeKey::Dimensions, dimensions)});
}

HloInstruction *HloBuilder::tupleElement(HloInstruction *tuple, int64_t index) {
  return add(Opcode::GetTupleElement, tuple->shape().element(index), {tuple}, {{AttributeKey::Index, index}});
}

HloInstruction *HloBuilder::tuple(llvm::ArrayRef<HloInstruction *> elements) {
  llvm::SmallVector<Shape> shapes;
  for (HloInstruction *element : elements)
    shapes.push_back(element->shape());
  return add(Opcode::Tuple, Shape::tuple(shapes), elements);
}

Attribute HloBuilder::ints(AttributeKey key, llvm::ArrayRef<int64_t> values) {
  llvm::ArrayRef<int64_t> saved = computation.module().arena().saveList(values);
  return {key, saved};
}

HloInstruction *HloBuilder::infer(Opcode opcode, llvm::ArrayRef<HloInstruction *> operands,
                                  llvm::ArrayRef<Attribute> attributes, const Shape &declared) {
  InstructionSpec spec{opcode, "", declared, operands, attributes, range, 0, nullptr};
  std::string error;
  std::optional<Shape> shape = inferShape(spec, error);
  HLOC_CHECK(shape, error.c_str());
  spec.shape = *shape;
  return place(spec);
}

HloInstruction *HloBuilder::compare(ComparisonDirection direction, HloInstruction *lhs, HloInstruction *rhs) {
  return infer(Opcode::Compare, {lhs, rhs}, {{AttributeKey::Direction, static_cast<int64_t>(direction)}});
}

HloInstruction *HloBuilder::convert(HloInstruction *operand, ElementType type) {
  if (operand->shape().elementType() == type)
    return operand;
  return infer(Opcode::Convert, {operand}, {}, operand->shape().withElementType(type));
}

HloInstruction *HloBuilder::reshape(HloInstruction *operand, llvm::ArrayRef<int64_t> sizes) {
  return infer(Opcode::Reshape, {operand}, {}, operand->shape().withDims(sizes));
}

HloInstruction *HloBuilder::transpose(HloInstruction *operand, llvm::ArrayRef<int64_t> permutation) {
  return infer(Opcode::Transpose, {operand}, {ints(AttributeKey::Dimensions, permutation)});
}

HloInstruction *HloBuilder::slice(HloInstruction *operand, llvm::ArrayRef<SliceDim> ranges) {
  llvm::ArrayRef<SliceDim> saved = computation.module().arena().saveList(ranges);
  return infer(Opcode::Slice, {operand}, {{AttributeKey::Slice, saved}});
}

HloInstruction *HloBuilder::concatenate(llvm::ArrayRef<HloInstruction *> operands, int64_t dimension) {
  return infer(Opcode::Concatenate, operands, {ints(AttributeKey::Dimensions, {dimension})});
}

HloInstruction *HloBuilder::reduce(HloInstruction *operand, HloInstruction *init, llvm::ArrayRef<int64_t> dimensions,
                                   HloComputation *reducer) {
  return infer(Opcode::Reduce, {operand, init},
               {ints(AttributeKey::Dimensions, dimensions), {AttributeKey::ToApply, reducer}});
}

HloInstruction *HloBuilder::scalar(ElementType type, double value) {
  Literal literal(Shape::scalar(type));
  if (isComplex(type))
    literal.setComplex(0, value);
  else if (isFloat(type))
    literal.setDouble(0, value);
  else
    literal.setInt(0, static_cast<int64_t>(value));
  return constant(std::move(literal));
}

HloInstruction *HloBuilder::clone(const HloInstruction &instr, llvm::ArrayRef<HloInstruction *> operands,
                                  const llvm::DenseMap<const HloComputation *, HloComputation *> &computations,
                                  const Shape *shape) {
  auto mapped = [&](HloComputation *called) {
    auto found = computations.find(called);
    return found == computations.end() ? called : found->second;
  };
  llvm::SmallVector<Attribute, 8> attributes;
  for (Attribute attribute : instr.attributes()) {
    if (attribute.key == AttributeKey::ControlPredecessors)
      continue; // order between instructions is the cloner's business
    if (auto *one = std::get_if<HloComputation *>(&attribute.value)) {
      attribute.value = mapped(*one);
    } else if (auto *several = std::get_if<llvm::ArrayRef<HloComputation *>>(&attribute.value)) {
      llvm::SmallVector<HloComputation *> list;
      for (HloComputation *called : *several)
        list.push_back(mapped(called));
      llvm::ArrayRef<HloComputation *> saved =
          computation.module().arena().saveList(llvm::ArrayRef<HloComputation *>(list));
      attribute.value = saved;
    }
    attributes.push_back(attribute);
  }
  InstructionSpec spec{instr.opcode(),
                       instr.name(),
                       shape ? *shape : instr.shape(),
                       operands,
                       attributes,
                       instr.range(),
                       instr.opcode() == Opcode::Parameter ? instr.parameterNumber() : 0,
                       instr.hasLiteral() ? &instr.literal() : nullptr};
  return place(spec);
}

} // namespace hloc
