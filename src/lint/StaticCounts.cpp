// A few warps, spread over the grid, are followed through the kernel: where a branch depends on nothing but a warp's
// place, as the parts of a kernel that few blocks execute do, it goes the way it would; elsewhere the longer one. What
// all warps do is the average, the longest chain is that of the busiest.

#include "hloc/lint/StaticCounts.h"

#include "hloc/kernel/CopiesAhead.h"
#include "lint/KernelCode.h"
#include "lint/LaneValues.h"
#include "lint/TripCounts.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

namespace hloc::lint {

namespace {

constexpr double PathCounts::*fields[] = {
    &PathCounts::instructions,     &PathCounts::specialFunctions, &PathCounts::doubles,
    &PathCounts::products,         &PathCounts::doubleProducts,   &PathCounts::groupProducts,
    &PathCounts::sharedPasses,     &PathCounts::atomics,          &PathCounts::globalBytes,
    &PathCounts::sectors,          &PathCounts::memoryRoundTrips, &PathCounts::sharedRoundTrips,
    &PathCounts::chainInstructions};

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

bool isOfGroup(const CodeInstr &instr) { return instr.name() == "wgmma" && instr.has("mma_async"); }
bool multiplies(const CodeInstr &instr) { return instr.name() == "mma" || isOfGroup(instr); }

/// Clocks, as instructions that wait for each other, in which tensor cores make the products of a warp and of those
/// that take turns with it.
double turnsOf(const PathCounts &counts) {
  constexpr double warpsOfGroup = 4;
  return counts.products / multiplyAddsOfMma * turnOfMma + turnsOfGroups(warpsOfGroup * counts.groupProducts);
}

/// Adds the multiply-adds of an `mma`, those of wider factors than 16 bits as many more, but of f64: by its shape,
/// m16n8k16. Of a warpgroup's each warp has a fourth.
void addProducts(const CodeInstr &mma, PathCounts &to) {
  double products = 1, bits = 16;
  for (llvm::StringRef part : mma.text->parts) {
    unsigned rows = 0, columns = 0, terms = 0;
    if (part.consume_front("m") && !part.consumeInteger(10, rows) && part.consume_front("n") &&
        !part.consumeInteger(10, columns) && part.consume_front("k") && !part.consumeInteger(10, terms))
      products = double(rows) * columns * terms;
  }
  llvm::ArrayRef<std::string> parts = mma.text->parts;
  if (parts.size() >= 3) // results, factors, factors, and sums, but of warpgroups
    bits = mma.has("tf32") ? 32 : std::max(4u, typeBits(parts[parts.size() - (isOfGroup(mma) ? 1 : 2)]));
  if (isOfGroup(mma)) {
    to.groupProducts += products / 4 * bits / 16;
    return;
  }
  (bits == 64 ? to.doubleProducts : to.products) += bits == 64 ? products : products * bits / 16;
}

/// Warps that are followed, where what they do depends on their place; fewer of long kernels.
constexpr uint64_t mostWarps = 24, mostInstrsOfWarps = 400000;

/// All, if there are no more; else warps all over the grid that have no step in common, which arrays of even sizes
/// might have, too.
uint64_t warpOfSample(uint64_t sample, uint64_t samples, uint64_t all) {
  constexpr double goldenRatio = 0.61803398874989485;
  if (samples == all)
    return sample;
  const double step = (double(sample) + 0.5) * goldenRatio;
  return std::min(all - 1, uint64_t((step - std::floor(step)) * double(all)));
}

/// Where warps of a block have work of their own, as those that copy for the others: each of them as often.
WarpPlace placeOfSample(uint64_t sample, uint64_t samples, uint64_t blocks, uint64_t warpsOfBlock, bool copyForOthers) {
  if (copyForOthers && samples % warpsOfBlock == 0)
    return {warpOfSample(sample, samples, blocks), sample % warpsOfBlock};
  const uint64_t warp = warpOfSample(sample, samples, blocks * warpsOfBlock);
  return {warp / warpsOfBlock, warp % warpsOfBlock};
}

/// In which order blocks are come to: each behind all that lead to it, but for ways back. (In the text a block may
/// stand before others that go on in it.)
class BlockOrder {
public:
  explicit BlockOrder(const KernelCode &code) : code(code), rank(code.blocks.size(), none) {
    for (uint32_t number = 0; number < code.blocks.size(); ++number) // what is not reached, too
      if (rank[number] == none)
        visit(number);
    std::reverse(order.begin(), order.end());
    for (auto [place, number] : llvm::enumerate(order))
      rank[number] = uint32_t(place);
  }

