#pragma once
// Which call of a library does what an instruction does: of its layouts, no value is moved.
//
//   f32[8,m,n] dot(f32[8,m,k] x, f32[8,n,k] y), batch {0}, contracting {2}
//     cublasLtMatmul: m = n, n = m, k, batch 8; a = y transposed, leading dimension k, b = x, leading dimension k

#include "hloc/hlo/HloInstruction.h"
#include "hloc/kernel/LibraryCall.h"
#include "hloc/kernel/LibraryConvolution.h"
#include "hloc/kernel/TargetInfo.h"

#include <optional>
#include <string>

namespace hloc {

struct LibraryForm {
  std::string function, configuration;
  llvm::SmallVector<unsigned, 4> reads; ///< operands of the instruction, in the order in which the function has them
};

/// Of a dot, or of a call of cuBLAS's product. Nothing, with the reason, if there is no such call, or if it would
/// compute something else than the text says.
std::optional<MatmulCall> matmulOf(const HloInstruction &instr, const TargetInfo &target,
                                   llvm::SmallVectorImpl<unsigned> &reads, std::string &why);

/// The same of a convolution, or of a call of cuDNN's: forward without an epilogue, or a gradient.
std::optional<LibraryConvolution> convolutionOf(const HloInstruction &instr, const TargetInfo &target,
                                                llvm::SmallVectorImpl<unsigned> &reads, std::string &why);

/// Of a custom call of cuBLAS or cuDNN.
std::optional<LibraryForm> libraryFormOf(const HloInstruction &call, const TargetInfo &target, std::string &why);

} // namespace hloc
