#pragma once
// PTX as text: joining the PTX of several kernels into one file, and the little that is read off it.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

#include <string>
#include <vector>

namespace hloc {

class DiagnosticEngine;

/// One PTX file with the entries of all `parts`, in that order, under one header. All parts must have the same
/// `.target` and `.address_size`; the highest `.version` wins. Helpers and variables are expected to have different
/// names in different parts (compileToPtx prefixes them by the kernel's name); entries that do not are reported.
/// One part comes back unchanged.
llvm::FailureOr<std::string> mergePtx(llvm::ArrayRef<std::string> parts, DiagnosticEngine &diagnostics);

/// Names of the `.entry` functions, in order.
std::vector<std::string> ptxEntries(llvm::StringRef ptx);

/// `80` for `.version 8.0`; 0 if there is none.
unsigned ptxVersionOf(llvm::StringRef ptx);

/// `sm_90` for `.target sm_90, debug`; empty if there is none.
llvm::StringRef ptxTargetOf(llvm::StringRef ptx);

/// The text with the entry `name` called `replacement`, also where the name begins that of a parameter
/// (`name_param_0`) or of a helper (`name__table`, `name__name__shared_0`), and in comments. Two kernels that differ
/// only in their name become equal: the cubin cache keys on that.
std::string renamePtxEntry(llvm::StringRef ptx, llvm::StringRef name, llvm::StringRef replacement);

} // namespace hloc
