#pragma once
// What the cost model of hloc/kernel/Estimate.h is told of a module's kernels: from their text and plan, or from what
// the emulator has counted.

#include "hloc/emulator/Emulator.h"
#include "hloc/kernel/DeviceProgram.h"
#include "hloc/kernel/Estimate.h"
#include "hloc/kernel/LaunchDescription.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/kernel/StepTotals.h"
#include "hloc/support/Diagnostics.h"

namespace llvm::json {
class OStream;
}

namespace hloc {

/// A kernel, with how often it is launched; or one launch.
struct EstimatedKernel {
  std::string name;
  std::string instruction; ///< the fusion that it is of; empty: not known
  KernelCounts counts;
  double launches = 1;
  uint64_t bytesRead = 0, bytesWritten = 0; ///< least global traffic of a launch; 0: unknown
};

/// Bytes of device memory that a module takes.
struct ModuleMemory {
  uint64_t outer = 0;       ///< parameters and results
  uint64_t temporaries = 0; ///< in the memory that they share, and beside it
  uint64_t apart = 0;       ///< if they shared none
};

struct EstimatedModule {
  std::vector<EstimatedKernel> kernels;
  std::optional<StepTotals> steps; ///< with copies and fills; of a run nothing but its launches is known
  std::optional<ModuleMemory> memory;

  /// By entry, as ptxas says.
  void takeRegisters(llvm::ArrayRef<std::pair<std::string, KernelResources>> resources);
};

/// From the steps, the plans and the PTX of compiled kernels. Nothing, with a diagnostic, if the PTX cannot be read.
std::optional<EstimatedModule> estimateModule(const Manifest &manifest, const std::string &ptx,
                                              const DeviceModel &device, DiagnosticEngine &diagnostics);

/// The same of another compiler's PTX and how it is launched: one kernel a launch. `known` has names and resources.
std::optional<EstimatedModule> estimateLaunches(const LaunchDescription &launches, llvm::ArrayRef<KernelSpec> known,
                                                const std::string &ptx, const DeviceModel &device,
                                                DiagnosticEngine &diagnostics);

/// The attributes of an object of JSON, times in microseconds.
void writeEstimate(llvm::json::OStream &json, const EstimatedKernel &kernel, const KernelEstimate &time);

/// A launch by the emulator's counters before and after it; `ptx` says what waits for what.
class CountedLaunches {
public:
  void begin(const std::string &kernel, const emulator::Counters &before);
  /// After the last one.
  std::optional<EstimatedModule> finish(const emulator::Counters &after, const DeviceProgram &program,
                                        const std::string &ptx, DiagnosticEngine &diagnostics);

private:
  std::vector<std::pair<std::string, emulator::Counters>> launches;
};

} // namespace hloc
