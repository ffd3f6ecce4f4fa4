// Sources and data movement (hlo-text 6.3) with static positions; dynamic slices, gather and sort are elsewhere.
#include "ShapeInferenceContext.h"
#include "hloc/support/Check.h"

#include "hloc/hlo/Literal.h"

#include "llvm/Support/MathExtras.h"

namespace hloc {

namespace {

std::optional<Shape> inferIota(InferenceContext &c) {
  const Shape &result = c.declared();
  if (!result.isArray() || isPred(result.elementType()))
    return c.fail(VerifierRule::iota_c2, "cannot make " + show(result));
  int64_t dim = c.integer(AttributeKey::IotaDimension, -1);
  if (dim < 0 || dim >= result.rank())
    return c.fail(VerifierRule::iota_c1, "iota_dimension=" + llvm::Twine(dim) + " is no dimension of " + show(result));
  return result;
}

std::optional<Shape> inferBitcast(InferenceContext &c) {
  const Shape &x = c.operand(0), &result = c.declared();
  if (!result.isArray() || x.byteSize() != result.byteSize())
    return c.fail(VerifierRule::bitcast_c1,
                  "operand " + show(x) + " and result " + show(result) + " are not arrays of the same number of bytes");
  return result;
}

std::optional<Shape> inferBroadcast(InferenceContext &c) {
  const Shape &x = c.operand(0);
  Dims dims = c.ints(AttributeKey::Dimensions);
  if (dims.size() != x.rank())
    return c.fail(VerifierRule::broadcast_c1,
                  "dimensions " + show(dims) + " do not have one entry for each dimension of " + show(x));
  if (!c.declaresArray()) {
    if (x.isScalar() && c.isOmitted())
      return x;
    return c.fail(VerifierRule::broadcast_c4, "the result shape of a broadcast must be written");
  }
  const Shape &result = c.declared();
  if (!distinctInRange(dims, result.rank()))
    return c.fail(VerifierRule::broadcast_c2,
                  "dimensions " + show(dims) + " are not distinct dimensions of " + show(result));
  for (unsigned i = 0; i < dims.size(); ++i)
    if (x.dim(i) != result.dim(dims[i]))
      return c.fail(VerifierRule::broadcast_c3, "operand dimension " + llvm::Twine(i) + " of " + show(x) +
                                                    " differs in size from result dimension " + llvm::Twine(dims[i]) +
                                                    " of " + show(result));
  return InferenceContext::elementwise(result, x.elementType());
}

std::optional<Shape> inferConcatenate(InferenceContext &c) {
  const Shape &first = c.operand(0);
  Dims dims = c.ints(AttributeKey::Dimensions);
  if (dims.size() != 1 || dims[0] < 0 || dims[0] >= first.rank())
    return c.fail(VerifierRule::concatenate_c1,
                  "dimensions " + show(dims) + " must name one dimension of " + show(first));
  DimVector sizes(first.dims());
  for (unsigned i = 1; i < c.numOperands(); ++i) {
    const Shape &x = c.operand(i);
    if (x.elementType() != first.elementType())
      return c.fail(VerifierRule::concatenate_c3,
                    "operands " + show(first) + " and " + show(x) + " differ in element type");
    bool agrees = x.rank() == first.rank();
    for (unsigned d = 0; agrees && d < x.rank(); ++d)
      agrees = d == dims[0] || x.dim(d) == first.dim(d);
    if (!agrees)
      return c.fail(VerifierRule::concatenate_c2, "operands " + show(first) + " and " + show(x) +
                                                      " differ outside dimension " + llvm::Twine(dims[0]));
    if (llvm::AddOverflow(sizes[dims[0]], x.dim(dims[0]), sizes[dims[0]]))
      return c.fail(VerifierRule::shape_c1, "the result is too large");
  }
  return c.array(first.elementType(), sizes);
}

std::optional<Shape> inferPad(InferenceContext &c) {
  const Shape &x = c.operand(0), &value = c.operand(1);
  if (!value.isScalar() || value.elementType() != x.elementType())
    return c.fail(VerifierRule::pad_c1, "the padding value " + show(value) + " is no scalar of the type of " + show(x));
  const auto *padding = c.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding);
  if (!padding || padding->size() != x.rank())
    return c.fail(VerifierRule::pad_c2, "padding does not have one entry for each dimension of " + show(x));
  DimVector sizes;
  for (unsigned i = 0; i < x.rank(); ++i) {
    const PaddingDim &pad = (*padding)[i];
    int64_t interior = 0, size = 0;
    bool overflow = llvm::MulOverflow(std::max<int64_t>(x.dim(i) - 1, 0), pad.interior, interior) ||
                    llvm::AddOverflow(x.dim(i), interior, size) || llvm::AddOverflow(size, pad.low, size) ||
                    llvm::AddOverflow(size, pad.high, size);
    if (pad.interior < 0 || (!overflow && size < 0))
      return c.fail(VerifierRule::pad_c3, "padding of dimension " + llvm::Twine(i) + " of " + show(x) + " gives size " +
                                              llvm::Twine(size) + " with interior " + llvm::Twine(pad.interior));
    if (overflow)
      return c.fail(VerifierRule::shape_c1, "padding of dimension " + llvm::Twine(i) + " of " + show(x) + " overflows");
    sizes.push_back(size);
  }
  return c.array(x.elementType(), sizes);
}

std::optional<Shape> inferReshape(InferenceContext &c) {
  const Shape &x = c.operand(0), &result = c.declared();
  if (!result.isArray() || result.elementType() != x.elementType())
    return c.fail(VerifierRule::reshape_c1, "operand " + show(x) + " and result " + show(result) + " differ in type");
  if (result.numElements() != x.numElements())
    return c.fail(VerifierRule::reshape_c2,
                  "operand " + show(x) + " and result " + show(result) + " differ in the number of elements");
  return result;
}

std::optional<Shape> inferDynamicReshape(InferenceContext &c) {
  if (!c.declaresArray() || c.numOperands() != c.declared().rank() + 1)
    return c.fail(VerifierRule::dynamic_reshape_c1,
                  llvm::Twine(c.numOperands() - 1) + " sizes do not make " + show(c.declared()));
  for (unsigned i = 1; i < c.numOperands(); ++i)
    if (!c.operand(i).isScalar() || c.operand(i).elementType() != ElementType::S32)
      return c.fail(VerifierRule::dynamic_reshape_c1, "size " + show(c.operand(i)) + " is no s32 scalar");
  return InferenceContext::elementwise(c.declared(), c.operand(0).elementType());
}

std::optional<Shape> inferReverse(InferenceContext &c) {
  const Shape &x = c.operand(0);
  Dims dims = c.ints(AttributeKey::Dimensions);
  if (!distinctInRange(dims, x.rank()))
    return c.fail(VerifierRule::reverse_c1, "dimensions " + show(dims) + " are not distinct dimensions of " + show(x));
  return x;
}

std::optional<Shape> inferSlice(InferenceContext &c) {
  const Shape &x = c.operand(0);
  const auto *ranges = c.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice);
  if (!ranges || ranges->size() != x.rank())
    return c.fail(VerifierRule::slice_c1, "slice does not have one range for each dimension of " + show(x));
  DimVector sizes;
  for (unsigned i = 0; i < x.rank(); ++i) {
    const SliceDim &range = (*ranges)[i];
    if (range.start < 0 || range.start > range.limit || range.limit > x.dim(i) || range.stride < 1)
      return c.fail(VerifierRule::slice_c2, "range [" + llvm::Twine(range.start) + ":" + llvm::Twine(range.limit) +
                                                ":" + llvm::Twine(range.stride) + "] does not lie in dimension " +
                                                llvm::Twine(i) + " of " + show(x));
    // ceil without overflow for strides near 2^63
    int64_t length = range.limit - range.start;
    sizes.push_back(length / range.stride + (length % range.stride != 0));
  }
  return c.array(x.elementType(), sizes);
}

