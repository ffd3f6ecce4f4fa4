#pragma once
// What all heroes that multiply tiles ask of contractions.

#include "fusion/HeroMatch.h"

#include <variant>

namespace hloc {

/// A dot of any kind or a convolution, which contract by sums of products and not by a computation of their own.
inline bool isContraction(const HloInstruction &instr) {
  return hasTrait(instr.opcode(), OpcodeTrait::Contracts) && !hasTrait(instr.opcode(), OpcodeTrait::AppliesToElements);
}

/// What an operand is made of by putting elements elsewhere, and from its index to where each is there. `passes`: is a
/// convert followed, too?
struct MovedOperand {
  const HloInstruction *source;
  IndexingMap map;
};
MovedOperand movedOperand(const HloInstruction &operand, mlir::MLIRContext *context,
                          llvm::function_ref<bool(const HloInstruction &convert)> passes);

/// Of the values that an operand has, before it is converted to a type that has all of them.
ElementType typeOfValues(const HloInstruction &operand);

/// A plan with its hero, that one's twins and the outputs.
std::variant<ContractionPlan, Rejection> beginContraction(const FusionGraph &graph, mlir::MLIRContext *context);

/// Tiles that a plan of sums of so many terms may have: of threads' own products, on tensor cores.
void addTilesOfThreads(const ContractionPlan &plan, int64_t depth, llvm::SmallVectorImpl<ContractionTile> &tiles);
void addTilesOfFragments(ContractionPlan plan, int64_t depth, llvm::SmallVectorImpl<ContractionTile> &tiles);
/// By warpgroups: where factors are not of 16 bits, of those plans whose sides lie along their sums.
void addTilesOfWarpgroups(ContractionPlan plan, int64_t depth, llvm::SmallVectorImpl<ContractionTile> &tiles);

/// Results of one row have to be stored side by side.
std::optional<Rejection> checkOutputs(const ContractionPlan &plan, const FusionGraph &graph,
                                      mlir::MLIRContext *context);
/// Are results of the map, or where it has any, about that dim?
bool dependsOnDim(const IndexingMap &map, unsigned dim);
/// Tests of indices that stand before an element of an operand; all twice where any of it is a loop.
unsigned testsBefore(const HloInstruction &operand);
/// How outputs are stored of a tile on tensor cores (ContractionPlan::outputVector).
unsigned chooseOutputVector(const ContractionPlan &plan, const FusionGraph &graph, mlir::MLIRContext *context);

/// Of a kernel that combines.
inline constexpr uint32_t combiningThreads = 128;
/// Adds up what the plan's blocks leave of divided sums.
FollowingKernel combinePartialSums(ContractionPlan plan, const TargetInfo &target);

/// What blocks fill a side's tile with, `times` each.
IndexingMap filledElements(const ContractionPlan &plan, const ContractionSide &side, int64_t times,
                           mlir::MLIRContext *context);

} // namespace hloc
