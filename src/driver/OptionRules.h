#pragma once
// What options of a command line make no sense together, by the columns of the table, and by a few rules about values.

#include "OptionTable.h"

namespace hloc {

class DiagnosticEngine;

/// Why the options make no sense together; empty if they do. What only warns is reported.
std::string contradiction(const Command &command, const GivenOptions &given, DiagnosticEngine &diagnostics);

/// The same where something is printed instead of compiling.
std::string questionContradiction(const GivenOptions &given);

} // namespace hloc
