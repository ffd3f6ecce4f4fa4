#pragma once
// What the elementary functions of HLO are, in exact arithmetic: on doubles (the C library, for types of at most 32
// bits), on Real, and on pairs of Reals.

#include "Real.h"

#include "hloc/hlo/Opcode.h"

#include <optional>
#include <string>
#include <vector>

namespace hloc::accuracy {

struct Function {
  Opcode opcode;
  unsigned arity;
  bool onComplex; ///< has a kernel for complex numbers
};
const std::vector<Function> &functions();

double evaluate(Opcode opcode, double x, double y);
Real evaluate(Opcode opcode, const Real &x, const Real &y);

struct ComplexReal {
  Real re, im;
};
/// `abs` has its result in the real part.
ComplexReal evaluate(Opcode opcode, const ComplexReal &x, const ComplexReal &y);

/// How many times the error of a rounding of what a function is computed from shows in its result; 1 but for the three
/// complex functions that no formula in use computes to a bounded error (src/interp/Accuracy.def). Infinity at a pole
/// that rounding may miss.
double condition(Opcode opcode, const ComplexReal &x, const ComplexReal &y, const ComplexReal &result);

} // namespace hloc::accuracy
