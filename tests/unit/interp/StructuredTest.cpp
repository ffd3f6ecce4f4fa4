// Reductions, windows, contractions, sorting, linear algebra, random numbers.
#include "OneOp.h"

#include "interp/RandomBits.h"

#include <chrono>
#include <cmath>
#include <limits>

using namespace hloc;
using enum ElementType;
using Values = std::vector<double>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

const Window *window(OneOp &op, std::vector<WindowDim> dims) {
  Window made;
  made.dims.assign(dims.begin(), dims.end());
  return op.module.arena().saveObject(made);
}

} // namespace

TEST_CASE("reduce over some dimensions, over none, over all") {
  OneOp op;
  Literal x = numbers(F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  auto reduced = [&](Opcode opcode, double init, std::vector<int64_t> dimensions, std::vector<int64_t> result) {
    return doubles(
        op.run(Opcode::Reduce, Shape::array(F32, result), {x, scalar(F32, init)},
               {op.ints(AttributeKey::Dimensions, dimensions), {AttributeKey::ToApply, op.binary(opcode, F32)}}));
  };
  CHECK(reduced(Opcode::Add, 10, {1}, {2}) == Values{16, 25});
  CHECK(reduced(Opcode::Add, 0, {0}, {3}) == Values{5, 7, 9});
  CHECK(reduced(Opcode::Maximum, -infinity, {0, 1}, {}) == Values{6});
  CHECK(reduced(Opcode::Multiply, 1, {0, 1}, {}) == Values{720});
  CHECK(reduced(Opcode::Subtract, 0, {1}, {2}) == Values{-6, -15});
  CHECK(reduced(Opcode::Add, 1, {}, {2, 3}) == Values{2, 3, 4, 5, 6, 7});
}

TEST_CASE("reductions longer than a run of lanes") {
  OneOp op;
  std::vector<double> values(5000, 1);
  values[4321] = 7;
  auto reduced = [&](Opcode opcode, ElementType type, double init) {
    return op
        .run(Opcode::Reduce, Shape::scalar(type), {numbers(type, values), scalar(type, init)},
             {op.ints(AttributeKey::Dimensions, {0}), {AttributeKey::ToApply, op.binary(opcode, type)}})
        .getDouble(0);
  };
  CHECK(reduced(Opcode::Maximum, S32, -5) == 7);
  CHECK(reduced(Opcode::Add, S32, 100) == 5106);
  CHECK(reduced(Opcode::Add, U8, 0) == 5006 % 256);
  CHECK(reduced(Opcode::Add, BF16, 0) == 4992); // one rounding of 5006, not one for each addition
  CHECK(reduced(Opcode::Multiply, F32, 2) == 14);
}

TEST_CASE("variadic reduce: argmax") {
  OneOp op;
  HloComputation *argmax = op.module.addComputation("argmax");
  HloBuilder b(*argmax);
  HloInstruction *p[4];
  for (int i = 0; i < 4; ++i)
    p[i] = b.parameter(i, Shape::scalar(i % 2 ? S32 : F32));
  HloInstruction *keep = b.add(Opcode::Compare, Shape::scalar(Pred), {p[0], p[2]},
                               {OneOp::choice(AttributeKey::Direction, ComparisonDirection::Ge)});
  argmax->setRoot(b.tuple({b.add(Opcode::Select, Shape::scalar(F32), {keep, p[0], p[2]}),
                           b.add(Opcode::Select, Shape::scalar(S32), {keep, p[1], p[3]})}));
  Literal result = op.run(Opcode::Reduce, Shape::tuple({Shape::array(F32, {2}), Shape::array(S32, {2})}),
                          {numbers(F32, {2, 3}, {1, 9, 3, 8, 5, 6}), numbers(S32, {2, 3}, {0, 1, 2, 0, 1, 2}),
                           scalar(F32, -infinity), scalar(S32, -1)},
                          {op.ints(AttributeKey::Dimensions, {1}), {AttributeKey::ToApply, argmax}});
  CHECK(doubles(result.element(0)) == Values{9, 8});
  CHECK(doubles(result.element(1)) == Values{1, 0});
}

TEST_CASE("reduce-window skips padding and dilation holes") {
  OneOp op;
  auto windowed = [&](Opcode opcode, double init, WindowDim dim, int64_t results) {
    return doubles(
        op.run(Opcode::ReduceWindow, Shape::array(F32, {results}), {numbers(F32, {1, 2, 3, 4}), scalar(F32, init)},
               {{AttributeKey::Window, window(op, {dim})}, {AttributeKey::ToApply, op.binary(opcode, F32)}}));
  };
  CHECK(windowed(Opcode::Maximum, -infinity, {3, 1, 1, 1, 1, 1}, 4) == Values{2, 3, 4, 4});
  CHECK(windowed(Opcode::Add, 0, {2, 2, 0, 0, 1, 1}, 2) == Values{3, 7});
  CHECK(windowed(Opcode::Add, 0, {2, 1, 0, 0, 1, 2}, 2) == Values{4, 6});
  // Base dilation: 1 . 2 . 3 . 4
  CHECK(windowed(Opcode::Add, 0, {2, 1, 0, 0, 2, 1}, 6) == Values{1, 2, 2, 3, 3, 4});
  CHECK(windowed(Opcode::Maximum, -infinity, {1, 1, 2, 0, 1, 1}, 6) == Values{-infinity, -infinity, 1, 2, 3, 4});
  CHECK(windowed(Opcode::Add, 0, {3, 3, 2, 1, 2, 1}, 3) == Values{1, 2, 7});
  CHECK(windowed(Opcode::Add, 0, {3, 3, 2, 1, 2, 2}, 2) == Values{3, 0});
}

namespace {

/// What the window of each result meets, one element after the other.
std::vector<double> windowedOneByOne(llvm::ArrayRef<double> x, llvm::ArrayRef<int64_t> dims,
                                     llvm::ArrayRef<WindowDim> w, llvm::ArrayRef<int64_t> results, double init,
                                     double (*op)(double, double)) {
  std::vector<double> all;
  for (int64_t r = 0; r < results[0]; ++r)
    for (int64_t c = 0; c < results[1]; ++c) {
      double value = init;
      for (int64_t i = r * w[0].stride - w[0].padLow, k = 0; k < w[0].size; ++i, ++k)
        for (int64_t j = c * w[1].stride - w[1].padLow, l = 0; l < w[1].size; ++j, ++l)
          if (i >= 0 && i < dims[0] && j >= 0 && j < dims[1])
            value = op(value, x[size_t(i * dims[1] + j)]);
      all.push_back(value);
    }
  return all;
}

} // namespace

TEST_CASE("reduce-window of large windows is what it is of small ones") {
  struct Case {
    std::vector<WindowDim> window;
    std::vector<int64_t> results;
  };
  const std::vector<int64_t> dims = {5, 700};
  const std::vector<Case> cases = {
      {{{1, 1}, {700, 1, 0, 699}}, {5, 700}},        // sums of all that follows
      {{{1, 1}, {700, 1, 699, 0}}, {5, 700}},        // of all before
      {{{1, 1}, {300, 1}}, {5, 401}},                // in the middle of blocks
      {{{2, 1}, {300, 7, 20, 900}}, {4, 189}},       // windows over padding alone
      {{{9, 3, 4, 4}, {64, 5, 3, 0}}, {2, 128}},     // of both dimensions
      {{{5, 1}, {1000, 300, 900, 600}}, {1, 5}},     // larger than the array
      {{{3, 2, -1, 0}, {257, 1, -3, -2}}, {1, 439}}, // cut off
  };
  std::vector<double> x;
  for (int i = 0; i < 5 * 700; ++i)
    x.push_back((i * 7919) % 1009 - 500);
  const std::pair<Opcode, double (*)(double, double)> ops[] = {
      {Opcode::Add, [](double a, double b) { return a + b; }},
      {Opcode::Maximum, [](double a, double b) { return std::max(a, b); }}};
  for (ElementType type : {F32, ElementType::F64, ElementType::S32})
    for (const Case &each : cases)
      for (auto [opcode, function] : ops) {
        OneOp op;
        Literal result =
            op.run(Opcode::ReduceWindow, Shape::array(type, each.results), {numbers(type, dims, x), scalar(type, -3)},
                   {{AttributeKey::Window, window(op, each.window)}, {AttributeKey::ToApply, op.binary(opcode, type)}});
        CHECK(doubles(result) == windowedOneByOne(x, dims, each.window, each.results, -3, function));
      }
}

TEST_CASE("reduce-window: sums of all that follows take no time in the square of their number") {
  constexpr int64_t count = 1 << 18;
  OneOp op;
  Literal ones(Shape::array(F32, {count}));
  llvm::fill(ones.mutableData<float>(), 1.0f);
  const auto start = std::chrono::steady_clock::now();
  Literal result = op.run(Opcode::ReduceWindow, Shape::array(F32, {count}), {ones, scalar(F32, 0)},
                          {{AttributeKey::Window, window(op, {{count, 1, 0, count - 1}})},
                           {AttributeKey::ToApply, op.binary(Opcode::Add, F32)}});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4)); // half a minute, one after the other
  CHECK(result.getDouble(0) == count);
  CHECK(result.getDouble(count - 1) == 1);
}

