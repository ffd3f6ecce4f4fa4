// Generator: elementwise ops, sources, data movement.
#include "fuzz/GeneratorState.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Key = AttributeKey;

HloInstruction *generateCompare(GeneratorState &g, HloInstruction *x) {
  ElementType type = x->shape().elementType();
  llvm::SmallVector<Attribute, 2> attributes{g.integer(Key::Direction, g.below(isComplex(type) ? 2 : 6))};
  if (isFloat(type) && g.oneIn(2))
    attributes.push_back(g.integer(Key::Type, static_cast<int64_t>(ComparisonType::TotalOrder)));
  return g.add(Opcode::Compare, {}, {x, g.withShape(x->shape())}, attributes);
}

HloInstruction *generateTernary(GeneratorState &g, Opcode opcode, HloInstruction *x) {
  const Shape &shape = x->shape();
  if (opcode == Opcode::Select) {
    Shape selector = g.oneIn(3) ? Shape::scalar(ElementType::Pred) : Shape::array(ElementType::Pred, shape.dims());
    return g.add(opcode, {}, {g.withShape(selector), x, g.withShape(shape)}, {});
  }
  if (isComplex(shape.elementType()))
    return nullptr; // no order to clamp by
  Shape scalar = Shape::scalar(shape.elementType());
  return g.add(opcode, {}, {g.withShape(g.oneIn(2) ? scalar : shape), x, g.withShape(g.oneIn(2) ? scalar : shape)}, {});
}

/// A result shape of bitcast-convert from x: same width, appended or removed last dimension.
Shape bitcastConvertShape(GeneratorState &g, const Shape &x, ElementType to) {
  unsigned from = bitWidth(x.elementType()), wanted = bitWidth(to);
  llvm::SmallVector<int64_t, 6> dims(x.dims());
  if (from > wanted)
    dims.push_back(from / wanted);
  if (from < wanted && !dims.empty())
    dims.pop_back();
  return g.laidOut(Shape::array(to, dims));
}

HloInstruction *generateConversion(GeneratorState &g, Opcode opcode, HloInstruction *x) {
  const Shape &shape = x->shape();
  ElementType to = g.anyType();
  if (opcode == Opcode::BitcastConvert) {
    unsigned ratio = bitWidth(to) / std::max(1u, bitWidth(shape.elementType()));
    if (ratio > 1 && (shape.rank() == 0 || shape.dims().back() != ratio))
      x = g.withShape(Shape::array(shape.elementType(), {g.between(1, 4), ratio}));
    return g.add(opcode, bitcastConvertShape(g, x->shape(), to), {x}, {});
  }
  if (opcode == Opcode::Convert)
    return g.add(opcode, g.laidOut(Shape::array(to, shape.dims())), {x}, {});
  static const std::pair<ElementType, ElementType> widths[] = {{ElementType::F32, ElementType::U32},
                                                               {ElementType::BF16, ElementType::U16},
                                                               {ElementType::F64, ElementType::U64}};
  auto [type, bits] = widths[g.below(std::size(widths))];
  HloInstruction *value = g.withShape(shape.withElementType(type)), *random = g.withShape(shape.withElementType(bits));
  return g.add(opcode, Shape::array(ElementType::S8, shape.dims()), {value, random}, {});
}

HloInstruction *generateConcatenate(GeneratorState &g, HloInstruction *x) {
  const Shape &shape = x->shape();
  int64_t dim = g.below(shape.rank());
  llvm::SmallVector<HloInstruction *, 4> operands{x};
  for (int64_t extra = g.below(3); extra > 0; --extra) {
    llvm::SmallVector<int64_t, 6> dims(shape.dims());
    if (!dims.empty())
      dims[dim] = g.between(0, 4);
    operands.push_back(g.withShape(Shape::array(shape.elementType(), dims)));
  }
  return g.add(Opcode::Concatenate, {}, operands, {g.ints(Key::Dimensions, {dim})});
}

HloInstruction *generatePad(GeneratorState &g, HloInstruction *x) {
  if (x->shape().rank() == 0)
    return nullptr; // there is no text for the padding of no dimensions
  llvm::SmallVector<PaddingDim, 4> padding;
  for (unsigned i = 0; i < x->shape().rank(); ++i)
    padding.push_back({g.between(-1, 2), g.between(-1, 2), g.below(2)});
  llvm::ArrayRef<PaddingDim> saved = g.module.arena().saveList(llvm::ArrayRef<PaddingDim>(padding));
  return g.add(Opcode::Pad, {}, {x, g.withShape(Shape::scalar(x->shape().elementType()))}, {{Key::Padding, saved}});
}

