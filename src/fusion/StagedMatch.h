#pragma once
// Finding the reductions of a fusion that one kernel makes in stages, and what those kernels have in common.

#include "fusion/ReductionMatch.h"
#include "hloc/fusion/StagedReductions.h"

namespace hloc {

/// Which neighbours in memory are reduced.
enum class ReducedLines : uint8_t { Rows, Columns };

/// All reductions of the fusion, if they are over one shape, each element that depends on reductions depends on those
/// that it is part of, and some do. Beside those of rows there may be some of the same rows' columns: then elements
/// need not depend on reductions.
std::variant<StagedReductions, Rejection> matchStages(const FusionGraph &graph, ReducedLines lines);

/// Registers for what a thread holds of what is reduced: with what it computes of them they are no more than 128.
constexpr int64_t mostHeld = 32;
/// Threads of a block that may hold so much: a multiprocessor has room for one such block and another.
constexpr int64_t mostThreadsHolding = 512;
/// Registers of a thread: addresses, accumulators and what is computed of a vector beside what is held.
inline unsigned registersHolding(unsigned held) {
  return held <= mostHeld / 2 ? KernelSpec::usualRegisters : 2 * KernelSpec::usualRegisters;
}

/// What moves and what is held of each element.
struct HeldStreams {
  StreamWidths widths;
  unsigned inputs = 0;
  /// Of the widest value that is reduced or as large as what is.
  unsigned heldBits = bitsPerRegister;
  static constexpr unsigned bitsPerRegister = 32;
};
HeldStreams streamsOf(const FusionGraph &graph, const ReducedShape &shape, llvm::ArrayRef<unsigned> roots);

/// What a kernel computes: the elements once, or (`inEachStage`) for each stage and for the outputs; then the outputs
/// of results.
ComputedSpaces spacesOfStages(llvm::ArrayRef<ReductionFrame> stages, llvm::ArrayRef<unsigned> roots,
                              llvm::ArrayRef<unsigned> resultRoots, bool inEachStage, const FusionGraph &graph,
                              mlir::MLIRContext *context);

/// "roots 0,1, roots of rows 2, 2 stages": what plans print of the fusion.
std::string textOfStages(llvm::ArrayRef<ReductionFrame> stages, llvm::ArrayRef<unsigned> roots,
                         llvm::ArrayRef<unsigned> resultRoots, llvm::StringRef lines);

} // namespace hloc
