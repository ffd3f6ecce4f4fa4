// The public face: PTX text in, buffers, launches, findings and counters out.
#include "hloc/emulator/Emulator.h"

#include "Cluster.h"
#include "Scheduler.h"
#include "Undefined.h"

#include "hloc/support/Check.h"
#include "hloc/support/Diagnostics.h"

#include "fmt/format.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <map>
#include <thread>
#include <tuple>

namespace hloc::emulator {

llvm::StringRef findingName(FindingKind kind) {
  switch (kind) {
  case FindingKind::OutOfBounds:
    return "out-of-bounds";
  case FindingKind::Misaligned:
    return "misaligned";
  case FindingKind::ReadOnlyWrite:
    return "read-only-write";
  case FindingKind::UninitializedRead:
    return "uninitialized-read";
  case FindingKind::SharedRace:
    return "shared-race";
  case FindingKind::OpenCopy:
    return "open-copy";
  case FindingKind::BrokenMbarrier:
    return "broken-mbarrier";
  case FindingKind::GlobalRace:
    return "global-race";
  case FindingKind::AbsentBlock:
    return "absent-block";
  case FindingKind::EarlyAccess:
    return "early-access";
  case FindingKind::NonCoherentRead:
    return "non-coherent-read";
  case FindingKind::DivergentBarrier:
    return "divergent-barrier";
  case FindingKind::Deadlock:
    return "deadlock";
  case FindingKind::NoProgress:
    return "no-progress";
  case FindingKind::BadTensorMap:
    return "bad-tensor-map";
  case FindingKind::BadBox:
    return "bad-box";
  case FindingKind::InactiveShuffle:
    return "inactive-shuffle";
  case FindingKind::DivergentWarpgroup:
    return "divergent-warpgroup";
  case FindingKind::OpenMultiply:
    return "open-wgmma";
  case FindingKind::RegisterRace:
    return "register-race";
  case FindingKind::RegisterLimit:
    return "register-limit";
  case FindingKind::BadDescriptor:
    return "bad-descriptor";
  case FindingKind::UnwrittenOutput:
    return "unwritten-output";
  case FindingKind::Trap:
    return "trap";
  case FindingKind::TimeLimit:
    return "time-limit";
  }
  return "";
}

namespace {

constexpr uint8_t nobodysByte = 0xa5;

constexpr uint64_t maxRegionBytes = uint64_t(1) << (regionShift - 1); // an offset a little below zero shows as such
constexpr uint64_t maxRegions = (sharedWindow >> regionShift) - 1;

std::unique_ptr<Region> makeRegion(llvm::StringRef name, uint64_t bytes, bool complete, const EmulatorOptions &options,
                                   size_t number) {
  auto region = std::make_unique<Region>();
  region->name = name.str();
  region->complete = complete;
  constexpr uint64_t alignment = bufferAlignment;
  if (bytes <= maxRegionBytes) {
    region->storage = allocateZeroed<uint8_t>(bytes + alignment, Use::Dense);
    if (!complete)
      region->written = allocateZeroed<uint8_t>(bytes + 1, Use::Dense);
  }
  if (!region->storage || (!complete && !region->written))
    return region;
  auto base = reinterpret_cast<uintptr_t>(region->storage.get());
  region->data = reinterpret_cast<uint8_t *>((base + alignment - 1) & ~uintptr_t(alignment - 1));
  region->bytes = bytes;
  if (!complete)
    fillUndefined(options, uint64_t(number) << regionShift, region->data, bytes, nobodysByte);
  return region;
}

const MachineFunctions machineFunctions = {machineLoad,     machineStore,      machineAtomic, machineBarrier,
                                           machineWarpSync, machineCollective, machineTouch,  machineBranch,
                                           machineTick,     machineTrap};

/// log2 of the narrowest access of the kernel to the space, at most 16 bytes.
unsigned granuleShift(const Kernel &kernel, Space space) {
  unsigned shift = 4;
  auto consider = [&](unsigned bytes) {
    while (shift && (1u << shift) > bytes)
      --shift;
  };
  for (const Decoded &d : kernel.code) {
    bool accesses =
        d.opcode == Opcode::Ld || d.opcode == Opcode::St || d.opcode == Opcode::Atom || d.opcode == Opcode::Red;
    const bool reaches = space == Space::Shared ? isShared(d.space) : d.space == space;
    if (accesses && (reaches || d.space == Space::Generic))
      consider(d.type.bytes() * d.count); // accesses are aligned to all they move
    if (d.opcode == Opcode::AsyncStore && space == Space::Shared)
      consider(d.type.bytes() * d.count);
    if (d.opcode == Opcode::Cp && d.mode == Mode::None) // of the source, less may be read than is copied
      consider(space == Space::Shared ? unsigned(d.operands[2].value) : 4);
    if (d.opcode == Opcode::Wmma)
      consider(1);
  }
  return shift;
}

/// Of a window that is tracked for races; false if there is no memory.
bool allocateShadows(Window &window, const Launch &launch, bool hasNonCoherent) {
  const uint64_t granules = (window.bytes >> launch.globalShift) + 1;
  if (hasNonCoherent) {
    window.nonCoherent = std::make_unique<NonCoherentReads>();
    window.nonCoherent->granules = allocateZeroed<uint8_t>(granules, Use::Sparse);
    if (!window.nonCoherent->granules)
      return false;
  }
  if (launch.causal) {
    window.cells = allocateZeroed<Cell>(granules, Use::Sparse);
    return bool(window.cells);
  }
  const uint64_t lines = (granules - 1) / Lines::granulesOfLine + 1;
  window.lines = allocateZeroed<Owners<false>>(lines, Use::Dense);
  window.granules = allocateZeroed<Owners<false>>(lines * Lines::granulesOfLine, Use::Sparse);
  return window.lines && window.granules;
}

bool sameAddress(const Source &a, const Source &b) {
  return a.kind == b.kind && a.slot == b.slot && a.value == b.value;
}

/// Loads from the addresses of atomics of these kinds.
llvm::DenseSet<const Decoded *> findLoadsBefore(const Kernel &kernel, llvm::ArrayRef<Mode> modes) {
  llvm::DenseSet<const Decoded *> loads;
  for (const Decoded &atomic : kernel.code) {
    bool isRed = atomic.opcode == Opcode::Red;
    if ((atomic.opcode != Opcode::Atom && !isRed) || !llvm::is_contained(modes, atomic.mode))
      continue;
    for (const Decoded &load : kernel.code)
      if (load.opcode == Opcode::Ld && load.count == 1 && load.type.bits == atomic.type.bits &&
          sameAddress(load.operands[1], atomic.operands[isRed ? 0 : 1]))
        loads.insert(&load);
  }
  return loads;
}

} // namespace

/// What does not depend on the machine that executes it.
struct Image {
  std::unique_ptr<Program> program;
  std::unique_ptr<Translator> translator;

