#include "OneOp.h"

#include <numeric>

using namespace hloc;
using enum ElementType;

namespace {

std::vector<double> range(int64_t count, double start = 0) {
  std::vector<double> values(size_t(count), 0);
  std::iota(values.begin(), values.end(), start);
  return values;
}
Literal counted(std::vector<int64_t> dims) {
  return numbers(F32, dims, range(std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<>())));
}
using Values = std::vector<double>;

} // namespace

TEST_CASE("pad with edges, interior and cropping") {
  OneOp op;
  auto padded = [&](int64_t n, PaddingDim padding, int64_t result) {
    return doubles(op.run(Opcode::Pad, Shape::array(F32, {result}), {numbers(F32, range(n, 1)), scalar(F32, 9)},
                          {{AttributeKey::Padding, op.list<PaddingDim>({padding})}}));
  };
  CHECK(padded(3, {1, -1, 1}, 5) == Values{9, 1, 9, 2, 9});
  CHECK(padded(3, {0, 2, 0}, 5) == Values{1, 2, 3, 9, 9});
  CHECK(padded(3, {-1, 0, 1}, 4) == Values{9, 2, 9, 3});
  CHECK(padded(3, {-4, 4, 1}, 5) == Values{3, 9, 9, 9, 9});
  CHECK(padded(2, {-5, 5, 0}, 2) == Values{9, 9});
}

TEST_CASE("slices, reverses, transposes, concatenations, broadcasts") {
  OneOp op;
  CHECK(doubles(op.run(Opcode::Slice, Shape::array(F32, {2, 1}), {counted({4, 3})},
                       {{AttributeKey::Slice, op.list<SliceDim>({{0, 4, 2}, {1, 2, 1}})}})) == Values{1, 7});
  CHECK(doubles(op.run(Opcode::Reverse, Shape::array(F32, {2, 3}), {counted({2, 3})},
                       {op.ints(AttributeKey::Dimensions, {1})})) == Values{2, 1, 0, 5, 4, 3});
  CHECK(doubles(op.run(Opcode::Transpose, Shape::array(F32, {3, 1, 2}), {counted({2, 3, 1})},
                       {op.ints(AttributeKey::Dimensions, {1, 2, 0})})) == Values{0, 3, 1, 4, 2, 5});
  CHECK(doubles(op.run(Opcode::Concatenate, Shape::array(F32, {2, 3}), {counted({2, 1}), counted({2, 2})},
                       {op.ints(AttributeKey::Dimensions, {1})})) == Values{0, 0, 1, 1, 2, 3});
  CHECK(doubles(op.run(Opcode::Broadcast, Shape::array(F32, {2, 3}), {counted({2})},
                       {op.ints(AttributeKey::Dimensions, {0})})) == Values{0, 0, 0, 1, 1, 1});
  CHECK(doubles(op.run(Opcode::Iota, Shape::array(S4, {2, 9}), {}, {{AttributeKey::IotaDimension, int64_t(1)}})) ==
        Values{0, 1, 2, 3, 4, 5, 6, 7, -8, 0, 1, 2, 3, 4, 5, 6, 7, -8});
}

TEST_CASE("dynamic slices are clamped") {
  OneOp op;
  auto sliced = [&](double start) {
    return doubles(op.run(Opcode::DynamicSlice, Shape::array(F32, {4}), {counted({10}), scalar(S32, start)},
                          {op.ints(AttributeKey::DynamicSliceSizes, {4})}));
  };
  CHECK(sliced(9) == range(4, 6));
  CHECK(sliced(-3) == range(4));
  CHECK(sliced(2) == range(4, 2));
  Literal update = numbers(F32, {-1, -2, -3, -4});
  CHECK(doubles(op.run(Opcode::DynamicUpdateSlice, Shape::array(F32, {10}), {counted({10}), update, scalar(S32, 8)})) ==
        Values{0, 1, 2, 3, 4, 5, -1, -2, -3, -4});
}

TEST_CASE("bitcast-convert regroups bytes, lowest first") {
  OneOp op;
  Literal bytes = op.run(Opcode::BitcastConvert, Shape::array(U8, {1, 4}), {numbers(U32, {0x04030201})});
  CHECK(doubles(bytes) == Values{1, 2, 3, 4});
  CHECK(doubles(op.run(Opcode::BitcastConvert, Shape::array(U32, {1}), {bytes})) == Values{0x04030201});
  CHECK(doubles(op.run(Opcode::BitcastConvert, Shape::array(S4, {1, 2}), {numbers(S8, {0x7E})})) == Values{-2, 7});
  CHECK(doubles(op.run(Opcode::BitcastConvert, Shape::array(F32, {1}), {numbers(S32, {0x3F800000})})) == Values{1});
  Literal truths = op.run(Opcode::BitcastConvert, Shape::array(Pred, {4}), {numbers(U8, {0, 1, 2, 255})});
  CHECK(doubles(op.run(Opcode::BitcastConvert, Shape::array(U8, {4}), {truths})) == Values{0, 1, 1, 1});
}

