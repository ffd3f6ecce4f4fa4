#pragma once
// `hloc run --platform=cuda`: the device and its measurements, with failures as diagnostics.

#include "hloc/run/RunReport.h"
#include "hloc/runtime/CudaDevice.h"
#include "hloc/support/Diagnostics.h"

namespace hloc {

/// Null, with a diagnostic of exit code 3, where there is no driver or no device.
std::unique_ptr<CudaDevice> openGpu(const CudaOptions &options, DiagnosticEngine &diagnostics);

/// Opens what the program calls. False, with a diagnostic of exit code 3, if a library is missing.
bool openLibraries(CudaDevice &device, const DeviceProgram &program, DiagnosticEngine &diagnostics);

/// Times the program, whose buffers the device holds. Nothing after a diagnostic.
std::optional<MeasuredRun> measureRun(CudaDevice &device, const DeviceProgram &program, unsigned repeats,
                                      DiagnosticEngine &diagnostics);

} // namespace hloc
