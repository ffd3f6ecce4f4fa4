#pragma once
// The page without data: what src/report/page has, in one text (made by CMake).

#include "llvm/ADT/StringRef.h"

#include <string>

namespace hloc {

extern const char *const pageStyle, *const pageScript, *const pageLibraries;

/// `blocks`: elements of HTML.
std::string pageWith(llvm::StringRef blocks);

} // namespace hloc
