#pragma once
// How exactly the elementwise ops are computed by backends: the budgets of the bounds.

#include "hloc/hlo/HloInstruction.h"
#include "hloc/interp/Bounds.h"

namespace hloc::interp {

/// Largest distance between what a right kernel gives and the exact value, in units of the last place of the result's
/// type (complex: of its larger part). 0: nothing is rounded; 0.5: rounded once to nearest. `instr` is elementwise, with
/// a float or complex result.
double permittedUlps(const HloInstruction &instr, Backend backend);

/// Does the op's result have to be rounded to its type? Movement, selection and integer arithmetic do not.
bool rounds(Opcode opcode);

/// Roundings that a sum of `terms` floats may add up to, in units of the roundoff times the sum of magnitudes: the worst
/// case for short sums, and for long ones six standard deviations of random roundings of a serial sum (Higham and Mary,
/// "A new approach to probabilistic rounding error analysis", 2019).
double sumRoundings(double terms);

} // namespace hloc::interp
