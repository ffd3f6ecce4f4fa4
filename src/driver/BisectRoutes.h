#pragma once
// Where no pass is to blame: the same values by other routes, and what agrees with what.
//
//   the kernel by another emitter is right                          the emitter
//   all are wrong; the op expressed by others, interpreted, gives   the reference
//   what kernels give
//   it gives what the reference gives                               the lowering, which all emitters share

#include "Children.h"

#include <functional>
#include <string>
#include <vector>

namespace hloc {

/// What the routes of a module are tried with.
struct RouteTools {
  std::function<Ending(const std::string &file, const std::vector<std::string> &more)> run; ///< `hloc run`
  /// The same by the interpreter alone; of the run's own options those that say what is computed, and of what.
  std::function<Ending(const std::string &file, const std::vector<std::string> &more)> interpret;
  std::function<Ending(const std::string &file, const std::vector<std::string> &more)> compile;
  /// A module of fewer ops on which `hloc run` with the option still ends with 4; itself, if there is none.
  std::function<std::string(const std::string &text, const std::string &option)> reduced;
  std::function<std::string(const std::string &name, const std::string &text)> write; ///< the file's path
  unsigned jobs = 1;
};

struct RouteVerdict {
  std::string blame;              ///< "the `transpose` emitter, ..."; empty: it cannot be told apart
  std::vector<std::string> tried; ///< a line each
};

/// Of a run of `file` that ended with 4. `step` is the first that differs; empty if the module is not run by steps.
RouteVerdict blameEmitter(const std::string &file, const std::string &step, const RouteTools &tools);
/// Where all emitters are wrong: `errors` are those of the run.
RouteVerdict blameSharedPart(const std::string &text, const std::string &errors, const RouteTools &tools);

} // namespace hloc
