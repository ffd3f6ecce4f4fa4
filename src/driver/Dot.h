#pragma once

#include "hloc/hlo/HloModule.h"

#include <string>

namespace hloc {

/// The module as a Graphviz graph: a cluster a computation, a node an instruction. Nodes are named by position, so that
/// equal modules give equal text.
std::string dotGraph(const HloModule &module);

} // namespace hloc
