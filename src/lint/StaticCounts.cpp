#include "hloc/lint/StaticCounts.h"

#include "lint/KernelCode.h"
#include "lint/LaneValues.h"
#include "lint/TripCounts.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

namespace hloc::lint {

namespace {

constexpr double PathCounts::*fields[] = {
    &PathCounts::instructions,     &PathCounts::specialFunctions, &PathCounts::doubles, &PathCounts::sharedPasses,
    &PathCounts::atomics,          &PathCounts::globalBytes,      &PathCounts::sectors, &PathCounts::memoryRoundTrips,
    &PathCounts::sharedRoundTrips, &PathCounts::chainInstructions};

void add(PathCounts &to, const PathCounts &from, double times = 1) {
  for (double PathCounts::*field : fields)
    to.*field += times * from.*field;
}

/// Through units of 16 lanes.
bool isSpecial(const CodeInstr &instr) {
  if (llvm::is_contained(
          {"ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh", "popc", "brev", "clz", "bfind", "div", "rem"},
          instr.name()))
    return true;
  auto isFloat = [](llvm::StringRef type) { return type.starts_with("f") || type.starts_with("bf"); };
  llvm::ArrayRef<std::string> parts = instr.text->parts;
  return instr.name() == "cvt" && parts.size() >= 3 && isFloat(parts.back()) != isFloat(parts[parts.size() - 2]);
}

/// Counts blocks. In a block, instructions wait for what they read; blocks follow each other.
class BlockCounter {
public:
  BlockCounter(const KernelCode &code, Dim3 grid, Dim3 block)
      : code(code), ready(code.numRegisters()), values(code, grid, block) {}

  PathCounts count(const CodeBlock &block) {
    PathCounts counts, longest;
    for (uint32_t i = block.begin; i < block.end; ++i) {
      const CodeInstr &instr = code.instrs[i];
      addWork(instr, counts);
      values.execute(instr);
      Depth depth;
      for (uint32_t read : instr.reads)
        if (ready[read].block == instr.block)
          depth.raiseTo(ready[read]);
      addWait(instr, depth);
      depth.block = instr.block;
      for (uint32_t result : instr.results)
        ready[result] = depth;
      longest.memoryRoundTrips = std::max(longest.memoryRoundTrips, depth.memory);
      longest.sharedRoundTrips = std::max(longest.sharedRoundTrips, depth.shared);
      longest.chainInstructions = std::max(longest.chainInstructions, depth.others);
    }
    add(counts, longest);
    return counts;
  }

  /// As they are behind the blocks counted so far.
  const LaneValues &laneValues() const { return values; }

private:
  struct Depth {
    uint32_t block = none;
    double memory = 0, shared = 0, others = 0;
    void raiseTo(const Depth &other) {
      memory = std::max(memory, other.memory);
      shared = std::max(shared, other.shared);
      others = std::max(others, other.others);
    }
  };

  void addWork(const CodeInstr &instr, PathCounts &counts) {
    const bool isAtomic = instr.name() == "atom" || instr.name() == "red";
    const llvm::StringRef space = spaceOf(instr);
    ++counts.instructions;
    counts.specialFunctions += isSpecial(instr);
    counts.doubles += instr.has("f64") && instr.name() != "ld" && instr.name() != "st" && instr.name() != "mov";
    const bool isAccess = instr.name() == "ld" || instr.name() == "st" || isAtomic;
    if (isAccess && (space == "global" || space.empty()))
      counts.sectors += values.sectorsOf(instr);
    if (isAtomic && space != "shared")
      counts.atomics += warpLanes;
    else if (isAccess) {
      if (space == "shared")
        counts.sharedPasses += std::max(1u, bytesOf(instr) / 4);
      else if (space == "global" || space.empty())
        counts.globalBytes += bytesOf(instr);
    }
    counts.sharedPasses += instr.name() == "shfl";
  }

  static void addWait(const CodeInstr &instr, Depth &depth) {
    const llvm::StringRef name = instr.name(), space = spaceOf(instr);
    const bool loads = name == "ld" || name == "atom";
    if (loads && (space == "global" || space.empty()))
      ++depth.memory;
    else if ((loads && space == "shared") || name == "shfl" || name == "bar" || name == "barrier")
      ++depth.shared;
    else
      ++depth.others;
  }