TEST_CASE("select-and-scatter sends each source to the first selected element") {
  OneOp op;
  HloComputation *ge =
      op.binary(Opcode::Compare, F32, {OneOp::choice(AttributeKey::Direction, ComparisonDirection::Ge)});
  CHECK(doubles(op.run(Opcode::SelectAndScatter, Shape::array(F32, {4}),
                       {numbers(F32, {1, 5, 7, 7}), numbers(F32, {10, 20}), scalar(F32, 1)},
                       {{AttributeKey::Window, window(op, {{2, 2}})},
                        {AttributeKey::Select, ge},
                        {AttributeKey::Scatter, op.binary(Opcode::Add, F32)}})) == Values{1, 11, 21, 1});
}

TEST_CASE("sort is stable, keeps operands together, and takes any comparator") {
  OneOp op;
  HloComputation *less = op.module.addComputation("less");
  HloBuilder b(*less);
  HloInstruction *x = b.parameter(0, Shape::scalar(S32)), *y = b.parameter(1, Shape::scalar(S32));
  b.parameter(2, Shape::scalar(S32));
  b.parameter(3, Shape::scalar(S32));
  less->setRoot(b.add(Opcode::Compare, Shape::scalar(Pred), {x, y},
                      {OneOp::choice(AttributeKey::Direction, ComparisonDirection::Lt)}));
  Shape shape = Shape::array(S32, {5});
  Literal result =
      op.run(Opcode::Sort, Shape::tuple({shape, shape}), {numbers(S32, {3, 1, 3, 0, 1}), numbers(S32, {0, 1, 2, 3, 4})},
             {op.ints(AttributeKey::Dimensions, {0}), {AttributeKey::ToApply, less}});
  CHECK(doubles(result.element(0)) == Values{0, 1, 1, 3, 3});
  CHECK(doubles(result.element(1)) == Values{3, 1, 4, 0, 2});
  HloComputation *always =
      op.binary(Opcode::Compare, F32, {OneOp::choice(AttributeKey::Direction, ComparisonDirection::Ge)});
  Literal column = op.run(Opcode::Sort, Shape::array(F32, {3, 2}), {numbers(F32, {3, 2}, {1, 6, 3, 4, 2, 5})},
                          {op.ints(AttributeKey::Dimensions, {0}), {AttributeKey::ToApply, always}});
  CHECK(doubles(column) == Values{3, 6, 2, 5, 1, 4});
}

