#include "hloc/run/EstimatedModule.h"

#include "hloc/emulator/Ptx.h"
#include "hloc/lint/StaticCounts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

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
        storedSectors(double(counters.globalStoreSectors)), instructions(double(allInstructions(counters))),
        specialFunctions(double(ofClass(counters, "special function"))), doubles(double(ofClass(counters, "f64"))),
        sharedPasses(double(counters.sharedLoadWavefronts + counters.sharedStoreWavefronts + counters.shuffles)),
        atomics(double(counters.atomics)), warps(double(counters.warps)) {}
  double sectors, storedSectors, instructions, specialFunctions, doubles, sharedPasses, atomics, warps;
};

} // namespace

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
    made.kernels.push_back(
        {kernel.name, kernel.instruction, lint::countsOf(*counts, kernel), 1, kernel.bytesRead, kernel.bytesWritten});
    seconds.back() = estimate(made.kernels.back().counts, device).total;
    numbers.push_back(number);
  }
  made.steps = totalsOf(manifest.steps, seconds, device);
  for (auto [kernel, number] : llvm::zip_equal(made.kernels, numbers))
    kernel.launches = made.steps->launches[number];
  made.memory = memoryOf(manifest.buffers);
  return made;
}

namespace {

/// Bytes of the memory that a launch is given, each slice once: of what it only reads, and of all else.
void addTraffic(const LaunchStep &launch, uint32_t inputs, KernelSpec &kernel) {
  std::set<std::tuple<uint32_t, uint64_t, uint64_t>> seen;
  auto use = [&](const BufferSlice &slice, bool isWritten) {
    if (seen.insert({slice.buffer, slice.offset, slice.bytes}).second)
      (isWritten ? kernel.bytesWritten : kernel.bytesRead) += slice.bytes;
  };
  for (auto [i, argument] : llvm::enumerate(launch.arguments)) {
    if (const auto *slice = sliceOf(argument))
      use(*slice, i >= inputs);
    else if (const auto *structure = std::get_if<StructureValue>(&argument))
      for (const AddressPiece &piece : structure->pieces)
        use(piece.slice, piece.written);
  }
}

} // namespace

std::optional<EstimatedModule> estimateLaunches(const LaunchDescription &launches, llvm::ArrayRef<KernelSpec> known,
                                                const std::string &ptx, const DeviceModel &device,
                                                DiagnosticEngine &diagnostics) {
  Manifest manifest;
  for (const LaunchKernel &launched : launches.kernels) {
    KernelSpec &kernel = manifest.kernels.emplace_back();
    kernel.name = launched.name;
    kernel.grid = launched.grid;
    kernel.block = launched.block;
    kernel.cluster = launched.cluster;
    kernel.dynamicSharedBytes = launched.dynamicSharedBytes;
    for (const KernelSpec &its : known)
      if (its.name == launched.name)
        kernel.resources = its.resources;
  }
  forEachStep(launches.steps, [&](const Step &step) {
    if (const auto *launch = std::get_if<LaunchStep>(&step.action))
      addTraffic(*launch, launches.kernels[launch->kernel].inputs, manifest.kernels[launch->kernel]);
  });
  manifest.steps = launches.steps;
  std::optional<EstimatedModule> made = estimateModule(manifest, ptx, device, diagnostics);
  if (made)
    made->memory.reset(); // (of buffers nobody says which are whose)
  return made;
}

void EstimatedModule::takeRegisters(llvm::ArrayRef<std::pair<std::string, KernelResources>> resources) {
  for (EstimatedKernel &kernel : kernels)
    for (const auto &[entry, its] : resources)
      if (entry == kernel.name)
        kernel.counts.registers = its.registers;
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
    forEachSlice(step, [&](const BufferSlice &slice) {
      if (seen.insert({slice.buffer, slice.offset, slice.bytes}).second)
        sectors += std::ceil(double(slice.bytes) / 32);
    });
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
    EstimatedKernel launched{name, "", {}};
    KernelCounts &counts = launched.counts;
    counts.blocks = behind.blocks - before.blocks;
    Dim3 grid, block{counts.threadsPerBlock, 1, 1};
    for (const DeviceKernel &kernel : program.kernels)
      if (kernel.name == name && kernel.grid.count() == counts.blocks) {
        grid = kernel.grid;
        block = kernel.block;
        counts.threadsPerBlock = uint32_t(block.count());
        counts.sharedBytes = kernel.dynamicSharedBytes;
        counts.footprint = footprintOf(program, kernel);
        launched.bytesRead = kernel.bytesRead;
        launched.bytesWritten = kernel.bytesWritten;
      }
    counts.sectors = end.sectors - begin.sectors;
    counts.storedSectors = end.storedSectors - begin.storedSectors;
    counts.instructions = end.instructions - begin.instructions;
    counts.specialFunctions = end.specialFunctions - begin.specialFunctions;
    counts.doubles = end.doubles - begin.doubles;
    counts.sharedPasses = end.sharedPasses - begin.sharedPasses;
    counts.atomics = end.atomics - begin.atomics;
    if (std::optional<lint::StaticCounts> text = lint::countStatically(*module, name, grid, block)) {
      double ofWarp = counts.instructions / std::max(1.0, end.warps - begin.warps);
      lint::PathCounts path = text->after(text->roundsForInstructions(ofWarp));
      counts.sharedBytes += uint32_t(std::min<uint64_t>(text->sharedBytes, 1 << 20));
      counts.products = path.products * (end.warps - begin.warps);
      counts.groupProducts = path.groupProducts * (end.warps - begin.warps);
      counts.memoryRoundTrips = path.memoryRoundTrips;
      counts.sharedRoundTrips = path.sharedRoundTrips;
      counts.chainInstructions = path.chainInstructions;
      counts.inTurns = text->inTurns;
      counts.tilesOfBlock = text->tilesOfBlock;
    }
    made.kernels.push_back(std::move(launched));
  }
  return made;
}

void writeEstimate(llvm::json::OStream &json, const EstimatedKernel &kernel, const KernelEstimate &time) {
  json.attribute("kernel", kernel.name);
  json.attribute("instruction", kernel.instruction);
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

} // namespace hloc
