#pragma once

#include "CommandHelp.h"

namespace hloc {

/// Completions of options, of their values and of files by suffix, as a script that each shell loads. They call no
/// program, and that of bash needs no package.
std::string bashCompletion(const std::vector<CommandHelp> &commands);
std::string zshCompletion(const std::vector<CommandHelp> &commands);
std::string fishCompletion(const std::vector<CommandHelp> &commands);

/// By the name of a shell (`completionShells`).
std::string completionFor(const std::string &shell, const std::vector<CommandHelp> &commands);
std::vector<std::string> completionShells();

} // namespace hloc
