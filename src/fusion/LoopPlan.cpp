#include "fusion/HeroMatch.h"
#include "fusion/LoopAccesses.h"
#include "fusion/OpWork.h"
#include "hloc/fusion/HloIndexing.h"

#include "fmt/format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hloc {
namespace {

/// Ops of one thread's straight code, instructions times elements: more elements per thread than this allows only cost
/// compile time and registers. An estimate, not measured: it leaves 8 elements to a fusion of 256 instructions.
constexpr int64_t maxOpsPerThread = 2048;

/// A kernel that has more work than this fills should not be dealt to fewer blocks.
constexpr int64_t blocksPerMultiprocessor = 2;
/// What a multiprocessor should have under way of loads to hide their latency, and how many groups of neighbours a
/// thread takes for it. Little's law: 3.35 TB/s / 132 * 700 ns = 17 KiB on an H100, doubled because loads come in
/// bursts.
constexpr int64_t bytesInFlight = 32 * 1024;
constexpr unsigned maxRounds = 8, roundsOfShortProgram = 4;
/// Of a short program dealt in rounds all is under way at once, however it is dealt, so that fewer blocks only have to
/// be shared out about evenly: what multiprocessors have on average, of what the busiest has.
constexpr double leastShare = 0.8;
/// Ops of one thread's straight code up to which it takes several groups: for the loads, for the instructions saved.
constexpr int64_t maxOpsWithRounds = 512, maxOpsOfShortProgram = 256;
/// Groups that touch at most so many times the sectors that the best ones do are as good: they take fewer instructions.
constexpr double sectorTolerance = 1.03;

/// Ops that compute much more per element than they move: one element a thread.
bool isSequentialLoop(const HloInstruction &instr) { return hasTrait(instr.opcode(), OpcodeTrait::Contracts); }
bool hasSequentialLoop(const FusionGraph &graph) {
  return llvm::any_of(graph.instructions(), [](const HloInstruction *instr) { return isSequentialLoop(*instr); });
}

/// Chooses how the elements of a nest are dealt to threads.
class NestPlanner {
public:
  NestPlanner(LoopNest &nest, const FusionGraph &graph, const TargetInfo &target, PlanContext &plans)
      : nest(nest), graph(graph), target(target), plans(plans) {}

  void run() {
    unsigned least = 8 / narrowestOutput();
    nest.perThread = least;
    if (const unsigned asked = plans.choices.vector) {
      nest.perThread = std::clamp(asked, least, maxElementsOfGroup);
      return;
    }
    // Work for few threads, or much of it for each element: nothing to choose.
    std::optional<int64_t> computedFrom = elementsOfStraightCode(graph.instructions());
    if (!fills(2 * least, blocksPerMultiprocessor) || !computedFrom)
      return;
    opsOfElement = *computedFrom * int64_t(graph.instructions().size());
    LoopAccesses accesses(graph, nest.roots, plans);
    unsigned most = std::max(widest(accesses), least);
    accesses.sample(most);
    nest.perThread = fewestSectors(accesses, least, most);
    nest.rounds = chooseRounds(accesses);
    nest.lanesOfRound = chooseLanes(accesses);
    choosePartsOfRounds();
  }

private:
  unsigned narrowestOutput() const {
    unsigned bits = 8;
    for (unsigned root : nest.roots)
      bits = std::min(bits, deviceBits(graph.roots()[root].shape.elementType()));
    return bits;
  }

  /// Has each multiprocessor so many blocks whose threads have so many elements?
  bool fills(int64_t elementsOfThread, int64_t blocks) const {
    return nest.elements / (elementsOfThread * threadsPerLoopBlock) >= blocks * int64_t(target.multiprocessors);
  }
  /// Does each have so many, and none far more than the others?
  bool fillsEvenly(int64_t elementsOfThread, int64_t blocks) const {
    double ofEach = double(llvm::divideCeil(nest.elements, elementsOfThread * threadsPerLoopBlock)) /
                    double(target.multiprocessors);
    return fills(elementsOfThread, blocks) && ofEach >= leastShare * std::ceil(ofEach);
  }
  int64_t ops(unsigned elements) const { return int64_t(elements) * opsOfElement; }

  /// As many elements as fill an access to the narrowest stream, unless there are too few to fill the device.
  unsigned widest(const LoopAccesses &accesses) const {
    unsigned count = std::min(target.maxVectorBytes * 8 / accesses.narrowest(), maxElementsOfGroup);
    while (count > 1 && (!fills(count, blocksPerMultiprocessor) || ops(count) > maxOpsPerThread))
      count /= 2;
    return count;
  }

