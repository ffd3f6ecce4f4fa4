#include "hloc/hlo/Literal.h"

#include "hloc/support/Check.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace hloc {

Literal::Literal(Shape shape) : literalShape(std::move(shape)) {
  if (literalShape.isTuple()) {
    for (const Shape &element : literalShape.elements())
      tupleElements.emplace_back(element);
    return;
  }
  if (literalShape.isArray())
    storage.resize(size_t(literalShape.numElements()) * hostBytes(literalShape.elementType()));
}

Literal Literal::tuple(std::vector<Literal> elements) {
  llvm::SmallVector<Shape> shapes;
  for (const Literal &element : elements)
    shapes.push_back(element.shape());
  Literal made;
  made.literalShape = Shape::tuple(shapes);
  made.tupleElements = std::move(elements);
  return made;
}

Literal Literal::elided(Shape shape) {
  HLOC_CHECK(shape.isArray(), "elided values of something other than an array");
  Literal made;
  made.literalShape = std::move(shape);
  made.valuesUnknown = true;
  return made;
}

uint64_t Literal::getBits(int64_t index) const {
  if (valuesUnknown)
    return 0;
  unsigned width = hostBytes(literalShape.elementType());
  HLOC_CHECK(width <= 8, "bit pattern of a c128 element");
  uint64_t pattern = 0;
  std::memcpy(&pattern, storage.data() + index * width, width);
  return pattern;
}

void Literal::setBits(int64_t index, uint64_t pattern) {
  HLOC_CHECK(!valuesUnknown, "write to an elided literal");
  unsigned width = hostBytes(literalShape.elementType());
  HLOC_CHECK(width <= 8, "bit pattern of a c128 element");
  std::memcpy(storage.data() + index * width, &pattern, width);
}

int64_t Literal::getInt(int64_t index) const {
  uint64_t pattern = getBits(index);
  unsigned bits = bitWidth(literalShape.elementType());
  if (!isSigned(literalShape.elementType()) || bits == 64)
    return int64_t(pattern);
  return int64_t(pattern << (64 - bits)) >> (64 - bits);
}

double Literal::getDouble(int64_t index) const {
  ElementType type = literalShape.elementType();
  if (type == ElementType::F64) // what is asked for most
    return std::bit_cast<double>(getBits(index));
  if (type == ElementType::F32)
    return double(std::bit_cast<float>(uint32_t(getBits(index))));
  if (isFloat(type))
    return decodeFloat(floatFormat(type), getBits(index));
  return type == ElementType::U64 ? double(getBits(index)) : double(getInt(index));
}

std::complex<double> Literal::getComplex(int64_t index) const {
  if (valuesUnknown)
    return 0;
  if (literalShape.elementType() == ElementType::C64) {
    auto value = data<std::complex<float>>()[index];
    return {value.real(), value.imag()};
  }
  if (literalShape.elementType() == ElementType::C128)
    return data<std::complex<double>>()[index];
  return getDouble(index);
}

void Literal::setInt(int64_t index, int64_t value) {
  ElementType type = literalShape.elementType();
  if (isPred(type))
    return setBits(index, value != 0);
  unsigned bits = bitWidth(type);
  uint64_t pattern = uint64_t(value);
  if (bits < 64) {
    pattern &= (uint64_t(1) << bits) - 1;
    if (isSigned(type)) // sub-byte values are kept sign-extended in their byte
      pattern = uint64_t(int64_t(pattern << (64 - bits)) >> (64 - bits));
  }
  setBits(index, pattern);
}

void Literal::setDouble(int64_t index, double value) {
  ElementType type = literalShape.elementType();
  if (type == ElementType::C64)
    mutableData<std::complex<float>>()[index] = {float(value), 0};
  else if (type == ElementType::C128)
    mutableData<std::complex<double>>()[index] = value;
  else
    setBits(index, encodeFloat(floatFormat(type), value));
}

void Literal::setComplex(int64_t index, std::complex<double> value) {
  if (literalShape.elementType() == ElementType::C64)
    mutableData<std::complex<float>>()[index] = {float(value.real()), float(value.imag())};
  else
    mutableData<std::complex<double>>()[index] = value;
}

