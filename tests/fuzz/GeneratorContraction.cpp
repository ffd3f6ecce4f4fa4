// Generator: the dot family, convolution, batch normalization, Fourier transforms, matrix decompositions.
#include "fuzz/GeneratorState.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Key = AttributeKey;

ElementType floatType(GeneratorState &g) {
  static const ElementType types[] = {ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::F16};
  return types[g.below(std::size(types))];
}

/// lhs [batch, m, k], rhs [batch, k, n], dimensions in any order.
struct DotOperands {
  Shape lhs, rhs;
  llvm::SmallVector<Attribute, 6> attributes;
};

DotOperands chooseDot(GeneratorState &g, ElementType type) {
  int64_t batch = g.between(1, 3), m = g.between(1, 4), k = g.between(1, 4), n = g.between(1, 4);
  auto left = g.permutation(3), right = g.permutation(3);
  llvm::SmallVector<int64_t, 3> lhs(3), rhs(3);
  int64_t leftSizes[] = {batch, m, k}, rightSizes[] = {batch, k, n};
  for (int i = 0; i < 3; ++i) {
    lhs[left[i]] = leftSizes[i];
    rhs[right[i]] = rightSizes[i];
  }
  return {Shape::array(type, lhs),
          Shape::array(type, rhs),
          {g.ints(Key::LhsBatchDims, {left[0]}), g.ints(Key::RhsBatchDims, {right[0]}),
           g.ints(Key::LhsContractingDims, {left[2]}), g.ints(Key::RhsContractingDims, {right[1]})}};
}

HloInstruction *generateScaledDot(GeneratorState &g) {
  DotOperands dot = chooseDot(g, ElementType::F8E4M3FN);
  llvm::SmallVector<int64_t, 3> ones(3, 1);
  Shape scale = Shape::array(ElementType::F8E8M0FNU, ones);
  return g.add(Opcode::ScaledDot, {},
               {g.withShape(dot.lhs), g.withShape(dot.rhs), g.withShape(scale), g.withShape(scale)}, dot.attributes);
}

HloInstruction *generateRaggedDot(GeneratorState &g) {
  int64_t m = g.between(1, 6), k = g.between(1, 4), n = g.between(1, 4), groups = g.between(1, 3);
  ElementType type = floatType(g);
  return g.add(Opcode::RaggedDot, {},
               {g.withShape(Shape::array(type, {m, k})), g.withShape(Shape::array(type, {groups, k, n})),
                g.withShape(Shape::array(ElementType::S32, {groups}))},
               {g.ints(Key::LhsContractingDims, {1}), g.ints(Key::RhsContractingDims, {1}),
                g.ints(Key::LhsRaggedDims, {0}), g.ints(Key::RhsGroupDims, {0})});
}

HloInstruction *generateConvolution(GeneratorState &g) {
  int64_t groups = g.oneIn(3) ? 2 : 1, inFeatures = g.between(1, 2), size = g.between(1, 3);
  ConvolutionLabels labels;
  labels.lhsBatch = labels.outBatch = 0;
  labels.lhsSpatial = labels.outSpatial = {1};
  labels.lhsFeature = labels.outFeature = 2;
  labels.rhsSpatial = {0};
  labels.rhsInput = 1;
  labels.rhsOutput = 2;
  labels.spelling = "b0f_0io->b0f";
  WindowDim dim;
  dim.size = size;
  dim.padLow = g.below(2);
  dim.padHigh = g.below(2);
  dim.stride = g.between(1, 2);
  dim.baseDilation = g.oneIn(4) ? 2 : 1;
  dim.windowDilation = g.oneIn(4) ? 2 : 1;
  dim.reversed = g.oneIn(4);
  ElementType type = floatType(g);
  llvm::SmallVector<Attribute, 4> attributes{g.window({dim}), {Key::DimLabels, g.module.arena().saveObject(labels)}};
  if (groups > 1)
    attributes.push_back(g.integer(Key::FeatureGroupCount, groups));
  return g.add(Opcode::Convolution, {},
               {g.withShape(Shape::array(type, {g.between(1, 2), g.between(1, 6), inFeatures * groups})),
                g.withShape(Shape::array(type, {size, inFeatures, groups * g.between(1, 2)}))},
               attributes);
}

HloInstruction *generateBatchNorm(GeneratorState &g, Opcode opcode) {
  Shape x = Shape::array(floatType(g), g.smallDims(g.between(1, 3)));
  int64_t feature = g.below(x.rank());
  Shape statistics = x.withDims({x.dim(feature)});
  llvm::SmallVector<HloInstruction *, 5> operands{g.withShape(x)};
  unsigned count = opcode == Opcode::BatchNormTraining ? 2 : opcode == Opcode::BatchNormGrad ? 3 : 4;
  for (unsigned i = 0; i < count; ++i)
    operands.push_back(g.withShape(statistics));
  if (opcode == Opcode::BatchNormGrad)
    operands.push_back(g.withShape(x));
  return g.add(opcode, {}, operands, {{Key::Epsilon, 0.0625}, g.integer(Key::FeatureIndex, feature)});
}

HloInstruction *generateFft(GeneratorState &g) {
  auto type = static_cast<FftType>(g.below(4));
  int64_t length = g.between(1, 8), last = type == FftType::Irfft ? length / 2 + 1 : length;
  ElementType element = type == FftType::Rfft ? ElementType::F32 : g.oneIn(2) ? ElementType::C64 : ElementType::C128;
  return g.add(Opcode::Fft, {}, {g.withShape(Shape::array(element, {g.between(1, 3), last}))},
               {g.integer(Key::FftType, static_cast<int64_t>(type)), g.ints(Key::FftLength, {length})});
}

HloInstruction *generateSolve(GeneratorState &g) {
  int64_t n = g.between(1, 4), columns = g.between(1, 3);
  bool left = g.oneIn(2);
  ElementType type = g.oneIn(2) ? ElementType::F32 : ElementType::C64;
  Shape b = left ? Shape::array(type, {n, columns}) : Shape::array(type, {columns, n});
  return g.add(Opcode::TriangularSolve, {}, {g.withShape(Shape::array(type, {n, n})), g.withShape(b)},
               {g.flag(Key::LeftSide, left), g.flag(Key::Lower, g.oneIn(2)), g.flag(Key::UnitDiagonal, g.oneIn(2)),
                g.integer(Key::TransposeA, g.below(3))});
}

} // namespace

HloInstruction *generateContraction(GeneratorState &g, Opcode opcode) {
  switch (opcode) {
  case Opcode::Dot: {
    DotOperands dot = chooseDot(g, g.oneIn(3) ? ElementType::S32 : floatType(g));
    return g.add(opcode, {}, {g.withShape(dot.lhs), g.withShape(dot.rhs)}, dot.attributes);
  }
  case Opcode::ScaledDot:
    return generateScaledDot(g);
  case Opcode::RaggedDot:
    return generateRaggedDot(g);
  case Opcode::Convolution:
    return generateConvolution(g);
  case Opcode::BatchNormTraining:
  case Opcode::BatchNormInference:
  case Opcode::BatchNormGrad:
    return generateBatchNorm(g, opcode);
  case Opcode::Fft:
    return generateFft(g);
  case Opcode::Cholesky: {
    int64_t n = g.between(1, 4);
    return g.add(opcode, {}, {g.withShape(Shape::array(floatType(g), {n, n}))}, {g.flag(Key::Lower, g.oneIn(2))});
  }
  case Opcode::TriangularSolve:
    return generateSolve(g);
  default:
    return nullptr;
  }
}

} // namespace hloc
