#include "interp/SlidingWindows.h"

#include "interp/ParameterReader.h"
#include "interp/Strided.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>

namespace hloc::interp {

namespace {

/// The elements [begin, end) of `size` that a window meets.
struct Met {
  int64_t begin, end;

  Met(const WindowDim &window, int64_t result, int64_t size)
      : begin(std::max<int64_t>(0, result * window.stride - window.padLow)),
        end(std::min(size, result * window.stride - window.padLow + window.size)) {}
};

/// into[i] = a[i] op b[i] of rows of elements.
class RowCombiner {
public:
  RowCombiner(ScalarFunction &function, ElementType type, bool sumsFloats)
      : function(function), sumsFloats(sumsFloats), width(hostBytes(type)), load(loadFunction(type)),
        store(storeFunction(type)) {}

  void operator()(uint8_t *into, const uint8_t *a, const uint8_t *b, int64_t count) {
    if (sumsFloats) {
      auto *sum = reinterpret_cast<double *>(into);
      const auto *x = reinterpret_cast<const double *>(a), *y = reinterpret_cast<const double *>(b);
      for (int64_t i = 0; i < count; ++i)
        sum[i] = x[i] + y[i];
      return;
    }
    for (int64_t done = 0; done < count; done += maxLanes) {
      const int64_t some = std::min(maxLanes, count - done), at = done * int64_t(width);
      load(a + at, left.bytes, some);
      load(b + at, right.bytes, some);
      function.run({left.bytes, right.bytes}, {combined.bytes}, some);
      store(combined.bytes, into + at, some);
    }
  }

private:
  ScalarFunction &function;
  bool sumsFloats;
  size_t width;
  Load load;
  Store store;
  LaneBuffer left, right, combined;
};

/// `array`, whose dimension 0 is slid along, as windows of it.
Literal slideAlongFirst(const Literal &array, const WindowDim &window, int64_t numResults, RowCombiner &combine) {
  const int64_t size = array.shape().dim(0), row = size ? array.numElements() / size : 0;
  const size_t bytes = size_t(row) * hostBytes(array.shape().elementType());
  Literal upTo = array, from = array;
  auto rowOf = [&](Literal &of, int64_t i) { return of.mutableBytes().data() + size_t(i) * bytes; };
  for (int64_t i = 1; i < size; ++i)
    if (i % window.size != 0)
      combine(rowOf(upTo, i), rowOf(upTo, i - 1), rowOf(upTo, i), row);
  for (int64_t i = size - 1; i-- > 0;)
    if ((i + 1) % window.size != 0)
      combine(rowOf(from, i), rowOf(from, i), rowOf(from, i + 1), row);
  Index dims(array.shape().dims());
  dims[0] = numResults;
  Literal result(Shape::array(array.shape().elementType(), dims));
  for (int64_t r = 0; r < numResults; ++r) {
    const Met met(window, r, size);
    if (met.begin >= met.end)
      continue;
    const int64_t last = met.end - 1;
    uint8_t *to = rowOf(result, r);
    if (met.begin / window.size != last / window.size)
      combine(to, rowOf(from, met.begin), rowOf(upTo, last), row);
    else // all of a block, or what the array has of a window at one of its ends
      std::copy_n(met.begin % window.size == 0 ? rowOf(upTo, last) : rowOf(from, met.begin), bytes, to);
  }
  return result;
}

/// The array with two of its dimensions exchanged.
Literal exchanged(const Literal &array, unsigned a, unsigned b) {
  Index order(array.shape().rank(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[a], order[b]);
  return transposed(array, order);
}

Literal asF64(const Literal &array) {
  Literal made(Shape::array(ElementType::F64, array.shape().dims()));
  ParameterReader reader(array, ElementType::F64);
  auto to = made.mutableData<double>();
  for (int64_t start = 0; start < array.numElements(); start += maxLanes) {
    const int64_t count = std::min(maxLanes, array.numElements() - start);
    std::copy_n(static_cast<const double *>(reader.read(start, count)), count, to.data() + start);
  }
  return made;
}

} // namespace

bool areLargeWindows(const Window &window) {
  constexpr int64_t large = 256; // elements
  int64_t size = 1;
  for (const WindowDim &dim : window.dims) {
    if (dim.baseDilation != 1 || dim.windowDilation != 1)
      return false;
    size = llvm::SaturatingMultiply<uint64_t>(uint64_t(size), uint64_t(dim.size)) & uint64_t(INT64_MAX);
  }
  return size >= large;
}

bool meetsNothing(const Window &window, llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> operandDims) {
  for (auto [dim, result, size] : llvm::zip_equal(window.dims, index, operandDims))
    if (const Met met(dim, result, size); met.begin >= met.end)
      return true;
  return false;
}

Literal combineWindows(const Literal &operand, const Window &window, llvm::ArrayRef<int64_t> resultDims,
                       ScalarFunction &function, bool sumsFloats) {
  Literal combined = sumsFloats ? asF64(operand) : operand;
  RowCombiner combine(function, combined.shape().elementType(), sumsFloats);
  for (unsigned i = 0; i < window.dims.size(); ++i) {
    const WindowDim &dim = window.dims[i];
    if (dim.size == 1 && dim.stride == 1 && dim.padLow == 0 && resultDims[i] == combined.shape().dim(i))
      continue;
    combined = exchanged(slideAlongFirst(exchanged(combined, 0, i), dim, resultDims[i], combine), 0, i);
  }
  return combined;
}

} // namespace hloc::interp
