#pragma once
// How emitters refuse: a located diagnostic (exit code 3), then failure. What they got wrong themselves is
// HLOC_CHECK's.

#include "hloc/hlo/HloInstruction.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"

namespace hloc {

/// Each reports "... is not supported in a kernel" at `instr` and returns failure.
llvm::LogicalResult unsupportedOpcode(const HloInstruction &instr, DiagnosticEngine &diagnostics);
llvm::LogicalResult unsupportedFeature(const HloInstruction &instr, const llvm::Twine &what,
                                       DiagnosticEngine &diagnostics);
llvm::LogicalResult unsupportedType(const HloInstruction &instr, const llvm::Twine &what,
                                    DiagnosticEngine &diagnostics);

} // namespace hloc