TEST_CASE("topk puts NaN first and prefers lower positions") {
  OneOp op;
  double notANumber = std::numeric_limits<double>::quiet_NaN();
  Literal result = op.run(Opcode::TopK, Shape::tuple({Shape::array(F32, {3}), Shape::array(S32, {3})}),
                          {numbers(F32, {2, 5, notANumber, 5})}, {{AttributeKey::K, int64_t(3)}});
  CHECK(std::isnan(result.element(0).getDouble(0)));
  CHECK(doubles(result.element(1)) == Values{2, 1, 3});
}

TEST_CASE("dot: batched, mixed types, empty contraction, wrapping") {
  OneOp op;
  auto dot = [&](const Shape &shape, Literal a, Literal b, std::vector<int64_t> batch, std::vector<int64_t> lhs,
                 std::vector<int64_t> rhs) {
    return doubles(
        op.run(Opcode::Dot, shape, {a, b},
               {op.ints(AttributeKey::LhsBatchDims, batch), op.ints(AttributeKey::RhsBatchDims, batch),
                op.ints(AttributeKey::LhsContractingDims, lhs), op.ints(AttributeKey::RhsContractingDims, rhs)}));
  };
  CHECK(dot(Shape::array(F32, {2, 2}), numbers(F32, {2, 3}, {1, 2, 3, 4, 5, 6}),
            numbers(BF16, {3, 2}, {1, 2, 3, 4, 5, 6}), {}, {1}, {0}) == Values{22, 28, 49, 64});
  CHECK(dot(Shape::array(F32, {2, 1, 2}), numbers(F32, {2, 2, 1}, {1, 2, 3, 4}),
            numbers(F32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), {0}, {1}, {2}) == Values{5, 11, 39, 53});
  CHECK(dot(Shape::array(S8, {}), numbers(S8, {100, 100}), numbers(S8, {2, 1}), {}, {0}, {0}) == Values{44});
  CHECK(dot(Shape::array(F32, {2, 2}), numbers(F32, {1, 2}), numbers(F32, {3, 4}), {}, {}, {}) == Values{3, 4, 6, 8});
  CHECK(dot(Shape::array(F32, {}), numbers(F32, {0}, {}), numbers(F32, {0}, {}), {}, {0}, {0}) == Values{0});
}

