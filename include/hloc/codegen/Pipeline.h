#pragma once
// The one list of passes between emitted MLIR and LLVM dialect.

#include "hloc/support/DisabledPasses.h"

#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
class PassManager;
} // namespace mlir

namespace hloc {

struct PipelineOptions {
  int64_t computeCapability = 90; ///< times ten: 90 for sm_90
  int64_t maxVectorBytes = 16;    ///< widest global access of one thread (TargetInfo::maxVectorBytes)
  int64_t maxUnrollFactor = 8;    ///< loops of up to this many iterations are unrolled completely
  bool reducesFloats = false;     ///< the target has redux.sync for f32
  DisabledPasses disabled = {};   ///< passes that are left out

  bool operator==(const PipelineOptions &) const = default;
};

/// Appends the passes that take a module of one kernel (xla_gpu, scf, tensor, arith, math) to LLVM and NVVM dialect.
void buildKernelPipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

/// A part of the pipeline: its passes from number `begin` up to but without `end`.
struct PassRange {
  size_t begin = 0, end = size_t(-1);

  bool operator==(const PassRange &) const = default;
};
void buildKernelPipeline(mlir::OpPassManager &manager, const PipelineOptions &options, PassRange range);

/// A pass as lists and dumps name it.
struct PassName {
  std::string name;    ///< `cse`
  std::string id;      ///< the same, or, if the pass runs more than once, `cse#1` the first time, `cse#2` the second
  std::string summary; ///< one sentence
  std::string argument = {}; ///< of MLIR's, as `hloc opt` takes it
};
/// The passes of the pipeline, in order.
const std::vector<PassName> &kernelPasses();

/// Checks after each pass of the kernel pipeline that the ops it lowers are gone, and after the last that only LLVM and
/// NVVM are left. What is found is our mistake: an internal error, or `report`'s to tell. For builds that test (no
/// NDEBUG).
void addPhaseChecks(mlir::PassManager &manager);
void addPhaseChecks(mlir::PassManager &manager, std::function<void(llvm::StringRef)> report);

} // namespace hloc
