#pragma once
// The largest errors of a function from f32 to f32 over all 2^32 operands, in a few minutes a function.
//
// What takes the time is to judge, so that is done in doubles: the C library's functions of double are right to some
// 2^-28 units of f32. MPFR measures only what seems worse than the worst before it.

#include "Measure.h"

namespace hloc::accuracy {

bool isOfEveryFloat(const Instruction &instruction, Effort effort);

/// Runs each of `machines` of `kernel`, and the interpreter if there is one entry in `errors` more. False after
/// printing what could not be run.
bool measureEveryFloat(Opcode opcode, Kernel &kernel, size_t machines, llvm::ArrayRef<Errors *> errors);

} // namespace hloc::accuracy
