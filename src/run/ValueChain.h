#pragma once
// Finds the values that led to an element, by the interpreter.

#include "hloc/compare/Compare.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/run/ValueChain.h"

namespace hloc {

/// Of the element `wrong` of what `module` computes. The module is interpreted once more, with all its values kept:
/// one that is too large for that has none, and says so.
ValueChain chainOf(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Mismatch &wrong,
                   const InterpreterOptions &options);

} // namespace hloc