  /// The largest group that touches about as few sectors as the best does.
  unsigned fewestSectors(const LoopAccesses &accesses, unsigned least, unsigned most) {
    std::vector<std::vector<double>> byGroup; // of each array, then of all
    double best = 0;
    for (unsigned group = least; group <= most; group *= 2) {
      std::vector<double> &own = byGroup.emplace_back();
      for (size_t i = 0; i < accesses.size(); ++i)
        own.push_back(accesses.sectors(i, group, target));
      own.push_back(std::accumulate(own.begin(), own.end(), 0.0));
      best = group == least ? own.back() : std::min(best, own.back());
    }
    size_t chosen = byGroup.size() - 1;
    while (byGroup[chosen].back() > best * sectorTolerance)
      --chosen;
    if (chosen + 1 < byGroup.size())
      explain(accesses, byGroup[chosen], byGroup[chosen + 1], least << (chosen + 1));
    return least << chosen;
  }

  /// Which array speaks most against groups of `rejected`.
  void explain(const LoopAccesses &accesses, const std::vector<double> &own, const std::vector<double> &others,
               unsigned rejected) {
    size_t most = 0;
    for (size_t i = 0; i < accesses.size(); ++i)
      if (others[i] - own[i] > others[most] - own[most])
        most = i;
    nest.reason = fmt::format("{} would touch {:.1f} times the sectors of {}", rejected, others[most] / own[most],
                              accesses.nameOf(most));
  }

  /// Rounds until enough loads are under way, and, where there are blocks for it, a few more: what a thread does once
  /// is most of a short program.
  unsigned chooseRounds(const LoopAccesses &accesses) const {
    int64_t bytes = int64_t(accesses.streamedBits()) * nest.perThread * target.threadsPerMultiprocessor / 8;
    // As many vectors, of however many accesses.
    unsigned accessBits = std::max(1u, nest.perThread * accesses.narrowest());
    unsigned most =
        std::clamp(roundsOfShortProgram * target.maxVectorBytes * 8 / accessBits, roundsOfShortProgram, maxRounds);
    auto wants = [&](unsigned rounds) {
      bool waits = bytes > 0 && bytes * rounds / 2 < bytesInFlight && rounds <= maxRounds &&
                   fills(int64_t(rounds) * nest.perThread, blocksPerMultiprocessor);
      bool isShort = rounds <= most && ops(rounds * nest.perThread) <= maxOpsOfShortProgram &&
                     fillsEvenly(int64_t(rounds) * nest.perThread, blocksPerMultiprocessor);
      return (waits || isShort) && ops(rounds * nest.perThread) <= maxOpsWithRounds;
    };
    unsigned rounds = 1;
    while (wants(2 * rounds))
      rounds *= 2;
    return rounds;
  }

  /// As many as keep a thread in one row, if that is of use; a line or more, as a warp's access should have.
  uint32_t chooseLanes(const LoopAccesses &accesses) const {
    constexpr int64_t lineBits = 128 * 8;
    int64_t row = rowSize(), ofThread = int64_t(nest.rounds) * nest.perThread;
    if (nest.rounds == 1 || row % ofThread != 0 || !accesses.readsOneForRow(row))
      return threadsPerLoopBlock;
    int64_t lanes = row / ofThread;
    lanes = std::min<int64_t>(lanes & -lanes, threadsPerLoopBlock);
    return lanes * nest.perThread * accesses.narrowest() < lineBits ? threadsPerLoopBlock : uint32_t(lanes);
  }

  int64_t rowSize() const {
    const Shape &shape = graph.roots()[nest.roots.front()].shape;
    return shape.rank() == 0 ? 1 : shape.dim(shape.minorToMajor().front());
  }

  /// Rounds that are parts of the array, if that saves computing indices. A few are better than twice as many that are
  /// none.
  void choosePartsOfRounds() {
    nest.elementsOfRound = partsOfRounds(nest.rounds);
    if (nest.elementsOfRound > 0 || nest.rounds / 2 < roundsOfShortProgram)
      return;
    nest.elementsOfRound = partsOfRounds(nest.rounds / 2);
    if (nest.elementsOfRound > 0)
      nest.rounds /= 2;
  }

  /// Elements of a round that is a part of the array, or 0: indices of rounds side by side are divided by sizes that
  /// are no powers of two, each for itself.
  int64_t partsOfRounds(int64_t rounds) const {
    const Shape &shape = graph.roots()[nest.roots.front()].shape;
    if (rounds == 1 || nest.lanesOfRound < threadsPerLoopBlock || nest.elements % (rounds * nest.perThread) != 0)
      return 0;
    int64_t part = nest.elements / rounds, row = rowSize();
    bool isCheap = llvm::all_of(shape.minorToMajor().drop_back(),
                                [&](int64_t dim) { return llvm::isPowerOf2_64(uint64_t(shape.dim(dim))); }) ||
                   llvm::all_of(graph.instructions(), [](const HloInstruction *instr) {
                     return instr->opcode() == Opcode::Parameter || readsOperandsInPlace(*instr);
                   });
    bool isOneRow = row % (rounds * nest.perThread * int64_t(threadsPerLoopBlock)) == 0;
    return isCheap || isOneRow || part % row != 0 ? 0 : part;
  }

