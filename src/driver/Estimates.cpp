#include "Estimates.h"

#include "hloc/emulator/Ptx.h"
#include "hloc/lint/StaticCounts.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <numeric>
#include <set>

namespace hloc {

namespace {

std::optional<ptx::Module> parsePtx(const std::string &text, DiagnosticEngine &diagnostics) {
  DiagnosticEngine ofPtx;
  ofPtx.setFile(std::make_shared<SourceFile>("kernels.ptx", text));
  std::optional<ptx::Module> module = ptx::parse(ofPtx);
  diagnostics.append(ofPtx);
  return module;
}

uint64_t ofClass(const emulator::Counters &counters, llvm::StringRef name) {
  for (auto [className, count] : llvm::zip(emulator::instructionClassNames(), counters.warpInstructions))
    if (className == name)
      return count;
  return 0;
}

uint64_t allInstructions(const emulator::Counters &counters) {
  return std::accumulate(counters.warpInstructions.begin(), counters.warpInstructions.end(), uint64_t(0));
}

/// What was counted so far, as numbers that can be subtracted.
struct Sums {
  explicit Sums(const emulator::Counters &counters)
      : sectors(double(counters.globalLoadSectors + counters.globalStoreSectors)),
        instructions(double(allInstructions(counters))),
        specialFunctions(double(ofClass(counters, "special function"))), doubles(double(ofClass(counters, "f64"))),
        sharedPasses(double(counters.sharedLoadWavefronts + counters.sharedStoreWavefronts + counters.shuffles)),
        atomics(double(counters.atomics)), warps(double(counters.warps)) {}
  double sectors, instructions, specialFunctions, doubles, sharedPasses, atomics, warps;
};

} // namespace

const DeviceModel &deviceFor(const CompileOptions &options, const TargetInfo &target) {
  const DeviceModel *named = findDevice(options.device);
  return named ? *named : deviceOf(target);
}

static ModuleMemory memoryOf(const std::vector<ModuleBuffer> &buffers) {
  ModuleMemory memory{0, temporaryBytes(buffers), 0};
  for (const ModuleBuffer &buffer : buffers)
    (buffer.kind == ModuleBuffer::Kind::Temporary ? memory.apart : memory.outer) += buffer.bytes;
  return memory;
}

std::optional<EstimatedModule> estimateModule(const Manifest &manifest, const std::string &ptx,
                                              const DeviceModel &device, DiagnosticEngine &diagnostics) {
  std::optional<ptx::Module> module = parsePtx(ptx, diagnostics);
  if (!module)
    return std::nullopt;
  EstimatedModule made;
  std::vector<double> seconds;
  std::vector<size_t> numbers; // of made.kernels, in the manifest
  for (auto [number, kernel] : llvm::enumerate(manifest.kernels)) {
    seconds.push_back(0);
    std::optional<lint::StaticCounts> counts = lint::countStatically(*module, kernel.name, kernel.grid, kernel.block);
    if (!counts)
      continue;
    made.kernels.push_back({kernel.name, lint::countsOf(*counts, kernel), 1, kernel.bytesRead, kernel.bytesWritten});
    seconds.back() = estimate(made.kernels.back().counts, device).total;
    numbers.push_back(number);
  }
  made.steps = totalsOf(manifest.steps, seconds, device);
  for (auto [kernel, number] : llvm::zip_equal(made.kernels, numbers))
    kernel.launches = made.steps->launches[number];
  made.memory = memoryOf(manifest.buffers);
  return made;
}

void CountedLaunches::begin(const std::string &kernel, const emulator::Counters &before) {
  launches.emplace_back(kernel, before);
}

/// Sectors of the memory that the first launch of a kernel is given.
static double footprintOf(const DeviceProgram &program, const DeviceKernel &kernel) {
  double sectors = 0;
  bool isFound = false;
  forEachStep(program.steps, [&](const Step &step) {
    const auto *launch = std::get_if<LaunchStep>(&step.action);
    if (!launch || isFound || &program.kernels[launch->kernel] != &kernel)
      return;
    isFound = true;
    std::set<std::tuple<uint32_t, uint64_t, uint64_t>> seen;
    for (const auto &argument : launch->arguments)
      if (const auto *slice = std::get_if<BufferSlice>(&argument);
          slice && seen.insert({slice->buffer, slice->offset, slice->bytes}).second)
        sectors += std::ceil(double(slice->bytes) / 32);
  });
  return sectors;
}

std::optional<EstimatedModule> CountedLaunches::finish(const emulator::Counters &after, const DeviceProgram &program,
                                                       const std::string &ptx, DiagnosticEngine &diagnostics) {
  std::optional<ptx::Module> module = parsePtx(ptx, diagnostics);
  if (!module)
    return std::nullopt;
  EstimatedModule made;
  for (auto [i, launch] : llvm::enumerate(launches)) {
    const auto &[name, before] = launch;
    const emulator::Counters &behind = i + 1 < launches.size() ? launches[i + 1].second : after;
    const Sums begin(before), end(behind);
    EstimatedKernel launched{name, {}};
    KernelCounts &counts = launched.counts;
    counts.blocks = behind.blocks - before.blocks;
    for (const DeviceKernel &kernel : program.kernels)
      if (kernel.name == name && kernel.grid.count() == counts.blocks) {
        counts.threadsPerBlock = uint32_t(kernel.block.count());
        counts.sharedBytes = kernel.dynamicSharedBytes;
        counts.footprint = footprintOf(program, kernel);
        launched.bytesRead = kernel.bytesRead;
        launched.bytesWritten = kernel.bytesWritten;
      }
    counts.sectors = end.sectors - begin.sectors;
    counts.instructions = end.instructions - begin.instructions;
    counts.specialFunctions = end.specialFunctions - begin.specialFunctions;
    counts.doubles = end.doubles - begin.doubles;
    counts.sharedPasses = end.sharedPasses - begin.sharedPasses;
    counts.atomics = end.atomics - begin.atomics;
    if (std::optional<lint::StaticCounts> text =
            lint::countStatically(*module, name, Dim3(), Dim3{counts.threadsPerBlock, 1, 1})) {
      double ofWarp = counts.instructions / std::max(1.0, end.warps - begin.warps);
      lint::PathCounts path = text->after(text->roundsForInstructions(ofWarp));
      counts.sharedBytes += uint32_t(std::min<uint64_t>(text->sharedBytes, 1 << 20));
      counts.memoryRoundTrips = path.memoryRoundTrips;
      counts.sharedRoundTrips = path.sharedRoundTrips;
      counts.chainInstructions = path.chainInstructions;
    }
    made.kernels.push_back(std::move(launched));
  }
  return made;
}

namespace {

/// Sums over all launches.
struct Totals {
  double launches = 0, seconds = 0;
  Totals(const EstimatedModule &module, llvm::ArrayRef<KernelEstimate> times) {
    for (auto [kernel, time] : llvm::zip_equal(module.kernels, times)) {
      launches += kernel.launches;
      seconds += kernel.launches * time.total;
    }
    if (module.steps)
      seconds = module.steps->seconds;
  }
};

void printKernel(llvm::json::OStream &json, const EstimatedKernel &kernel, const KernelEstimate &time) {
  json.attribute("kernel", kernel.name);
  json.attribute("launches", int64_t(kernel.launches));
  json.attribute("blocks", int64_t(kernel.counts.blocks));
  json.attribute("threads", int64_t(kernel.counts.threadsPerBlock));
  json.attribute("bytes_read", int64_t(kernel.bytesRead));
  json.attribute("bytes_written", int64_t(kernel.bytesWritten));
  for (auto [key, value] : {std::pair("sectors", kernel.counts.sectors),
                            {"instructions", kernel.counts.instructions},
                            {"shared_passes", kernel.counts.sharedPasses},
                            {"atomics", kernel.counts.atomics},
                            {"memory_round_trips", kernel.counts.memoryRoundTrips},
                            {"waves", time.waves}})
    json.attribute(key, value);
  json.attribute("resident_warps", int64_t(time.residentWarps));
  for (auto [key, seconds] : {std::pair("launch_us", time.launch),
                              {"memory_us", time.memory},
                              {"issue_us", time.issue},
                              {"shared_us", time.shared},
                              {"latency_us", time.latency},
                              {"total_us", time.total}})
    json.attribute(key, seconds * 1e6);
  json.attribute("bound", time.bound);
}

std::string asJsonText(const EstimatedModule &module, llvm::ArrayRef<KernelEstimate> times, const DeviceModel &device) {
  const Totals totals(module, times);
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("device", device.name);
    json.attributeArray("kernels", [&] {
      for (auto [kernel, time] : llvm::zip_equal(module.kernels, times))
        json.object([&, &kernel = kernel, &time = time] { printKernel(json, kernel, time); });
    });
    json.attribute("launches", int64_t(totals.launches));
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
    json.attribute("total_us", totals.seconds * 1e6);
  });
  os << "\n";
  return text;
}

