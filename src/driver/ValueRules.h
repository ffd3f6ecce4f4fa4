#pragma once
// What no column of the option table can say: rules about what values mean together, such as files that are one.

#include "OptionTable.h"

namespace hloc {

/// The last stage that a command goes through; All if machine code is made.
Stage reachedStage(const Command &command);

/// Why values that are fine by themselves make no sense together; empty if they do.
std::string valueContradiction(const Command &command, const GivenOptions &given);

/// The same of a search: `hloc reduce`.
std::string searchContradiction(const Command &command);

} // namespace hloc
