#pragma once
// How element types appear in the IR.
//
// | HLO | in tensors and signatures | as a value being computed with |
// |---|---|---|
// | pred | i8, any non-zero is true | i1 |
// | s4, u4 .. s64, u64 | i4 .. i64 (signless) | same |
// | f16, bf16, f32, f64 | same | same; arithmetic of f16 and bf16 is done in f32 and rounded after every op |
// | f8*, f6*, f4* | bit pattern: i8, i8, i4 | the pattern; arithmetic is done in f32 and rounded after every op. Only
// conversions from and to f32 have the builtin type: a pass makes them those of the target | | c64, c128 |
// complex<f32>, complex<f64> | same |

#include "hloc/hlo/Shape.h"

#include "mlir/IR/BuiltinTypes.h"

namespace hloc {

/// Can values of this type be emitted? (s1 and u1 cannot.)
bool isEmittable(ElementType type);
mlir::Type storageType(ElementType type, mlir::MLIRContext *context);
mlir::Type valueType(ElementType type, mlir::MLIRContext *context);
/// Logical shape; a layout other than row-major becomes the encoding `dense<[minor, ..., major]>`.
mlir::RankedTensorType tensorType(const Shape &shape, mlir::MLIRContext *context);

/// Is the type kept as a bit pattern because MLIR and PTX have no arithmetic on it?
inline bool isPatternFloat(ElementType type) { return isFloat(type) && bitWidth(type) <= 8; }
/// MLIR's type of as many bits.
mlir::FloatType patternFloatType(ElementType type, mlir::MLIRContext *context);

} // namespace hloc
