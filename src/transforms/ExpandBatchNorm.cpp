// batch-norm-* -> sums, broadcasts and elementwise ops. Inference is computed in f32 at least. Sums are computed in
// f64, with what is made of them, and rounded once: products of a gradient and a deviation overflow f32 where the
// result, a small multiple of them, does not; and a mean of many elements is as exact in any order.

#include "Rewriter.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// The arithmetic around one batch norm: values of its array's shape or one for each feature, in one float type.
class BatchNormBuilder {
public:
  BatchNormBuilder(HloInstruction &instr, HloBuilder &builder, ElementType type)
      : instr(instr), b(builder), array(instr.operand(0)->shape()), feature(instr.intOr(AttributeKey::FeatureIndex, 0)),
        type(type), rows(array.dim(unsigned(feature)) == 0 ? 0 : array.numElements() / array.dim(unsigned(feature))) {}

  /// An operand in the type of the arithmetic.
  HloInstruction *operand(unsigned number) { return b.convert(instr.operand(number), type); }
  HloInstruction *binary(Opcode opcode, HloInstruction *x, HloInstruction *y) {
    return b.add(opcode, x->shape(), {x, y});
  }
  /// A value for each feature, at every element.
  HloInstruction *spread(HloInstruction *perFeature) {
    return b.broadcast(perFeature, array.withElementType(type), {feature});
  }
  HloInstruction *constantLike(HloInstruction *perFeature, double value) {
    return b.broadcast(b.scalar(type, value), perFeature->shape(), {});
  }
  /// Sums over all elements of a feature.
  HloInstruction *sum(HloInstruction *values) {
    llvm::SmallVector<int64_t> others;
    for (int64_t i = 0; i < int64_t(array.rank()); ++i)
      if (i != feature)
        others.push_back(i);
    return b.reduce(values, b.scalar(type, 0), others, adder());
  }
  HloInstruction *mean(HloInstruction *values) {
    HloInstruction *total = sum(values);
    return binary(Opcode::Divide, total, constantLike(total, double(rows)));
  }
  /// variance + epsilon, which HLO keeps in f32
  HloInstruction *spreadOf(HloInstruction *variance) {
    double epsilon = float(instr.get<double>(AttributeKey::Epsilon));
    return binary(Opcode::Add, variance, constantLike(variance, epsilon));
  }
  HloInstruction *root(HloInstruction *x) { return b.add(Opcode::Sqrt, x->shape(), {x}); }
  HloInstruction *centered(HloInstruction *values, HloInstruction *mean) {
    return binary(Opcode::Subtract, values, spread(mean));
  }
  /// (x - mean) / sqrt(variance + epsilon) * scale + offset
  HloInstruction *normalized(HloInstruction *centered, HloInstruction *variance, HloInstruction *scale,
                             HloInstruction *offset) {
    HloInstruction *unit = binary(Opcode::Divide, centered, spread(root(spreadOf(variance))));
    return binary(Opcode::Add, binary(Opcode::Multiply, unit, spread(scale)), spread(offset));
  }
  /// In the type and layout of a result.
  HloInstruction *result(HloInstruction *value, const Shape &shape) {
    if (value->shape().elementType() != shape.elementType())
      return b.add(Opcode::Convert, shape, {value});
    return value->shape() == shape ? value : b.add(Opcode::Copy, shape, {value});
  }
  HloInstruction *results(llvm::ArrayRef<HloInstruction *> values) {
    llvm::SmallVector<HloInstruction *> converted;
    for (auto [value, shape] : llvm::zip_equal(values, instr.shape().elements()))
      converted.push_back(result(value, shape));
    return b.tuple(converted);
  }

  double rowCount() const { return double(rows); } ///< elements of a feature

private:
  /// Stands before all computations: whoever sums comes after it.
  HloComputation *adder() {
    HloModule &module = instr.parent()->module();
    std::string name = "batch_norm_sum." + text(type).str();
    if (HloComputation *known = module.findComputation(name))
      return known;
    HloComputation *sum = module.addComputationBefore(*module.computations().front(), name);
    HloBuilder body(*sum);
    Shape scalar = Shape::scalar(type);
    HloInstruction *x = body.parameter(0, scalar, "x"), *y = body.parameter(1, scalar, "y");
    sum->setRoot(body.add(Opcode::Add, scalar, {x, y}));
    return sum;
  }

  HloInstruction &instr;
  HloBuilder &b;
  const Shape array;
  int64_t feature;
  ElementType type;
  int64_t rows;
};

HloInstruction *expandInference(HloInstruction &instr, HloRewriter &rewriter) {
  bool wide = instr.shape().elementType() == ElementType::F64;
  BatchNormBuilder b(instr, rewriter.builder(), wide ? ElementType::F64 : ElementType::F32);
  HloInstruction *centered = b.centered(b.operand(0), b.operand(3));
  return b.result(b.normalized(centered, b.operand(4), b.operand(1), b.operand(2)), instr.shape());
}

HloInstruction *expandTraining(HloInstruction &instr, HloRewriter &rewriter) {
  BatchNormBuilder b(instr, rewriter.builder(), ElementType::F64);
  HloInstruction *x = b.operand(0), *mean = b.mean(x), *centered = b.centered(x, mean);
  HloInstruction *variance = b.mean(b.binary(Opcode::Multiply, centered, centered));
  return b.results({b.normalized(centered, variance, b.operand(1), b.operand(2)), mean, variance});
}

/// With s = variance + epsilon, n elements a feature, sums over these:
///   scale / sqrt(s) / n * (n * g - sum(g) - (x - mean) * sum(g * (x - mean)) / s)
HloInstruction *expandGrad(HloInstruction &instr, HloRewriter &rewriter) {
  BatchNormBuilder b(instr, rewriter.builder(), ElementType::F64);
  HloInstruction *gradient = b.operand(4), *centered = b.centered(b.operand(0), b.operand(2));
  HloInstruction *sum = b.sum(gradient), *weighted = b.sum(b.binary(Opcode::Multiply, gradient, centered));
  HloInstruction *spread = b.spreadOf(b.operand(3)), *deviation = b.root(spread);
  HloInstruction *count = b.constantLike(sum, b.rowCount());
  HloInstruction *factor = b.binary(Opcode::Divide, b.binary(Opcode::Divide, b.operand(1), deviation), count);
  HloInstruction *slope = b.binary(Opcode::Divide, weighted, spread);
  HloInstruction *term = b.binary(Opcode::Multiply, gradient, b.spread(count));
  term = b.binary(Opcode::Subtract, term, b.spread(sum));
  term = b.binary(Opcode::Subtract, term, b.binary(Opcode::Multiply, centered, b.spread(slope)));
  HloInstruction *gx = b.binary(Opcode::Multiply, b.spread(factor), term);
  return b.results({gx, b.binary(Opcode::Divide, weighted, deviation), sum});
}

constexpr RewriteRule rules[] = {
    {"expand-batch-norms.inference", Opcode::BatchNormInference, expandInference},
    {"expand-batch-norms.training", Opcode::BatchNormTraining, expandTraining},
    {"expand-batch-norms.grad", Opcode::BatchNormGrad, expandGrad},
};

} // namespace

PassResult expandBatchNorms(HloModule &module, HloPassContext &context) {
  return rewriteModule(module, rules, context);
}

} // namespace hloc
