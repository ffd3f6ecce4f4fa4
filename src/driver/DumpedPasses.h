#pragma once
// What the dumps of a run that did not come to its end tell: which pass was at work.

#include <string>
#include <vector>

namespace hloc {

/// A pass as --disable-pass names it: `hlo`, `simplify`.
struct StagedPass {
  std::string stage, name;

  std::string spelling() const { return stage + ":" + name; }
};

/// The pass that was at work when a run of one thread wrote its last dump to `folder` (`--dump-after-each-pass`). What
/// is between the stages: `plan`, `emit`, `execute`. Empty names if there are no dumps.
StagedPass passAtWork(const std::string &folder, unsigned optimizationLevel);

} // namespace hloc
