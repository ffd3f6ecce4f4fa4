#include "Gpu.h"

namespace hloc {

std::unique_ptr<CudaDevice> openGpu(const std::string &driver, DiagnosticEngine &diagnostics) {
  std::string error;
  std::unique_ptr<CudaDevice> device = CudaDevice::open({driver}, error);
  if (!device)
    diagnostics.report(DiagnosticKind::MissingTool, "--platform=cuda: " + error)
        .note("--platform=emulator executes the same PTX on the CPU");
  return device;
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