  /// Host code of a kernel of which so many warps run from now on; null if the host's compiler does not take it.
  WarpFunction translated(const Kernel &kernel, uint64_t warps, const EmulatorOptions &options,
                          DiagnosticEngine &diagnostics) {
    const HostCode asked = options.hostCode;
    const bool quickly = asked == HostCode::Fitting ? !pays(kernel, warps) : asked == HostCode::Shared;
    WarpFunction &found = code[{kernel.name, options.countEvents, options.approximationSeed, quickly}];
    if (!found)
      found = translator->translate(kernel,
                                    {.count = options.countEvents,
                                     .approximationSeed = options.approximationSeed,
                                     .quickly = quickly,
                                     .shared = asked == HostCode::Shared,
                                     .rotates = !findPollingLoops(kernel).branches.empty()},
                                    diagnostics);
    return found;
  }

  /// How many warps have been launched of each kernel.
  llvm::StringMap<uint64_t> launched;

private:
  /// Whether good code saves more time than it takes. Of a long kernel it takes time that grows faster than its length.
  bool pays(const Kernel &kernel, uint64_t warps) const {
    constexpr size_t longKernel = 2000;
    constexpr uint64_t manyWarps = 8192;
    return kernel.code.size() <= longKernel && launched.lookup(kernel.name) + warps > manyWarps;
  }

  std::map<std::tuple<std::string, bool, std::optional<uint64_t>, bool>, WarpFunction> code;
};

struct Emulator::Impl {
  EmulatorOptions options;
  std::shared_ptr<Image> image;
  std::vector<std::unique_ptr<Region>> regions; ///< 0: module variables; buffer b is region b + 1
  std::vector<Finding> findings;
  Counters counters;
  std::vector<LineCounters> lineCounters; ///< by line of the PTX
  bool dependsOnSchedule = false;
  EarlierGrids earlier;

  /// False, with a diagnostic, if there is no memory for the module's variables.
  bool start(DiagnosticEngine &diagnostics);

