#include "interp/NormSteps.h"

#include "hloc/hlo/HloBuilder.h"

namespace hloc::interp {

namespace {

/// One module: values of the array's shape, or one for each feature.
class Steps {
public:
  Steps(const HloInstruction &instr, ElementType type)
      : instr(instr), type(type), feature(instr.intOr(AttributeKey::FeatureIndex, 0)),
        array(instr.operand(0)->shape().withElementType(type)), module(std::make_unique<HloModule>("steps")),
        adder(*module->addComputation("add")), body(*module->addComputation("steps")), b(body) {
    HloBuilder sum(adder);
    const Shape scalar = Shape::scalar(type);
    HloInstruction *x = sum.parameter(0, scalar, "x"), *y = sum.parameter(1, scalar, "y");
    adder.setRoot(sum.add(Opcode::Add, scalar, {x, y}));
    for (unsigned i = 0; i < instr.numOperands(); ++i)
      operands.push_back(b.convert(b.parameter(i, instr.operand(i)->shape(), "p" + std::to_string(i)), type));
    for (int64_t i = 0; i < int64_t(array.rank()); ++i)
      if (i != feature)
        others.push_back(i);
    const int64_t features = array.dim(unsigned(feature));
    count = features == 0 ? 0 : double(array.numElements() / features);
  }

  std::unique_ptr<HloModule> inference(bool byRoot) {
    HloInstruction *centered = subtract(operands[0], spread(operands[3]));
    return finish({normalized(centered, operands[4], byRoot)});
  }
  std::unique_ptr<HloModule> training() {
    HloInstruction *mean = meanOf(operands[0]), *centered = subtract(operands[0], spread(mean));
    HloInstruction *variance = meanOf(multiply(centered, centered));
    return finish({normalized(centered, variance, true), mean, variance});
  }
  std::unique_ptr<HloModule> grad() {
    HloInstruction *gradient = operands[4], *centered = subtract(operands[0], spread(operands[2]));
    HloInstruction *sum = sumOf(gradient), *weighted = sumOf(multiply(gradient, centered));
    HloInstruction *square = plusEpsilon(operands[3]), *deviation = b.add(Opcode::Sqrt, square->shape(), {square});
    HloInstruction *number = like(sum, count);
    HloInstruction *term = subtract(multiply(gradient, spread(number)), spread(sum));
    term = subtract(term, multiply(centered, spread(divide(weighted, square))));
    HloInstruction *factor = divide(divide(operands[1], deviation), number);
    return finish({multiply(spread(factor), term), divide(weighted, deviation), sum});
  }

private:
  HloInstruction *binary(Opcode opcode, HloInstruction *x, HloInstruction *y) {
    return b.add(opcode, x->shape(), {x, y});
  }
  HloInstruction *subtract(HloInstruction *x, HloInstruction *y) { return binary(Opcode::Subtract, x, y); }
  HloInstruction *multiply(HloInstruction *x, HloInstruction *y) { return binary(Opcode::Multiply, x, y); }
  HloInstruction *divide(HloInstruction *x, HloInstruction *y) { return binary(Opcode::Divide, x, y); }
  HloInstruction *spread(HloInstruction *perFeature) { return b.broadcast(perFeature, array, {feature}); }
  HloInstruction *like(HloInstruction *perFeature, double value) {
    return b.broadcast(b.scalar(type, value), perFeature->shape(), {});
  }
  HloInstruction *sumOf(HloInstruction *values) { return b.reduce(values, b.scalar(type, 0), others, &adder); }
  HloInstruction *meanOf(HloInstruction *values) {
    HloInstruction *sum = sumOf(values);
    return divide(sum, like(sum, count));
  }
  HloInstruction *plusEpsilon(HloInstruction *variance) { // HLO keeps it in f32
    return binary(Opcode::Add, variance, like(variance, float(instr.get<double>(AttributeKey::Epsilon))));
  }
  HloInstruction *normalized(HloInstruction *centered, HloInstruction *variance, bool byRoot) {
    HloInstruction *square = plusEpsilon(variance);
    HloInstruction *deviation = spread(b.add(byRoot ? Opcode::Sqrt : Opcode::Rsqrt, square->shape(), {square}));
    HloInstruction *unit = binary(byRoot ? Opcode::Divide : Opcode::Multiply, centered, deviation);
    return binary(Opcode::Add, multiply(unit, spread(operands[1])), spread(operands[2]));
  }

  std::unique_ptr<HloModule> finish(llvm::ArrayRef<HloInstruction *> values) {
    llvm::SmallVector<HloInstruction *> results;
    for (HloInstruction *value : values)
      results.push_back(b.convert(value, instr.operand(0)->shape().elementType()));
    body.setRoot(instr.shape().isTuple() ? b.tuple(results) : results.front());
    module->setEntry(&body);
    return std::move(module);
  }

  const HloInstruction &instr;
  const ElementType type;
  const int64_t feature;
  const Shape array;
  std::unique_ptr<HloModule> module;
  HloComputation &adder, &body;
  HloBuilder b;
  std::vector<HloInstruction *> operands;
  llvm::SmallVector<int64_t> others; ///< dimensions but the feature
  double count = 0;                  ///< elements of a feature
};

} // namespace

std::vector<std::unique_ptr<HloModule>> normStepsOf(const HloInstruction &batchNorm) {
  std::vector<std::unique_ptr<HloModule>> ways;
  if (batchNorm.opcode() == Opcode::BatchNormTraining)
    ways.push_back(Steps(batchNorm, ElementType::F64).training());
  if (batchNorm.opcode() == Opcode::BatchNormGrad)
    ways.push_back(Steps(batchNorm, ElementType::F64).grad());
  if (batchNorm.opcode() == Opcode::BatchNormInference)
    for (bool byRoot : {true, false}) {
      const bool isWide = batchNorm.shape().elementType() == ElementType::F64;
      ways.push_back(Steps(batchNorm, isWide ? ElementType::F64 : ElementType::F32).inference(byRoot));
    }
  return ways;
}

} // namespace hloc::interp