TEST_CASE("ragged-dot gives each group its rows") {
  OneOp op;
  CHECK(doubles(op.run(Opcode::RaggedDot, Shape::array(F32, {4, 1}),
                       {numbers(F32, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), numbers(F32, {2, 2, 1}, {1, 1, 10, 10}),
                        numbers(S32, {1, 2})},
                       {op.ints(AttributeKey::LhsContractingDims, {1}), op.ints(AttributeKey::RhsContractingDims, {1}),
                        op.ints(AttributeKey::LhsRaggedDims, {0}), op.ints(AttributeKey::RhsGroupDims, {0})})) ==
        Values{3, 70, 110, 0});
  CHECK(doubles(op.run(Opcode::RaggedDot, Shape::array(F32, {2, 1, 1}),
                       {numbers(F32, {1, 3}, {1, 2, 3}), numbers(F32, {3, 1}, {1, 10, 100}), numbers(S32, {1, 2})},
                       {op.ints(AttributeKey::LhsContractingDims, {1}), op.ints(AttributeKey::RhsContractingDims, {0}),
                        op.ints(AttributeKey::LhsRaggedDims, {1})})) == Values{1, 320});
}

TEST_CASE("scaled-dot repeats each scale over its block") {
  OneOp op;
  CHECK(doubles(op.run(Opcode::ScaledDot, Shape::array(F32, {1, 1}),
                       {numbers(F8E4M3FN, {1, 4}, {1, 2, 3, 4}), numbers(F8E4M3FN, {4, 1}, {1, 1, 1, 1}),
                        numbers(F8E8M0FNU, {1, 2}, {2, 4}), numbers(F8E8M0FNU, {1, 1}, {0.5})},
                       {op.ints(AttributeKey::LhsContractingDims, {1}),
                        op.ints(AttributeKey::RhsContractingDims, {0})})) == Values{17});
}

TEST_CASE("convolution: padding, strides, dilations, reversal, groups") {
  OneOp op;
  ConvolutionLabels labels; // bf0_oi0->bf0
  labels.lhsBatch = 0, labels.lhsFeature = 1, labels.lhsSpatial = {2};
  labels.rhsOutput = 0, labels.rhsInput = 1, labels.rhsSpatial = {2};
  labels.outBatch = 0, labels.outFeature = 1, labels.outSpatial = {2};
  Attribute named{AttributeKey::DimLabels, op.module.arena().saveObject(labels)};
  auto convolved = [&](Literal x, Literal k, WindowDim dim, std::vector<int64_t> result,
                       std::vector<Attribute> more = {}) {
    more.push_back(named);
    more.push_back({AttributeKey::Window, window(op, {dim})});
    return doubles(op.run(Opcode::Convolution, Shape::array(F32, result), {x, k}, more));
  };
  Literal x = numbers(F32, {1, 1, 4}, {1, 2, 3, 4}), k = numbers(F32, {1, 1, 2}, {1, 10});
  CHECK(convolved(x, k, {2}, {1, 1, 3}) == Values{21, 32, 43});
  CHECK(convolved(x, k, {2, 1, 1, 0}, {1, 1, 4}) == Values{10, 21, 32, 43});
  CHECK(convolved(x, k, {2, 2}, {1, 1, 2}) == Values{21, 43});
  CHECK(convolved(x, k, {2, 1, 0, 0, 1, 2}, {1, 1, 2}) == Values{31, 42});
  CHECK(convolved(x, k, {2, 1, 0, 0, 2, 1}, {1, 1, 6}) == Values{1, 20, 2, 30, 3, 40});
  CHECK(convolved(x, k, {2, 1, 0, 0, 1, 1, true}, {1, 1, 3}) == Values{12, 23, 34});
  Literal two = numbers(F32, {1, 2, 2}, {1, 2, 3, 4}), kernels = numbers(F32, {2, 1, 1}, {10, 100});
  CHECK(convolved(two, kernels, {1}, {1, 2, 2}, {{AttributeKey::FeatureGroupCount, int64_t(2)}}) ==
        Values{10, 20, 300, 400});
  Literal batches = numbers(F32, {2, 1, 2}, {1, 2, 3, 4});
  CHECK(convolved(batches, kernels, {1}, {1, 2, 2}, {{AttributeKey::BatchGroupCount, int64_t(2)}}) ==
        Values{10, 20, 300, 400});
}