  /// Null, with a diagnostic, if the PTX has no such kernel.
  const Kernel *find(const std::string &name, DiagnosticEngine &diagnostics);
  std::string checkSlice(const BufferArgument &slice) const;
  bool checkLaunch(const Kernel &kernel, const LaunchRequest &request, DiagnosticEngine &diagnostics);
  bool checkArguments(const Kernel &kernel, const LaunchRequest &request, DiagnosticEngine &diagnostics);
  bool fillParameters(Launch &launch, DiagnosticEngine &diagnostics);
  /// A cooperative launch: the workspace of the grid is zero, and all blocks must be on the device at once.
  bool prepareGrid(const Launch &launch, DiagnosticEngine &diagnostics);
  bool runBlocks(Launch &launch, DiagnosticEngine &diagnostics);
};

Emulator::Emulator() : impl(std::make_unique<Impl>()) {}
Emulator::~Emulator() = default;

std::unique_ptr<Emulator> Emulator::load(DiagnosticEngine &diagnostics, const EmulatorOptions &options) {
  std::optional<ptx::Module> module = ptx::parse(diagnostics);
  if (!module)
    return nullptr;
  std::unique_ptr<Program> program = resolve(*module, diagnostics);
  if (!program)
    return nullptr;
  auto image = std::make_shared<Image>();
  std::string error;
  image->translator = Translator::create(machineFunctions, error);
  if (!image->translator) {
    diagnostics.report(DiagnosticKind::Internal, "no host code can be made here: " + error);
    return nullptr;
  }
  image->program = std::move(program);
  std::unique_ptr<Emulator> emulator(new Emulator);
  emulator->impl->image = std::move(image);
  emulator->impl->options = options;
  return emulator->impl->start(diagnostics) ? std::move(emulator) : nullptr;
}

std::unique_ptr<Emulator> Emulator::another(DiagnosticEngine &diagnostics, const EmulatorOptions &options) const {
  std::unique_ptr<Emulator> emulator(new Emulator);
  emulator->impl->image = impl->image;
  emulator->impl->options = options;
  return emulator->impl->start(diagnostics) ? std::move(emulator) : nullptr;
}

bool Emulator::Impl::start(DiagnosticEngine &diagnostics) {
  const auto &variables = image->program->image;
  regions.push_back(makeRegion("module variables", variables.size(), true, options, 0));
  if (regions.front()->bytes != variables.size()) {
    diagnostics.report(DiagnosticKind::UnsupportedFeature, "no memory for the module's variables");
    return false;
  }
  llvm::copy(variables, regions.front()->data);
  counters.warpInstructions.assign(instructionClassNames().size(), 0);
  counters.threadInstructions = counters.warpInstructions;
  counters.buffers.push_back({"module variables", 0, 0});
  return true;
}

BufferId Emulator::allocate(llvm::StringRef name, uint64_t bytes, Contents contents) {
  impl->regions.push_back(makeRegion(name, bytes, contents == Contents::Written, impl->options, impl->regions.size()));
  impl->counters.buffers.push_back({name.str(), 0, 0});
  return BufferId(impl->regions.size() - 2);
}

void Emulator::reset() {
  impl->regions.resize(1);
  llvm::copy(impl->image->program->image, impl->regions[0]->data);
  impl->counters.buffers.resize(1);
  impl->findings.clear();
  impl->earlier.clear();
}

llvm::MutableArrayRef<uint8_t> Emulator::bytes(BufferId buffer) {
  Region &region = *impl->regions[buffer + 1];
  return {region.data, size_t(region.bytes)};
}

static uint64_t addressOf(BufferId buffer) { return uint64_t(buffer + 2) << regionShift; }
uint64_t Emulator::address(BufferId buffer) const { return addressOf(buffer); }

bool Emulator::lend(BufferId buffer, llvm::ArrayRef<uint8_t> bytes) {
  Region &region = *impl->regions[buffer + 1];
  constexpr uintptr_t widest = 16; // bytes that the host moves at once
  if (!impl->options.checkBounds || !region.complete || bytes.empty() || region.bytes != bytes.size() ||
      reinterpret_cast<uintptr_t>(bytes.data()) % widest != 0)
    return false;
  region.storage.reset();
  region.data = const_cast<uint8_t *>(bytes.data());
  return true;
}

void Emulator::copy(BufferId from, uint64_t fromOffset, BufferId to, uint64_t toOffset, uint64_t numBytes) {
  Region &source = *impl->regions[from + 1], &target = *impl->regions[to + 1];
  HLOC_CHECK(fromOffset <= source.bytes && numBytes <= source.bytes - fromOffset && toOffset <= target.bytes &&
                 numBytes <= target.bytes - toOffset,
             "a copy stays within its buffers");
  impl->earlier.clear();
  std::memmove(target.data + toOffset, source.data + fromOffset, numBytes);
  if (target.complete)
    return;
  if (source.complete)
    std::memset(&target.written[toOffset], 1, numBytes);
  else
    std::memmove(&target.written[toOffset], &source.written[fromOffset], numBytes);
}

void Emulator::fill(BufferId to, uint64_t offset, uint8_t value, uint64_t numBytes) {
  Region &target = *impl->regions[to + 1];
  HLOC_CHECK(offset <= target.bytes && numBytes <= target.bytes - offset, "a fill stays within its buffer");
  impl->earlier.clear();
  std::fill_n(target.data + offset, numBytes, value);
  if (!target.complete)
    std::fill_n(target.written.get() + offset, numBytes, uint8_t(1));
}

void Emulator::discard(BufferId buffer) {
  Region &region = *impl->regions[buffer + 1];
  HLOC_CHECK(!region.complete, "what is complete from the start is not discarded");
  std::fill_n(region.written.get(), region.bytes, uint8_t(0));
  fillUndefined(impl->options, uint64_t(buffer + 1) << regionShift, region.data, region.bytes, nobodysByte);
}

void Emulator::requireWritten(BufferId buffer, uint64_t offset, uint64_t numBytes) {
  const Region &region = *impl->regions[buffer + 1];
  if (region.complete || !impl->options.checkUninit)
    return;
  const uint8_t *written = region.written.get() + offset;
  const auto *gap = static_cast<const uint8_t *>(std::memchr(written, 0, numBytes));
  if (!gap)
    return;
  uint64_t first = uint64_t(gap - written), missing = 0;
  for (uint64_t i = first; i < numBytes; ++i)
    missing += !written[i];
  Finding finding;
  finding.kind = FindingKind::UnwrittenOutput;
  finding.message = fmt::format("{} of {} bytes of `{}` were never written, the first at byte {}", missing, numBytes,
                                region.name, offset + first);
  impl->findings.push_back(std::move(finding));
}

bool Emulator::dependsOnSchedule() const { return impl->dependsOnSchedule; }

std::string Schedule::name() const {
  switch (order) {
  case Order::Ascending:
    return "ascending";
  case Order::Reversed:
    return "reversed";
  case Order::Shuffled:
    return fmt::format("shuffled:{}", seed);
  }
  return "";
}

llvm::ArrayRef<Finding> Emulator::findings() const { return impl->findings; }
const Counters &Emulator::counters() const { return impl->counters; }
llvm::ArrayRef<LineCounters> Emulator::lineCounters() const { return impl->lineCounters; }

static bool refuse(const LaunchRequest &request, DiagnosticEngine &diagnostics, const std::string &message) {
  diagnostics.report(DiagnosticKind::BadLaunch, "kernel `" + request.kernel + "`: " + message);
  return false;
}

/// Clusters as the kernel wants them, and the grid in blocks.
static LaunchRequest withClusters(LaunchRequest request, const Kernel &kernel) {
  const auto &[x, y, z] = kernel.cluster;
  if (!x)
    return request;
  if (!request.cluster)
    request.cluster = Dim3{x, y, z};
  if (kernel.blocksAreClusters)
    request.grid = {request.grid.x * x, request.grid.y * y, request.grid.z * z};
  return request;
}

static bool checkClusters(const Kernel &kernel, const LaunchRequest &request, DiagnosticEngine &diagnostics) {
  auto fail = [&](const std::string &message) { return refuse(request, diagnostics, message); };
  if (!request.cluster)
    return !kernel.explicitCluster || fail("launched without clusters, but it says .explicitcluster");
  constexpr uint64_t most = 16; // of an H100, where the launch allows more than what every device has, 8
  const Dim3 &cluster = *request.cluster, &grid = request.grid;
  const std::string text = fmt::format("clusters of {}x{}x{} blocks", cluster.x, cluster.y, cluster.z);
  if (!cluster.count() || cluster.x > most || cluster.y > most || cluster.z > most || cluster.count() > most)
    return fail(fmt::format("{}; the limit is {}", text, most));
  const auto &[x, y, z] = kernel.cluster;
  if (x && Dim3{x, y, z} != cluster)
    return fail(fmt::format("launched with {}, but it says .reqnctapercluster {}, {}, {}", text, x, y, z));
  if (kernel.maxClusterBlocks && cluster.count() > kernel.maxClusterBlocks)
    return fail(fmt::format("launched with {}, more than its .maxclusterrank {}", text, kernel.maxClusterBlocks));
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return fail(fmt::format("a grid of {}x{}x{} blocks is not made of {}", grid.x, grid.y, grid.z, text));
  return true;
}

/// What is wrong with a slice, behind its name; empty if nothing is.
std::string Emulator::Impl::checkSlice(const BufferArgument &slice) const {
  if (slice.buffer + size_t(1) >= regions.size())
    return fmt::format(": there is no buffer {}", slice.buffer);
  const Region &region = *regions[slice.buffer + 1];
  if (!region.data)
    return fmt::format(": there is no memory for buffer `{}`", region.name);
  if (slice.offset > region.bytes || slice.bytes > region.bytes - slice.offset)
    return fmt::format(" reaches beyond buffer `{}`", region.name);
  return "";
}

static bool checkMap(const TensorMapArgument &map, const LaunchRequest &request, size_t argument,
                     DiagnosticEngine &diagnostics) {
  if (map.recipe.interleave != TensorMapInterleave::None) {
    diagnostics.report(DiagnosticKind::UnsupportedFeature,
                       fmt::format("kernel `{}`: interleaved tensor maps are not supported", request.kernel));
    return false;
  }
  const std::string error = findTensorMapError(map.recipe, map.tensor.offset);
  if (!error.empty())
    diagnostics.report(
        DiagnosticKind::BadLaunch,
        fmt::format("kernel `{}`: argument {} is no tensor map of a driver: {}", request.kernel, argument, error));
  return error.empty();
}

bool Emulator::Impl::checkLaunch(const Kernel &kernel, const LaunchRequest &request, DiagnosticEngine &diagnostics) {
  auto fail = [&](const std::string &message) { return refuse(request, diagnostics, message); };
  const Dim3 &block = request.block, &grid = request.grid;
  if (!block.count() || block.x > 1024 || block.y > 1024 || block.z > 64 || block.count() > 1024)
    return fail(
        fmt::format("a block of {}x{}x{} threads; the limit is 1024 in all, 64 in z", block.x, block.y, block.z));
  if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return fail(
        fmt::format("a grid of {}x{}x{} blocks; the limits are 2147483647x65535x65535", grid.x, grid.y, grid.z));
  if (kernel.required[0] &&
      (kernel.required[0] != block.x || kernel.required[1] != block.y || kernel.required[2] != block.z))
    return fail(fmt::format("launched with blocks of {}x{}x{}, but it says .reqntid {}, {}, {}", block.x, block.y,
                            block.z, kernel.required[0], kernel.required[1], kernel.required[2]));
  if (kernel.maximum[0] && block.count() > uint64_t(kernel.maximum[0]) * kernel.maximum[1] * kernel.maximum[2])
    return fail(fmt::format("launched with {} threads a block, more than its .maxntid", block.count()));
  if (regions.size() > maxRegions)
    return fail(fmt::format("{} buffers; the limit is {}", regions.size() - 1, maxRegions - 1));
  constexpr uint64_t maxShared = 256 << 10, maxLocal = 512 << 10, maxLocalOfBlock = 256 << 20;
  if (kernel.sharedBytes + uint64_t(request.dynamicSharedBytes) > maxShared)
    return fail(fmt::format("{} bytes of shared memory; the limit is {}",
                            kernel.sharedBytes + request.dynamicSharedBytes, maxShared));
  if (kernel.localBytes > maxLocal)
    return fail(fmt::format("{} bytes of local memory a thread; the limit is {}", kernel.localBytes, maxLocal));
  if (kernel.localBytes * block.count() > maxLocalOfBlock)
    return fail(fmt::format("{} bytes of local memory a block; the emulator has {}", kernel.localBytes * block.count(),
                            maxLocalOfBlock));
  return checkClusters(kernel, request, diagnostics) && checkArguments(kernel, request, diagnostics);
}

bool Emulator::Impl::checkArguments(const Kernel &kernel, const LaunchRequest &request, DiagnosticEngine &diagnostics) {
  auto fail = [&](const std::string &message) { return refuse(request, diagnostics, message); };
  if (request.arguments.size() != kernel.paramOffsets.size())
    return fail(fmt::format("{} arguments for {} parameters", request.arguments.size(), kernel.paramOffsets.size()));
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const auto *scalar = std::get_if<ScalarArgument>(&request.arguments[i]);
    const auto *structure = std::get_if<BytesArgument>(&request.arguments[i]);
    const auto *map = std::get_if<TensorMapArgument>(&request.arguments[i]);
    const uint64_t given = scalar ? scalar->bytes : structure ? structure->bytes.size() : map ? tensorMapBytes : 8;
    if (uint64_t wanted = kernel.paramSizes[i]; wanted != given)
      return fail(fmt::format("argument {} has {} bytes, its parameter has {}", i, given, wanted));
    const auto *buffer = map ? &map->tensor : std::get_if<BufferArgument>(&request.arguments[i]);
    if (buffer)
      if (std::string why = checkSlice(*buffer); !why.empty())
        return fail(fmt::format("argument {}{}", i, why));
    if (map && !checkMap(*map, request, i, diagnostics))
      return false;
    if (!structure)
      continue;
    for (const BytesArgument::Map &inside : structure->maps) {
      if (inside.at > given || tensorMapBytes > given - inside.at)
        return fail(fmt::format("argument {}: a tensor map reaches beyond it", i));
      if (std::string why = checkSlice(inside.map.tensor); !why.empty())
        return fail(fmt::format("argument {}, tensor map at {}{}", i, inside.at, why));
      if (!checkMap(inside.map, request, i, diagnostics))
        return false;
    }
  }
  for (const BufferArgument &reached : request.reached)
    if (std::string why = checkSlice(reached); !why.empty())
      return fail("what is reached by an address" + why);
  return true;
}

