#include "Gpu.h"

#include "hloc/runtime/Measure.h"

#include "llvm/Support/raw_ostream.h"

namespace hloc {

std::unique_ptr<CudaDevice> openGpu(DiagnosticEngine &diagnostics) {
  std::string error;
  std::unique_ptr<CudaDevice> device = CudaDevice::open({}, error);
  if (!device)
    diagnostics.report(DiagnosticKind::MissingTool, "--platform=cuda: " + error)
        .note("--platform=emulator executes the same PTX on the CPU");
  return device;
}

bool printMeasurement(CudaDevice &device, const DeviceProgram &program, unsigned repeats,
                      DiagnosticEngine &diagnostics) {
  Measurement measurement;
  std::string error;
  if (!measure(device, program, repeats, measurement, error)) {
    diagnostics.report(DiagnosticKind::BadLaunch, "measuring: " + error);
    return false;
  }
  llvm::outs() << device.name() << " (" << device.target() << "): " << report(measurement);
  return true;
}

} // namespace hloc