  const KernelCode &code;
  std::vector<Depth> ready; ///< registers
  LaneValues values;
};

/// Blocks on the way with the most instructions, in order, loops once.
std::vector<uint32_t> longestWay(const KernelCode &code) {
  const uint32_t size = uint32_t(code.blocks.size());
  std::vector<double> most(size, -1);
  std::vector<uint32_t> from(size, none);
  most[0] = 0;
  uint32_t last = 0;
  for (uint32_t i = 0; i < size; ++i) {
    if (most[i] < 0)
      continue; // not reached, or by a way back only
    most[i] += code.blocks[i].end - code.blocks[i].begin;
    if (most[i] > most[last])
      last = i;
    for (uint32_t next : code.blocks[i].successors)
      if (next > i && most[next] < most[i]) {
        most[next] = most[i];
        from[next] = i;
      }
  }
  std::vector<uint32_t> way;
  for (uint32_t block = last; block != none; block = from[block])
    way.push_back(block);
  std::reverse(way.begin(), way.end());
  return way;
}

} // namespace

std::optional<StaticCounts> countStatically(const ptx::Module &module, llvm::StringRef kernel, Dim3 grid, Dim3 block) {
  const ptx::Function *function = module.find(kernel);
  if (!function || !function->hasBody)
    return std::nullopt;
  KernelCode code(module, *function);
  BlockCounter counter(code, grid, block);
  StaticCounts result;
  std::vector<std::optional<double>> rounds(code.loops.size());
  llvm::BitVector entered(unsigned(code.loops.size()));
  for (uint32_t number : longestWay(code)) {
    double times = 1;
    bool isOpen = false;
    for (uint32_t loop = code.blocks[number].loop; loop != none; loop = code.loops[loop].parent) {
      if (!entered.test(loop))
        rounds[loop] = roundsOf(code, loop, counter.laneValues());
      entered.set(loop);
      times *= rounds[loop].value_or(1);
      isOpen |= !rounds[loop];
    }
    PathCounts counts = counter.count(code.blocks[number]);
    add(result.once, counts, times);
    if (isOpen)
      add(result.inLoops, counts, times);
  }
  for (const ptx::Statement &statement : function->body)
    if (statement.kind == ptx::Statement::Kind::Variable && statement.variable.space == "shared")
      result.sharedBytes += statement.variable.length.value_or(1) * std::max(1u, typeBits(statement.variable.type) / 8);
  return result;
}

double StaticCounts::roundsForBytes(double bytes) const {
  return inLoops.globalBytes > 0 ? std::max(0.0, (bytes - once.globalBytes) / inLoops.globalBytes) : 0;
}

double StaticCounts::roundsForInstructions(double instructions) const {
  return inLoops.instructions > 0 ? std::max(0.0, (instructions - once.instructions) / inLoops.instructions) : 0;
}

PathCounts StaticCounts::after(double rounds) const {
  PathCounts counts = once;
  add(counts, inLoops, rounds);
  return counts;
}

KernelCounts countsOf(const StaticCounts &counts, const KernelSpec &kernel) {
  const double bytes = double(kernel.bytesRead) + double(kernel.bytesWritten);
  const double threads = double(kernel.grid.count()) * double(kernel.block.count());
  const double warps = double(kernel.grid.count()) * std::ceil(double(kernel.block.count()) / 32);
  const PathCounts path = counts.after(threads > 0 ? counts.roundsForBytes(bytes / threads) : 0);
  KernelCounts result;
  result.blocks = kernel.grid.count();
  result.threadsPerBlock = uint32_t(kernel.block.count());
  if (kernel.resources)
    result.registers = kernel.resources->registers;
  result.sharedBytes = uint32_t(std::min<uint64_t>(counts.sharedBytes, UINT32_MAX)) + kernel.dynamicSharedBytes;
  result.sectors = std::max(bytes / 32, path.sectors * warps);
  for (const KernelParameter &parameter : kernel.parameters)
    if (!parameter.alias)
      result.footprint += std::ceil(double(parameter.bytes) / 32);
  result.instructions = path.instructions * warps;
  result.specialFunctions = path.specialFunctions * warps;
  result.doubles = path.doubles * warps;
  result.sharedPasses = path.sharedPasses * warps;
  result.atomics = path.atomics * warps;
  result.memoryRoundTrips = path.memoryRoundTrips;
  result.sharedRoundTrips = path.sharedRoundTrips;
  result.chainInstructions = path.chainInstructions;
  return result;
}

} // namespace hloc::lint