/// False, with a diagnostic, if there is no memory for the shadows.
bool Emulator::Impl::fillParameters(Launch &launch, DiagnosticEngine &diagnostics) {
  launch.parameters.resize(launch.kernel.paramBytes + 8);
  launch.windows.resize(regions.size());
  for (const VariableInfo &variable : image->program->variables) {
    uint64_t begin = variable.address - (uint64_t(1) << regionShift);
    launch.windows[0].slices.push_back({begin, begin + variable.bytes, !variable.constant});
  }
  for (const Decoded &d : launch.kernel.code) // stores to module variables are rare: races among them are watched then
    launch.windows[0].tracked |= !image->program->variables.empty() &&
                                 (d.opcode == Opcode::Atom || d.opcode == Opcode::Red || d.opcode == Opcode::St);
  auto grant = [&](const BufferArgument &buffer) {
    Window &window = launch.windows[buffer.buffer + 1];
    // What the compiler pads to a whole word for its atomics belongs to the slice.
    window.slices.push_back({buffer.offset, buffer.offset + buffer.bytes, buffer.written});
    window.tracked |= buffer.written;
  };
  llvm::for_each(launch.request.reached, grant);
  for (size_t i = 0; i < launch.request.arguments.size(); ++i) {
    uint64_t value = 0;
    if (const auto *structure = std::get_if<BytesArgument>(&launch.request.arguments[i])) {
      std::copy(structure->bytes.begin(), structure->bytes.end(),
                launch.parameters.begin() + long(launch.kernel.paramOffsets[i]));
      for (const BytesArgument::Map &inside : structure->maps) {
        const BufferArgument &tensor = inside.map.tensor;
        grant(tensor);
        llvm::copy(encodeTensorMap(inside.map.recipe, addressOf(tensor.buffer) + tensor.offset),
                   launch.parameters.begin() + long(launch.kernel.paramOffsets[i] + inside.at));
      }
      continue;
    }
    const auto *map = std::get_if<TensorMapArgument>(&launch.request.arguments[i]);
    if (const auto *buffer = map ? &map->tensor : std::get_if<BufferArgument>(&launch.request.arguments[i])) {
      value = addressOf(buffer->buffer) + buffer->offset;
      grant(*buffer);
      if (map) {
        llvm::copy(encodeTensorMap(map->recipe, value),
                   launch.parameters.begin() + long(launch.kernel.paramOffsets[i]));
        continue;
      }
    } else {
      value = std::get<ScalarArgument>(launch.request.arguments[i]).value;
    }
    std::memcpy(&launch.parameters[launch.kernel.paramOffsets[i]], &value, launch.kernel.paramSizes[i]);
  }
  const bool hasNonCoherent = llvm::any_of(launch.kernel.code, [](const Decoded &d) { return d.nonCoherent; });
  for (size_t r = 0; r < regions.size(); ++r) {
    Window &window = launch.windows[r];
    window.data = regions[r]->data;
    window.bytes = regions[r]->bytes;
    window.tracked &= options.checkRaces;
    window.watched = window.tracked || (options.checkUninit && !regions[r]->complete);
    if (!window.tracked)
      continue;
    if (allocateShadows(window, launch, hasNonCoherent))
      continue;
    diagnostics.report(
        DiagnosticKind::BadLaunch,
        fmt::format("no memory to watch `{}` for races; the check can be switched off", regions[r]->name));
    return false;
  }
  return true;
}

