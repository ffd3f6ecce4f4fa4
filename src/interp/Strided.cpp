#include "interp/Strided.h"

#include <cstring>

namespace hloc::interp {

Index rowMajorStrides(llvm::ArrayRef<int64_t> dims) {
  Index strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  return strides;
}

int64_t product(llvm::ArrayRef<int64_t> dims) {
  int64_t result = 1;
  for (int64_t dim : dims)
    result *= dim;
  return result;
}

int64_t linearIndex(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> strides) {
  int64_t linear = 0;
  for (size_t i = 0; i < index.size(); ++i)
    linear += index[i] * strides[i];
  return linear;
}

namespace {

/// A copy without size-1 dimensions, and with dimensions that both sides step through as one joined.
struct Plan {
  Index dims, to, from;

  Plan(llvm::ArrayRef<int64_t> boxDims, llvm::ArrayRef<int64_t> toStrides, llvm::ArrayRef<int64_t> fromStrides) {
    for (size_t i = 0; i < boxDims.size(); ++i) {
      if (boxDims[i] == 1)
        continue;
      bool joins =
          !dims.empty() && to.back() == toStrides[i] * boxDims[i] && from.back() == fromStrides[i] * boxDims[i];
      if (joins) {
        dims.back() *= boxDims[i];
        to.back() = toStrides[i];
        from.back() = fromStrides[i];
        continue;
      }
      dims.push_back(boxDims[i]);
      to.push_back(toStrides[i]);
      from.push_back(fromStrides[i]);
    }
    if (dims.empty()) {
      dims.push_back(1);
      to.push_back(1);
      from.push_back(1);
    }
  }
};

template <unsigned Width>
void copyRow(int64_t count, uint8_t *to, int64_t toStride, const uint8_t *from, int64_t fromStride) {
  if (toStride == 1 && fromStride == 1) {
    std::memcpy(to, from, size_t(count) * Width);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * toStride * Width, from + i * fromStride * Width, Width);
}

template <unsigned Width> void copyPlanned(const Plan &plan, uint8_t *to, const uint8_t *from) {
  llvm::ArrayRef<int64_t> outer = llvm::ArrayRef(plan.dims).drop_back();
  Index index(outer.size(), 0);
  int64_t toOffset = 0, fromOffset = 0;
  while (true) {
    copyRow<Width>(plan.dims.back(), to + toOffset * Width, plan.to.back(), from + fromOffset * Width,
                   plan.from.back());
    size_t i = outer.size();
    while (i-- > 0) {
      toOffset += plan.to[i];
      fromOffset += plan.from[i];
      if (++index[i] < outer[i])
        break;
      toOffset -= plan.to[i] * outer[i];
      fromOffset -= plan.from[i] * outer[i];
      index[i] = 0;
    }
    if (i == size_t(-1))
      return;
  }
}

template <typename View, typename Bytes>
View viewAt(const Literal &literal, Bytes *data, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> step) {
  View view{data, rowMajorStrides(literal.shape().dims())};
  if (literal.numElements() != 0) // an empty array has no element to point to
    view.data += linearIndex(start, view.strides) * int64_t(hostBytes(literal.shape().elementType()));
  for (size_t i = 0; i < step.size(); ++i)
    view.strides[i] *= step[i];
  return view;
}

} // namespace

void copyStrided(llvm::ArrayRef<int64_t> dims, unsigned width, StridedTarget target, StridedSource source) {
  if (product(dims) == 0)
    return;
  Plan plan(dims, target.strides, source.strides);
  switch (width) {
  case 1:
    return copyPlanned<1>(plan, target.data, source.data);
  case 2:
    return copyPlanned<2>(plan, target.data, source.data);
  case 4:
    return copyPlanned<4>(plan, target.data, source.data);
  case 8:
    return copyPlanned<8>(plan, target.data, source.data);
  default:
    return copyPlanned<16>(plan, target.data, source.data);
  }
}

StridedSource sourceAt(const Literal &literal, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> step) {
  return viewAt<StridedSource>(literal, literal.bytes().data(), start, step);
}
StridedTarget targetAt(Literal &literal, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> step) {
  return viewAt<StridedTarget>(literal, literal.mutableBytes().data(), start, step);
}

Literal sliceAt(const Literal &operand, unsigned dim, int64_t index) {
  Index box(operand.shape().dims().begin(), operand.shape().dims().end()), start(box.size(), 0), kept;
  box[dim] = 1;
  start[dim] = index;
  for (unsigned i = 0; i < box.size(); ++i)
    if (i != dim)
      kept.push_back(box[i]);
  Literal slice(Shape::array(operand.shape().elementType(), kept));
  copyStrided(box, hostBytes(operand.shape().elementType()), {slice.mutableBytes().data(), rowMajorStrides(box)},
              sourceAt(operand, start));
  return slice;
}

Literal transposed(const Literal &operand, llvm::ArrayRef<int64_t> permutation) {
  Index dims, fromStrides, strides = rowMajorStrides(operand.shape().dims());
  for (int64_t dim : permutation) {
    dims.push_back(operand.shape().dim(unsigned(dim)));
    fromStrides.push_back(strides[size_t(dim)]);
  }
  Literal result(Shape::array(operand.shape().elementType(), dims));
  copyStrided(dims, hostBytes(operand.shape().elementType()), targetAt(result, {}),
              {operand.bytes().data(), fromStrides});
  return result;
}

} // namespace hloc::interp
