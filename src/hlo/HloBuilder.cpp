#include "hloc/hlo/HloBuilder.h"

namespace hloc {

HloInstruction *HloBuilder::parameter(int64_t number, const Shape &shape, llvm::StringRef name) {
  InstructionSpec spec{Opcode::Parameter, name, shape, {}, {}, range, number, nullptr};
  return computation.add(spec);
}

HloInstruction *HloBuilder::constant(Literal literal, llvm::StringRef name) {
  const Literal *saved = computation.module().arena().saveObject(std::move(literal));
  InstructionSpec spec{Opcode::Constant, name, saved->shape(), {}, {}, range, 0, saved};
  return computation.add(spec);
}

HloInstruction *HloBuilder::add(Opcode opcode, const Shape &shape, llvm::ArrayRef<HloInstruction *> operands,
                                llvm::ArrayRef<Attribute> attributes, llvm::StringRef name) {
  InstructionSpec spec{opcode, name, shape, operands, attributes, range, 0, nullptr};
  return computation.add(spec);
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
  return computation.add(spec);
}

} // namespace hloc
