#pragma once
// `hloc` run many times over: the program itself, in children forked from here, which saves it a start and keeps a
// crash or an endless loop to the child.
//
//   HlocJob job{{{"hloc", "a.hlo", "-o", "a.ptx"}, {"hloc", "run", "a.hlo", "--ptx=a.ptx", "--launch=a.json"}}, 1};
//   runHloc(job, limits, [](size_t job, llvm::ArrayRef<HlocOutcome> outcomes) { ... });

#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <string>
#include <vector>

namespace hloc::mutation {

using CommandLine = std::vector<std::string>;

/// Command lines that run one after the other in one child.
struct HlocJob {
  std::vector<CommandLine> commands;
  size_t mustWork = 0; ///< if one of the first so many ends with another code than 0, those behind it do not run
};

struct HlocOutcome {
  static constexpr int timedOut = -1, crashed = -2, notRun = -3;
  int exitCode = notRun;
  std::string firstError; ///< the first line of the output that says `error:`; else the first line
};

struct HlocLimits {
  unsigned jobs = 1;          ///< children at the same time
  double secondsPerRun = 120; ///< a command that takes longer is stopped
};

/// Runs all jobs. `done` is called in the order of the jobs, from this thread.
void runHloc(llvm::ArrayRef<HlocJob> jobs, const HlocLimits &limits,
             const std::function<void(size_t job, llvm::ArrayRef<HlocOutcome> outcomes)> &done);

} // namespace hloc::mutation
