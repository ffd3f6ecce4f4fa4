#include "Estimates.h"

#include "WhatIf.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

const DeviceModel &deviceFor(const CompileOptions &options, const TargetInfo &target) {
  const DeviceModel *named = findDevice(options.device);
  return named ? *named : deviceOf(target);
}

namespace {

/// Sums over all launches.
struct Totals {
  double launches = 0, seconds = 0;
  double starts = 0, decisions = 0; ///< as those of StepTotals
  Totals(const EstimatedModule &module, llvm::ArrayRef<KernelEstimate> times) {
    for (auto [kernel, time] : llvm::zip_equal(module.kernels, times)) {
      launches += kernel.launches;
      seconds += kernel.launches * time.total;
    }
    starts = launches;
    if (module.steps) {
      starts = module.steps->starts;
      decisions = module.steps->decisions;
      for (const LibraryTotals &call : module.steps->calls)
        launches += call.times;
      seconds = module.steps->seconds;
    }
  }
  double inStream() const { return starts * launchSeconds; }
  double inGraph() const { return starts * graphLaunchSeconds; }
  double secondsAsGraph() const { return seconds - inStream() + inGraph(); }
};

void printCall(llvm::json::OStream &json, const LibraryTotals &call) {
  json.attribute("step", call.step);
  json.attribute("function", call.function);
  json.attribute("launches", int64_t(call.times));
  for (auto [key, value] :
       {std::pair("flops", call.cost.flops), {"bytes", call.cost.bytes}, {"total_us", call.cost.seconds * 1e6}})
    json.attribute(key, value);
}

std::string asJsonText(const EstimatedModule &module, llvm::ArrayRef<KernelEstimate> times, const DeviceModel &device,
                       const EstimatedWay &now, llvm::ArrayRef<WhatIf> whatIfs) {
  const Totals totals(module, times);
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("device", device.name);
    json.attributeArray("kernels", [&] {
      for (auto [kernel, time] : llvm::zip_equal(module.kernels, times))
        json.object([&, &kernel = kernel, &time = time] { writeEstimate(json, kernel, time); });
    });
    if (module.steps && !module.steps->calls.empty())
      json.attributeArray("library_calls", [&] {
        for (const LibraryTotals &call : module.steps->calls)
          json.object([&] { printCall(json, call); });
      });
    json.attribute("launches", int64_t(totals.launches));
    json.attribute("starts", int64_t(totals.starts));
    json.attribute("starts_us_in_stream", totals.inStream() * 1e6);
    json.attribute("starts_us_in_graph", totals.inGraph() * 1e6);
    json.attribute("decisions_of_device", int64_t(totals.decisions));
    if (const std::optional<StepTotals> &steps = module.steps) {
      json.attribute("copies", int64_t(steps->copies));
      json.attribute("bytes_copied", int64_t(steps->bytesCopied));
      json.attribute("fills", int64_t(steps->fills));
      json.attribute("bytes_filled", int64_t(steps->bytesFilled));
      json.attribute("loops_of_unknown_rounds", int64_t(steps->openLoops));
    }
    if (const std::optional<ModuleMemory> &memory = module.memory)
      json.attributeObject("memory", [&] {
        json.attribute("parameters_and_results_bytes", int64_t(memory->outer));
        json.attribute("temporary_bytes", int64_t(memory->temporaries));
        json.attribute("temporary_bytes_if_none_were_shared", int64_t(memory->apart));
      });
    json.attribute("total_us_as_graph", totals.secondsAsGraph() * 1e6);
    json.attribute("total_us", totals.seconds * 1e6);
    if (!whatIfs.empty())
      writeWhatIfs(json, now, whatIfs);
  });
  os << "\n";
  return text;
}

double mebibytes(double bytes) { return bytes / (1 << 20); }

std::string countOf(double number, const char *one, const char *several) {
  return fmt::format("{:.0f} {}", number, number == 1 ? one : several);
}

