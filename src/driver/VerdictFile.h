#pragma once
// --verdict of `hloc run`: what the run has found, for programs that start it.

#include "Options.h"

#include "hloc/run/RunReport.h"

namespace hloc {

/// JSON, two-space indented, ends with a newline: the verdict (`agrees`, `wrong`, `undecided`, `executed`, `not-run`),
/// the exit code, what agrees in words and in numbers, notes, of each set of arguments its regime, and of the first
/// what was counted or estimated of it, if that was asked for. Infinite numbers are null.
std::string printVerdict(const RunReport &report, const RunCommandOptions &options, ExitCode code);

/// To the file of --verdict, or standard output.
void writeVerdict(const RunReport &report, const RunCommandOptions &options, DiagnosticEngine &diagnostics);

} // namespace hloc
