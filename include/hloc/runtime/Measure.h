#pragma once
// How long a program takes on a device, beside a copy of as many bytes.
//
//   gelu bf16[6,512,4096] moves 2 x 25165824 bytes; the copy it is compared with copies 25165824 bytes, which moves the
//   same. copyFraction 0.95 means that the copy takes 95 % of the program's time.

#include "hloc/runtime/CudaGraph.h"

#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// One kernel of a program, launched alone.
struct KernelMeasurement {
  std::string kernel;
  unsigned launches = 0;        ///< in one pass over all steps: a loop's body counts once
  double median = 0, least = 0; ///< milliseconds of its first launch
};

/// The program as one CUDA graph.
struct GraphMeasurement {
  unsigned nodes = 0;
  double median = 0, least = 0; ///< milliseconds
};

struct Measurement {
  unsigned repeats = 0;
  std::vector<double> milliseconds; ///< one per repetition, in order
  double median = 0, least = 0;     ///< of `milliseconds`
  uint64_t bytesMoved = 0;          ///< least traffic of the program: kernels by their spec, copies twice their size
  double copyMedian = 0;            ///< of a device-to-device copy that moves `bytesMoved`; 0: nothing to copy
  std::vector<KernelMeasurement> kernels; ///< of several, in the order of their first launch
  std::optional<GraphMeasurement> graph;
  std::string whyNoGraph; ///< where one was wanted and could not be made
  double bytesPerSecond() const { return median > 0 ? double(bytesMoved) / (median / 1000) : 0; }
  double copyFraction() const { return median > 0 ? copyMedian / median : 0; }
};

/// Runs the steps of the program `repeats` times after two unmeasured runs, the copy and the first launch of each
/// kernel likewise. Before every run a copy between two buffers of 256 MiB evicts the program's data from the
/// second-level cache; it also keeps the device busy while the measured work is queued, so that launch latency of the
/// host does not count; nor does it in the program's graph, if there is one, which is timed after its steps. The device
/// must hold the program's buffers and nothing else; four more are allocated after
/// them. Steps must be repeatable: what they compute after the first time may differ where a buffer is updated in
/// place.
bool measure(Device &device, const DeviceProgram &program, unsigned repeats, Measurement &result, std::string &error,
             CudaGraph *graph = nullptr);

/// Three lines for people, one about the graph, and one for each of several kernels; ends with a newline.
std::string report(const Measurement &measurement);

} // namespace hloc