bool Emulator::Impl::prepareGrid(const Launch &launch, DiagnosticEngine &diagnostics) {
  if (!launch.kernel.cooperative)
    return true;
  std::memset(regions[0]->data + image->program->gridWorkspace, 0, gridWorkspaceBytes);
  const uint64_t blocks = launch.request.grid.count(), fits = residentClusters(launch) * launch.cluster.count();
  if (blocks <= fits)
    return true;
  diagnostics.report(DiagnosticKind::BadLaunch,
                     fmt::format("kernel `{}`: its blocks wait for each other (it reads %envreg1 or %envreg2, as grid "
                                 "groups do), and of its {} blocks only {} fit on a device of {} multiprocessors",
                                 launch.kernel.name, blocks, fits, options.multiprocessors));
  return false;
}

bool Emulator::Impl::runBlocks(Launch &launch, DiagnosticEngine &diagnostics) {
  const uint64_t clusters = numClusters(launch), each = launch.cluster.count();
  unsigned cores = options.numThreads ? options.numThreads : std::max(1u, std::thread::hardware_concurrency());
  if (hasGlobalAtomics(launch.kernel) || launch.causal || launch.together)
    cores = 1;
  cores = unsigned(std::min<uint64_t>(cores, clusters));
  launch.concurrent = cores > 1;
  std::mutex merging;
  std::atomic<bool> noMemory = false;
  auto collect = [&](Core &core) {
    if (!options.countEvents)
      return;
    std::lock_guard<std::mutex> lock(merging);
    Counters &from = core.counters;
    for (auto [i, instruction] : llvm::enumerate(launch.kernel.code)) {
      LineCounters own = core.requestCounts[i];
      own.warps = core.instructionCounts[2 * i];
      own.threads = core.instructionCounts[2 * i + 1];
      counters.warpInstructions[instructionClass(instruction)] += own.warps;
      counters.threadInstructions[instructionClass(instruction)] += own.threads;
      if (lineCounters.size() <= instruction.line)
        lineCounters.resize(instruction.line + 1);
      lineCounters[instruction.line] += own;
    }
    for (auto field :
         {&Counters::globalLoadRequests, &Counters::globalLoadSectors, &Counters::globalStoreRequests,
          &Counters::globalStoreSectors, &Counters::sharedLoadRequests, &Counters::sharedLoadWavefronts,
          &Counters::sharedStoreRequests, &Counters::sharedStoreWavefronts, &Counters::globalLoadIdealSectors,
          &Counters::globalStoreIdealSectors, &Counters::sharedLoadIdealWavefronts,
          &Counters::sharedStoreIdealWavefronts, &Counters::atomics, &Counters::barriers, &Counters::shuffles,
          &Counters::branches, &Counters::divergentBranches, &Counters::warps, &Counters::blocks})
      counters.*field += from.*field;
    for (size_t i = 0; i < from.buffers.size(); ++i) {
      counters.buffers[i].bytesRead += from.buffers[i].bytesRead;
      counters.buffers[i].bytesWritten += from.buffers[i].bytesWritten;
    }
  };
  auto work = [&] {
    Cluster cluster(launch);
    if (!cluster.valid()) {
      noMemory = launch.stop = true;
      return;
    }
    uint64_t chunk = std::clamp<uint64_t>(clusters / cores / 16, 1, 256);
    for (uint64_t begin; !launch.stop && (begin = launch.nextCluster.fetch_add(chunk)) < clusters;)
      for (uint64_t c = begin; c < std::min(begin + chunk, clusters) && !launch.stop; ++c) {
        cluster.run(inOrder(options.schedule, 0, c, clusters));
        cluster.blocks[0]->keepTime();
        if (options.progress)
          options.progress->advance(each);
      }
    for (const std::unique_ptr<Core> &block : cluster.blocks)
      collect(*block);
  };
  if (options.progress)
    options.progress->begin(clusters * each);
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < cores; ++i)
    threads.emplace_back(work);
  if (launch.together)
    noMemory = !runTogether(launch, collect);
  else
    work();
  for (std::thread &thread : threads)
    thread.join();
  if (noMemory)
    diagnostics.report(DiagnosticKind::BadLaunch, "no memory for the stacks of the warps");
  return !noMemory;
}