  llvm::ArrayRef<uint32_t> blocks() const { return order; }
  bool isForward(uint32_t from, uint32_t to) const { return rank[to] > rank[from]; }

private:
  static constexpr uint32_t seen = none - 1;

  /// What is left a loop for comes behind it: it is visited first, since who is done first is last.
  llvm::SmallVector<uint32_t, 2> successorsOf(uint32_t number) const {
    const CodeBlock &block = code.blocks[number];
    llvm::SmallVector<uint32_t, 2> result = block.successors;
    llvm::stable_sort(result, [&](uint32_t a, uint32_t b) { return depthIn(block, a) < depthIn(block, b); });
    return result;
  }
  /// Of the loop around `number`, if that is around `block`, too, or inside it.
  unsigned depthIn(const CodeBlock &block, uint32_t number) const {
    const unsigned own = block.loop == none ? 0 : code.loops[block.loop].depth;
    const uint32_t loop = code.blocks[number].loop;
    return std::min(own, loop == none ? 0 : code.loops[loop].depth);
  }

  void visit(uint32_t first) {
    std::vector<std::pair<uint32_t, llvm::SmallVector<uint32_t, 2>>> open; // and what is left of successors, last first
    auto enter = [&](uint32_t number) {
      rank[number] = seen;
      llvm::SmallVector<uint32_t, 2> left = successorsOf(number);
      std::reverse(left.begin(), left.end());
      open.push_back({number, std::move(left)});
    };
    enter(first);
    while (!open.empty()) {
      auto &[number, left] = open.back();
      if (left.empty()) {
        order.push_back(number);
        open.pop_back();
      } else if (const uint32_t next = left.pop_back_val(); rank[next] == none) {
        enter(next);
      }
    }
  }

