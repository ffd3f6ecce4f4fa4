#pragma once
// How large the integers of the exact regime may be.

#include "hloc/hlo/HloModule.h"

namespace hloc::interp {

/// Arguments are integers of at most this magnitude, all but one in `spacing` of them zero.
struct ExactScale {
  int64_t magnitude = 1;
  int64_t spacing = 1;
};

/// The largest scale with which as few as possible of the module's sums, products and conversions round, whatever the
/// order of summation: sums are bounded by those of the magnitudes. Those in f32 (or the type itself, if it is wider)
/// come first: most backends sum narrower types there.
ExactScale exactScaleFor(const HloModule &module);

} // namespace hloc::interp
