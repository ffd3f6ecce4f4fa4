#include "fuzz/FusionMaker.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

using Key = AttributeKey;

/// Sizes at which plans change, those beside them, and primes.
constexpr int64_t edges[] = {1,    2,    3,    4,    5,     7,     8,     9,     12,    15,    16,   17,
                             24,   31,   32,   33,   37,    48,    61,    63,    64,    65,    96,   97,
                             127,  128,  129,  131,  251,   255,   256,   257,   384,   509,   511,  512,
                             513,  768,  1000, 1021, 1023,  1024,  1025,  2047,  2048,  2049,  4093, 4095,
                             4096, 4097, 8191, 8192, 16384, 16411, 32768, 65521, 65536, 131071};

std::vector<Opcode> opcodesOf(OpcodeFamily wanted) {
  std::vector<Opcode> found;
  for (unsigned i = 0; i < numOpcodes(); ++i)
    if (family(static_cast<Opcode>(i)) == wanted)
      found.push_back(static_cast<Opcode>(i));
  return found;
}

/// Functions of floats that no kernel has of complex numbers.
constexpr Opcode onlyOfFloats[] = {Opcode::Acos, Opcode::Acosh, Opcode::Asin, Opcode::Asinh, Opcode::Atanh};

template <typename T, size_t n> T oneOf(GeneratorState &g, const T (&values)[n]) { return values[g.below(n)]; }

} // namespace

FusionMaker::FusionMaker(GeneratorState &g, int64_t maxElements) : g(g), largest(std::max<int64_t>(1, maxElements)) {
  static const int64_t shares[] = {64, 64, 16, 16, 16, 4, 1};
  budget = std::max<int64_t>(1, g.oneIn(24) ? 64 : maxElements / oneOf(g, shares));
}

ElementType FusionMaker::anyType() {
  for (;;) {
    ElementType type = g.anyType();
    // No kernel takes single bits.
    if (bitWidth(type) > 1)
      return type;
  }
}

int64_t FusionMaker::edgeSize(int64_t most) {
  if (g.oneIn(300))
    return 0;
  size_t count = llvm::count_if(edges, [&](int64_t edge) { return edge <= most; });
  return count ? edges[g.below(count)] : 1;
}

FusionMaker::Dims FusionMaker::dims(unsigned least, unsigned most) {
  Dims order = g.permutation(g.between(least, most)), sizes(order.size(), 1);
  int64_t left = budget;
  for (int64_t dim : order) {
    sizes[dim] = edgeSize(left);
    left /= std::max<int64_t>(sizes[dim], 1);
  }
  return sizes;
}

Shape FusionMaker::anyLayout(const Shape &shape) {
  return shape.rank() < 2 || !g.oneIn(3) ? shape : shape.withLayout(g.permutation(shape.rank()));
}

Shape FusionMaker::anyArray(unsigned least, unsigned most) {
  return anyLayout(Shape::array(anyType(), dims(least, most)));
}

HloInstruction *FusionMaker::add(Opcode opcode, Operands operands, Attributes attributes, const Shape &declared,
                                 std::optional<llvm::ArrayRef<int64_t>> layout) {
  if (llvm::is_contained(operands, nullptr))
    return nullptr;
  std::string error, name = (text(opcode) + "." + llvm::Twine(g.entry->instructions().size())).str();
  InstructionSpec spec;
  spec.opcode = opcode;
  spec.shape = declared;
  spec.operands = operands;
  spec.attributes = attributes;
  spec.name = name;
  std::optional<Shape> shape = inferShape(spec, error);
  if (!shape || (shape->isArray() && shape->numElements() > 2 * std::max<int64_t>(budget, 64)))
    return nullptr;
  spec.shape = layout ? shape->withLayout(*layout) : *shape;
  return g.entry->add(spec);
}

HloInstruction *FusionMaker::parameter(const Shape &shape) {
  for (HloInstruction *known : g.entry->parameters())
    if (known->shape().compatible(shape) && g.oneIn(3))
      return known;
  return g.parameter(anyLayout(shape));
}

HloInstruction *FusionMaker::index(ElementType type, int64_t most) {
  if (!g.oneIn(3))
    return parameter(Shape::scalar(type));
  Literal literal(Shape::scalar(type));
  literal.setInt(0, g.between(isUnsigned(type) ? 0 : -2, std::min<int64_t>(most, 100) + 2));
  return HloBuilder(*g.entry).constant(std::move(literal), "i" + std::to_string(g.entry->instructions().size()));
}

