#include "interp/BoundedValue.h"

#include "interp/LaneOp.h"

#include <cstring>
#include <thread>

namespace hloc::interp {

Bounded Bounded::tuple(std::vector<Bounded> elements) {
  Bounded made;
  std::vector<Value> values;
  for (const Bounded &element : elements)
    values.push_back(element.value);
  made.value = Value::tuple(std::move(values));
  made.elements = std::move(elements);
  return made;
}

bool Bounded::isBounded() const {
  return bounds || unrounded || llvm::any_of(elements, [](const Bounded &element) { return element.isBounded(); });
}

std::vector<Bounded *> leavesOf(Bounded &value) {
  if (!value.value.isTuple())
    return {&value};
  std::vector<Bounded *> leaves;
  for (Bounded &element : value.elements)
    llvm::append_range(leaves, leavesOf(element));
  return leaves;
}

ElementType boundsType(ElementType type) {
  return isFloat(type) ? ElementType::F64 : isComplex(type) ? ElementType::C128 : type;
}

Shape boundsShape(const Shape &shape) {
  if (!shape.isTuple())
    return shape.isArray() ? Shape::array(boundsType(shape.elementType()), shape.dims()) : shape;
  llvm::SmallVector<Shape, 4> elements;
  for (const Shape &element : shape.elements())
    elements.push_back(boundsShape(element));
  return Shape::tuple(elements);
}

namespace {

/// Converts all elements; the kernel for same compute types is none.
void convertElements(const Literal &from, Literal &to) {
  ElementType source = from.shape().elementType(), target = to.shape().elementType();
  Load load = loadFunction(source);
  Store store = storeFunction(target);
  Kernel kernel = computeType(source) == computeType(target) ? nullptr : convertKernel(source, target);
  inParallel(to.numElements(), maxLanes, [&](int64_t begin, int64_t end) {
    LaneBuffer loaded, converted;
    for (int64_t start = begin; start < end; start += maxLanes) {
      Lanes lanes;
      lanes.count = std::min(maxLanes, end - start);
      load(from.bytes().data() + start * hostBytes(source), loaded.bytes, lanes.count);
      lanes.operands[0] = loaded.bytes;
      lanes.result = converted.bytes;
      lanes.bits = bitWidth(target);
      if (kernel)
        kernel(lanes);
      store(kernel ? converted.bytes : loaded.bytes, to.mutableBytes().data() + start * hostBytes(target), lanes.count);
    }
  });
}

} // namespace

Literal asBound(const Literal &value) {
  if (boundsType(value.shape().elementType()) == value.shape().elementType())
    return value;
  Literal made(boundsShape(value.shape()));
  convertElements(value, made);
  return made;
}

BoundsPtr pointBounds(const Literal &value) {
  Literal bound = asBound(value);
  return std::make_shared<Bounds>(Bounds{bound, bound});
}

BoundsPtr boundsOrPoint(const Bounded &bounded) {
  return bounded.bounds ? bounded.bounds : pointBounds(bounded.array());
}

Literal asValue(const Literal &bound, const Shape &shape) {
  Literal made(Shape::array(shape.elementType(), bound.shape().dims()));
  if (bound.shape().elementType() == shape.elementType())
    llvm::copy(bound.bytes(), made.mutableBytes().begin());
  else
    convertElements(bound, made);
  return made;
}

BoundsPtr unknownBounds(const Literal &value) {
  ElementType type = value.shape().elementType();
  auto made =
      std::make_shared<Bounds>(Bounds{Literal(boundsShape(value.shape())), Literal(boundsShape(value.shape()))});
  int64_t count = value.numElements();
  if (isFloat(type) || isComplex(type)) {
    auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
    for (size_t i = 0; i < low.size(); ++i)
      setUnknown(low[i], high[i]);
  } else {
    unsigned bits = bitWidth(type);
    int64_t least = isSigned(type) ? -int64_t(uint64_t(1) << (bits - 1)) : 0;
    int64_t greatest = isPred(type)     ? 1
                       : isSigned(type) ? int64_t((uint64_t(1) << (bits - 1)) - 1)
                                        : int64_t(bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1);
    for (int64_t i = 0; i < count; ++i) {
      made->low.setInt(i, least);
      made->high.setInt(i, greatest);
    }
  }
  return made;
}

namespace {

Literal repeated(const Literal &scalar, int64_t count) {
  Literal made(Shape::array(scalar.shape().elementType(), {count}));
  size_t width = hostBytes(scalar.shape().elementType());
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(scalar.bytes().begin(), width, made.mutableBytes().begin() + size_t(i) * width);
  return made;
}
} // namespace

Bounded repeated(const Bounded &scalar, int64_t count) {
  BoundsPtr bounds;
  if (scalar.bounds)
    bounds =
        std::make_shared<Bounds>(Bounds{repeated(scalar.bounds->low, count), repeated(scalar.bounds->high, count)});
  return Bounded(Value(repeated(scalar.array(), count)), std::move(bounds));
}

bool isSpread(const Literal &low, const Literal &high, int64_t element) {
  size_t width = hostBytes(low.shape().elementType());
  auto at = size_t(element) * width;
  return std::memcmp(low.bytes().data() + at, high.bytes().data() + at, width) != 0;
}

bool isUnknown(const Literal &low, const Literal &high, int64_t element) {
  ElementType type = low.shape().elementType();
  if (isFloat(type))
    return isUnknown(low.data<double>()[size_t(element)], high.data<double>()[size_t(element)]);
  if (isComplex(type)) {
    auto least = low.data<double>(), greatest = high.data<double>();
    auto at = size_t(2 * element);
    return isUnknown(least[at], greatest[at]) || isUnknown(least[at + 1], greatest[at + 1]);
  }
  if (isPred(type))
    return isSpread(low, high, element);
  uint64_t mask = bitWidth(type) == 64 ? ~uint64_t(0) : (uint64_t(1) << bitWidth(type)) - 1;
  return ((high.getBits(element) - low.getBits(element)) & mask) == mask;
}

void inParallel(int64_t count, int64_t grain, llvm::function_ref<void(int64_t, int64_t)> work) {
  constexpr int64_t worthAThread = 1 << 15; // elements; starting a thread takes about as long as computing these
  int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  int64_t pieces = std::min(cores, count / worthAThread);
  if (pieces <= 1) {
    if (count > 0)
      work(0, count);
    return;
  }
  int64_t each = (count / pieces + grain - 1) / grain * grain;
  std::vector<std::thread> threads;
  for (int64_t begin = each; begin < count; begin += each)
    threads.emplace_back([&work, begin, end = std::min(count, begin + each)] { work(begin, end); });
  work(0, std::min(each, count));
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace hloc::interp
