// wgmma: each warp makes 16 rows of the result when it issues, from its fragment or rows of a and all columns of b.
#include "CollectiveParts.h"
#include "MatrixDescriptor.h"
#include "TensorCores.h"

#include "fmt/format.h"

#include <algorithm>

namespace hloc::emulator {
namespace {

constexpr unsigned rowsOfWarp = 16, depthBytes = MatrixDescriptor::depthBytes;
enum Operand : unsigned { A, B, Accumulates, Before };

bool isListed(const CollectiveCall &call) { return call.source(A).kind == Source::Kind::Vector; }

void reportDivergence(const CollectiveCall &call, unsigned lane, llvm::function_ref<std::string()> message) {
  if (call.warp.core->launch.options.checkDivergence)
    reportFinding(call.warp, call.at, lane, FindingKind::DivergentWarpgroup, message);
}

/// The first warp of the warpgroup, if there are four.
Warp *firstOfGroup(Warp &warp) {
  Core &core = *warp.core;
  const size_t first = warp.warp / warpsOfGroup * warpsOfGroup;
  for (size_t w = first; w < first + warpsOfGroup; ++w)
    if (w >= core.warps.size() || core.warps[w].existing != ~0u)
      return nullptr;
  return &core.warps[first];
}

/// Rows of an operand, 32 bytes of k each.
struct Tile {
  static constexpr unsigned mostRows = 256;
  alignas(64) uint8_t rows[mostRows][depthBytes];
};

/// When so many wgmmas of the warpgroup are over.
Trace dateOf(const Warp &warp, uint64_t count) {
  return asynchronousDate(warp.core->blockIndex, uint16_t(actorsOfGroups + warp.warp / warpsOfGroup), 0,
                          uint32_t(count));
}

/// Reads of shared memory by the warp's last wgmma, in runs of whole chunks.
void checkReads(const CollectiveCall &call, llvm::ArrayRef<ByteRange> runs) {
  Warp &warp = call.warp;
  const uint64_t bytes = warp.core->launch.sharedBytes;
  AsyncAccess reads(warp, 0, call.at, dateOf(warp, warp.multiplies.issued), false,
                    &warp.core->warpgroups[warp.warp / warpsOfGroup].told);
  for (const ByteRange &run : runs)
    if (run.begin + run.bytes <= bytes)
      reads.shared(*warp.core, run.begin, run.bytes);
    else
      placeRun(warp, call.at, Space::Shared, 0, run.begin, run.bytes, Access::Read); // reports it
}

/// The rows `begin` to `end` of an operand in shared memory.
void readOperand(const CollectiveCall &call, Operand operand, unsigned begin, unsigned end, unsigned extent,
                 Tile &tile) {
  const auto descriptor =
      MatrixDescriptor::decode(call.value(operand, 0), operand == A ? call.at.transposed : call.at.transposedB);
  if (std::string problem = descriptor.problem(extent); !problem.empty())
    reportFinding(
        call.warp, call.at, 0, FindingKind::BadDescriptor,
        fmt::format("the descriptor {:#018x} of {} {}", call.value(operand, 0), operand == A ? "a" : "b", problem));
  constexpr unsigned chunkBytes = MatrixDescriptor::chunkBytes;
  const std::vector<uint8_t> &shared = call.warp.core->shared;
  llvm::SmallVector<ByteRange, Tile::mostRows> runs;
  descriptor.forEachChunk(begin, end, [&](uint32_t address, unsigned row, unsigned part) {
    if (!runs.empty() && runs.back().begin + runs.back().bytes == address)
      runs.back().bytes += chunkBytes;
    else if (!runs.empty() && runs.back().begin == address + chunkBytes)
      runs.back() = {address, runs.back().bytes + chunkBytes};
    else
      runs.push_back({address, chunkBytes});
    uint8_t chunk[chunkBytes] = {};
    if (address + chunkBytes <= shared.size())
      std::memcpy(chunk, shared.data() + address, chunkBytes);
    if (!descriptor.alongRows) {
      std::memcpy(tile.rows[row - begin] + part * chunkBytes, chunk, chunkBytes);
      return;
    }
    for (unsigned i = 0; i < chunkBytes / 2; ++i)
      std::memcpy(tile.rows[row - begin + i] + 2 * part, chunk + 2 * i, 2);
  });
  checkReads(call, runs);
}

template <unsigned bits> uint32_t elementAt(const uint8_t *row, unsigned k) {
  if constexpr (bits == 1)
    return row[k / 8] >> k % 8 & 1;
  std::conditional_t<bits == 32, uint32_t, std::conditional_t<bits == 16, uint16_t, uint8_t>> element;
  std::memcpy(&element, row + k * sizeof element, sizeof element);
  return element;
}

template <unsigned bits, typename M, typename Decode> void takeRows(const Tile &tile, M &m, Decode decode) {
  for (unsigned row = 0; row < rowsOfWarp; ++row)
    for (unsigned k = 0; k < m.depth; ++k)
      m.a[row * m.depth + k] = decode(elementAt<bits>(tile.rows[row], k));
}

template <unsigned bits, typename M, typename Decode>
void takeColumns(const Tile &tile, unsigned first, M &m, Decode decode) {
  for (unsigned k = 0; k < m.depth; ++k)
    for (unsigned n = 0; n < columns; ++n)
      m.b[k][n] = decode(elementAt<bits>(tile.rows[first + n], k));
}

/// Calls `use` with the width of an integer factor and the function that makes an int32_t of it.
template <typename Use> void withIntegers(Type type, Use use) {
  if (type.bits == 1)
    return use(std::integral_constant<unsigned, 1>(), [](uint32_t bits) { return int32_t(bits); });
  const uint32_t sign = type.isSigned() ? 0x80 : 0;
  use(std::integral_constant<unsigned, 8>(), [sign](uint32_t bits) { return int32_t((bits ^ sign) - sign); });
}

/// The part of the result that lies in eight columns is as one of mma: two f32 for each of two rows, or pairs of f16.
unsigned wordsOfColumns(const Decoded &at) { return rowsOfWarp * columns * at.type.bits / 32; }

void multiplyFloats(const CollectiveCall &call, const Tile *a, const Tile &b) {
  const Decoded &at = call.at;
  Floats m;
  m.rows = rowsOfWarp;
  m.depth = at.shape[2];
  withFloats(at.from, [&](auto bits, auto decode) {
    if (a)
      takeRows<bits>(*a, m, decode);
    else
      gatherA<uint32_t, bits>(call.operands[A], m, decode);
  });
  for (unsigned i = 0; at.negated && i < m.rows * m.depth; ++i)
    m.a[i] = -m.a[i];
  const Summation how = summationOf(at, call.warp.core->launch.options.approximationSeed);
  const bool halves = at.type.bits == 16, accumulates = call.words(Accumulates)[0] != 0;
  withFloats(at.typeB, [&](auto bits, auto decode) {
    for (unsigned n = 0; n < at.shape[1]; n += columns) {
      const unsigned word = n / columns * wordsOfColumns(at);
      takeColumns<bits>(b, n, m, decode);
      if (accumulates)
        gatherSums(call.words(Before) + word, halves, m);
      else
        std::fill_n(m.c, m.rows, Row<float>(0));
      Row<double> d[mostRows];
      multiply(m, how, d);
      scatterSums(d, m.rows, halves, call.resultWords() + word);
    }
  });
}

void multiplyIntegers(const CollectiveCall &call, const Tile *a, const Tile &b) {
  const Decoded &at = call.at;
  Integers m;
  m.rows = rowsOfWarp;
  m.depth = at.shape[2];
  withIntegers(at.from, [&](auto bits, auto decode) {
    if (a)
      takeRows<bits>(*a, m, decode);
    else
      gatherA<uint32_t, bits>(call.operands[A], m, decode);
  });
  const bool accumulates = call.words(Accumulates)[0] != 0;
  withIntegers(at.typeB, [&](auto bits, auto decode) {
    for (unsigned n = 0; n < at.shape[1]; n += columns) {
      const uint32_t *before = call.words(Before) + n / columns * wordsOfColumns(at);
      uint32_t *after = call.resultWords() + n / columns * wordsOfColumns(at);
      takeColumns<bits>(b, n, m, decode);
      forEachSum<1>(m.rows, [&](unsigned word, unsigned, unsigned row, unsigned column) {
        m.c[row][column] = accumulates ? int32_t(before[word]) : 0;
      });
      Row<uint32_t> d[mostRows];
      multiply(m, at.from.bits == 1 ? Mode::And : Mode::None, at.satfinite, d);
      forEachSum<1>(m.rows,
                    [&](unsigned word, unsigned, unsigned row, unsigned column) { after[word] = d[row][column]; });
    }
  });
}

/// What the warps of the group must have in common.
Warpgroup::Multiply multiplyOf(const CollectiveCall &call) {
  const bool listed = isListed(call);
  for (unsigned lane = 1; lane < warpLanes; ++lane)
    if ((!listed && call.value(A, lane) != call.value(A, 0)) || call.value(B, lane) != call.value(B, 0) ||
        call.words(Accumulates)[lane] != call.words(Accumulates)[0]) {
      reportDivergence(call, lane, [&] {
        return fmt::format("has another descriptor or scale-d than lane 0 of its warp in lane {}", lane);
      });
      break;
    }
  return {&call.at, listed ? 0 : call.value(A, 0), call.value(B, 0), call.words(Accumulates)[0] != 0};
}

/// Enters the warp's next wgmma, and compares it with those of the other warps.
void enter(const CollectiveCall &call) {
  Warp &warp = call.warp;
  Core &core = *warp.core;
  Warpgroup &group = core.warpgroups[warp.warp / warpsOfGroup];
  const Warpgroup::Multiply multiply = multiplyOf(call);
  const uint64_t number = warp.multiplies.issued++;
  warp.multiplies.last = &call.at;
  if (core.launch.together)
    ++core.launch.progress;
  const Warp *first = firstOfGroup(warp);
  if (!first) {
    reportDivergence(call, 0, [&] {
      return fmt::format("is executed by warp {} of a block of {} threads: four whole warps make a warpgroup",
                         warp.warp, core.launch.request.block.count());
    });
    return;
  }
  if (number - group.first < group.issued.size()) {
    const Warpgroup::Multiply &other = group.issued[number - group.first];
    if (other.at != multiply.at)
      reportDivergence(call, 0, [&] {
        return fmt::format("is wgmma {} of its warp, where another of its warpgroup executes that in line {}",
                           number + 1, other.at->line);
      });
    else if (!(other == multiply))
      reportDivergence(call, 0, [&] {
        return fmt::format(
            "has descriptors {:#x}, {:#x} and scale-d {}, where another warp of its warpgroup has {:#x}, "
            "{:#x} and {}",
            multiply.a, multiply.b, multiply.accumulates, other.a, other.b, other.accumulates);
      });
  } else {
    group.issued.push_back(multiply);
  }
  uint64_t everyone = first->multiplies.issued;
  for (unsigned w = 1; w < warpsOfGroup; ++w)
    everyone = std::min(everyone, first[w].multiplies.issued);
  for (; group.first < everyone; ++group.first)
    group.issued.pop_front();
  release(core);
}

void issue(const CollectiveCall &call) {
  enter(call);
  checkRegisters(call.warp, call.at);
  call.warp.multiplies.registers.inFlight.push_back(&call.at);
  const Decoded &at = call.at;
  const bool listed = isListed(call);
  countMultiply(call.warp, at, !listed);
  Tile a, b;
  const unsigned row = call.warp.warp % warpsOfGroup * rowsOfWarp;
  if (!listed)
    readOperand(call, A, row, row + rowsOfWarp, at.shape[0], a);
  readOperand(call, B, 0, at.shape[1], at.shape[1], b);
  if (at.type.isFloat())
    multiplyFloats(call, listed ? nullptr : &a, b);
  else
    multiplyIntegers(call, listed ? nullptr : &a, b);
}

/// Until all but the last `left` groups are complete. They are when the other warps have issued them, too.
void wait(const CollectiveCall &call, uint64_t left) {
  WarpMultiplies &own = call.warp.multiplies;
  uint64_t until = own.complete;
  for (; own.groups.size() > left; own.groups.pop_front())
    until = own.groups.front();
  if (const Warp *first = firstOfGroup(call.warp)) {
    auto missing = [&] {
      return std::find_if(first, first + warpsOfGroup, [&](const Warp &w) { return w.multiplies.issued < until; });
    };
    if (missing() != first + warpsOfGroup)
      holdUntil(call.warp,
                {&call.at, FindingKind::DivergentWarpgroup,
                 fmt::format("waits for {} wgmmas, of which warp {} never issues all", until, missing()->warp)},
                [&] { return missing() == first + warpsOfGroup; });
  }
  completeMultiplies(own.registers, until - own.complete);
  own.complete = until;
  observe(call.warp, call.mask, dateOf(call.warp, until));
}

/// wgmma.fence. The warps of the group wait for each other: a wgmma begins when all four have issued it, and so sees
/// what any of them had written, and fenced for the asynchronous proxy, before. Kernels of CUTLASS hand operands from
/// warp to warp of one group with nothing else between.
void fence(const CollectiveCall &call) {
  Warp &warp = call.warp;
  Core &core = *warp.core;
  const uint64_t number = ++warp.multiplies.registers.fences;
  const Warp *first = firstOfGroup(warp);
  if (!first)
    return;
  if (core.launch.causal)
    core.causality.release(warp.warp, call.mask, core.warpgroups[warp.warp / warpsOfGroup].told);
  release(core);
  auto missing = [&] {
    return std::find_if(first, first + warpsOfGroup,
                        [&](const Warp &w) { return w.multiplies.registers.fences < number; });
  };
  if (missing() != first + warpsOfGroup)
    holdUntil(warp,
              {&call.at, FindingKind::DivergentWarpgroup,
               fmt::format("waits for warp {} of its warpgroup, which never comes to its wgmma.fence {}",
                           missing()->warp, number)},
              [&] { return missing() == first + warpsOfGroup; });
}

} // namespace

void abandonMultiplies(Warp &warp) {
  const WarpMultiplies &own = warp.multiplies;
  if (own.complete < own.issued && !warp.core->launch.stop && warp.core->launch.options.checkRaces)
    reportFinding(warp, *own.last, 0, FindingKind::OpenMultiply, [&] {
      return own.committed < own.issued ? "ends without having committed its wgmmas to a group, and waited for it"
                                        : "ends without having waited for its wgmmas";
    });
}

void runWarpgroup(const CollectiveCall &call) {
  WarpMultiplies &own = call.warp.multiplies;
  switch (call.at.mode) {
  case Mode::Multiply:
    return issue(call);
  case Mode::Commit:
    own.committed = own.issued;
    own.groups.push_back(own.issued);
    return;
  case Mode::WaitGroup:
    return wait(call, call.source(0).value);
  default: // the fence
    return fence(call);
  }
}

} // namespace hloc::emulator
