// What a run cost: instruction classes, memory transactions, and how they print.
#include "Machine.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace hloc::emulator {

namespace {

enum class InstructionClass : unsigned {
  Integer,
  Float32,
  Float64,
  Half,
  SpecialFunction,
  Conversion,
  Compare,
  Move,
  Memory,
  Control,
  CrossLane,
  Multiply,
  WarpgroupMultiply,
  LoadMatrix,
  StoreMatrix,
  ByType, ///< one of the first four
};
constexpr llvm::StringRef classNames[] = {"integer",    "f32",     "f64",   "f16",      "special function",
                                          "conversion", "compare", "move",  "memory",   "control",
                                          "cross-lane", "mma",     "wgmma", "ldmatrix", "stmatrix"};

} // namespace

llvm::ArrayRef<llvm::StringRef> instructionClassNames() { return classNames; }

unsigned instructionClass(const Decoded &d) {
  static constexpr InstructionClass classes[] = {
#define HLOC_PTX_OPCODE(name, text, family, counted, execution) InstructionClass::counted,
#include "Opcodes.def"
  };
  InstructionClass counted = classes[size_t(d.opcode)];
  if (d.opcode == Opcode::Wgmma && d.mode != Mode::Multiply) // its fences, groups and waits
    counted = InstructionClass::Control;
  if (counted == InstructionClass::ByType)
    counted = !d.type.isFloat()   ? InstructionClass::Integer
              : d.type.bits == 64 ? InstructionClass::Float64
              : d.type.bits == 16 ? InstructionClass::Half
                                  : InstructionClass::Float32;
  return unsigned(counted);
}

namespace {

struct Passes {
  uint64_t taken = 0, ideal = 0;
};

/// Passes over the 32 banks of 4 bytes, each serving one word a bank; accesses of 8 and 16 bytes go by half and quarter
/// warps.
Passes passesOf(uint32_t mask, const uint64_t *addresses, unsigned bytes) {
  unsigned groups = std::max(1u, bytes / 4), lanesOfGroup = warpLanes / groups;
  Passes passes;
  for (unsigned g = 0; g < groups; ++g) {
    llvm::SmallVector<uint64_t, 32> words;
    for (unsigned lane = g * lanesOfGroup; lane < (g + 1) * lanesOfGroup; ++lane)
      if (mask >> lane & 1)
        for (uint64_t word = addresses[lane] / 4; word <= (addresses[lane] + bytes - 1) / 4; ++word)
          words.push_back(word);
    llvm::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
    unsigned perBank[32] = {};
    unsigned worst = 0;
    for (uint64_t word : words)
      worst = std::max(worst, ++perBank[word % 32]);
    passes.taken += worst;
    passes.ideal += worst != 0;
  }
  return passes;
}

/// Of the kernel's instruction.
LineCounters &requestsOf(Warp &warp, const Decoded &at) {
  return warp.core->requestCounts[size_t(&at - warp.core->launch.kernel.code.data())];
}

void countPasses(Warp &warp, const Decoded &at, Passes passes, bool isStore) {
  Counters &counters = warp.core->counters;
  requestsOf(warp, at) += {.requests = 1, .passes = passes.taken, .idealPasses = passes.ideal};
  (isStore ? counters.sharedStoreRequests : counters.sharedLoadRequests) += 1;
  (isStore ? counters.sharedStoreWavefronts : counters.sharedLoadWavefronts) += passes.taken;
  (isStore ? counters.sharedStoreIdealWavefronts : counters.sharedLoadIdealWavefronts) += passes.ideal;
}

/// Asynchronous copies come from global memory by lines of 128 bytes, and what of a line goes to one line of shared
/// memory is written at once. Measured on an H100: an instruction of 512 bytes takes 12 clocks where its lines stay
/// whole, 23 where they go to four lines each, 44 where all chunks of 16 bytes part.
Passes passesOfCopies(uint32_t mask, const CopiedLanes &copies) {
  constexpr uint64_t lineBytes = 128;
  llvm::SmallVector<std::pair<uint64_t, uint64_t>, 32> pairs; // lines of global and of shared memory
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const unsigned lane = unsigned(llvm::countr_zero(rest));
    pairs.push_back({copies.read[lane] ? copies.from[lane] / lineBytes : 0, copies.to[lane] / lineBytes});
  }
  llvm::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  uint64_t lines = 0;
  for (size_t i = 0; i < pairs.size(); ++i)
    lines += i == 0 || pairs[i].first != pairs[i - 1].first;
  Passes passes = passesOf(mask, copies.to, copies.bytes);
  return {std::max<uint64_t>(passes.taken, pairs.size()), std::max(passes.ideal, lines)};
}

