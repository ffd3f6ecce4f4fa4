#pragma once
// Conversions between element types, and the types in which floats are computed.

#include "emitters/CodeBuilder.h"
#include "hloc/hlo/ElementType.h"

namespace hloc {

/// f64 for f64, f32 for every other float.
mlir::Type computeType(ElementType type, mlir::MLIRContext *context);
/// A value of a float type in its compute type: exact.
mlir::Value toCompute(CodeBuilder &b, mlir::Value value, ElementType type);
/// Rounds an f32 or f64 to a float type: nearest, ties to even, overflow as the format has it.
mlir::Value fromCompute(CodeBuilder &b, mlir::Value value, ElementType type);
/// HLO `convert`: saturating for float to integer, `x != 0` to pred, real part of complex numbers.
mlir::Value convertElement(CodeBuilder &b, mlir::Value value, ElementType from, ElementType to);

/// pred between its value (i1) and its storage (i8); other types are unchanged.
mlir::Value fromStorage(CodeBuilder &b, mlir::Value value, ElementType type);
mlir::Value toStorage(CodeBuilder &b, mlir::Value value, ElementType type);

} // namespace hloc
