#pragma once
// What the text of a call of cuBLAS says: a matrix product with what the library does to it before it is stored.
//
//   out = activation(alpha * lhs . rhs + beta * addend + bias)
//
//   __cublas$gemm        (out[, scratch])        of lhs, rhs[, addend]
//   __cublas$lt$matmul   (out[, aux][, scratch]) of lhs, rhs[, addend][, bias]; aux: the activation's operand
//
// The addend is there where beta is not 0, the bias (one number for each column of the result) where the epilogue's
// name has it. A call that returns no scratch memory and no aux may be an array.

#include "hloc/hlo/HloInstruction.h"

namespace hloc {

struct GemmCall {
  enum class Activation : uint8_t { None, Relu, Gelu, Silu }; ///< Gelu: by tanh

  llvm::SmallVector<int64_t, 2> lhsContracting, rhsContracting, lhsBatch, rhsBatch;
  double alpha = 1, beta = 0;
  Activation activation = Activation::None;
  unsigned addend = 0, bias = 0; ///< operand numbers; 0: there is none
  bool hasAux = false;           ///< result 1 is what the activation is applied to
  bool isPrecise = false;        ///< more than the default precision is asked for, or an algorithm
  bool allowsTf32 = false;       ///< that algorithm is dot_tf32_tf32_f32

  /// Is it the product alone, as `dot` gives it?
  bool isPlain() const { return alpha == 1 && !addend && !bias && activation == Activation::None; }
};

/// Is the target one of those above?
bool isGemmTarget(llvm::StringRef target);
/// nullopt where operands, results or configuration are none of those above: types that no product is defined of,
/// dimensions that do not fit, epilogues and scales of 8-bit floats that nothing here knows.
std::optional<GemmCall> readGemmCall(const HloInstruction &call);

/// A dot as such a product: its dimensions, and what it says of precision. Nothing where it has an algorithm that
/// neither its types have by themselves nor such a call knows.
std::optional<GemmCall> gemmOfDot(const HloInstruction &dot);
/// The `backend_config` of a product with an epilogue of this name.
std::string gemmConfiguration(const GemmCall &gemm, llvm::StringRef epilogue = "DEFAULT");

} // namespace hloc