  const KernelCode &code;
  std::vector<uint32_t> rank, order;
};

/// How many instructions follow each block's beginning, on the way with the most of them, loops once.
std::vector<double> instructionsBehind(const KernelCode &code, const BlockOrder &order) {
  std::vector<double> behind(code.blocks.size(), 0);
  for (uint32_t number : llvm::reverse(order.blocks())) {
    for (uint32_t next : code.blocks[number].successors)
      if (order.isForward(number, next))
        behind[number] = std::max(behind[number], behind[next]);
    behind[number] += code.blocks[number].end - code.blocks[number].begin;
  }
  return behind;
}

/// So many instructions under a condition become instructions under a predicate, which nobody waits for. An estimate of
/// what ptxas does.
constexpr uint32_t mostPredicated = 8;

/// Is the block one that ptxas makes a part of the two around it: short, jumped over by the one before it, and in the
/// same loop?
bool isPredicated(const KernelCode &code, uint32_t number) {
  if (number == 0 || number + 1 >= code.blocks.size())
    return false;
  const CodeBlock &before = code.blocks[number - 1], &block = code.blocks[number], &behind = code.blocks[number + 1];
  if (block.end - block.begin > mostPredicated || block.loop != before.loop || block.loop != behind.loop ||
      block.successors.size() != 1 || block.successors.front() != number + 1 ||
      !llvm::is_contained(before.successors, number + 1) || !llvm::is_contained(before.successors, number))
    return false;
  return llvm::none_of(llvm::ArrayRef(code.instrs).slice(block.begin, block.end - block.begin),
                       [](const CodeInstr &instr) {
                         return llvm::is_contained({"bar", "barrier", "call", "shfl", "ret", "exit"}, instr.name());
                       });
}

/// Loops that multiply on tensor cores: in turns with all else with no copies on their way, and two barriers or more,
/// or if factors are stored into shared memory between barriers, or if all products are waited for in each round,
/// unless nothing but mbarriers holds warpgroups together, of which one multiplies while others wait; in others what is
/// loaded may be for a later round.
struct MultiplyingLoops {
  explicit MultiplyingLoops(const KernelCode &code) : areAhead(code.loops.size()), areStored(code.loops.size()) {
    struct Round {
      unsigned barriers = 0;
      bool multiplies = false, copies = false, stores = false, waitsForAll = false, waitsForStages = false;
    };
    std::vector<Round> rounds(code.loops.size());
    for (const CodeBlock &block : code.blocks)
      for (uint32_t i = block.begin; block.loop != none && i < block.end; ++i) {
        const CodeInstr &instr = code.instrs[i];
        Round &round = rounds[block.loop];
        round.barriers += instr.name() == "bar" || instr.name() == "barrier";
        round.multiplies |= multiplies(instr);
        round.copies |= isAsyncCopy(instr);
        round.stores |= instr.name() == "st" && spaceOf(instr) == "shared";
        // (That is a loop of its own.)
        for (uint32_t loop = block.loop; loop != none && instr.has("try_wait"); loop = code.loops[loop].parent)
          rounds[loop].waitsForStages = true;
        round.waitsForAll |= instr.name() == "wgmma" && instr.has("wait_group") &&
                             instr.text->operands.front().kind == ptx::Operand::Kind::Integer &&
                             instr.text->operands.front().value == 0;
      }
    std::vector<bool> multiply(code.loops.size()); // loops, and those around them
    for (auto [loop, round] : llvm::enumerate(rounds)) {
      const bool goesAlone = round.barriers == 0 && round.waitsForStages;
      const bool waits =
          round.multiplies && ((round.barriers > 1 && !round.copies) || (round.waitsForAll && !goesAlone));
      areAhead[loop] = round.multiplies && !waits;
      areStored[loop] = areAhead[loop] && round.barriers > 0 && round.stores;
      areInTurns |= waits || areStored[loop];
      for (uint32_t outer = uint32_t(loop); outer != none && round.multiplies; outer = code.loops[outer].parent)
        multiply[outer] = true;
    }
    findStoring(code, multiply);
  }
  bool areInTurns = false; ///< any of them
  /// Whose rounds multiply, and store to global memory what comes of it; or none.
  uint32_t storing = none;
  // By loop: loads are for a later round; they are stored into shared memory at the end of this one.
  std::vector<bool> areAhead, areStored;

private:
  void findStoring(const KernelCode &code, const std::vector<bool> &multiply) {
    for (const CodeBlock &block : code.blocks) {
      uint32_t loop = block.loop;
      while (loop != none && !multiply[loop])
        loop = code.loops[loop].parent;
      for (uint32_t i = block.begin; loop != none && i < block.end; ++i)
        if (code.instrs[i].name() == "st" && spaceOf(code.instrs[i]) == "global")
          storing = loop;
    }
  }
};

/// Bulk loads, and the share of them that arrives in other blocks of the cluster, too.
struct BulkLoads {
  explicit BulkLoads(const KernelCode &code) {
    double shared = 0;
    for (const CodeInstr &instr : code.instrs)
      if (instr.name() == "cp" && instr.has("bulk") && instr.has("mbarrier::complete_tx::bytes")) {
        ++all;
        shared += instr.has("multicast::cluster");
      }
    multicast = all > 0 ? shared / all : 0;
  }
  double all = 0;
  double multicast;
};

struct FunctionCode {
  FunctionCode(const ptx::Module &module, const ptx::Function &function)
      : code(module, function), order(code), behind(instructionsBehind(code, order)), multiplying(code), bulk(code) {}
  KernelCode code;
  BlockOrder order;
  std::vector<double> behind;
  MultiplyingLoops multiplying;
  BulkLoads bulk;
};

/// The functions of a module, each read when it is called first.
class FunctionCodes {
public:
  explicit FunctionCodes(const ptx::Module &module) : module(module) {}

