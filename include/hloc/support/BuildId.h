#pragma once
// Which build of hloc this is.

#include <string>

namespace hloc {

/// What the linker calls the program, or the library, that hloc is in: hexadecimal digits, the same for the same bytes
/// wherever they are; empty if it was linked without.
std::string buildId();

} // namespace hloc
