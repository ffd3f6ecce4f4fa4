#pragma once
// HloIndexing: which element of an operand an HLO instruction reads for one element of its result, as an IndexingMap.
//
//   %t = f32[4,8] transpose(f32[8,4] %x), dimensions={1,0}      (d0, d1) -> (d1, d0)
//   %s = f32[2] dynamic-slice(f32[9] %x, s32[] %i), ...={2}     (d0){rt0} -> (d0 + rt0), rt0 in [0, 7]
//
// Maps speak of logical indices; layouts matter to `bitcast` alone. They are simplified.

#include "hloc/hlo/HloInstruction.h"
#include "hloc/indexing/IndexingMap.h"

#include <optional>

namespace hloc {

/// Where the value of a runtime variable comes from: element `indices(d)` of operand `operand` of the instruction,
/// clamped to the variable's bounds.
struct RuntimeSource {
  unsigned operand;
  IndexingMap indices; ///< result index -> index into that operand
};

struct OperandIndexing {
  IndexingMap map;
  llvm::SmallVector<RuntimeSource, 0> runtimes; ///< one per runtime variable of the map
};

/// Result index -> index of operand `operand`. Nothing if the opcode reads it in a way no map describes.
/// Dims range over the result's shape (for tuple results: of the first element).
std::optional<OperandIndexing> operandIndexing(const HloInstruction &instr, unsigned operand,
                                               mlir::MLIRContext *context);

/// Is the map of every array operand the identity (scalar operands of select and clamp aside)?
bool readsOperandsInPlace(const HloInstruction &instr);

/// The value behind get-tuple-element of a tuple (also through opt-barrier) that is built in the same computation;
/// other instructions are returned as they are.
const HloInstruction &behindTuple(const HloInstruction &instr);

/// Map of a bitcast between two array shapes with equally many elements.
IndexingMap bitcastIndexing(const Shape &to, const Shape &from, mlir::MLIRContext *context);

/// Position in memory order of the elements, 0.. -> logical index.
IndexingMap memoryOrderIndexing(const Shape &shape, mlir::MLIRContext *context);
/// The indices of the element at `position` of the memory order of `shape`.
llvm::SmallVector<mlir::AffineExpr> memoryOrderIndices(const Shape &shape, mlir::AffineExpr position);

/// How the dimensions of a gather's result, or of a scatter's updates, divide, and where each operand dimension's index
/// comes from. "Windows" is that array: one window of the operand for each element of its `batch` dimensions.
struct GatherDims {
  llvm::SmallVector<int64_t> batch;          ///< dims of the windows that walk the indices, in order
  llvm::SmallVector<int64_t> offset;         ///< per operand dim: the dim of the windows, or -1 if dropped or batching
  llvm::SmallVector<int64_t> batchOfOperand; ///< per operand dim: the dim of the windows of a batching dim, or -1
  llvm::SmallVector<int64_t> component;      ///< per operand dim: position in the index vector, or -1
  int64_t indexVectorDim;

  /// Size of a window along operand dimension `dim`, if `windows` are the sizes of the windows.
  int64_t windowSize(unsigned dim, llvm::ArrayRef<int64_t> windows) const {
    return offset[dim] < 0 ? 1 : windows[offset[dim]];
  }
};
GatherDims gatherDims(const HloInstruction &gather);
GatherDims scatterDims(const HloInstruction &scatter);
/// Index of a scatter's updates -> index of component `component` of the vector that says where its window begins.
IndexingMap scatterIndexMap(const HloInstruction &scatter, int64_t component, mlir::MLIRContext *context);

// select-and-scatter. Windows are counted backwards, so that sources come in their own order.

/// Element of the operand -> the sources whose windows contain it, one range variable for each window dimension.
IndexingMap sourcesOfElement(const HloInstruction &selectAndScatter, mlir::MLIRContext *context);
/// Source -> the elements of its window, in order.
IndexingMap elementsOfSource(const HloInstruction &selectAndScatter, mlir::MLIRContext *context);

/// What a ragged-dot's ragged dimension is.
struct RaggedDims {
  /// Free: every row has the right side of its group. Contracted: every group has a result, dimension 0 of it.
  enum class Kind : uint8_t { Free, Contracted, Batch } kind;
  unsigned position; ///< the result's dimension; if contracted, its number among the range variables of the maps
};
RaggedDims raggedDims(const HloInstruction &raggedDot);
/// Of the left or right side. Range variables are the contracted dimensions; if there is a group dimension on the
/// right, a runtime variable is the number of the group.
IndexingMap raggedDotMap(const HloInstruction &raggedDot, unsigned operand, mlir::MLIRContext *context);

} // namespace hloc
