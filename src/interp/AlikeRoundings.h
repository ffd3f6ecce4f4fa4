#pragma once
// Roundings of sums that are not random.

#include "interp/FloatGrid.h"

#include "llvm/ADT/ArrayRef.h"

namespace hloc::interp {

/// Terms of one sum, between numbers of which each is an end of what is admissible: `count` of them, `stride` apart.
struct TermsOfSum {
  const double *low, *high;
  int64_t count, stride;
};

/// How far a sum of these terms, whose magnitudes are `magnitude` together, may be carried by roundings that have one
/// direction. Random ones undo each other (sumRoundings); but a term that is added to a partial sum is rounded to a
/// multiple of that one's unit, so where many terms are equal, as those behind a mask are, each is off by the same.
///
///   1 + 286 times 2.56e-6 in f32: the unit is 1.19e-7, 2.56e-6 are 21.485 of these, each time 0.485 are left out
///
/// Partial sums may be of any size up to all magnitudes; which terms are alike, any neighbours say. Kernels are taken
/// to have four lanes at least for a sum; one that has a single one gets the serial sum, which is admissible anyway.
double alikeRoundings(const TermsOfSum &terms, double magnitude, const FloatGrid &accumulator);

} // namespace hloc::interp