HloInstruction *FusionMaker::operand(const Shape &shape) {
  if (shape.rank() > 0 && g.oneIn(3)) {
    // A scalar, or a vector along one dimension.
    Shape scalar = Shape::scalar(shape.elementType());
    if (g.oneIn(2))
      return add(Opcode::Broadcast, {g.oneIn(2) ? g.constant(scalar) : parameter(scalar)},
                 {g.ints(Key::Dimensions, {})}, shape, shape.minorToMajor());
    int64_t dim = g.below(shape.rank());
    return add(Opcode::Broadcast, {parameter(Shape::array(shape.elementType(), {shape.dim(dim)}))},
               {g.ints(Key::Dimensions, {dim})}, shape, shape.minorToMajor());
  }
  return parameter(shape);
}

HloInstruction *FusionMaker::unary(HloInstruction *x) {
  static const std::vector<Opcode> all = opcodesOf(OpcodeFamily::Unary);
  static const Opcode common[] = {Opcode::Negate, Opcode::Abs, Opcode::Tanh, Opcode::Not, Opcode::Floor};
  Opcode opcode = g.oneIn(2) ? oneOf(g, common) : all[g.below(all.size())];
  if (opcode == Opcode::ReducePrecision)
    return add(opcode, {x}, {g.integer(Key::ExponentBits, g.between(1, 8)), g.integer(Key::MantissaBits, g.below(10))});
  if (isComplex(x->shape().elementType()) && llvm::is_contained(onlyOfFloats, opcode))
    return nullptr;
  return add(opcode, {x});
}

HloInstruction *FusionMaker::binary(HloInstruction *x) {
  static const std::vector<Opcode> all = opcodesOf(OpcodeFamily::Binary);
  static const Opcode common[] = {Opcode::Add, Opcode::Multiply, Opcode::Subtract, Opcode::Maximum, Opcode::Minimum};
  Opcode opcode = g.oneIn(3) ? all[g.below(all.size())] : oneOf(g, common);
  if ((opcode == Opcode::Maximum || opcode == Opcode::Minimum) && isComplex(x->shape().elementType()))
    return nullptr;
  if (!includes(operandTypes(opcode), typeSet(x->shape().elementType())))
    return nullptr;
  HloInstruction *y = g.oneIn(8) ? x : operand(x->shape());
  return g.oneIn(4) ? add(opcode, {y, x}) : add(opcode, {x, y});
}

/// select, clamp
HloInstruction *FusionMaker::choice(HloInstruction *x) {
  const Shape &shape = x->shape();
  if (isComplex(shape.elementType()))
    return nullptr;
  if (g.oneIn(3)) {
    HloInstruction *low = parameter(Shape::scalar(shape.elementType()));
    return add(Opcode::Clamp, {low, x, operand(shape)});
  }
  HloInstruction *greater = add(Opcode::Compare, {x, operand(shape)}, {g.integer(Key::Direction, g.below(6))});
  return add(Opcode::Select, {greater, x, operand(shape)});
}

HloInstruction *FusionMaker::convert(HloInstruction *x, ElementType type) {
  if (!x || x->shape().elementType() == type)
    return x;
  return add(Opcode::Convert, {x}, {}, x->shape().withElementType(type));
}

HloInstruction *FusionMaker::step(HloInstruction *x) {
  switch (g.below(8)) {
  case 0:
  case 1:
  case 2:
    return unary(x);
  case 3:
    return g.oneIn(2) ? choice(x) : convert(x, anyType());
  default:
    return binary(x);
  }
}

HloInstruction *FusionMaker::elementwise(HloInstruction *x, int64_t most) {
  for (int64_t i = x ? g.between(0, most) : 0; i > 0; --i)
    if (HloInstruction *next = step(x))
      x = next;
  return x;
}

