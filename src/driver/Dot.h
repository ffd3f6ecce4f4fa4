#pragma once

#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/Manifest.h"

#include <string>

namespace hloc {

/// The module as a Graphviz graph: a cluster a computation, a node an instruction. Nodes are named by position, so that
/// equal modules give equal text.
std::string dotGraph(const HloModule &module);

/// What a compiled module does, as a Graphviz graph: its steps in order (dotted edges), loops and conditionals as
/// clusters, and the buffers that steps read and write, with who lies in whose memory after it (dashed edges).
std::string planGraph(const Manifest &manifest);

/// Text as it stands between quotes.
std::string dotEscaped(llvm::StringRef text);

} // namespace hloc
