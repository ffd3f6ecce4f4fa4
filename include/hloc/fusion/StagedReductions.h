#pragma once
// StagedReductions: reductions of arrays of one shape whose results are needed by the elements they are made of, be it
// to be reduced again or to be stored: softmax, layer norm, log-sum-exp. What the heroes have in common that keep such
// elements on the chip between the stages: `rows` (RowsPlan.h) and `columns` (ColumnsPlan.h).

#include "hloc/fusion/HeroPlans.h"
#include "hloc/fusion/Places.h"

#include <optional>

namespace hloc {

/// What is reduced in the order of its memory: [slices, length, columns], over `length`.
///
///   f32[8,128,512] over dimension 1: count 4096, length 128, columns 512; over dimension 2: count 1024, length 512
struct ReducedShape {
  int64_t count = 1;   ///< results: slices * columns
  int64_t length = 1;  ///< elements of each
  int64_t columns = 1; ///< results whose elements are neighbours; 1: rows, each of which is one piece of memory
  int64_t slices() const { return count / columns; }
  int64_t elements() const { return count * length; }
  auto operator<=>(const ReducedShape &) const = default;
};

/// A parameter that a kernel of stages reads more than once, and each time each of its elements where it lies: threads
/// that have their elements in registers load it once, for the first that reads it.
struct HeldParameter {
  unsigned parameter = 0; ///< its number
  unsigned firstStage = 0;
};

/// Broadcasts to all rows of something with one element a column, such as the weights of a norm, each of whose elements
/// is read where it lies.
struct SameInRows {
  llvm::SmallVector<const HloInstruction *, 2> broadcasts;
  unsigned firstStage = 0; ///< that reads one of them; of a kernel of stages `stages.size()` is the outputs
};

/// The reductions of a fusion and what its outputs are to them.
struct StagedReductions {
  ReducedShape shape;
  /// Reductions of one stage depend on the results of earlier ones alone. Frames have no roots.
  llvm::SmallVector<ReductionFrame, 2> stages;
  llvm::SmallVector<unsigned> roots;       ///< outputs with as many elements as the operands, in their memory order
  llvm::SmallVector<unsigned> resultRoots; ///< outputs with one element a result, in the order of the results
  /// Beside reductions of rows: those over the rows, of elements that may depend on any stage, and the outputs that
  /// they are.
  std::optional<ReductionFrame> columns;
  llvm::SmallVector<HeldParameter> held; ///< of them, stage number `stages.size()` is the outputs
  SameInRows sameInRows;                 ///< of rows without columns beside them
};

/// What a reduction reduces, if it is rows or columns, by reducers that a kernel of stages takes.
std::optional<ReducedShape> shapeOfReduction(const HloInstruction &reduce);

/// The rows whose columns a reduction reduces, if it may be made beside reductions of those.
std::optional<ReducedShape> rowsOfColumnReduction(const HloInstruction &reduce);

/// What an instruction is to reductions that it depends on.
enum class ReducedRole : uint8_t {
  Result, ///< element number i of its memory depends on result i alone
  Element ///< its memory is that of what is reduced: each element depends on the results that it is part of
};

/// Of `instr`, whose operand has that role: elsewhere if its elements are no part of the results it depends on.
PlaceAnswer<ReducedRole> roleThrough(const HloInstruction &instr, unsigned operand, ReducedRole read,
                                     const ReducedShape &shape);

} // namespace hloc