TEST_CASE("fft against its definition, there and back") {
  OneOp op;
  auto kind = [](FftType type) { return OneOp::choice(AttributeKey::FftType, type); };
  Literal x = numbers(F32, {1, 2, 4, 3, 0, -1});
  Literal half =
      op.run(Opcode::Fft, Shape::array(C64, {4}), {x}, {kind(FftType::Rfft), op.ints(AttributeKey::FftLength, {6})});
  CHECK(std::abs(half.getComplex(0) - std::complex<double>(9, 0)) < 1e-5);
  CHECK(std::abs(half.getComplex(3) - std::complex<double>(1 - 2 + 4 - 3 + 0 + 1, 0)) < 1e-5);
  Literal back = op.run(Opcode::Fft, Shape::array(F32, {6}), {half},
                        {kind(FftType::Irfft), op.ints(AttributeKey::FftLength, {6})});
  for (int i = 0; i < 6; ++i)
    CHECK(back.getDouble(i) == Approx(x.getDouble(i)).margin(1e-5));
  Literal z(Shape::array(C64, {2, 8}));
  for (int i = 0; i < 16; ++i)
    z.setComplex(i, {double(i % 5), double(i % 3)});
  auto lengths = op.ints(AttributeKey::FftLength, {2, 8});
  Literal forward = op.run(Opcode::Fft, z.shape(), {z}, {kind(FftType::Fft), lengths});
  std::complex<double> sum = 0; // frequency (1, 3)
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 8; ++j)
      sum += z.getComplex(i * 8 + j) * std::polar(1.0, -2 * 3.14159265358979323846 * (i / 2.0 + 3 * j / 8.0));
  CHECK(std::abs(forward.getComplex(8 + 3) - sum) < 1e-5);
  Literal inverse = op.run(Opcode::Fft, z.shape(), {forward}, {kind(FftType::Ifft), lengths});
  for (int i = 0; i < 16; ++i)
    CHECK(std::abs(inverse.getComplex(i) - z.getComplex(i)) < 1e-5);
}

TEST_CASE("cholesky of either triangle; NaN if not positive definite") {
  OneOp op;
  Literal lower = op.run(Opcode::Cholesky, Shape::array(F32, {2, 2}), {numbers(F32, {2, 2}, {4, -99, 2, 10})},
                         {{AttributeKey::Lower, true}});
  CHECK(doubles(lower) == Values{2, 0, 1, 3});
  Literal upper = op.run(Opcode::Cholesky, Shape::array(F32, {2, 2}), {numbers(F32, {2, 2}, {4, 2, -99, 10})});
  CHECK(doubles(upper) == Values{2, 1, 0, 3});
  Literal bad = op.run(Opcode::Cholesky, Shape::array(F32, {2, 2}), {numbers(F32, {2, 2}, {1, 0, 0, -1})},
                       {{AttributeKey::Lower, true}});
  CHECK(std::isnan(bad.getDouble(0)));
}

