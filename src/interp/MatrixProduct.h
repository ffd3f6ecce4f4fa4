#pragma once
// The one matrix product behind dot and convolution.
//
// Operands are converted to the result type first. Products of floats of up to 32 bits are exact in f64 and are summed
// there; f64 sums in f64, integers wrap in 64 bits, c64 sums in c128. One rounding at the end.

#include "hloc/hlo/Literal.h"

namespace hloc::interp {

struct MatrixProduct {
  int64_t rows, columns, depth;
  ElementType type; ///< of the result

  static bool supports(ElementType operand, ElementType result);

  /// result[rows, columns] = left[rows, depth] * right[depth, columns]; each starts at the given element.
  void run(const Literal &left, int64_t leftStart, const Literal &right, int64_t rightStart, Literal &result,
           int64_t resultStart) const;
};

/// Element type in which a product of this result type is summed.
ElementType sumType(ElementType result);
/// `count` elements from `start` on, converted to the result type and then to its sum type, as dense host elements.
std::vector<uint8_t> factors(const Literal &literal, int64_t start, int64_t count, ElementType result);

} // namespace hloc::interp
