#pragma once
// How far elements of one type are apart.

#include "hloc/hlo/Literal.h"

namespace hloc {

struct Distance {
  double difference = 0; ///< absolute, of complex numbers the larger of both parts; infinite where only one is a number
  double ulps = 0;       ///< of floats, in units of the last place of the first (complex: of its larger part)

  /// What differences are sorted by: integers have no last place.
  double rank(ElementType type) const { return isFloat(type) || isComplex(type) ? ulps : difference; }
};

/// Of a number to its neighbour in its own format.
double unitInLastPlace(ElementType type, double value);
/// Of two floats, in units of the last place of `scale`, whose magnitude counts.
Distance floatDistance(double a, double b, ElementType type, double scale);
/// Of element i of one array and element k of another, whose type is that of the first or that of its bounds. Of
/// predicates any byte but 0 is true.
Distance distance(const Literal &a, int64_t i, const Literal &b, int64_t k);

/// The largest finite magnitude among real (and imaginary) parts, and one in the middle of some of those that are not
/// 0.
double largestMagnitude(const Literal &array);
double typicalMagnitude(const Literal &array);

} // namespace hloc
