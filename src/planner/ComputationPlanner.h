#pragma once
// Plans one computation between kernels: the entry, or what a loop or conditional runs, each time it is run somewhere.
//
// Three passes: every value gets buffers of its own; then, work by work, outputs take the place of operands where that
// is wanted and can be borne, and the work is planned; then results that are wanted somewhere and lie elsewhere are
// copied there.
//
// Who has which memory when is a matter of one computation: it reads nothing of those around it but its parameters. So
// an operand of a loop is read by the loop, whatever the loop's body does with it.

#include "PlanTables.h"

namespace hloc {

/// What a computation is given, and where its results are to go.
struct ComputationUse {
  std::vector<Slices> parameters; ///< one for each parameter, with one slice for each array leaf
  std::set<uint32_t> own;         ///< buffers among them that nobody outside needs once they have been read here
  /// By leaf of the result: the buffer that it has to lie in at the end, which the computation may write as soon as it
  /// has read it for the last time. No buffer twice; may be one of the parameters'.
  std::vector<std::optional<uint32_t>> targets;
  std::string name; ///< of the steps that nothing else in the computation is a name for
  /// What may go anywhere is not computed before others have read what it replaces, even if it stands there.
  bool reorders = false;
};

struct PlannedComputation {
  Steps steps;
  Slices results; ///< one for each array leaf; where there is a target, that
};

/// Nothing after an error, which is reported.
std::optional<PlannedComputation> planComputation(PlanTables &tables, const HloComputation &computation,
                                                  const ComputationUse &use);

} // namespace hloc