  /// Null if there is no such function with a body.
  const FunctionCode *find(llvm::StringRef name) {
    auto [at, isNew] = codes.try_emplace(name);
    if (isNew)
      if (const ptx::Function *function = module.find(name); function && function->hasBody)
        at->second = std::make_unique<FunctionCode>(module, *function);
    return at->second.get();
  }

private:
  const ptx::Module &module;
  llvm::StringMap<std::unique_ptr<FunctionCode>> codes;
};

/// A warp, and what its functions did when they were walked through last.
struct WalkedWarp {
  WalkedWarp(FunctionCodes &codes, Dim3 grid, Dim3 block, WarpPlace place)
      : codes(codes), grid(grid), block(block), place(place) {}
  FunctionCodes &codes;
  Dim3 grid, block;
  WarpPlace place;
  uint64_t walked = 0; ///< instructions
  struct Known {
    PathCounts once, inLoops;
  };
  llvm::DenseMap<const FunctionCode *, Known> known;
};

/// Behind so many instructions, or in so many calls of calls, a function is what it was the last time.
constexpr uint64_t mostWalked = 200000;
constexpr unsigned mostCalls = 32;

/// One warp on its way through a function. In a stretch of code, a block or several with short ones that are jumped
/// over, instructions wait for what they read; stretches, and functions that are called, follow each other.
class WarpWalk {
public:
  WarpWalk(const FunctionCode &function, WalkedWarp &warp, unsigned depth = 0)
      : values(function.code, warp.grid, warp.block, warp.place), code(function.code), order(function.order),
        behind(function.behind), warp(warp), depth(depth), ready(code.numRegisters()), ofLoops(code.loops.size()),
        lanesOf(code.blocks.size(), 0), shares(code.blocks.size(), 1), rounds(code.loops.size()),
        entered(unsigned(code.loops.size())), multiplying(function.multiplying), bulk(function.bulk) {}

  void run(LaneMask lanes) {
    if (!lanesOf.empty())
      lanesOf.front() = lanes;
    for (uint32_t number : order.blocks()) {
      if (!lanesOf[number])
        continue; // not reached, or by a way back only
      values.setActive(lanesOf[number]);
      if (!goesOnInStretch(number)) {
        finishStretch();
        stretch = number;
        ++stretchId;
        std::tie(times, isOpen) = roundsOfBlock(number); // by what is known where a loop is entered
      }
      count(number);
      goOn(number);
      lastBlock = number;
    }
    finishStretch();
    addWaitsOfRounds();
  }

  LaneValues values;
  PathCounts once, inLoops; ///< StaticCounts
  bool dependsOnPlace = false;
  double tilesOfBlock() const {
    return multiplying.storing == none ? 1 : std::max(1.0, rounds[multiplying.storing].value_or(1));
  }

private:
  struct Depth {
    uint32_t stretch = 0;
    double memory = 0, shared = 0, others = 0;
    void raiseTo(const Depth &other) {
      memory = std::max(memory, other.memory);
      shared = std::max(shared, other.shared);
      others = std::max(others, other.others);
    }
  };

  /// How often the loops around it go round, and whether that is not known of some.
  std::pair<double, bool> roundsOfBlock(uint32_t number) {
    double times = 1;
    bool isOpen = false;
    for (uint32_t loop = code.blocks[number].loop; loop != none; loop = code.loops[loop].parent) {
      if (!entered.test(loop)) {
        rounds[loop] = roundsOf(code, loop, values);
        findSkipped(loop);
      }
      entered.set(loop);
      times *= rounds[loop].value_or(1);
      isOpen |= !rounds[loop];
    }
    return {times, isOpen};
  }

  /// What only the first rounds of a loop come to: blocks that a branch jumps over from some round on.
  void findSkipped(uint32_t loop) {
    if (!rounds[loop] || *rounds[loop] < 1)
      return;
    for (uint32_t number : code.loops[loop].blocks) {
      if (code.blocks[number].successors.size() != 2)
        continue;
      const std::optional<double> before = roundsBeforeTaken(code, loop, number, values);
      const uint32_t target = before ? code.blocks[number].successors[0] : 0;
      for (uint32_t skipped = number + 1; skipped < target; ++skipped)
        shares[skipped] = std::min(shares[skipped], *before / *rounds[loop]);
    }
  }

