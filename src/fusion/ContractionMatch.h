#pragma once
// Finding what is rows, columns and terms of a contraction, for all heroes that multiply tiles.

#include "fusion/HeroMatch.h"

namespace hloc {

/// Times of tiles that are not told apart: estimates are no better.
constexpr double nearlyAsFast = 1.1;

/// A dot of any kind or a convolution, which contract by sums of products and not by a computation of their own.
inline bool isContraction(const HloInstruction &instr) {
  return hasTrait(instr.opcode(), OpcodeTrait::Contracts) && !hasTrait(instr.opcode(), OpcodeTrait::AppliesToElements);
}

/// The sides of `plan.hero` and the terms of its sums, for plans without a tile.
std::optional<Rejection> findSides(ContractionPlan &plan, const FusionGraph &graph, const TargetInfo &target,
                                   mlir::MLIRContext *context);
/// Along what, and how many neighbours at once, both sides of `plan.tile` are read.
void chooseAccesses(ContractionPlan &plan, const FusionGraph &graph, const TargetInfo &target,
                    mlir::MLIRContext *context);
/// Results of one row have to be stored side by side.
std::optional<Rejection> checkOutputs(const ContractionPlan &plan, const FusionGraph &graph,
                                      mlir::MLIRContext *context);
/// How outputs are stored of a tile on tensor cores (ContractionPlan::outputVector).
unsigned chooseOutputVector(const ContractionPlan &plan, const FusionGraph &graph, mlir::MLIRContext *context);

/// What blocks fill a side's tile with, `times` each.
IndexingMap filledElements(const ContractionPlan &plan, const ContractionSide &side, int64_t times,
                           mlir::MLIRContext *context);

} // namespace hloc
