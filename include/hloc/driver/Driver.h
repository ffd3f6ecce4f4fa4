#pragma once

namespace hloc {

/// The whole program: parses the command line, runs the subcommand (`compile` by default, `run`, `opt`), returns the
/// process exit code of the contract (ExitCode.h).
int runDriver(int argc, char **argv);

} // namespace hloc