  /// All blocks of a stretch are in one loop: they are counted as often as the first. Short ones that no lane comes to
  /// do not end it.
  bool goesOnInStretch(uint32_t number) const {
    if (stretch == none || lastBlock >= number || code.blocks[stretch].loop != code.blocks[number].loop)
      return false;
    for (uint32_t skipped = lastBlock + 1; skipped < number; ++skipped)
      if (!isPredicated(code, skipped))
        return false;
    return isPredicated(code, number) || isPredicated(code, number - 1);
  }

  void finishStretch() {
    if (stretch != none && code.blocks[stretch].loop != none) {
      Rounds &round = ofLoops[code.blocks[stretch].loop];
      round.chain += ofStretch.chainInstructions;
      round.shared += ofStretch.sharedRoundTrips;
      round.turns += turnsOf(ofStretch);
      round.times = std::max(round.times, times);
      round.isOpen |= isOpen;
    }
    // Loads that no product waits for come while products are made.
    if (turnsOf(ofStretch) > 0 && productsWaited == 0 && isAhead(code.blocks[stretch].loop))
      ofStretch.memoryRoundTrips = std::max(0.0, ofStretch.memoryRoundTrips - tripsInTime(turnsOf(ofStretch), 0));
    ofStretch.memoryRoundTrips += waited;
    waited = productsWaited = 0;
    add(once, ofStretch, times);
    if (isOpen)
      add(inLoops, ofStretch, times);
    ofStretch = {};
    issued = behindBarrier = {};
  }

  /// A wait for copies that began in rounds of the loop before: the first takes a round trip, others what is left of
  /// theirs when those rounds have passed.
  void addWaitsOfRounds() {
    for (const Rounds &round : ofLoops) {
      if (round.ahead.empty())
        continue;
      const double chain = std::max(round.chain, round.turns);
      double left = 0;
      for (double ahead : round.ahead)
        left += tripsBehindCopies(ahead, tripsInTime(chain, round.shared));
      once.memoryRoundTrips += 1 + round.times * left;
      if (round.isOpen)
        inLoops.memoryRoundTrips += round.times * left;
    }
  }

  bool isAhead(uint32_t loop) const { return loop != none && multiplying.areAhead[loop]; }

  /// Of what an instruction reads, guards included.
  Depth waitsOf(const CodeInstr &instr) const {
    Depth depth;
    for (uint32_t read : instr.reads)
      if (ready[read].stretch == stretchId)
        depth.raiseTo(ready[read]);
    return depth;
  }

  void count(uint32_t number) {
    const CodeBlock &block = code.blocks[number];
    const Depth predicate = isPredicated(code, number) ? waitsOf(code.instrs[block.begin - 1]) : Depth();
    for (uint32_t i = block.begin; i < block.end; ++i) {
      const CodeInstr &instr = code.instrs[i];
      if (const std::optional<LaneMask> lanes = values.guarded(instr); lanes == 0 && instr.name() != "bra")
        continue;
      PathCounts work;
      addWork(instr, work);
      add(ofStretch, work, shares[number]);
      values.execute(instr);
      if (instr.name() == "call")
        call(instr);
      await(instr, block.loop);
      Depth depth = waitsOf(instr);
      depth.raiseTo(predicate);
      const bool isBarrier = instr.name() == "bar" || instr.name() == "barrier";
      depth.raiseTo(isBarrier ? issued : behindBarrier);
      issued.raiseTo(depth);
      if (multiplies(instr))
        productsWaited = std::max(productsWaited, depth.memory);
      const double waitedBefore = depth.memory;
      addWait(instr, depth);
      if (isBarrier)
        behindBarrier = depth;
      depth.stretch = stretchId;
      for (uint32_t result : instr.results)
        ready[result] = depth;
      // (Where the next round's loads are on their way, those wait that read them.)
      ofStretch.memoryRoundTrips =
          std::max(ofStretch.memoryRoundTrips, isAhead(block.loop) ? waitedBefore : depth.memory);
      ofStretch.sharedRoundTrips = std::max(ofStretch.sharedRoundTrips, depth.shared);
      ofStretch.chainInstructions = std::max(ofStretch.chainInstructions, depth.others);
    }
  }

