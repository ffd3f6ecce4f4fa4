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

bool Gpu::launchGraph(const DeviceProgram &program, std::string &error) {
  if (!graph)
    graph = CudaGraph::make(*device, program, error);
  return graph && graph->launch(error);
}

std::optional<MeasuredRun> Gpu::measureRun(const DeviceProgram &program, const RunOptions &options,
                                           DiagnosticEngine &diagnostics) {
  MeasuredRun measured{device->name(), device->target(), {}};
  std::string error, whyNoGraph;
  if (options.graph != GraphUse::Off && !graph)
    graph = CudaGraph::make(*device, program, whyNoGraph);
  if (!measure(*device, program, options.repeat, measured.measurement, error, graph.get())) {
    diagnostics.report(DiagnosticKind::BadLaunch, "measuring: " + error);
    return std::nullopt;
  }
  measured.measurement.whyNoGraph = whyNoGraph;
  return measured;
}

} // namespace hloc
