#pragma once
// Values with their bounds while a module is interpreted.
//
// Bounds are two arrays of the value's dimensions, the least and the greatest admissible element. Floats are kept as
// f64 and complex numbers as c128 (a rectangle), integers and predicates in their own type. An element of which nothing
// is known has a NaN for one bound only (floats) or the whole range of its type (integers, predicates); a NaN for both
// bounds is a NaN.

#include "interp/Value.h"

#include <cmath>

namespace hloc::interp {

struct Bounds {
  Literal low, high;
};
using BoundsPtr = std::shared_ptr<const Bounds>;

/// An array or a tuple with its bounds.
struct Bounded {
  Value value;      ///< the reference's
  BoundsPtr bounds; ///< null: the value alone is admissible
  /// Of a product: bounds that also hold what it is before it is rounded, for sums that contract it. Null: the same.
  BoundsPtr unrounded;
  std::vector<Bounded> elements; ///< of a tuple

  Bounded() = default;
  explicit Bounded(Value value, BoundsPtr bounds = nullptr, BoundsPtr unrounded = nullptr)
      : value(std::move(value)), bounds(std::move(bounds)), unrounded(std::move(unrounded)) {
    if (this->value.isTuple())
      for (const Value &element : this->value.elements())
        elements.emplace_back(element);
  }
  static Bounded tuple(std::vector<Bounded> elements);

  const Literal &array() const { return value.array(); }
  /// Does it, or anything in it, have bounds?
  bool isBounded() const;
};

/// The element type in which bounds of arrays of `type` are kept.
ElementType boundsType(ElementType type);
/// `shape` with the element type of its bounds.
Shape boundsShape(const Shape &shape);
/// Elements of the value as elements of its bounds, exactly.
Literal asBound(const Literal &value);
/// Bounds that hold the value alone.
BoundsPtr pointBounds(const Literal &value);
/// `bounds` or, where there are none, those that hold the value alone.
BoundsPtr boundsOrPoint(const Bounded &bounded);
/// Elements of a bound in the type of the value: rounded to nearest, as they are where they are numbers of the type.
Literal asValue(const Literal &bound, const Shape &shape);

/// The arrays of a value.
std::vector<Bounded *> leavesOf(Bounded &value);

/// A scalar as an array of `count` elements.
Bounded repeated(const Bounded &scalar, int64_t count);

/// An interval of which nothing is known.
inline bool isUnknown(double low, double high) { return std::isnan(low) != std::isnan(high); }
inline void setUnknown(double &low, double &high) {
  low = -std::numeric_limits<double>::infinity();
  high = std::numeric_limits<double>::quiet_NaN();
}
/// Everything about an array is open.
BoundsPtr unknownBounds(const Literal &value);
/// Does an element have more than one admissible value?
bool isSpread(const Literal &low, const Literal &high, int64_t element);
inline bool isSpread(const Bounds &bounds, int64_t element) { return isSpread(bounds.low, bounds.high, element); }
bool isUnknown(const Literal &low, const Literal &high, int64_t element);
inline bool isUnknown(const Bounds &bounds, int64_t element) { return isUnknown(bounds.low, bounds.high, element); }

/// Runs `work(begin, end)` over [0, count) on all cores, in pieces that are multiples of `grain`.
void inParallel(int64_t count, int64_t grain, llvm::function_ref<void(int64_t, int64_t)> work);

} // namespace hloc::interp