  /// Through the function, and on behind it.
  void call(const CodeInstr &instr) {
    const std::vector<ptx::Operand> &operands = instr.text->operands;
    using Kind = ptx::Operand::Kind;
    const auto name = llvm::find_if(operands, [](const ptx::Operand &each) { return each.kind == Kind::Name; });
    const FunctionCode *callee = name == operands.end() ? nullptr : warp.codes.find(name->name);
    if (!callee)
      return;
    finishStretch();
    ++stretchId;
    auto known = warp.known.find(callee);
    if (known == warp.known.end() || (warp.walked < mostWalked && depth < mostCalls)) {
      warp.known.try_emplace(callee); // (what calls itself does not go on for ever)
      walk(*callee, operands);
      known = warp.known.find(callee);
    }
    add(once, known->second.once, times);
    add(inLoops, isOpen ? known->second.once : known->second.inLoops, times);
  }

  void walk(const FunctionCode &callee, llvm::ArrayRef<ptx::Operand> operands) {
    using Kind = ptx::Operand::Kind;
    WarpWalk inside(callee, warp, depth + 1);
    inside.values.setActive(values.activeLanes());
    const ptx::Function &function = callee.code.function;
    const bool hasResults = !function.results.empty() && operands.front().kind == Kind::List;
    if (operands.back().kind == Kind::List)
      for (auto [argument, parameter] : llvm::zip(operands.back().elements, function.parameters))
        inside.values.setParameter(parameter.name, values.parameter(argument.name));
    inside.run(values.activeLanes());
    if (hasResults)
      for (auto [result, variable] : llvm::zip(operands.front().elements, function.results))
        values.setParameter(result.name, inside.values.parameter(variable.name));
    dependsOnPlace |= inside.dependsOnPlace;
    warp.known[&callee] = {inside.once, inside.inLoops};
  }

  void addWork(const CodeInstr &instr, PathCounts &work) {
    ++warp.walked;
    const bool isAtomic = instr.name() == "atom" || instr.name() == "red";
    const llvm::StringRef space = spaceOf(instr);
    ++work.instructions;
    work.specialFunctions += isSpecial(instr);
    work.doubles += instr.has("f64") && !llvm::is_contained({"ld", "st", "mov", "mma"}, instr.name());
    if (multiplies(instr))
      addProducts(instr, work);
    const bool isAccess = instr.name() == "ld" || instr.name() == "st" || isAtomic;
    if (isAccess && (space == "global" || space.empty()))
      work.sectors += values.sectorsOf(instr);
    if (isAtomic && space != "shared")
      work.atomics += warpLanes;
    else if (isAccess) {
      if (space == "shared")
        work.sharedPasses += std::max(1u, bytesOf(instr) / 4);
      else if (space == "global" || space.empty())
        work.globalBytes += bytesOf(instr);
    }
    if (isAsyncCopy(instr)) {
      work.sectors += values.sectorsOf(instr);
      work.globalBytes += bytesOf(instr);
    }
    if (isAsyncCopy(instr) || instr.name() == "ldmatrix" || instr.name() == "stmatrix")
      work.sharedPasses += bytesOf(instr) / 4;
    work.sharedPasses += instr.name() == "shfl";
    if (instr.name() == "mbarrier" && instr.has("expect_tx"))
      addBulkCopies(instr, work);
  }

  /// Those that an mbarrier is told to expect: boxes of tensor maps nobody knows here.
  void addBulkCopies(const CodeInstr &instr, PathCounts &work) {
    constexpr double sectorBytes = 32, bytesOfPass = 128, blocksOfMulticast = 2;
    const LaneValue bytes = values.valueOf(instr.text->operands.back());
    if (!bytes.isKnown || bytes.isAssumed || values.guarded(instr) == 0)
      return;
    const double expected = double(bytes.lanes[values.firstActive()]);
    work.sectors += expected / sectorBytes * (1 - bulk.multicast + bulk.multicast / blocksOfMulticast);
    work.globalBytes += expected / warpLanes;
    work.sharedPasses += expected / bytesOfPass;
  }

