#pragma once
// `--estimate`: times of kernels by the cost model of hloc/kernel/Estimate.h, as a table or JSON.

#include "Options.h"

#include "hloc/emulator/Emulator.h"
#include "hloc/kernel/DeviceProgram.h"
#include "hloc/kernel/Estimate.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/support/Diagnostics.h"

namespace hloc {

/// A launch, or a kernel where launches are not known.
struct EstimatedKernel {
  std::string name;
  KernelCounts counts;
};

/// What --device names, or the device of the target.
const DeviceModel &deviceFor(const CompileOptions &options, const TargetInfo &target);

/// From the plans and the PTX of compiled kernels. Nothing, with a diagnostic, if the PTX cannot be read.
std::optional<std::vector<EstimatedKernel>> staticCounts(const Manifest &manifest, const std::string &ptx,
                                                         DiagnosticEngine &diagnostics);

/// A launch by the emulator's counters before and after it; `ptx` says what waits for what.
class CountedLaunches {
public:
  void begin(const std::string &kernel, const emulator::Counters &before);
  /// After the last one.
  std::optional<std::vector<EstimatedKernel>> finish(const emulator::Counters &after, const DeviceProgram &program,
                                                     const std::string &ptx, DiagnosticEngine &diagnostics);

private:
  std::vector<std::pair<std::string, emulator::Counters>> launches;
};

/// Microseconds, a line a kernel and their sum; or JSON.
std::string printEstimates(llvm::ArrayRef<EstimatedKernel> kernels, const DeviceModel &device, bool asJson);

} // namespace hloc
