#pragma once
// Computations of scalars, as reduce, map and others apply: pasted in where they are applied, or as functions.
//
//   sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] add(x, y) }
//   func.func private @sum(%x: f32, %y: f32) -> f32

#include "emitters/CodeBuilder.h"
#include "hloc/hlo/HloComputation.h"
#include "hloc/support/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/Support/LogicalResult.h"

namespace hloc {

/// The results of `computation`, a tuple's in order, for these arguments (value types, ElementStorage.h). Arrays other
/// than scalars are refused.
llvm::FailureOr<llvm::SmallVector<mlir::Value, 1>> emitScalarComputation(const HloComputation &computation,
                                                                         mlir::ValueRange arguments, CodeBuilder &b,
                                                                         DiagnosticEngine &diagnostics);

/// The same as a private function at the end of `module`, from and to storage types: the combiner of a shuffle_reduce.
/// Its name is the computation's, made unique in the module.
llvm::FailureOr<mlir::func::FuncOp> emitScalarFunction(const HloComputation &computation, mlir::ModuleOp module,
                                                       DiagnosticEngine &diagnostics);

/// The element of a constant at `indices`, in its value type.
llvm::FailureOr<mlir::Value> emitConstantElement(const HloInstruction &constant, mlir::ValueRange indices,
                                                 CodeBuilder &b, DiagnosticEngine &diagnostics);

/// The element whose bits are all zero, in its value type: 0, or of f8e8m0fnu, which has none, 2^-127.
mlir::Value zeroElement(ElementType type, CodeBuilder &b);

} // namespace hloc
