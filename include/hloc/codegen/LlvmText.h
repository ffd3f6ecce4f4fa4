#pragma once
// LLVM IR as text.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/LogicalResult.h"

#include <string>

namespace hloc {

class DiagnosticEngine;

/// One LLVM module with what is in all `parts`, in that order: the texts one after the other are none, for they number
/// metadata and declare intrinsics each for itself. One part comes back unchanged.
llvm::FailureOr<std::string> mergeLlvm(llvm::ArrayRef<std::string> parts, DiagnosticEngine &diagnostics);

} // namespace hloc
