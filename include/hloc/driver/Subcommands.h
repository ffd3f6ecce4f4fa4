#pragma once
// The subcommands of hloc besides compile: each takes the arguments after its name and returns the process exit code.

namespace hloc {

/// `hloc opt [INPUT.mlir|-] [-o FILE] --hloc-<pass>... | --pass-pipeline=... | --hloc-pipeline`: our passes and those of
/// MLIR we use, on MLIR text.
int runOpt(int argc, char **argv);

} // namespace hloc