  LoopNest &nest;
  const FusionGraph &graph;
  const TargetInfo &target;
  PlanContext &plans;
  int64_t opsOfElement = 0;
};

} // namespace

unsigned elementsPerThread(llvm::ArrayRef<unsigned> roots, int64_t elements, int64_t elementsOfKernel,
                           const FusionGraph &graph, const TargetInfo &target) {
  StreamWidths widths;
  unsigned narrowestOutput = 8;
  for (unsigned root : roots) {
    widths.add(graph.roots()[root].shape);
    narrowestOutput = std::min(narrowestOutput, deviceBits(graph.roots()[root].shape.elementType()));
  }
  for (const HloInstruction *parameter : graph.parameters())
    if (graph.isLive(*parameter) && parameter->shape().numElements() == elements)
      widths.add(parameter->shape());

  unsigned least = 8 / narrowestOutput;
  unsigned count = std::min(widths.elements(target), std::max(1u, target.maxVectorBytes * 8 / widths.widest));
  if (hasSequentialLoop(graph))
    count = 1;
  int64_t oneBlockEach = int64_t(target.multiprocessors) * threadsPerLoopBlock;
  while (count > least && (elementsOfKernel / count < oneBlockEach ||
                           int64_t(count) * int64_t(graph.instructions().size()) > maxOpsPerThread))
    count /= 2;
  return std::max(count, least);
}

template <>
HeroMatch<LoopPlan> matchHero<LoopPlan>(const FusionGraph &graph, const FusionAliasing &, const TargetInfo &target,
                                        PlanContext &plans) {
  LoopPlan plan;
  for (auto [i, root] : llvm::enumerate(graph.roots())) {
    int64_t elements = root.shape.numElements();
    if (elements == 0)
      continue;
    auto same = llvm::find_if(plan.nests, [&](const LoopNest &nest) { return nest.elements == elements; });
    if (same == plan.nests.end()) {
      plan.nests.emplace_back().elements = elements;
      same = std::prev(plan.nests.end());
    }
    same->roots.push_back(i);
  }
  int64_t threads = 0;
  for (LoopNest &nest : plan.nests) {
    NestPlanner(nest, graph, target, plans).run();
    threads = std::max(threads, nest.threads());
  }
  return {std::move(plan), launchOf(threads, target)};
}

/// Each element is overwritten by the thread that alone reads it, after it has read it: outputs of one array are in one
/// nest, and computed together.
template <>
bool mayTakePlace<LoopPlan>(const LoopPlan &plan, const FusionGraph &graph, unsigned root, unsigned parameter) {
  auto computes = [&](const LoopNest &nest) { return llvm::is_contained(nest.roots, root); };
  return llvm::any_of(plan.nests, computes) && mayOverwriteElements(graph, root, parameter);
}

/// The outputs of a nest at the indices of its first.
template <>
ComputedSpaces computedSpaces<LoopPlan>(const LoopPlan &plan, const FusionGraph &graph, mlir::MLIRContext *context) {
  ComputedSpaces result;
  for (const LoopNest &nest : plan.nests) {
    const Shape &first = graph.roots()[nest.roots.front()].shape;
    ComputedSpace &space = result.spaces.emplace_back();
    for (unsigned root : nest.roots)
      space.values.push_back({graph.roots()[root].instr, bitcastIndexing(first, graph.roots()[root].shape, context)});
  }
  return result;
}

template <> KernelTraffic trafficOf<LoopPlan>(const LoopPlan &, const FusionGraph &graph) {
  return wholeTraffic(graph);
}

template <> unsigned plannedRegisters<LoopPlan>(const LoopPlan &) { return KernelSpec::usualRegisters; }

int64_t LoopNest::threads() const {
  int64_t groups = (elements + perThread - 1) / perThread;
  if (rounds == 1)
    return groups;
  if (elementsOfRound > 0)
    return int64_t(llvm::alignTo(uint64_t(elementsOfRound / perThread), threadsPerLoopBlock));
  int64_t ofBlock = int64_t(threadsPerLoopBlock) * rounds;
  return (groups + ofBlock - 1) / ofBlock * threadsPerLoopBlock;
}

std::string LoopPlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "loop:";
  llvm::ListSeparator separator(";");
  for (const LoopNest &nest : nests) {
    os << separator << " roots ";
    llvm::interleave(nest.roots, os, ",");
    os << ", " << nest.elements << " elements, " << nest.perThread << " per thread";
    if (nest.rounds > 1)
      os << " in " << nest.rounds << (nest.elementsOfRound > 0 ? " parts" : " rounds");
    if (nest.lanesOfRound < threadsPerLoopBlock)
      os << " of " << nest.lanesOfRound << " threads";
    if (!nest.reason.empty())
      os << " (" << nest.reason << ")";
  }
  return result;
}

} // namespace hloc