HloInstruction *FusionMaker::slice(HloInstruction *x) {
  llvm::SmallVector<SliceDim, 4> ranges;
  for (int64_t size : x->shape().dims()) {
    int64_t start = g.oneIn(2) ? 0 : g.between(0, size), limit = g.oneIn(2) ? size : g.between(start, size);
    ranges.push_back({start, limit, g.oneIn(4) ? g.between(2, 5) : 1});
  }
  llvm::ArrayRef<SliceDim> saved = g.module.arena().saveList(llvm::ArrayRef<SliceDim>(ranges));
  return add(Opcode::Slice, {x}, {{Key::Slice, saved}});
}

HloInstruction *FusionMaker::transpose(HloInstruction *x, llvm::ArrayRef<int64_t> permutation) {
  return add(Opcode::Transpose, {x}, {g.ints(Key::Dimensions, permutation)});
}

HloInstruction *FusionMaker::pad(HloInstruction *x) {
  llvm::SmallVector<PaddingDim, 4> padding;
  for (unsigned i = 0; i < x->shape().rank(); ++i)
    padding.push_back({g.between(-2, 3), g.between(-2, 3), g.oneIn(3) ? 1 : 0});
  if (padding.empty())
    return nullptr;
  llvm::ArrayRef<PaddingDim> saved = g.module.arena().saveList(llvm::ArrayRef<PaddingDim>(padding));
  return add(Opcode::Pad, {x, parameter(Shape::scalar(x->shape().elementType()))}, {{Key::Padding, saved}});
}

/// One more dimension somewhere.
HloInstruction *FusionMaker::broadcast(HloInstruction *x) {
  const Shape &shape = x->shape();
  int64_t size = edgeSize(std::max<int64_t>(2, budget / std::max<int64_t>(shape.numElements(), 1)));
  Dims sizes(shape.dims()), places;
  int64_t at = g.below(shape.rank() + 1);
  sizes.insert(sizes.begin() + at, size);
  for (int64_t i = 0; i < int64_t(sizes.size()); ++i)
    if (i != at)
      places.push_back(i);
  return add(Opcode::Broadcast, {x}, {g.ints(Key::Dimensions, places)}, shape.withDims(sizes));
}

/// Two dimensions become one, or one two.
HloInstruction *FusionMaker::regroup(HloInstruction *x) {
  const Shape &shape = x->shape();
  if (shape.rank() == 0)
    return nullptr;
  Dims sizes(shape.dims());
  int64_t at = g.below(shape.rank());
  if (at + 1 < int64_t(shape.rank()) && g.oneIn(2)) {
    sizes[at] *= sizes[at + 1];
    sizes.erase(sizes.begin() + at + 1);
  } else {
    int64_t inner = g.between(2, 4);
    if (sizes[at] % inner)
      inner = 1;
    sizes[at] /= inner;
    sizes.insert(sizes.begin() + at + 1, inner);
  }
  Opcode opcode = g.oneIn(2) ? Opcode::Bitcast : Opcode::Reshape;
  return add(opcode, {x}, {}, shape.withDims(sizes));
}

HloInstruction *FusionMaker::dynamicSlice(HloInstruction *x) {
  Dims sizes;
  llvm::SmallVector<HloInstruction *, 6> operands{x};
  ElementType type = g.oneIn(3) ? ElementType::S64 : ElementType::S32;
  for (int64_t size : x->shape().dims()) {
    sizes.push_back(g.oneIn(2) ? size : g.between(std::min<int64_t>(size, 1), size));
    operands.push_back(index(type, size));
  }
  return add(Opcode::DynamicSlice, operands, {g.ints(Key::DynamicSliceSizes, sizes)});
}

HloInstruction *FusionMaker::move(HloInstruction *x) {
  const Shape &shape = x->shape();
  HloInstruction *made = nullptr;
  switch (g.below(8)) {
  case 0:
    made = slice(x);
    break;
  case 1:
    made = add(Opcode::Reverse, {x}, {g.ints(Key::Dimensions, g.someOf(shape.rank()))});
    break;
  case 2:
    made = pad(x);
    break;
  case 3:
    made = broadcast(x);
    break;
  case 4:
    made = regroup(x);
    break;
  case 5:
    made = dynamicSlice(x);
    break;
  case 6:
    made = shape.rank()
               ? add(Opcode::Concatenate, {x, operand(shape)}, {g.ints(Key::Dimensions, {g.below(shape.rank())})})
               : nullptr;
    break;
  default:
    made = transpose(x, g.permutation(shape.rank()));
    break;
  }
  return made ? made : x;
}

} // namespace hloc
