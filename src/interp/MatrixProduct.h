#pragma once
// The one matrix product behind dot and convolution.
//
// Operands are converted to the result type first, then widened to a sum type in which products of floats of up to 32
// bits are exact: floats are summed in f64, complex numbers in c128, integers wrap in 64 bits. The sum is rounded to
// the result type once.

#include "hloc/hlo/Literal.h"

namespace hloc::interp {

/// Element type in which a product of this result type is summed.
ElementType sumType(ElementType result);
/// Can products of these operands be given in the result type?
bool isProductDefined(ElementType operand, ElementType result);

/// All elements rounded to the result type and widened to its sum type; same dimensions.
Literal widened(const Literal &operand, ElementType result);
/// Elements of a sum type rounded to the type of `result`, from its element `start` on.
void roundInto(const Literal &sums, Literal &result, int64_t start = 0);

/// sums[rows, columns] += left[rows, depth] * right[depth, columns]; all of one sum type, dense.
struct MatrixProduct {
  int64_t rows, columns, depth;
  void run(ElementType sumType, const uint8_t *left, const uint8_t *right, uint8_t *sums) const;
};

} // namespace hloc::interp
