#pragma once
// ElementwiseRules.def as a table.

#include "hloc/hlo/Opcode.h"

namespace hloc::interp {

enum class IntegerRule : uint8_t {
  None,     ///< not defined on integers
  Monotone, ///< in each operand: the ends have the extremes
  Wraps,    ///< the same where it does not wrap
  OfPred,   ///< of predicates they do: two values are all there are
  Ordered,  ///< a comparison, which is monotone unless it asks for equality of more than two values
  Open,     ///< nothing is known where an operand is not
};

enum class ProductRule : uint8_t {
  Added,       ///< a sum
  AddedInside, ///< of f32 and f64 it is evaluated by sums: log1p(x * y) begins with fma(x, y, 1)
  Rounded,     ///< products come in as they are rounded
};

enum class TieRule : uint8_t {
  None,
  Halves,         ///< the halves between whole numbers, or these themselves
  HalvesOfFloats, ///< the same where floats become integers
  Equals,         ///< equal ones
};

enum class NanRule : uint8_t { Settled, Open };

struct ElementwiseRule {
  IntegerRule integers;
  ProductRule products;
  TieRule ties;
  NanRule nan;
};
/// Of an elementwise opcode.
const ElementwiseRule &elementwiseRule(Opcode opcode);

} // namespace hloc::interp