/// `starting: 14 times, 28.00 us of these in a stream, 11.20 us in one CUDA graph (114.40 us in all)`
std::string startsLine(const Totals &totals) {
  std::string text =
      fmt::format("starting: {}, {:.2f} us of these in a stream, {:.2f} us in one CUDA graph ({:.2f} us in all)",
                  countOf(totals.starts, "time", "times"), totals.inStream() * 1e6, totals.inGraph() * 1e6,
                  totals.secondsAsGraph() * 1e6);
  if (totals.decisions)
    text += fmt::format("; {} of loops and branches, for which the host waits in a stream",
                        countOf(totals.decisions, "decision", "decisions"));
  return text + "\n";
}

/// `131.20 us in all: 12 launches, 2 copies of 1.5 MiB; ...`
std::string totalLine(const EstimatedModule &module, const Totals &totals) {
  std::string text = fmt::format("{:.2f} us in all", totals.seconds * 1e6);
  text += ": " + countOf(totals.launches, "launch", "launches");
  if (const std::optional<StepTotals> &steps = module.steps) {
    if (steps->copies)
      text +=
          fmt::format(", {} of {:.1f} MiB", countOf(steps->copies, "copy", "copies"), mebibytes(steps->bytesCopied));
    if (steps->fills)
      text += fmt::format(", {} of {:.1f} MiB", countOf(steps->fills, "fill", "fills"), mebibytes(steps->bytesFilled));
    if (steps->openLoops)
      text += fmt::format("; {} whose rounds nobody knows counted as going round once",
                          countOf(steps->openLoops, "loop", "loops"));
  }
  return text + "\n";
}

} // namespace

std::string printEstimates(const EstimatedModule &module, const DeviceModel &device, bool asJson,
                           llvm::ArrayRef<WhatIf> whatIfs, const HloModule *fused) {
  std::vector<KernelEstimate> times;
  size_t width = 6;
  for (const EstimatedKernel &kernel : module.kernels) {
    times.push_back(estimate(kernel.counts, device));
    width = std::max(width, kernel.name.size());
  }
  for (const LibraryTotals &call : module.steps ? module.steps->calls : std::vector<LibraryTotals>())
    width = std::max(width, call.step.size());
  if (asJson)
    return asJsonText(module, times, device, timesOf(module, device, fused), whatIfs);
  std::string text = fmt::format("{:<{}} {:>8} {:>10} {:>7} {:>6} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n",
                                 fmt::format("us on {}", device.name.str()), width, "launches", "blocks", "threads",
                                 "waves", "sectors", "memory", "issue", "shared", "latency", "total", "bound");
  for (auto [kernel, time] : llvm::zip_equal(module.kernels, times))
    text += fmt::format(
        "{:<{}} {:>8.0f} {:>10} {:>7} {:>6.2f} {:>10.0f} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>9.2f}  {}\n",
        kernel.name, width, kernel.launches, kernel.counts.blocks, kernel.counts.threadsPerBlock, time.waves,
        kernel.counts.sectors, time.memory * 1e6, time.issue * 1e6, time.shared * 1e6, time.latency * 1e6,
        time.total * 1e6, time.bound.str());
  for (const LibraryTotals &call : module.steps ? module.steps->calls : std::vector<LibraryTotals>())
    text += fmt::format("{:<{}} {:>8.0f} {:>25} {:>45} {:>9.2f}  {}\n", call.step, width, call.times,
                        fmt::format("{:.3g} Gflop", call.cost.flops / 1e9),
                        fmt::format("{:.2f} MiB", mebibytes(call.cost.bytes)), call.cost.seconds * 1e6, call.function);
  const Totals totals(module, times);
  text += totalLine(module, totals) + startsLine(totals);
  if (const std::optional<ModuleMemory> &memory = module.memory)
    text += fmt::format("memory: {:.1f} MiB of parameters and results, {:.1f} MiB of temporaries ({:.1f} MiB if they "
                        "shared none)\n",
                        mebibytes(double(memory->outer)), mebibytes(double(memory->temporaries)),
                        mebibytes(double(memory->apart)));
  return text + (whatIfs.empty() ? "" : printWhatIfs(timesOf(module, device, fused), whatIfs));
}

} // namespace hloc
