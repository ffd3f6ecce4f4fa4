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
/// The scales of scaled-dot, operands 2 and 3: as the operands they scale, which have several elements a scale.
IndexingMap scaleMap(const HloInstruction &instr, unsigned operand, mlir::MLIRContext *context);
/// Range variables: one for each window dimension, then the kernel's input features. Where the input has holes they
/// count only the taps that meet none; padding is excluded by constraints of the input's map alone.
///
///   f32[1,9,9,4] by f32[3,3,4,8], b01f_01io->b01f, padding 1:
///   (d0, d1, d2, d3)[s0, s1, s2] -> (d0, d1 + s0 - 1, d2 + s1 - 1, s2) and -> (s0, s1, s2, d3)
IndexingMap convolutionMap(const HloInstruction &instr, unsigned operand, mlir::MLIRContext *context);

} // namespace hloc