const Kernel *Emulator::Impl::find(const std::string &name, DiagnosticEngine &diagnostics) {
  auto found = image->program->kernels.find(name);
  if (found != image->program->kernels.end())
    return &found->second;
  diagnostics.report(DiagnosticKind::BadLaunch, "the PTX has no kernel `" + name + "`");
  return nullptr;
}

static uint64_t countWarps(const Dim3 &grid, const Dim3 &block) {
  return grid.count() * llvm::divideCeil(block.count(), warpLanes);
}

llvm::LogicalResult Emulator::translate(const std::string &name, const Dim3 &grid, const Dim3 &block,
                                        DiagnosticEngine &diagnostics) {
  const Kernel *kernel = impl->find(name, diagnostics);
  if (!kernel)
    return llvm::failure();
  const uint64_t warps = countWarps(grid, block);
  return llvm::success(impl->image->translated(*kernel, warps, impl->options, diagnostics) != nullptr);
}

llvm::LogicalResult Emulator::launch(const LaunchRequest &asked, DiagnosticEngine &diagnostics) {
  const Kernel *found = impl->find(asked.kernel, diagnostics);
  if (!found)
    return llvm::failure();
  const Kernel &kernel = *found;
  const LaunchRequest request = withClusters(asked, kernel);
  if (!impl->checkLaunch(kernel, request, diagnostics))
    return llvm::failure();
  const uint64_t warps = countWarps(request.grid, request.block);
  WarpFunction code = impl->image->translated(kernel, warps, impl->options, diagnostics);
  if (!code)
    return llvm::failure();
  impl->image->launched[kernel.name] += warps;
  FindingList findings(impl->options.findingsOf);
  Launch launch{impl->options, request, *impl->image->program, kernel, code, impl->regions, findings};
  launch.globalShift = granuleShift(kernel, Space::Global);
  launch.sharedShift = granuleShift(kernel, Space::Shared);
  launch.sharedBytes = kernel.sharedBytes + request.dynamicSharedBytes;
  launch.localStride = llvm::alignTo(kernel.localBytes, 16);
  // A wgmma of 256 columns is made on a warp's stack: 256 KiB beside the registers were seen to be too few. Pages that
  // nobody touches cost nothing.
  // Registers that do not fit the host's live on the stack: 256 bytes each at most, and a host thread has few
  // megabytes.
  constexpr uint64_t bytesOfRegister = 8 * warpLanes, manyRegisters = 10000;
  launch.fiberBytes = (1 << 20) + 2 * bytesOfRegister * (kernel.registers + kernel.code.size());
  launch.hasClusters = request.cluster.has_value();
  launch.cluster = request.cluster.value_or(Dim3());
  const bool meet = launch.cluster.count() > 1; // blocks, in memory that only their own could touch
  launch.fibers = meet || needsFibers(kernel) || kernel.registers + kernel.code.size() > manyRegisters;
  launch.registersPerThread = registersPerThread(kernel);
  if (launch.registersPerThread)
    launch.pressure = findRegisterPressure(kernel);
  launch.polling = findPollingLoops(kernel);
  const Schedule &schedule = impl->options.schedule;
  launch.preempts = schedule.order == Schedule::Order::Shuffled && hasStrongAccesses(kernel);
  launch.random = schedule.seed;
  launch.together = !launch.polling.branches.empty() || launch.preempts;
  launch.fibers |= launch.together;
  launch.firstGuesses = findLoadsBefore(kernel, Mode::Cas);
  launch.updateTests = findLoadsBefore(kernel, {Mode::Min, Mode::Max});
  launch.hasWarpgroups = llvm::any_of(
      kernel.code, [](const Decoded &d) { return d.opcode == Opcode::Wgmma || d.opcode == Opcode::Setmaxnreg; });
  launch.asynchronous = llvm::any_of(kernel.code, [](const Decoded &d) { return isAsynchronous(d); });
  launch.causal = impl->options.checkRaces && (meet || needsCausality(kernel));
  if (launch.causal)
    launch.telling = findTellingCollectives(kernel);
  if (impl->options.timeLimitSeconds > 0)
    launch.deadline = impl->options.timeLimitSeconds + secondsNow();
  if (double deadline = impl->options.deadline)
    launch.deadline = launch.deadline ? std::min(launch.deadline, deadline) : deadline;
  const bool hasMbarriers = llvm::any_of(kernel.code, [](const Decoded &d) { return d.opcode == Opcode::Mbarrier; });
  impl->dependsOnSchedule |=
      hasStrongAccesses(kernel) || hasMbarriers || !launch.firstGuesses.empty() || !launch.updateTests.empty();
  if (!impl->prepareGrid(launch, diagnostics) || !impl->fillParameters(launch, diagnostics))
    return llvm::failure();
  impl->earlier.enter(launch);
  if (!impl->runBlocks(launch, diagnostics))
    return llvm::failure();
  impl->earlier.add(launch);
  llvm::append_range(impl->findings, findings.sorted(std::max<uint64_t>(impl->options.maxFindings, 1)));
  return llvm::success(!findings.count());
}

} // namespace hloc::emulator