/// Sectors of 32 bytes that the lanes touch, `bytesOf(lane)` each.
template <typename BytesOf>
void countSectors(Warp &warp, const Decoded &at, uint32_t mask, const uint64_t *addresses, BytesOf bytesOf,
                  bool isStore) {
  Counters &counters = warp.core->counters;
  llvm::SmallVector<uint64_t, 64> sectors;
  uint64_t bytes = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const unsigned lane = unsigned(llvm::countr_zero(rest));
    const uint64_t address = addresses[lane];
    bytes += bytesOf(lane);
    for (uint64_t sector = address / 32; sector <= (address + bytesOf(lane) - 1) / 32; ++sector)
      if (sectors.empty() || sectors.back() != sector)
        sectors.push_back(sector);
  }
  llvm::sort(sectors);
  uint64_t count = uint64_t(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
  (isStore ? counters.globalStoreRequests : counters.globalLoadRequests) += 1;
  (isStore ? counters.globalStoreSectors : counters.globalLoadSectors) += count;
  uint64_t ideal = std::min<uint64_t>(count, (bytes + 31) / 32);
  (isStore ? counters.globalStoreIdealSectors : counters.globalLoadIdealSectors) += ideal;
  requestsOf(warp, at) += {.requests = 1, .sectors = count, .idealSectors = ideal};
  uint64_t region = (addresses[llvm::countr_zero(mask)] >> regionShift) - 1;
  if (region < counters.buffers.size())
    (isStore ? counters.buffers[region].bytesWritten : counters.buffers[region].bytesRead) += bytes;
}

} // namespace

LineCounters &LineCounters::operator+=(const LineCounters &other) {
  for (auto field :
       {&LineCounters::warps, &LineCounters::threads, &LineCounters::requests, &LineCounters::sectors,
        &LineCounters::idealSectors, &LineCounters::passes, &LineCounters::idealPasses, &LineCounters::divergent})
    this->*field += other.*field;
  return *this;
}

void countRequest(Warp &warp, const Decoded &at, Space space, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                  bool isStore) {
  if (!mask)
    return;
  uint64_t window = addresses[llvm::countr_zero(mask)] >> regionShift << regionShift;
  if (isShared(space) || (space == Space::Generic && window == sharedWindow))
    return countPasses(warp, at, passesOf(mask, addresses, bytes), isStore);
  if (space == Space::Param || (space == Space::Generic && window == parameterWindow))
    return;
  if (space == Space::Local || (space == Space::Generic && window == localWindow))
    return;
  countSectors(warp, at, mask, addresses, [&](unsigned) { return bytes; }, isStore);
}

void countCopies(Warp &warp, const Decoded &at, uint32_t mask, const CopiedLanes &copies) {
  if (!mask)
    return;
  countPasses(warp, at, passesOfCopies(mask, copies), true);
  uint32_t reading = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    if (copies.read[llvm::countr_zero(rest)])
      reading |= rest & -rest;
  if (reading)
    countSectors(warp, at, reading, copies.from, [&](unsigned lane) { return copies.read[lane]; }, false);
}

/// Tensor cores read whole lines of 128 bytes where operands lie in one of the layouts that descriptors have: no two of
/// their chunks meet in a bank. Each warp reads 16 rows of a, and b goes to all four at once: the first of them counts.
void countMultiply(Warp &warp, const Decoded &at, bool readsA) {
  if (!warp.core->launch.options.countEvents)
    return;
  constexpr uint64_t lineBytes = 128, depthBytes = 32, rowsOfWarp = 16;
  const uint64_t ofA = readsA ? rowsOfWarp * depthBytes / lineBytes : 0,
                 ofB = warp.warp % warpsOfGroup ? 0 : at.shape[1] * depthBytes / lineBytes;
  if (ofA + ofB)
    countPasses(warp, at, {ofA + ofB, ofA + ofB}, false);
}

void countBox(Warp &warp, const Decoded &at, llvm::ArrayRef<TensorPiece> pieces, bool isStore) {
  constexpr uint64_t passBytes = 128, sectorBytes = 32;
  Counters &counters = warp.core->counters;
  if (!warp.core->launch.options.countEvents)
    return;
  llvm::SmallVector<std::pair<uint64_t, uint64_t>, 64> runs; // sectors: first, behind the last
  uint64_t inside = 0, all = 0;
  for (const TensorPiece &piece : pieces) {
    all += piece.bytes;
    if (piece.outside)
      continue;
    inside += piece.bytes;
    runs.push_back({piece.global / sectorBytes, (piece.global + piece.bytes - 1) / sectorBytes + 1});
  }
  llvm::sort(runs);
  uint64_t sectors = 0, behind = 0;
  for (auto [first, end] : runs) {
    sectors += end - std::min(std::max(first, behind), end);
    behind = std::max(behind, end);
  }
  const uint64_t passes = ((isStore ? inside : all) + passBytes - 1) / passBytes;
  countPasses(warp, at, {passes, passes}, !isStore);
  if (runs.empty())
    return;
  const uint64_t ideal = std::min(sectors, (inside + sectorBytes - 1) / sectorBytes);
  (isStore ? counters.globalStoreRequests : counters.globalLoadRequests) += 1;
  (isStore ? counters.globalStoreSectors : counters.globalLoadSectors) += sectors;
  (isStore ? counters.globalStoreIdealSectors : counters.globalLoadIdealSectors) += ideal;
  requestsOf(warp, at) += {.sectors = sectors, .idealSectors = ideal};
  const uint64_t region = (runs[0].first * sectorBytes >> regionShift) - 1;
  if (region < counters.buffers.size())
    (isStore ? counters.buffers[region].bytesWritten : counters.buffers[region].bytesRead) += inside;
}

