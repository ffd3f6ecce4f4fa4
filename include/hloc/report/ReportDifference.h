#pragma once
// Two pages as one that shows what has changed between them, kernel by kernel.

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace hloc {

/// `before` and `after` are pages that reportPage has made, of any version with this form. Nothing, with a reason in
/// `error`, if one of them is none.
std::optional<std::string> reportDifference(llvm::StringRef before, llvm::StringRef after, std::string &error);

} // namespace hloc