  /// Of a wait for groups of copies: where some may stay open, the one that is waited for has had as many turns to
  /// come, or rounds of the loop; one round where copies begin behind the wait.
  void await(const CodeInstr &instr, uint32_t loop) {
    if (loop != none && multiplying.areStored[loop] && instr.name() == "ld" && spaceOf(instr) == "global" &&
        ofLoops[loop].ahead.empty())
      ofLoops[loop].ahead.push_back(1);
    if (instr.name() != "cp" || !instr.has("async"))
      return;
    if (loop != none && isAsyncCopy(instr))
      ofLoops[loop].begins = true;
    const auto &operands = instr.text->operands;
    if (instr.has("wait_group") && !operands.empty() && operands.front().kind == ptx::Operand::Kind::Integer) {
      const double ahead = 1 + double(operands.front().value);
      if (loop != none && (ahead > 1 || !ofLoops[loop].begins))
        ofLoops[loop].ahead.push_back(ahead);
      else
        waited += 1 / ahead;
    }
    waited += instr.has("wait_all");
  }

  static void addWait(const CodeInstr &instr, Depth &depth) {
    const llvm::StringRef name = instr.name(), space = spaceOf(instr);
    const bool loads = name == "ld" || name == "atom";
    if (loads && (space == "global" || space.empty()))
      ++depth.memory;
    else if ((loads && space == "shared") || name == "ldmatrix" || name == "shfl" || name == "bar" || name == "barrier")
      ++depth.shared;
    else
      depth.others += name == "mma" ? instructionsOfMma : 1;
  }

  /// Which lanes come to the blocks behind one.
  void goOn(uint32_t number) {
    const CodeBlock &block = code.blocks[number];
    const LaneMask lanes = lanesOf[number];
    auto reach = [&](uint32_t next, LaneMask with) {
      if (order.isForward(number, next))
        lanesOf[next] |= with;
    };
    const CodeInstr *last = block.begin < block.end ? &code.instrs[block.end - 1] : nullptr;
    const bool isBranch = last && last->name() == "bra" && !last->text->guard.empty() && block.successors.size() == 2;
    if (!isBranch || isExit(number)) { // all rounds together come to both sides of an exit
      for (uint32_t next : block.successors)
        if (isBranch || block.successors.size() < 2 || next == longest(block, number))
          reach(next, lanes);
      return;
    }
    if (const std::optional<LaneMask> taken = values.guarded(*last)) {
      dependsOnPlace = true;
      reach(block.successors[0], *taken);
      reach(block.successors[1], lanes & ~*taken);
    } else {
      reach(longest(block, number), lanes);
    }
  }

  uint32_t longest(const CodeBlock &block, uint32_t number) const {
    uint32_t best = none;
    for (uint32_t next : block.successors)
      if (order.isForward(number, next) && (best == none || behind[next] > behind[best]))
        best = next;
    return best;
  }

  /// Does it leave a loop, or go round?
  bool isExit(uint32_t number) const {
    for (uint32_t next : code.blocks[number].successors)
      if (!order.isForward(number, next))
        return true;
    for (uint32_t loop = code.blocks[number].loop; loop != none; loop = code.loops[loop].parent)
      for (uint32_t next : code.blocks[number].successors)
        if (!llvm::is_contained(code.loops[loop].blocks, next))
          return true;
    return false;
  }

