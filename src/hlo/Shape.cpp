#include "hloc/hlo/Shape.h"

#include "hloc/support/Check.h"

#include "llvm/Support/MathExtras.h"

namespace hloc {

llvm::SmallVector<int64_t, 6> defaultMinorToMajor(unsigned rank) {
  llvm::SmallVector<int64_t, 6> order(rank);
  for (unsigned i = 0; i < rank; ++i)
    order[i] = rank - 1 - i;
  return order;
}

Shape::Shape() : Shape(tuple({})) {}

Shape Shape::array(ElementType type, llvm::ArrayRef<int64_t> dims) {
  Layout layout;
  layout.minorToMajor = defaultMinorToMajor(dims.size());
  return array(type, dims, std::move(layout), {}, /*layoutGiven=*/false);
}

Shape Shape::array(ElementType type, llvm::ArrayRef<int64_t> dims, Layout layout, llvm::ArrayRef<bool> dynamic,
                   bool layoutGiven) {
  HLOC_CHECK(layout.minorToMajor.size() == dims.size(), "layout rank differs from shape rank");
  auto *made = new Storage();
  made->kind = Kind::Array;
  made->type = type;
  made->dims.assign(dims.begin(), dims.end());
  made->layout = std::move(layout);
  made->layoutGiven = layoutGiven;
  made->elements = 1;
  for (int64_t dim : dims)
    made->elements = dim == unbounded ? made->elements : llvm::SaturatingMultiply<uint64_t>(made->elements, dim);
  made->dynamic.assign(dynamic.begin(), dynamic.end());
  made->anyUnbounded = llvm::is_contained(dims, unbounded);
  made->anyDynamic = made->anyUnbounded || llvm::is_contained(dynamic, true);
  return Shape(llvm::IntrusiveRefCntPtr<const Storage>(made));
}

Shape Shape::tuple(llvm::ArrayRef<Shape> elements) {
  auto *made = new Storage();
  made->kind = Kind::Tuple;
  made->elementShapes.assign(elements.begin(), elements.end());
  for (const Shape &element : elements) {
    made->anyDynamic |= element.hasDynamicDims();
    made->anyUnbounded |= element.hasUnboundedDims();
    made->anyBuffer |= element.hasBuffer();
  }
  return Shape(llvm::IntrusiveRefCntPtr<const Storage>(made));
}

Shape Shape::token() {
  auto *made = new Storage();
  made->kind = Kind::Token;
  return Shape(llvm::IntrusiveRefCntPtr<const Storage>(made));
}

Shape Shape::opaque() {
  auto *made = new Storage();
  made->kind = Kind::Opaque;
  made->type = ElementType::Opaque;
  return Shape(llvm::IntrusiveRefCntPtr<const Storage>(made));
}

Shape Shape::buffer(const Shape &of) {
  auto *made = new Storage();
  made->kind = Kind::Buffer;
  made->type = of.elementType();
  made->dims = of.storage->dims;
  made->layout = of.storage->layout;
  made->elements = of.storage->elements;
  made->layoutGiven = of.storage->layoutGiven;
  made->anyDynamic = of.storage->anyDynamic;
  made->anyUnbounded = of.storage->anyUnbounded;
  made->anyBuffer = true;
  return Shape(llvm::IntrusiveRefCntPtr<const Storage>(made));
}

bool Shape::hasDefaultLayout() const {
  llvm::ArrayRef<int64_t> order = minorToMajor();
  for (unsigned i = 0; i < order.size(); ++i)
    if (order[i] != int64_t(order.size()) - 1 - i)
      return false;
  return true;
}

int64_t Shape::byteSize() const { return isArray() ? deviceBytes(elementType(), numElements()) : 0; }

Shape Shape::withElementType(ElementType type) const {
  return array(type, dims(), layout(), storage->dynamic, layoutGiven());
}

Shape Shape::withDims(llvm::ArrayRef<int64_t> dims) const { return array(elementType(), dims); }

Shape Shape::withLayout(llvm::ArrayRef<int64_t> minorToMajor) const {
  Layout layout;
  layout.minorToMajor.assign(minorToMajor.begin(), minorToMajor.end());
  return array(elementType(), dims(), std::move(layout), storage->dynamic);
}

Shape Shape::withDefaultLayout() const {
  if (isTuple()) {
    llvm::SmallVector<Shape> converted;
    for (const Shape &element : elements())
      converted.push_back(element.withDefaultLayout());
    return tuple(converted);
  }
  return isArray() ? withLayout(defaultMinorToMajor(rank())) : *this;
}

namespace {

/// Walks two shapes in step; `leafEqual` decides on non-tuples. Shapes nest at most as deep as the parser allows.
template <typename LeafEqual> bool equalTrees(const Shape &a, const Shape &b, LeafEqual leafEqual) {
  if (a.identity() == b.identity())
    return true;
  if (a.isTuple() != b.isTuple())
    return false;
  if (!a.isTuple())
    return a.isArray() == b.isArray() && a.isToken() == b.isToken() && a.isBuffer() == b.isBuffer() && leafEqual(a, b);
  if (a.elements().size() != b.elements().size())
    return false;
  for (auto [x, y] : llvm::zip(a.elements(), b.elements()))
    if (!equalTrees(x, y, leafEqual))
      return false;
  return true;
}

} // namespace

bool Shape::compatible(const Shape &other) const {
  return equalTrees(*this, other, [](const Shape &a, const Shape &b) {
    return a.elementType() == b.elementType() && a.dims() == b.dims();
  });
}

bool Shape::compatibleIgnoringFloatPrecision(const Shape &other) const {
  return equalTrees(*this, other, [](const Shape &a, const Shape &b) {
    bool types = a.elementType() == b.elementType() || (isFloat(a.elementType()) && isFloat(b.elementType()));
    return types && a.dims() == b.dims();
  });
}

bool Shape::operator==(const Shape &other) const {
  return equalTrees(*this, other, [](const Shape &a, const Shape &b) {
    if (a.elementType() != b.elementType() || a.dims() != b.dims() || !(a.layout() == b.layout()))
      return false;
    for (unsigned i = 0; i < a.rank(); ++i)
      if (a.isDynamic(i) != b.isDynamic(i))
        return false;
    return true;
  });
}

namespace {

void print(const Shape &shape, bool withLayout, std::string &out);

void printArray(const Shape &shape, bool withLayout, std::string &out) {
  out += text(shape.elementType());
  out += '[';
  for (unsigned i = 0; i < shape.rank(); ++i) {
    if (i)
      out += ',';
    if (shape.dim(i) == Shape::unbounded)
      out += '?';
    else
      out += (shape.isDynamic(i) ? "<=" : "") + std::to_string(shape.dim(i));
  }
  out += ']';
  const Layout &layout = shape.layout();
  bool hasExtras = !layout.extras.empty() || layout.elementSizeBits || layout.memorySpace;
  if (!withLayout || (shape.rank() == 0 && !hasExtras))
    return;
  out += '{';
  for (unsigned i = 0; i < layout.minorToMajor.size(); ++i)
    out += (i ? "," : "") + std::to_string(layout.minorToMajor[i]);
  if (hasExtras) {
    out += ':' + layout.extras;
    if (layout.elementSizeBits)
      out += "E(" + std::to_string(layout.elementSizeBits) + ")";
    if (layout.memorySpace)
      out += "S(" + std::to_string(layout.memorySpace) + ")";
  }
  out += '}';
}

void print(const Shape &shape, bool withLayout, std::string &out) {
  if (shape.isToken()) {
    out += "token[]";
  } else if (shape.isOpaque()) {
    out += "opaque[]";
  } else if (shape.isBuffer()) {
    out += "b(";
    printArray(shape, withLayout, out);
    out += ')';
  } else if (shape.isArray()) {
    printArray(shape, withLayout, out);
  } else {
    out += '(';
    for (unsigned i = 0; i < shape.elements().size(); ++i) {
      if (i)
        out += ", ";
      if (i && i % 5 == 0)
        out += "/*index=" + std::to_string(i) + "*/";
      print(shape.element(i), withLayout, out);
    }
    out += ')';
  }
}

void collectLeaves(const Shape &shape, llvm::SmallVectorImpl<int64_t> &path, llvm::SmallVectorImpl<Shape::Leaf> &out) {
  if (!shape.isTuple()) {
    out.push_back({llvm::SmallVector<int64_t, 2>(path.begin(), path.end()), shape});
    return;
  }
  for (unsigned i = 0; i < shape.elements().size(); ++i) {
    path.push_back(i);
    collectLeaves(shape.element(i), path, out);
    path.pop_back();
  }
}

} // namespace

std::string Shape::toString(bool withLayout) const {
  std::string out;
  print(*this, withLayout, out);
  return out;
}

llvm::SmallVector<Shape::Leaf, 4> Shape::leaves() const {
  llvm::SmallVector<Leaf, 4> out;
  llvm::SmallVector<int64_t, 4> path;
  collectLeaves(*this, path, out);
  return out;
}

} // namespace hloc
