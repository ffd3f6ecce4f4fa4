#pragma once

namespace hloc {

/// The process exit codes of the command-line contract.
enum class ExitCode : int {
  Success = 0,
  InvalidInput = 1,   ///< the input is wrong
  InvalidUsage = 2,   ///< the command line is wrong
  Unsupported = 3,    ///< recognised, but hloc does not do it (the diagnostic says which op or feature, where, and why)
  Mismatch = 4,       ///< results or golden files differ
  CannotTell = 5,     ///< the reference does not know enough of some results to judge them
  InternalError = 70, ///< our bug
};

} // namespace hloc
