#include "Gpu.h"

namespace hloc {

std::unique_ptr<CudaDevice> openGpu(const CudaOptions &options, DiagnosticEngine &diagnostics) {
  std::string error;
  std::unique_ptr<CudaDevice> device = CudaDevice::open(options, error);
  if (!device)
    diagnostics.report(DiagnosticKind::MissingTool, "--platform=cuda: " + error)
        .note("--platform=emulator executes the same PTX on the CPU");
  return device;
}

bool openLibraries(CudaDevice &device, const DeviceProgram &program, DiagnosticEngine &diagnostics) {
  std::string error;
  const bool isOpen = device.openLibraries(program.steps, error);
  if (!isOpen)
    diagnostics.report(DiagnosticKind::MissingTool, "--platform=cuda: " + error)
        .note("--platform=emulator carries such steps out on the CPU, --dots=own makes kernels of them");
  return isOpen;
}

std::optional<MeasuredRun> measureRun(CudaDevice &device, const DeviceProgram &program, unsigned repeats,
                                      DiagnosticEngine &diagnostics) {
  MeasuredRun measured{device.name(), device.target(), {}};
  std::string error;
  if (!measure(device, program, repeats, measured.measurement, error)) {
    diagnostics.report(DiagnosticKind::BadLaunch, "measuring: " + error);
    return std::nullopt;
  }
  return measured;
}

} // namespace hloc
