#include "hloc/runtime/Measure.h"

#include "hloc/kernel/LibraryCall.h"

#include "fmt/format.h"

#include <algorithm>

namespace hloc {

namespace {

/// More than twice the second-level cache of any device there is (B200: 126 MiB).
constexpr uint64_t flushBytes = uint64_t(256) << 20;
constexpr unsigned warmUps = 2;

/// Of one pass over all steps: a loop's body counts once.
uint64_t bytesMovedBy(const DeviceProgram &program) {
  uint64_t bytes = 0;
  forEachStep(program.steps, [&](const Step &step) {
    if (const auto *launch = std::get_if<LaunchStep>(&step.action))
      bytes += program.kernels[launch->kernel].bytesRead + program.kernels[launch->kernel].bytesWritten;
    else if (const auto *call = std::get_if<CallStep>(&step.action); call && call->kind == CallStep::Kind::Library)
      bytes += uint64_t(libraryCost(*call, allDevices().front()).bytes); // the same on all
    else if (const auto *copy = std::get_if<CopyStep>(&step.action))
      bytes += 2 * copy->from.bytes;
    else if (const auto *fill = std::get_if<FillStep>(&step.action))
      bytes += fill->to.bytes;
  });
  return bytes;
}

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

class Stopwatch {
public:
  Stopwatch(Device &device, CopyStep flush, unsigned repeats, std::string &error)
      : device(device), flush(flush), repeats(repeats), error(error) {}

  bool run(const std::function<bool()> &work, double &median, double &least) {
    std::vector<double> times;
    return run(work, times, median, least);
  }

  bool run(const std::function<bool()> &work, std::vector<double> &times, double &median, double &least) {
    for (unsigned i = 0; i < warmUps + repeats; ++i) {
      double milliseconds = 0;
      if (!device.copy(flush, error) || !device.time(work, milliseconds, error))
        return false;
      if (i >= warmUps)
        times.push_back(milliseconds);
    }
    median = medianOf(times);
    least = *std::min_element(times.begin(), times.end());
    return true;
  }

private:
  Device &device;
  CopyStep flush;
  unsigned repeats;
  std::string &error;
};

/// A copy between two new buffers, the first of which is number `first`.
bool makeCopy(Device &device, const char *name, uint32_t first, uint64_t bytes, CopyStep &copy, std::string &error) {
  DeviceBuffer buffer;
  buffer.name = name;
  buffer.bytes = bytes;
  copy = {{first, 0, bytes}, {first + 1, 0, bytes}};
  return device.allocate(buffer, error) && device.allocate(buffer, error);
}

/// The first launch of each kernel that is launched at all, with the number of launches.
std::vector<std::pair<const LaunchStep *, unsigned>> firstLaunches(const DeviceProgram &program) {
  std::vector<std::pair<const LaunchStep *, unsigned>> found;
  std::vector<int> places(program.kernels.size(), -1);
  forEachStep(program.steps, [&](const Step &step) {
    const auto *launch = std::get_if<LaunchStep>(&step.action);
    if (!launch || program.kernels[launch->kernel].grid.count() == 0)
      return;
    int &place = places[launch->kernel];
    if (place < 0) {
      place = int(found.size());
      found.push_back({launch, 0});
    }
    ++found[place].second;
  });
  return found;
}

} // namespace

bool measure(Device &device, const DeviceProgram &program, unsigned repeats, Measurement &result, std::string &error,
             CudaGraph *graph) {
  if (repeats == 0) {
    error = "nothing is measured without repetitions";
    return false;
  }
  result = {};
  result.repeats = repeats;
  result.bytesMoved = bytesMovedBy(program);
  uint32_t next = uint32_t(program.buffers.size());
  CopyStep flush, same;
  if (!makeCopy(device, "cache flush", next, flushBytes, flush, error) ||
      !makeCopy(device, "copy to compare with", next + 2, result.bytesMoved / 2, same, error))
    return false;
  Stopwatch stopwatch(device, flush, repeats, error);
  auto steps = [&] { return issueSteps(device, program, program.steps, error); };
  if (!stopwatch.run(steps, result.milliseconds, result.median, result.least))
    return false;
  if (graph) {
    GraphMeasurement &made = result.graph.emplace(GraphMeasurement{graph->numNodes()});
    if (!stopwatch.run([&] { return graph->launch(error); }, made.median, made.least))
      return false;
  }
  auto launches = firstLaunches(program);
  if (launches.size() == 1) // that is the program
    launches.clear();
  for (auto [launch, count] : launches) {
    const DeviceKernel &kernel = program.kernels[launch->kernel];
    KernelMeasurement &made = result.kernels.emplace_back(KernelMeasurement{kernel.name, count});
    if (!stopwatch.run([&, launch = launch] { return device.launch({kernel, *launch}, error); }, made.median,
                       made.least))
      return false;
  }
  if (result.bytesMoved < 2)
    return true;
  double leastCopy = 0;
  return stopwatch.run([&] { return device.copy(same, error); }, result.copyMedian, leastCopy);
}

std::string report(const Measurement &m) {
  std::string text =
      fmt::format("median {:.4f} ms, least {:.4f} ms of {} runs, second-level cache flushed before each\n", m.median,
                  m.least, m.repeats);
  if (m.copyMedian <= 0)
    text += "no bytes to move: no bandwidth\n";
  else
    text += fmt::format("{} bytes moved at {:.1f} GB/s\n", m.bytesMoved, m.bytesPerSecond() / 1e9) +
            fmt::format("a device copy that moves as many takes {:.4f} ms: {:.1f} % of the copy's speed\n",
                        m.copyMedian, 100 * m.copyFraction());
  if (m.graph)
    text += fmt::format("as one CUDA graph of {} {}: median {:.4f} ms, least {:.4f} ms\n", m.graph->nodes,
                        m.graph->nodes == 1 ? "node" : "nodes", m.graph->median, m.graph->least);
  else if (!m.whyNoGraph.empty())
    text += "not timed as a CUDA graph: " + m.whyNoGraph + "\n";
  for (const KernelMeasurement &kernel : m.kernels)
    text += fmt::format("kernel {}, {} {}: median {:.4f} ms, least {:.4f} ms\n", kernel.kernel, kernel.launches,
                        kernel.launches == 1 ? "launch" : "launches", kernel.median, kernel.least);
  return text;
}

} // namespace hloc
