#include "interp/NormSteps.h"

#include "hloc/hlo/HloBuilder.h"

namespace hloc::interp {

static std::unique_ptr<HloModule> makeSteps(const HloInstruction &instr, bool byRoot) {
  const Shape &shape = instr.shape();
  const ElementType type = shape.elementType() == ElementType::F64 ? ElementType::F64 : ElementType::F32;
  const Shape array = shape.withElementType(type);
  auto module = std::make_unique<HloModule>("steps");
  HloComputation *body = module->addComputation("steps");
  HloBuilder b(*body);
  std::vector<HloInstruction *> operands;
  for (unsigned i = 0; i < instr.numOperands(); ++i)
    operands.push_back(b.convert(b.parameter(i, instr.operand(i)->shape(), "p" + std::to_string(i)), type));
  auto spread = [&](HloInstruction *perFeature) {
    return b.broadcast(perFeature, array, {instr.intOr(AttributeKey::FeatureIndex, 0)});
  };
  const double epsilon = float(instr.get<double>(AttributeKey::Epsilon));
  HloInstruction *variance = operands[4];
  HloInstruction *sum =
      b.add(Opcode::Add, variance->shape(), {variance, b.broadcast(b.scalar(type, epsilon), variance->shape(), {})});
  HloInstruction *deviation = spread(b.add(byRoot ? Opcode::Sqrt : Opcode::Rsqrt, sum->shape(), {sum}));
  HloInstruction *value = b.add(Opcode::Subtract, array, {operands[0], spread(operands[3])});
  value = b.add(byRoot ? Opcode::Divide : Opcode::Multiply, array, {value, deviation});
  value = b.add(Opcode::Multiply, array, {value, spread(operands[1])});
  value = b.add(Opcode::Add, array, {value, spread(operands[2])});
  body->setRoot(b.convert(value, shape.elementType()));
  module->setEntry(body);
  return module;
}

NormSteps normStepsOf(const HloInstruction &batchNormInference) {
  return {makeSteps(batchNormInference, true), makeSteps(batchNormInference, false)};
}

} // namespace hloc::interp
