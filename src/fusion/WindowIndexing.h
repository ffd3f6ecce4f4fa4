#pragma once
// Maps of the instructions that read many elements per result: reductions, windows, contractions. Range variables are
// the elements; the order of range variables is the order of a sequential evaluation.

#include "hloc/hlo/HloInstruction.h"
#include "hloc/indexing/IndexingMap.h"

namespace hloc {

/// Input: reduced dims are range variables in order, kept dims the result's. Inits: `()`.
IndexingMap reduceMap(const HloInstruction &instr, unsigned operand, mlir::MLIRContext *context);
/// Input: one range variable per window dimension; padding and dilation holes are excluded by constraints.
IndexingMap reduceWindowMap(const HloInstruction &instr, unsigned operand, mlir::MLIRContext *context);
/// Result dims are batch, lhs free, rhs free; contracted dims are range variables in the order of the attribute.
IndexingMap dotMap(const HloInstruction &instr, unsigned operand, mlir::MLIRContext *context);

} // namespace hloc
