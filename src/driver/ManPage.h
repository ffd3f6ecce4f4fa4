#pragma once

#include "CommandHelp.h"

namespace hloc {

/// hloc(1) in the macros of man(7), all subcommands in one page: `hloc --man | man -l -`.
std::string manPage(const std::vector<CommandHelp> &commands);

} // namespace hloc
