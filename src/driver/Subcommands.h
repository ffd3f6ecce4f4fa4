#pragma once
// The subcommands of hloc besides compile: argv[0] is the name of the subcommand; each returns the process exit code.

namespace hloc {

/// `hloc opt [INPUT.mlir|-] [-o FILE] --hloc-<pass>... | --pass-pipeline=... | --hloc-pipeline`: our passes and those
/// of MLIR we use, on MLIR text.
int runOpt(int argc, char **argv);

} // namespace hloc
