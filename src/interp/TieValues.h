#pragma once
// Arguments of few values: equals for what sorts, selects, compares and clamps, and halves for what rounds to whole
// numbers, also where they are scaled by a constant first.

#include "interp/ValueStream.h"

#include "hloc/hlo/HloModule.h"

#include <vector>

namespace hloc::interp {

class TieValues {
public:
  /// Does any op choose among equals, or round halves?
  static bool matterTo(const HloModule &module);

  explicit TieValues(const HloModule &module);
  /// An element of a float, complex or integer array.
  void set(Literal &literal, int64_t element, bool nonNegative, ValueStream &stream) const;

private:
  double pick(bool nonNegative, ValueStream &stream) const;

  /// By which halves are multiplied: 1, and what undoes a constant factor or divisor before a rounding.
  std::vector<double> scales{1};
};

} // namespace hloc::interp
