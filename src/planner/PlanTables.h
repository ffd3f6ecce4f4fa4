#pragma once
// What the planners of a module's computations have in common: its buffers and kernels, and where values have moved.

#include "hloc/fusion/ForcedChoices.h"
#include "hloc/hlo/EqualComputations.h"
#include "hloc/planner/ExecutionPlan.h"

#include <map>
#include <set>

namespace hloc {

using Slices = llvm::SmallVector<BufferSlice, 2>;

class PlanTables {
public:
  PlanTables(const HloModule &module, const TargetInfo &target, DiagnosticEngine &diagnostics,
             const UnplannedWork &unplanned, const std::optional<TileSizes> &tile, llvm::ArrayRef<ForcedKernel> forced);

  BufferSlice newBuffer(ModuleBuffer::Kind kind, uint64_t bytes, std::string shape);
  /// Where a constant lies in the buffer of all constants: those of equal bytes in one place.
  BufferSlice constant(const Literal &literal, const Shape &shape);

  /// `slice` where it lies after all moves so far. What something was moved to does not move any more: only outputs of
  /// what is being planned do, and places are taken from what was there before.
  BufferSlice placeOf(BufferSlice slice) const;
  /// Wherever `from`, which no step made so far names, was meant, it is `to` from now on.
  void move(uint32_t from, uint32_t to) { movedTo[from] = to; }

  /// One graph for all fusions that call the computation or one that equals it: of the first asked for. Null after an
  /// error.
  const FusionGraph *graphOf(const HloComputation &body);
  /// One plan for all fusions that have the graph and are offered the same; null after an error.
  std::shared_ptr<const PlannedFusion> planOf(const FusionGraph &graph, const FusionAliasing &offers);
  /// The number of the kernel of a step.
  uint32_t kernelOf(const HloInstruction &fusion, const std::shared_ptr<const PlannedFusion> &planned, unsigned step);

  /// By leaf of the result of a control computation: the leaf of its parameter that it is, if it is one.
  using Origins = std::vector<std::optional<unsigned>>;
  const Origins &originsOf(const HloComputation &computation);

  /// Reports what was asked for of a kernel, or of all, and no kernel has. False if there is something.
  bool checkForced() const;

  /// Drops buffers whose place another has taken, or that were meant for another.
  void dropUnused();

  ExecutionPlan plan;
  const UnplannedWork &unplanned;
  const TargetInfo &target;

private:
  const EqualComputations equal;
  DiagnosticEngine &diagnostics;
  PlanContext plans;
  std::optional<TileSizes> tile; ///< of all contractions
  /// What is asked for of kernels, by the first of equal computations; null: of all.
  struct Forced {
    const ForcedKernel &asked;
    std::set<const HloComputation *> bodies;
    bool isHad = false;
    std::string refusal; ///< of the first that has it not
  };
  std::vector<Forced> forced;
  std::map<uint32_t, uint32_t> movedTo;
  std::optional<uint32_t> constants;                    ///< the buffer, once there are any
  std::map<std::string, uint64_t> offsets;              ///< in it, by bytes
  std::map<const HloComputation *, FusionGraph> graphs; ///< by the first of equal computations
  std::map<std::pair<const HloComputation *, std::vector<int64_t>>, std::shared_ptr<const PlannedFusion>> planned;
  std::map<std::pair<const PlannedFusion *, unsigned>, uint32_t> kernels;
  std::map<const HloComputation *, Origins> origins;
};

/// Where each element of a tuple begins among the tuple's leaves, and at the end their number.
class TupleLeaves {
public:
  /// First leaf of element `index` of `tuple`, and how many it has.
  std::pair<size_t, size_t> element(const HloInstruction &tuple, int64_t index);

private:
  llvm::DenseMap<const HloInstruction *, std::vector<size_t>> firstLeaves;
};

} // namespace hloc