  const KernelCode &code;
  const BlockOrder &order;
  const std::vector<double> &behind;
  WalkedWarp &warp;
  const unsigned depth;     ///< of calls
  std::vector<Depth> ready; ///< registers
  /// What instructions have waited for so far, all of which a barrier does; and what those behind the last barrier do.
  Depth issued, behindBarrier;
  uint32_t lastBlock = none;
  // Of the stretch that is being walked: its first block, its own number, how often it is, and what is done in it once.
  uint32_t stretch = none, stretchId = 0;
  double times = 0;
  double waited = 0;         ///< round trips of copies, one wait behind the other
  double productsWaited = 0; ///< for loads, before the last of them was made
  bool isOpen = false;       ///< in loops whose rounds nobody knows
  PathCounts ofStretch;
  /// One round of a loop without those inside it, and how many rounds before its waits copies began.
  struct Rounds {
    double chain = 0, shared = 0, turns = 0, times = 0;
    bool isOpen = false;
    bool begins = false; ///< copies, in what has been walked of it
    llvm::SmallVector<double, 1> ahead;
  };
  std::vector<Rounds> ofLoops;
  std::vector<LaneMask> lanesOf; ///< blocks
  std::vector<double> shares;    ///< of the rounds of its loop that come to a block
  std::vector<std::optional<double>> rounds;
  llvm::BitVector entered;
  const MultiplyingLoops &multiplying;
  const BulkLoads &bulk;
};

/// What warps wait for each other for is not shared.
void keepLongest(PathCounts &to, const PathCounts &from) {
  for (double PathCounts::*field :
       {&PathCounts::memoryRoundTrips, &PathCounts::sharedRoundTrips, &PathCounts::chainInstructions})
    to.*field = std::max(to.*field, from.*field);
}

} // namespace

std::optional<StaticCounts> countStatically(const ptx::Module &module, llvm::StringRef kernel, Dim3 grid, Dim3 block) {
  const ptx::Function *function = module.find(kernel);
  if (!function || !function->hasBody)
    return std::nullopt;
  FunctionCodes codes(module);
  const FunctionCode &code = *codes.find(kernel);
  const uint64_t warpsOfBlock = (std::max<uint64_t>(1, block.count()) + warpLanes - 1) / warpLanes;
  const uint64_t blocks = std::max<uint64_t>(1, grid.count());
  uint64_t walked = 0;
  double tilesOfBlock = 1;
  auto walk = [&](WarpPlace place) {
    WalkedWarp warp(codes, grid, block, place);
    WarpWalk way(code, warp);
    way.run(way.values.allLanes());
    walked = warp.walked;
    tilesOfBlock = std::max(tilesOfBlock, way.tilesOfBlock());
    return std::tuple(way.once, way.inLoops, way.dependsOnPlace);
  };
  // The middle of the grid; edges of arrays are elsewhere.
  const auto [middleOnce, middleInLoops, dependsOnPlace] = walk({blocks / 2, (warpsOfBlock - 1) / 2});
  StaticCounts result{middleOnce, middleInLoops, 0, code.multiplying.areInTurns, 1};
  if (dependsOnPlace) {
    const uint64_t most = std::clamp<uint64_t>(mostInstrsOfWarps / std::max<uint64_t>(1, walked), 1, mostWarps);
    const uint64_t all = blocks * warpsOfBlock;
    uint64_t samples = std::min(all, most);
    if (code.bulk.all > 0 && samples > warpsOfBlock)
      samples -= samples % warpsOfBlock;
    PathCounts once, inLoops;
    for (uint64_t i = 0; i < samples; ++i) {
      const auto [oneOnce, oneInLoops, ofPlace] =
          walk(placeOfSample(i, samples, blocks, warpsOfBlock, code.bulk.all > 0));
      add(once, oneOnce, 1 / double(samples));
      add(inLoops, oneInLoops, 1 / double(samples));
      keepLongest(result.once, oneOnce);
      keepLongest(result.inLoops, oneInLoops);
    }
    keepLongest(once, result.once);
    keepLongest(inLoops, result.inLoops);
    result.once = once;
    result.inLoops = inLoops;
  }
  result.tilesOfBlock = tilesOfBlock;
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
  result.storedSectors = double(kernel.bytesWritten) / 32;
  result.footprint = std::ceil(bytes / 32);
  for (const KernelParameter &parameter : kernel.parameters) // of PTX that came without a plan
    if (bytes == 0 && !parameter.alias && !parameter.tensorMap)
      result.footprint += std::ceil(double(parameter.bytes) / 32);
  result.instructions = path.instructions * warps;
  result.specialFunctions = path.specialFunctions * warps;
  result.doubles = path.doubles * warps;
  result.products = path.products * warps;
  result.doubleProducts = path.doubleProducts * warps;
  result.groupProducts = path.groupProducts * warps;
  result.sharedPasses = path.sharedPasses * warps;
  result.atomics = path.atomics * warps;
  result.memoryRoundTrips = path.memoryRoundTrips;
  result.sharedRoundTrips = path.sharedRoundTrips;
  result.chainInstructions = path.chainInstructions;
  result.inTurns = counts.inTurns;
  result.tilesOfBlock = counts.tilesOfBlock;
  return result;
}

} // namespace hloc::lint
