#include "interp/Value.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::interp {

Value Value::tuple(std::vector<Value> elements) {
  Value made;
  made.tupleElements = std::move(elements);
  return made;
}

Value Value::zero(const Shape &shape) {
  if (!shape.isTuple())
    return Value(Literal(shape));
  std::vector<Value> elements;
  for (const Shape &element : shape.elements())
    elements.push_back(zero(element));
  return tuple(std::move(elements));
}

Value Value::ofResults(const Shape &shape, std::vector<Literal> results) {
  if (!shape.isTuple())
    return Value(std::move(results[0]));
  std::vector<Value> elements;
  for (Literal &result : results)
    elements.push_back(Value(std::move(result)));
  return tuple(std::move(elements));
}

Value Value::borrow(const Literal &literal) {
  Value made;
  if (literal.isTuple()) {
    for (const Literal &element : literal.elements())
      made.tupleElements.push_back(borrow(element));
    return made;
  }
  if (literal.shape().isToken())
    return made;          // tokens are empty tuples
  if (literal.isElided()) // has no bytes to borrow
    return zero(literal.shape());
  made.borrowed = &literal;
  return made;
}

Literal Value::take() {
  Value self = std::move(*this);
  if (self.owned && self.owned.use_count() == 1)
    return std::move(*self.owned);
  return self.array();
}

Literal Value::toLiteral(const Shape &shape) const {
  if (isTuple()) {
    std::vector<Literal> elements;
    for (unsigned i = 0; i < tupleElements.size(); ++i)
      elements.push_back(tupleElements[i].toLiteral(shape.element(i)));
    return Literal::tuple(std::move(elements));
  }
  if (array().shape() == shape)
    return array();
  Literal relabelled(shape);
  HLOC_CHECK(array().bytes().size() == relabelled.bytes().size(), "an array as one of another size");
  llvm::copy(array().bytes(), relabelled.mutableBytes().begin());
  return relabelled;
}

} // namespace hloc::interp