static uint64_t bankConflicts(const Counters &counters) {
  return counters.sharedLoadWavefronts + counters.sharedStoreWavefronts - counters.sharedLoadIdealWavefronts -
         counters.sharedStoreIdealWavefronts;
}

void printTable(const Counters &counters, llvm::raw_ostream &os) {
  os << fmt::format("{:<24}{:>16}{:>18}\n", "instructions", "warps", "threads");
  for (size_t i = 0; i < counters.warpInstructions.size(); ++i)
    if (counters.warpInstructions[i])
      os << fmt::format("  {:<22}{:>16}{:>18}\n", classNames[i].str(), counters.warpInstructions[i],
                        counters.threadInstructions[i]);
  auto ratio = [](uint64_t a, uint64_t b) { return b ? double(a) / double(b) : 0.0; };
  os << fmt::format("{:<24}{:>16}{:>18}{:>12}{:>12}\n", "memory", "requests", "transactions", "each", "ideal");
  auto row = [&](const char *name, uint64_t requests, uint64_t transactions, uint64_t ideal) {
    if (requests)
      os << fmt::format("  {:<22}{:>16}{:>18}{:>12.2f}{:>12.2f}\n", name, requests, transactions,
                        ratio(transactions, requests), ratio(ideal, requests));
  };
  row("global load, sectors", counters.globalLoadRequests, counters.globalLoadSectors, counters.globalLoadIdealSectors);
  row("global store, sectors", counters.globalStoreRequests, counters.globalStoreSectors,
      counters.globalStoreIdealSectors);
  row("shared load, passes", counters.sharedLoadRequests, counters.sharedLoadWavefronts,
      counters.sharedLoadIdealWavefronts);
  row("shared store, passes", counters.sharedStoreRequests, counters.sharedStoreWavefronts,
      counters.sharedStoreIdealWavefronts);
  os << fmt::format("{:<24}{:>16}\n", "bank conflicts", bankConflicts(counters));
  os << fmt::format("{:<24}{:>16}\n", "atomics", counters.atomics);
  os << fmt::format("{:<24}{:>16}\n", "barriers", counters.barriers);
  os << fmt::format("{:<24}{:>16}\n", "shuffles", counters.shuffles);
  os << fmt::format("{:<24}{:>16}{:>18} divergent\n", "branches", counters.branches, counters.divergentBranches);
  os << fmt::format("{:<24}{:>16}{:>18} warps\n", "blocks", counters.blocks, counters.warps);
  os << fmt::format("{:<24}{:>16}{:>18}\n", "buffers", "bytes read", "bytes written");
  for (const BufferCounters &buffer : counters.buffers)
    if (buffer.bytesRead || buffer.bytesWritten)
      os << fmt::format("  {:<22}{:>16}{:>18}\n", buffer.name, buffer.bytesRead, buffer.bytesWritten);
}

void printJson(const Counters &counters, llvm::raw_ostream &os) {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attributeObject("instructions", [&] {
      for (size_t i = 0; i < counters.warpInstructions.size(); ++i)
        json.attributeObject(classNames[i], [&] {
          json.attribute("warps", int64_t(counters.warpInstructions[i]));
          json.attribute("threads", int64_t(counters.threadInstructions[i]));
        });
    });
    auto number = [&](llvm::StringRef name, uint64_t value) { json.attribute(name, int64_t(value)); };
    number("global_load_requests", counters.globalLoadRequests);
    number("global_load_sectors", counters.globalLoadSectors);
    number("global_store_requests", counters.globalStoreRequests);
    number("global_store_sectors", counters.globalStoreSectors);
    number("shared_load_requests", counters.sharedLoadRequests);
    number("shared_load_passes", counters.sharedLoadWavefronts);
    number("shared_store_requests", counters.sharedStoreRequests);
    number("shared_store_passes", counters.sharedStoreWavefronts);
    number("global_load_ideal_sectors", counters.globalLoadIdealSectors);
    number("global_store_ideal_sectors", counters.globalStoreIdealSectors);
    number("bank_conflicts", bankConflicts(counters));
    number("atomics", counters.atomics);
    number("barriers", counters.barriers);
    number("shuffles", counters.shuffles);
    number("branches", counters.branches);
    number("divergent_branches", counters.divergentBranches);
    number("warps", counters.warps);
    number("blocks", counters.blocks);
    json.attributeArray("buffers", [&] {
      for (const BufferCounters &buffer : counters.buffers)
        json.object([&] {
          json.attribute("name", buffer.name);
          json.attribute("bytes_read", int64_t(buffer.bytesRead));
          json.attribute("bytes_written", int64_t(buffer.bytesWritten));
        });
    });
  });
  os << "\n";
}

} // namespace hloc::emulator
