#include "ShapeInferenceContext.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace hloc {

llvm::SmallVector<Shape, 4> InferenceContext::operandShapes(unsigned begin, unsigned end) const {
  llvm::SmallVector<Shape, 4> shapes;
  for (unsigned i = begin; i < end; ++i)
    shapes.push_back(operand(i));
  return shapes;
}

const AttributeValue *InferenceContext::find(AttributeKey key) const {
  for (const Attribute &attribute : spec.attributes)
    if (attribute.key == key)
      return &attribute.value;
  return nullptr;
}

Dims InferenceContext::ints(AttributeKey key) const {
  const auto *value = get<Dims>(key);
  return value ? *value : Dims();
}

int64_t InferenceContext::integer(AttributeKey key, int64_t otherwise) const {
  const auto *value = get<int64_t>(key);
  return value ? *value : otherwise;
}

bool InferenceContext::flag(AttributeKey key, bool otherwise) const {
  const auto *value = get<bool>(key);
  return value ? *value : otherwise;
}

HloComputation *InferenceContext::callee(AttributeKey key) const {
  auto *const *value = get<HloComputation *>(key);
  return value && *value && (*value)->root() ? *value : nullptr;
}

const Window *InferenceContext::window() const {
  const auto *const *value = get<const Window *>(AttributeKey::Window);
  return value ? *value : nullptr;
}

std::nullopt_t InferenceContext::fail(VerifierRule rule, const llvm::Twine &message) {
  if (!broken) {
    broken = rule;
    text = (hloc::text(opcode()) + ": " + message).str();
  }
  return std::nullopt;
}

std::optional<Shape> InferenceContext::array(ElementType type, Dims dims) {
  // A zero anywhere makes the product zero; the others must still not overflow, so that strides can be computed.
  constexpr int64_t maxBits = std::numeric_limits<int64_t>::max();
  int64_t bits = std::max(8u, bitWidth(type));
  for (int64_t dim : dims)
    if (dim < 0 || (dim > 0 && llvm::MulOverflow(bits, dim, bits)) || bits > maxBits)
      return fail(VerifierRule::shape_c1, "the result " + hloc::text(type) + "[" + llvm::Twine(dims.size()) +
                                              " dimensions] is too large or has a negative size");
  return Shape::array(type, dims);
}

Shape InferenceContext::elementwise(const Shape &like, ElementType type) {
  if (like.elementType() == type)
    return like;
  Layout layout = like.layout();
  layout.elementSizeBits = 0;
  llvm::SmallVector<bool, 6> dynamic;
  if (like.hasDynamicDims())
    for (unsigned i = 0; i < like.rank(); ++i)
      dynamic.push_back(like.isDynamic(i));
  return Shape::array(type, like.dims(), std::move(layout), dynamic, like.layoutGiven());
}

Shape InferenceContext::oneOrTuple(llvm::ArrayRef<Shape> shapes) {
  return shapes.size() == 1 ? shapes.front() : Shape::tuple(shapes);
}

bool distinctInRange(Dims dims, int64_t rank) {
  if (static_cast<int64_t>(dims.size()) > rank)
    return false;
  llvm::SmallVector<bool, 8> seen(rank, false);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen[dim])
      return false;
    seen[dim] = true;
  }
  return true;
}

bool ascendingInRange(Dims dims, int64_t rank) { return distinctInRange(dims, rank) && llvm::is_sorted(dims); }

std::string show(Dims dims) {
  std::string out = "`{";
  for (size_t i = 0; i < dims.size(); ++i)
    out += (i ? "," : "") + std::to_string(dims[i]);
  return out + "}`";
}

std::string show(const Shape &shape) { return "`" + shape.toString(/*withLayout=*/false) + "`"; }

bool scalarLike(const Shape &shape, ElementType type) {
  return shape.isScalar() && sameTypeUpToPrecision(shape.elementType(), type);
}

std::string signature(const HloComputation &callee) {
  std::string out = "`" + callee.name().str() + "` of type `(";
  for (unsigned i = 0; i < callee.numParameters(); ++i) {
    const HloInstruction *parameter = callee.parameters()[i];
    out += (i ? ", " : "") + (parameter ? parameter->shape().toString(false) : std::string("?"));
  }
  return out + ") -> " + callee.root()->shape().toString(false) + "`";
}

bool givesWhatItTakes(const HloComputation &reducer, unsigned i) {
  return results(reducer)[i].elementType() == reducer.parameters()[i]->shape().elementType();
}

bool takes(const HloComputation &callee, llvm::ArrayRef<Shape> parameters, bool looseFloats) {
  if (callee.numParameters() != parameters.size())
    return false;
  for (auto [parameter, wanted] : llvm::zip(callee.parameters(), parameters))
    if (!parameter || !(looseFloats ? parameter->shape().compatibleIgnoringFloatPrecision(wanted)
                                    : parameter->shape().compatible(wanted)))
      return false;
  return true;
}

llvm::SmallVector<Shape, 4> results(const HloComputation &callee) {
  const Shape &shape = callee.root()->shape();
  if (!shape.isTuple())
    return {shape};
  return llvm::SmallVector<Shape, 4>(shape.elements().begin(), shape.elements().end());
}

} // namespace hloc