double mebibytes(double bytes) { return bytes / (1 << 20); }

/// `131.20 us in all: 12 launches, 2 copies of 1.5 MiB; ...`
std::string totalLine(const EstimatedModule &module, const Totals &totals) {
  std::string text = fmt::format("{:.2f} us in all", totals.seconds * 1e6);
  auto count = [](double number, const char *one, const char *several) {
    return fmt::format("{:.0f} {}", number, number == 1 ? one : several);
  };
  text += ": " + count(totals.launches, "launch", "launches");
  if (const std::optional<StepTotals> &steps = module.steps) {
    if (steps->copies)
      text += fmt::format(", {} of {:.1f} MiB", count(steps->copies, "copy", "copies"), mebibytes(steps->bytesCopied));
    if (steps->fills)
      text += fmt::format(", {} of {:.1f} MiB", count(steps->fills, "fill", "fills"), mebibytes(steps->bytesFilled));
    if (steps->openLoops)
      text += fmt::format("; {} whose rounds nobody knows counted as going round once",
                          count(steps->openLoops, "loop", "loops"));
  }
  return text + "\n";
}

} // namespace

std::string printEstimates(const EstimatedModule &module, const DeviceModel &device, bool asJson) {
  std::vector<KernelEstimate> times;
  size_t width = 6;
  for (const EstimatedKernel &kernel : module.kernels) {
    times.push_back(estimate(kernel.counts, device));
    width = std::max(width, kernel.name.size());
  }
  if (asJson)
    return asJsonText(module, times, device);
  std::string text = fmt::format("{:<{}} {:>8} {:>10} {:>7} {:>6} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n",
                                 fmt::format("us on {}", device.name.str()), width, "launches", "blocks", "threads",
                                 "waves", "sectors", "memory", "issue", "shared", "latency", "total", "bound");
  for (auto [kernel, time] : llvm::zip_equal(module.kernels, times))
    text += fmt::format(
        "{:<{}} {:>8.0f} {:>10} {:>7} {:>6.2f} {:>10.0f} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>9.2f}  {}\n",
        kernel.name, width, kernel.launches, kernel.counts.blocks, kernel.counts.threadsPerBlock, time.waves,
        kernel.counts.sectors, time.memory * 1e6, time.issue * 1e6, time.shared * 1e6, time.latency * 1e6,
        time.total * 1e6, time.bound.str());
  text += totalLine(module, Totals(module, times));
  if (const std::optional<ModuleMemory> &memory = module.memory)
    text += fmt::format("memory: {:.1f} MiB of parameters and results, {:.1f} MiB of temporaries ({:.1f} MiB if they "
                        "shared none)\n",
                        mebibytes(double(memory->outer)), mebibytes(double(memory->temporaries)),
                        mebibytes(double(memory->apart)));
  return text;
}

} // namespace hloc
