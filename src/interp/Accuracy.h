#pragma once
// How exactly the elementwise ops are computed by backends: the budgets of the bounds.

#include "hloc/hlo/HloInstruction.h"
#include "hloc/interp/Bounds.h"

namespace hloc::interp {

/// Largest distance between what a right kernel gives and the exact value, in units of the last place of the result's
/// type (complex: of its larger part). 0: nothing is rounded; 0.5: rounded once to nearest.
struct Permitted {
  double ulps = 0;
  double subnormalUlps = 0; ///< where the exact result is below the smallest normal number
  double leastUnit = 0;     ///< that units in the last place count as at least; of 0, too
};
/// Of an elementwise op with a float or complex result: what was measured of hloc's kernels (Accuracy.def), and for
/// other backends not less than what the field's compilers take for good.
Permitted permitted(const HloInstruction &instr, Backend backend);

/// Does the op's result have to be rounded to its type? Movement, selection and integer arithmetic do not.
bool rounds(Opcode opcode);

/// Is something added to the op's operands, so that a product among them may be contracted? Sums, and functions of f32
/// and f64 that are evaluated by sums: log1p(x * y) begins with fma(x, y, 1).
bool adds(const HloInstruction &instr);

/// Roundings that a sum of `terms` floats may add up to, in units of the roundoff times the sum of magnitudes: the
/// worst case for short sums, and for long ones six standard deviations of random roundings of a serial sum (Higham and
/// Mary, "A new approach to probabilistic rounding error analysis", 2019).
double sumRoundings(double terms);
/// The same of sums that may have their largest term first, so that each rounding is one of about the whole sum: six
/// standard deviations of these.
double sumRoundingsOfLarge(double terms);

} // namespace hloc::interp