std::optional<Shape> inferTranspose(InferenceContext &c) {
  const Shape &x = c.operand(0);
  Dims dims = c.ints(AttributeKey::Dimensions);
  if (dims.size() != x.rank() || !distinctInRange(dims, x.rank()))
    return c.fail(VerifierRule::transpose_c1,
                  "dimensions " + show(dims) + " are no permutation of those of " + show(x));
  DimVector sizes;
  for (int64_t dim : dims)
    sizes.push_back(x.dim(dim));
  return c.array(x.elementType(), sizes);
}

std::optional<Shape> inferDimensionSize(InferenceContext &c) {
  const Shape &x = c.operand(0);
  Dims dims = c.ints(AttributeKey::Dimensions);
  if (dims.size() != 1 || dims[0] < 0 || dims[0] >= x.rank())
    return c.fail(VerifierRule::get_dimension_size_c1,
                  "dimensions " + show(dims) + " must name one dimension of " + show(x));
  if (c.opcode() == Opcode::GetDimensionSize)
    return Shape::scalar(ElementType::S32);
  const Shape &size = c.operand(1);
  if (!size.isScalar() || size.elementType() != ElementType::S32)
    return c.fail(VerifierRule::set_dimension_size_c1, "the size is " + show(size) + ", not an s32 scalar");
  llvm::SmallVector<bool, 6> dynamic;
  for (unsigned i = 0; i < x.rank(); ++i)
    dynamic.push_back(x.isDynamic(i) || i == dims[0]);
  return Shape::array(x.elementType(), x.dims(), x.layout(), dynamic, x.layoutGiven());
}

} // namespace

std::optional<Shape> inferSource(InferenceContext &c) {
  switch (c.opcode()) {
  case Opcode::Constant:
    if (!c.literal() || !c.literal()->shape().compatible(c.declared()))
      return c.fail(VerifierRule::constant_c1, "the literal is " +
                                                   (c.literal() ? show(c.literal()->shape()) : "missing") +
                                                   ", declared " + show(c.declared()));
    return c.declared();
  case Opcode::Parameter:
    return c.declared();
  case Opcode::Iota:
    return inferIota(c);
  case Opcode::ReplicaId:
  case Opcode::PartitionId:
    return Shape::scalar(ElementType::U32);
  default:
    HLOC_UNREACHABLE("a source has no shape inference");
  }
}

std::optional<Shape> inferMovement(InferenceContext &c) {
  switch (c.opcode()) {
  case Opcode::Bitcast:
    return inferBitcast(c);
  case Opcode::Broadcast:
    return inferBroadcast(c);
  case Opcode::Concatenate:
    return inferConcatenate(c);
  case Opcode::DynamicReshape:
    return inferDynamicReshape(c);
  case Opcode::DynamicSlice:
    return inferDynamicSlice(c);
  case Opcode::DynamicUpdateSlice:
    return inferDynamicUpdateSlice(c);
  case Opcode::Gather:
    return inferGather(c);
  case Opcode::Pad:
    return inferPad(c);
  case Opcode::Reshape:
    return inferReshape(c);
  case Opcode::Reverse:
    return inferReverse(c);
  case Opcode::Slice:
    return inferSlice(c);
  case Opcode::Transpose:
    return inferTranspose(c);
  case Opcode::GetDimensionSize:
  case Opcode::SetDimensionSize:
    return inferDimensionSize(c);
  default:
    HLOC_UNREACHABLE("a data movement op has no shape inference");
  }
}

} // namespace hloc
