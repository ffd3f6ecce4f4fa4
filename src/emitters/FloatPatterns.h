#pragma once
// Bit patterns of the 8-, 6- and 4-bit floats to f32 and back, by integer arithmetic: for every target, and with the
// exact overflow, NaN and signed-zero rules of each format (FloatFormat.h).

#include "emitters/CodeBuilder.h"
#include "hloc/support/FloatFormat.h"

namespace hloc {

/// Exact. `pattern` is an integer whose low `format.bits` bits count.
mlir::Value decodePattern(CodeBuilder &b, mlir::Value pattern, const FloatFormat &format);
/// Nearest, ties to even. The result has the type `patternType`.
mlir::Value encodePattern(CodeBuilder &b, mlir::Value f32, const FloatFormat &format, mlir::Type patternType);

} // namespace hloc
