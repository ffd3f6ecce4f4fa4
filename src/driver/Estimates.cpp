#include "Estimates.h"

#include "hloc/emulator/Ptx.h"
#include "hloc/lint/StaticCounts.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>

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

std::optional<std::vector<EstimatedKernel>> staticCounts(const Manifest &manifest, const std::string &ptx,
                                                         DiagnosticEngine &diagnostics) {
  std::optional<ptx::Module> module = parsePtx(ptx, diagnostics);
  if (!module)
    return std::nullopt;
  std::vector<EstimatedKernel> kernels;
  for (const KernelSpec &kernel : manifest.kernels)
    if (std::optional<lint::StaticCounts> counts =
            lint::countStatically(*module, kernel.name, kernel.grid, kernel.block))
      kernels.push_back({kernel.name, lint::countsOf(*counts, kernel)});
  return kernels;
}

void CountedLaunches::begin(const std::string &kernel, const emulator::Counters &before) {
  launches.emplace_back(kernel, before);
}

std::optional<std::vector<EstimatedKernel>> CountedLaunches::finish(const emulator::Counters &after,
                                                                    const DeviceProgram &program,
                                                                    const std::string &ptx,
                                                                    DiagnosticEngine &diagnostics) {
  std::optional<ptx::Module> module = parsePtx(ptx, diagnostics);
  if (!module)
    return std::nullopt;
  std::vector<EstimatedKernel> kernels;
  for (auto [i, launch] : llvm::enumerate(launches)) {
    const auto &[name, before] = launch;
    const emulator::Counters &behind = i + 1 < launches.size() ? launches[i + 1].second : after;
    const Sums begin(before), end(behind);
    KernelCounts counts;
    counts.blocks = behind.blocks - before.blocks;
    for (const DeviceKernel &kernel : program.kernels)
      if (kernel.name == name && kernel.grid.count() == counts.blocks) {
        counts.threadsPerBlock = uint32_t(kernel.block.count());
        counts.sharedBytes = kernel.dynamicSharedBytes;
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
    kernels.push_back({name, counts});
  }
  return kernels;
}

std::string printEstimates(llvm::ArrayRef<EstimatedKernel> kernels, const DeviceModel &device, bool asJson) {
  std::string text;
  llvm::raw_string_ostream os(text);
  double sum = 0;
  if (asJson) {
    llvm::json::OStream json(os, 2);
    json.object([&] {
      json.attribute("device", device.name);
      json.attributeArray("kernels", [&] {
        for (const EstimatedKernel &kernel : kernels) {
          const KernelEstimate time = estimate(kernel.counts, device);
          json.object([&] {
            json.attribute("kernel", kernel.name);
            json.attribute("blocks", int64_t(kernel.counts.blocks));
            json.attribute("threads", int64_t(kernel.counts.threadsPerBlock));
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
            sum += time.total;
          });
        }
      });
      json.attribute("total_us", sum * 1e6);
    });
    os << "\n";
    return text;
  }
  size_t width = 6;
  for (const EstimatedKernel &kernel : kernels)
    width = std::max(width, kernel.name.size());
  os << fmt::format("{:<{}} {:>10} {:>7} {:>6} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n",
                    fmt::format("us on {}", device.name.str()), width, "blocks", "threads", "waves", "sectors",
                    "memory", "issue", "shared", "latency", "total", "bound");
  for (const EstimatedKernel &kernel : kernels) {
    const KernelEstimate time = estimate(kernel.counts, device);
    sum += time.total;
    os << fmt::format("{:<{}} {:>10} {:>7} {:>6.2f} {:>10.0f} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>9.2f}  {}\n",
                      kernel.name, width, kernel.counts.blocks, kernel.counts.threadsPerBlock, time.waves,
                      kernel.counts.sectors, time.memory * 1e6, time.issue * 1e6, time.shared * 1e6, time.latency * 1e6,
                      time.total * 1e6, time.bound.str());
  }
  os << fmt::format("{:.2f} us in all\n", sum * 1e6);
  return text;
}

} // namespace hloc
