#pragma once
// Whether messages are coloured: as `--color` says, else on a terminal unless NO_COLOR is set (https://no-color.org).

namespace hloc {

enum class ColourChoice { Auto, Always, Never };

/// Of messages on standard error.
bool useColour(ColourChoice choice);

/// The same for what LLVM and MLIR print themselves.
void setLlvmColours();

} // namespace hloc
