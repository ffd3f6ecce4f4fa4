#pragma once
// All steps of a program as one CUDA graph, for programs that are carried out several times: one call starts it, and
// the device itself decides how often loops go round and which branches are taken.
//
//   std::unique_ptr<CudaGraph> graph = CudaGraph::make(device, program, error);
//   graph->launch(error); graph->launch(error);                      // the same buffers
//   device.reset(error) && ...allocate... && graph->launch(error);   // others: their addresses are set in place

#include "hloc/runtime/CudaDevice.h"

namespace hloc {

class CudaGraph {
public:
  /// Of the steps of `program`, whose kernels and buffers the device has. Both outlive the graph, and are loaded no
  /// other module meanwhile. Null with `error`: a driver older than CUDA 12.3, steps that nobody here carries out, what
  /// the driver refuses.
  static std::unique_ptr<CudaGraph> make(CudaDevice &device, const DeviceProgram &program, std::string &error);
  ~CudaGraph();

  /// Starts it behind the work before it. Where the device has allocated other buffers since the last time, addresses
  /// are changed in place first. After a failure the graph is of no use.
  bool launch(std::string &error);

  /// Kernels, copies, fills, calls, loops and branches; those in loops count once, and what decides goes with them.
  unsigned numNodes() const;
  /// How many times the parameters of a node were changed in place.
  unsigned numUpdates() const;

private:
  CudaGraph();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hloc
