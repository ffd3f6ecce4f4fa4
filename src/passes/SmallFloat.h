#pragma once
// Floats of at most 8 bits: how their bits are read, and conversions from and to f32 in integer and f32 arithmetic that
// every target has. Rounding is to nearest even, subnormals are kept; what overflows follows the format (hlo-text
// rules): infinity where there is one, else NaN, else the largest finite value. NaN becomes -0 where there is none.

#include "mlir/IR/Builders.h"

#include <optional>

namespace hloc {

/// sign, exponent, mantissa; f8E8M0FNU has only an exponent.
struct SmallFloat {
  enum class Special {
    Ieee,         ///< exponent of ones: infinity, or NaN with a mantissa
    Nan,          ///< all ones but the sign: NaN; no infinity (FN)
    NegativeZero, ///< the bits of -0: NaN; no infinity, no -0 (FNUZ)
    None,         ///< every pattern is finite
    ExponentOnly  ///< f8E8M0FNU: 2^(bits - 127), 255 is NaN
  };
  unsigned bits, mantissaBits;
  int bias;
  Special special;

  uint32_t magnitudeMask() const { return (1u << (bits - 1)) - 1; }
  uint32_t signBit() const { return 1u << (bits - 1); }
  /// Bits of infinity, or of the first magnitude that is not finite.
  uint32_t firstNonFinite() const;
  /// f32 bits of the largest finite value, and of the largest |x| that rounds to it.
  uint32_t largestFinite() const;
  uint32_t largestRoundingToFinite() const;
};

/// Nothing for types of more than 8 bits.
std::optional<SmallFloat> smallFloatOf(mlir::Type type);

/// f32 of the bits in `raw` (an integer of the format's width).
mlir::Value extendSmallFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value raw, const SmallFloat &format);
/// Can `extendToHalves` convert this type?
bool becomesHalves(mlir::Type type);
/// f16 of up to four bytes of a type, which has all its values: as words of two, in instructions for both.
llvm::SmallVector<mlir::Value> extendToHalves(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange raw,
                                              mlir::Type type);
/// Bits (an integer of the format's width) of the f32 `value` rounded to the format.
mlir::Value roundToSmallFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                              const SmallFloat &format);

} // namespace hloc
