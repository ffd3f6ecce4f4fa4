#pragma once
// A value while it is interpreted: an array shared by everything that refers to it, or a tuple of values. Copying one
// is copying pointers, so tuples, calls and loops move no data.

#include "hloc/hlo/Literal.h"

#include <memory>
#include <vector>

namespace hloc::interp {

class Value {
public:
  Value() = default; ///< the empty tuple
  explicit Value(Literal array) : owned(std::make_shared<Literal>(std::move(array))) {}
  static Value tuple(std::vector<Value> elements);
  static Value zero(const Shape &shape);
  /// The results of an op that gives an array if there is one and a tuple otherwise, as `shape` says.
  static Value ofResults(const Shape &shape, std::vector<Literal> results);
  /// `literal` outlives the value (constants, arguments).
  static Value borrow(const Literal &literal);

  bool isTuple() const { return !owned && !borrowed; }
  const Literal &array() const { return owned ? *owned : *borrowed; }
  llvm::ArrayRef<Value> elements() const { return tupleElements; }
  const Value &element(unsigned i) const { return tupleElements[i]; }

  /// The array, without a copy if nothing else refers to it. Leaves the empty tuple behind.
  Literal take();
  /// The whole tree as a literal of this shape, which may differ in layouts.
  Literal toLiteral(const Shape &shape) const;

private:
  std::shared_ptr<Literal> owned;
  const Literal *borrowed = nullptr;
  std::vector<Value> tupleElements;
};

} // namespace hloc::interp