TEST_CASE("triangular-solve from both sides, transposed, with unit diagonal") {
  OneOp op;
  Literal a = numbers(F32, {2, 2}, {2, -99, 1, 4}), b = numbers(F32, {2, 2}, {2, 4, 9, 6});
  auto solved = [&](bool left, Transpose transpose, bool unit) {
    return doubles(op.run(Opcode::TriangularSolve, b.shape(), {a, b},
                          {{AttributeKey::LeftSide, left},
                           {AttributeKey::Lower, true},
                           {AttributeKey::UnitDiagonal, unit},
                           OneOp::choice(AttributeKey::TransposeA, transpose)}));
  };
  CHECK(solved(true, Transpose::None, false) == Values{1, 2, 2, 1});
  CHECK(solved(true, Transpose::Transpose, false) == Values{-0.125, 1.25, 2.25, 1.5});
  CHECK(solved(false, Transpose::None, false) == Values{0.5, 1, 3.75, 1.5});
  CHECK(solved(false, Transpose::Transpose, false) == Values{1, 0.75, 4.5, 0.375});
  CHECK(solved(true, Transpose::None, true) == Values{2, 4, 7, 2});
}

TEST_CASE("the generators reproduce their published vectors") {
  using interp::philox;
  using interp::threefry;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(threefry({0, 0}, {0, 0}) == std::array<uint32_t, 2>{0x6b200159, 0x99ba4efe});
  CHECK(threefry({~0u, ~0u}, {~0u, ~0u}) == std::array<uint32_t, 2>{0x1cb996fc, 0xbb002be7});
}

TEST_CASE("rng-bit-generator") {
  OneOp op;
  auto generated = [&](RandomAlgorithm algorithm, Values state, int64_t count) {
    Literal seed = numbers(U64, state);
    return op.run(Opcode::RngBitGenerator, Shape::tuple({seed.shape(), Shape::array(U32, {count})}), {seed},
                  {OneOp::choice(AttributeKey::Algorithm, algorithm)});
  };
  Literal two = generated(RandomAlgorithm::Philox, {7, 5}, 6);
  CHECK(doubles(two.element(1)) == Values{71630834, 1308288064, 569451782, 3128905335, 3152363103, 852643682});
  CHECK(doubles(two.element(0)) == Values{7, 7});
  Literal three = generated(RandomAlgorithm::Philox, {7, 5, 0}, 6);
  CHECK(doubles(three.element(1)) == Values{1454331580, 1444137393, 3838310659, 3089486716, 3447593340, 2010069666});
  CHECK(doubles(three.element(0)) == Values{7, 7, 0});
  Literal threefry = generated(RandomAlgorithm::ThreeFry, {7, 5}, 5);
  CHECK(doubles(threefry.element(1)) == Values{1271531411, 2450972709, 4036977864, 125766773, 2136903383});
  CHECK(doubles(threefry.element(0)) == Values{7, 8});
}

TEST_CASE("batch-norm") {
  OneOp op;
  std::vector<Attribute> attributes{{AttributeKey::Epsilon, 0.0}, {AttributeKey::FeatureIndex, int64_t(1)}};
  Literal x = numbers(F32, {4, 1}, {1, 3, 5, 7}), one = numbers(F32, {1}, {2}), offset = numbers(F32, {1}, {10});
  Shape vector = Shape::array(F32, {1});
  Literal trained =
      op.run(Opcode::BatchNormTraining, Shape::tuple({x.shape(), vector, vector}), {x, one, offset}, attributes);
  CHECK(trained.element(1).getDouble(0) == 4);
  CHECK(trained.element(2).getDouble(0) == 5);
  CHECK(trained.element(0).getDouble(3) == Approx(10 + 2 * 3 / std::sqrt(5)));
  Literal inferred = op.run(Opcode::BatchNormInference, x.shape(),
                            {x, one, offset, trained.element(1), trained.element(2)}, attributes);
  CHECK(doubles(inferred) == doubles(trained.element(0)));
  // A gradient that does not change with x has no gradient with respect to x.
  Literal gradient =
      op.run(Opcode::BatchNormGrad, Shape::tuple({x.shape(), vector, vector}),
             {x, one, trained.element(1), trained.element(2), numbers(F32, {4, 1}, {1, 1, 1, 1})}, attributes);
  CHECK(gradient.element(0).getDouble(0) == Approx(0).margin(1e-6));
  CHECK(gradient.element(1).getDouble(0) == Approx(0).margin(1e-6));
  CHECK(gradient.element(2).getDouble(0) == 4);
}
