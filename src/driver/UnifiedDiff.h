#pragma once
// Differences of texts as patches that `git apply` and `patch` take.

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace hloc {

/// The patch that makes `after` of `before`, which is in the file `path`: whole lines, three lines of context, headers
/// `--- a/PATH` and `+++ b/PATH`. Empty if the texts are equal. Lines of `before` for which `ignored` holds are passed
/// over by the comparison and are left as they are by the patch; `after` has none of these.
std::string unifiedDiff(llvm::StringRef before, llvm::StringRef after, llvm::StringRef path,
                        llvm::function_ref<bool(llvm::StringRef)> ignored = nullptr);

} // namespace hloc