TEST_CASE("bitcast keeps the physical order") {
  OneOp op;
  Shape columnMajor = Shape::array(F32, {2, 3}).withLayout({0, 1});
  Literal operand(columnMajor);
  for (int i = 0; i < 6; ++i)
    operand.setDouble(i, i);
  CHECK(doubles(op.run(Opcode::Bitcast, Shape::array(F32, {6}), {operand})) == Values{0, 3, 1, 4, 2, 5});
}

TEST_CASE("gather clamps every start") {
  OneOp op;
  auto gathered = [&](double start) {
    return doubles(op.run(Opcode::Gather, Shape::array(F32, {1}), {counted({10}), numbers(S32, {start})},
                          {op.ints(AttributeKey::OffsetDims, {0}),
                           op.ints(AttributeKey::CollapsedSliceDims, {}),
                           op.ints(AttributeKey::StartIndexMap, {0}),
                           {AttributeKey::IndexVectorDim, int64_t(0)},
                           op.ints(AttributeKey::SliceSizes, {1})}));
  };
  CHECK(gathered(12) == Values{9});
  CHECK(gathered(-2) == Values{0});
  CHECK(gathered(4) == Values{4});
}

TEST_CASE("gather of rows, with batch dimensions") {
  OneOp op;
  CHECK(doubles(op.run(Opcode::Gather, Shape::array(F32, {2, 3}), {counted({4, 3}), numbers(S32, {3, 1})},
                       {op.ints(AttributeKey::OffsetDims, {1}),
                        op.ints(AttributeKey::CollapsedSliceDims, {0}),
                        op.ints(AttributeKey::StartIndexMap, {0}),
                        {AttributeKey::IndexVectorDim, int64_t(1)},
                        op.ints(AttributeKey::SliceSizes, {1, 3})})) == Values{9, 10, 11, 3, 4, 5});
  // Along the last dimension, one index for each row.
  CHECK(doubles(op.run(Opcode::Gather, Shape::array(F32, {2}), {counted({2, 3}), numbers(S32, {2, 1}, {2, 0})},
                       {op.ints(AttributeKey::OffsetDims, {}),
                        op.ints(AttributeKey::CollapsedSliceDims, {1}),
                        op.ints(AttributeKey::StartIndexMap, {1}),
                        op.ints(AttributeKey::OperandBatchingDims, {0}),
                        op.ints(AttributeKey::StartIndicesBatchingDims, {0}),
                        {AttributeKey::IndexVectorDim, int64_t(1)},
                        op.ints(AttributeKey::SliceSizes, {1, 1})})) == Values{2, 3});
}

TEST_CASE("scatter leaves out windows that are not wholly inside") {
  OneOp op;
  HloComputation *add = op.binary(Opcode::Add, F32);
  auto scattered = [&](double start) {
    return doubles(op.run(Opcode::Scatter, Shape::array(F32, {10}),
                          {counted({10}), numbers(S32, {start}), numbers(F32, {100, 100, 100, 100})},
                          {op.ints(AttributeKey::UpdateWindowDims, {0}),
                           op.ints(AttributeKey::InsertedWindowDims, {}),
                           op.ints(AttributeKey::ScatterDimsToOperandDims, {0}),
                           {AttributeKey::IndexVectorDim, int64_t(0)},
                           {AttributeKey::ToApply, add}}));
  };
  CHECK(scattered(8) == range(10));
  CHECK(scattered(-1) == range(10));
  CHECK(scattered(6) == Values{0, 1, 2, 3, 4, 5, 106, 107, 108, 109});
}

TEST_CASE("scatter combines duplicates; a combiner that takes the update overwrites") {
  OneOp op;
  auto scattered = [&](HloComputation *combiner) {
    return doubles(op.run(Opcode::Scatter, Shape::array(S32, {3}),
                          {numbers(S32, {1, 1, 1}), numbers(S32, {3, 1}, {2, 0, 2}), numbers(S32, {10, 20, 30})},
                          {op.ints(AttributeKey::UpdateWindowDims, {}),
                           op.ints(AttributeKey::InsertedWindowDims, {0}),
                           op.ints(AttributeKey::ScatterDimsToOperandDims, {0}),
                           {AttributeKey::IndexVectorDim, int64_t(1)},
                           {AttributeKey::ToApply, combiner}}));
  };
  CHECK(scattered(op.binary(Opcode::Add, S32)) == Values{21, 1, 41});
  CHECK(scattered(op.second(S32)) == Values{20, 1, 30});
}
