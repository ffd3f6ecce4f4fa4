#pragma once
// Which rows or terms a block of a ragged-dot has.

#include "emitters/heroes/ContractionPlaces.h"

namespace hloc {

/// Which steps of its sums a block has, where not all have all: those from `first` on and before `end`, if there are
/// such values; none, unless what `where` says holds.
struct StepRange {
  mlir::Value first, end;
  std::optional<IndexingMap::Constraint> where;
};

/// Emits the search for the group that a block's tile is of, and makes what is found there variables of the launch
/// space. `at`: the place as it would be without groups, which is completed; its step's dim, the last, moves behind
/// them.
llvm::FailureOr<StepRange> findGroup(const ContractionPlan &plan, KernelBuilder &kernel, TilePlace &at);

} // namespace hloc
