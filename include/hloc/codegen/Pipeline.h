#pragma once
// The one list of passes between emitted MLIR and LLVM dialect.

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <functional>

namespace mlir {
class OpPassManager;
class PassManager;
} // namespace mlir

namespace hloc {

struct PipelineOptions {
  int64_t computeCapability = 90; ///< times ten: 90 for sm_90
  int64_t maxVectorBytes = 16;    ///< widest global access of one thread (TargetInfo::maxVectorBytes)
  int64_t maxUnrollFactor = 8;    ///< loops of up to this many iterations are unrolled completely
};

/// Appends the passes that take a module of one kernel (xla_gpu, scf, tensor, arith, math) to LLVM and NVVM dialect.
void buildKernelPipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

/// Checks after each pass of the kernel pipeline that the ops it lowers are gone, and after the last that only LLVM and
/// NVVM are left. What is found is our mistake: an internal error, or `report`'s to tell. For builds that test (no
/// NDEBUG).
void addPhaseChecks(mlir::PassManager &manager);
void addPhaseChecks(mlir::PassManager &manager, std::function<void(llvm::StringRef)> report);

} // namespace hloc
