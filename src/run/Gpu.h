#pragma once
// `hloc run --platform=cuda`: the device and its measurements, with failures as diagnostics.

#include "hloc/run/RunOptions.h"
#include "hloc/run/RunReport.h"
#include "hloc/runtime/CudaGraph.h"
#include "hloc/support/Diagnostics.h"

namespace hloc {

/// Null, with a diagnostic of exit code 3, where there is no driver or no device.
std::unique_ptr<CudaDevice> openGpu(const CudaOptions &options, DiagnosticEngine &diagnostics);

/// Opens what the program calls. False, with a diagnostic of exit code 3, if a library is missing.
bool openLibraries(CudaDevice &device, const DeviceProgram &program, DiagnosticEngine &diagnostics);

/// A device, and the graph of the program that runs there, where it is carried out as one.
struct Gpu {
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<CudaGraph> graph; ///< made when it is first needed

  /// Makes the graph of the program, whose buffers the device holds, if there is none, and starts it.
  bool launchGraph(const DeviceProgram &program, std::string &error);
  /// Times the program, whose buffers the device holds. Nothing after a diagnostic.
  std::optional<MeasuredRun> measureRun(const DeviceProgram &program, const RunOptions &options,
                                        DiagnosticEngine &diagnostics);
};

} // namespace hloc