HloInstruction *generateSlice(GeneratorState &g, HloInstruction *x) {
  llvm::SmallVector<SliceDim, 4> ranges;
  llvm::SmallVector<int64_t, 6> dims;
  for (int64_t size : x->shape().dims()) {
    int64_t start = g.between(0, size), limit = g.between(start, size), stride = g.between(1, 3);
    ranges.push_back({start, limit, stride});
    dims.push_back((limit - start + stride - 1) / stride);
  }
  llvm::ArrayRef<SliceDim> saved = g.module.arena().saveList(llvm::ArrayRef<SliceDim>(ranges));
  return g.add(Opcode::Slice, g.laidOut(x->shape().withDims(dims)), {x}, {{Key::Slice, saved}});
}

HloInstruction *generateBroadcast(GeneratorState &g, HloInstruction *x) {
  unsigned rank = x->shape().rank() + g.below(3);
  llvm::SmallVector<int64_t, 6> places = g.permutation(rank), dims = g.smallDims(rank);
  places.resize(x->shape().rank());
  if (g.oneIn(2))
    llvm::sort(places);
  for (unsigned i = 0; i < places.size(); ++i)
    dims[places[i]] = x->shape().dim(i);
  return g.add(Opcode::Broadcast, g.laidOut(x->shape().withDims(dims)), {x}, {g.ints(Key::Dimensions, places)});
}

/// Splits or joins dimensions: the same number of elements in another shape.
llvm::SmallVector<int64_t, 6> regrouped(GeneratorState &g, const Shape &shape) {
  llvm::SmallVector<int64_t, 6> dims;
  int64_t left = shape.numElements();
  if (left == 0)
    return {0, g.between(1, 3)};
  for (int64_t factor : {2, 3, 2})
    if (left % factor == 0 && g.oneIn(2)) {
      dims.push_back(factor);
      left /= factor;
    }
  if (left != 1 || g.oneIn(3))
    dims.push_back(left);
  return dims;
}

} // namespace

HloInstruction *generateElementwise(GeneratorState &g, Opcode opcode) {
  HloInstruction *x = g.anyArrayInstruction();
  switch (family(opcode)) {
  case OpcodeFamily::Unary:
    if (opcode == Opcode::ReducePrecision)
      return g.add(opcode, {}, {x},
                   {g.integer(Key::ExponentBits, g.between(1, 8)), g.integer(Key::MantissaBits, g.below(10))});
    return g.add(opcode, {}, {x}, {});
  case OpcodeFamily::Binary:
    // The verifier lets complex extrema pass, as XLA's does, but nothing computes them.
    if ((opcode == Opcode::Maximum || opcode == Opcode::Minimum) && isComplex(x->shape().elementType()))
      return nullptr;
    return g.add(opcode, {}, {x, g.withShape(x->shape())}, {});
  case OpcodeFamily::Ternary:
    return generateTernary(g, opcode, x);
  case OpcodeFamily::Compare:
    return generateCompare(g, x);
  case OpcodeFamily::Convert:
    return generateConversion(g, opcode, x);
  default: // copy, opt-barrier
    return g.add(opcode, {}, {g.anyInstruction()}, {});
  }
}

HloInstruction *generateMovement(GeneratorState &g, Opcode opcode) {
  if (opcode == Opcode::Constant)
    return g.constant(g.anyArray());
  if (opcode == Opcode::Iota) {
    Shape shape = g.anyArray();
    return g.add(opcode, shape, {}, {g.integer(Key::IotaDimension, g.below(shape.rank()))});
  }
  HloInstruction *x = g.anyArrayInstruction();
  const Shape &shape = x->shape();
  switch (opcode) {
  case Opcode::Bitcast:
    return g.add(opcode, g.laidOut(shape.withDims(regrouped(g, shape))), {x}, {});
  case Opcode::Broadcast:
    return generateBroadcast(g, x);
  case Opcode::Concatenate:
    return generateConcatenate(g, x);
  case Opcode::Pad:
    return generatePad(g, x);
  case Opcode::Reshape:
    return g.add(opcode, g.laidOut(shape.withDims(regrouped(g, shape))), {x}, {});
  case Opcode::Reverse:
    return g.add(opcode, {}, {x}, {g.ints(Key::Dimensions, g.someOf(shape.rank()))});
  case Opcode::Slice:
    return generateSlice(g, x);
  case Opcode::Transpose:
    return g.add(opcode, {}, {x}, {g.ints(Key::Dimensions, g.permutation(shape.rank()))});
  case Opcode::GetDimensionSize:
    return g.add(opcode, {}, {x}, {g.ints(Key::Dimensions, {g.below(shape.rank())})});
  default:
    return generateIndexed(g, opcode);
  }
}

} // namespace hloc