bool Literal::isSplat() const {
  if (valuesUnknown)
    return numElements() > 0;
  if (isTuple() || storage.empty())
    return false;
  unsigned width = hostBytes(literalShape.elementType());
  return std::equal(storage.begin() + width, storage.end(), storage.begin());
}

bool Literal::operator==(const Literal &other) const {
  return literalShape.compatible(other.literalShape) && storage == other.storage &&
         valuesUnknown == other.valuesUnknown && tupleElements == other.tupleElements;
}

namespace {

/// Calls visit(logicalIndex, physicalIndex) for every element, in physical order.
template <typename Visit> void forEachPhysical(const Shape &shape, Visit visit) {
  int64_t count = shape.numElements();
  if (shape.hasDefaultLayout()) {
    for (int64_t i = 0; i < count; ++i)
      visit(i, i);
    return;
  }
  unsigned rank = shape.rank();
  llvm::SmallVector<int64_t, 6> strides(rank, 1), index(rank, 0);
  for (int i = int(rank) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape.dim(i + 1);
  int64_t logical = 0;
  for (int64_t physical = 0; physical < count; ++physical) {
    visit(logical, physical);
    for (int64_t dim : shape.minorToMajor()) {
      logical += strides[dim];
      if (++index[dim] < shape.dim(dim))
        break;
      logical -= strides[dim] * shape.dim(dim);
      index[dim] = 0;
    }
  }
}

} // namespace

bool isDeviceOrder(const Shape &shape) { return deviceBits(shape.elementType()) >= 8 && shape.hasDefaultLayout(); }

std::vector<uint8_t> toDeviceBytes(const Literal &literal) {
  const Shape &shape = literal.shape();
  if (literal.isElided())
    return std::vector<uint8_t>(shape.byteSize());
  if (isDeviceOrder(shape))
    return literal.bytes().vec();
  unsigned bits = deviceBits(shape.elementType());
  unsigned width = hostBytes(shape.elementType());
  std::vector<uint8_t> out(shape.byteSize());
  const uint8_t *in = literal.bytes().data();
  if (bits >= 8) {
    forEachPhysical(shape, [&](int64_t from, int64_t to) { std::memcpy(&out[to * width], in + from * width, width); });
    return out;
  }
  unsigned mask = (1u << bits) - 1;
  forEachPhysical(shape, [&](int64_t from, int64_t to) {
    uint64_t bit = uint64_t(to) * bits;
    out[bit / 8] |= uint8_t((in[from] & mask) << (bit % 8));
  });
  return out;
}

std::vector<uint8_t> toDeviceBytes(const Literal &literal, const Shape &shape) {
  HLOC_CHECK(shape.compatible(literal.shape()), "a literal of another shape");
  if (literal.isElided() || shape == literal.shape())
    return toDeviceBytes(literal);
  if (isDeviceOrder(shape))
    return literal.bytes().vec();
  Literal typed(shape);
  llvm::copy(literal.bytes(), typed.mutableBytes().begin());
  return toDeviceBytes(typed);
}

Literal fromDeviceBytes(const Shape &shape, llvm::ArrayRef<uint8_t> bytes) {
  HLOC_CHECK(int64_t(bytes.size()) >= shape.byteSize(), "device buffer smaller than its shape");
  Literal literal(shape);
  unsigned bits = deviceBits(shape.elementType());
  unsigned width = hostBytes(shape.elementType());
  uint8_t *out = literal.mutableBytes().data();
  if (isDeviceOrder(shape)) {
    llvm::copy(bytes.take_front(literal.bytes().size()), out);
    return literal;
  }
  if (bits >= 8) {
    forEachPhysical(shape,
                    [&](int64_t to, int64_t from) { std::memcpy(out + to * width, &bytes[from * width], width); });
    return literal;
  }
  unsigned mask = (1u << bits) - 1;
  forEachPhysical(shape, [&](int64_t to, int64_t from) {
    uint64_t bit = uint64_t(from) * bits;
    unsigned pattern = (bytes[bit / 8] >> (bit % 8)) & mask;
    literal.setInt(to, isSigned(shape.elementType()) ? int64_t(pattern) : 0);
    if (!isSigned(shape.elementType()))
      out[to] = uint8_t(pattern);
  });
  return literal;
}

} // namespace hloc
