#pragma once
// The one list of passes between emitted MLIR and LLVM dialect.

#include <cstdint>

namespace mlir {
class OpPassManager;
}

namespace hloc {

struct PipelineOptions {
  int64_t computeCapability = 90; ///< times ten: 90 for sm_90
  int64_t maxVectorBytes = 16;    ///< widest global access of one thread (TargetInfo::maxVectorBytes)
  int64_t maxUnrollFactor = 8;    ///< loops of up to this many iterations are unrolled completely
};

/// Appends the passes that take a module of one kernel (xla_gpu, scf, tensor, arith, math) to LLVM and NVVM dialect.
void buildKernelPipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

} // namespace hloc
