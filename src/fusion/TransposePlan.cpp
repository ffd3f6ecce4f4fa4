#include "fusion/TransposeTile.h"
#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <iterator>

namespace hloc {
namespace {

/// A run of so many bits that stays together is a good access by itself.
constexpr int64_t longRunBits = 64 * 8;
/// Fewer elements are soon moved one by one.
constexpr int64_t leastElements = 256;
/// Ops of one thread's straight code, instructions times elements, as in a loop. An estimate.
constexpr int64_t maxOpsPerThread = 2048;

/// A transposition in memory terms.
struct Permutation {
  llvm::SmallVector<int64_t> inputDims;
  llvm::SmallVector<int64_t> permutation;
  bool operator==(const Permutation &) const = default;
};

/// Drops sizes of 1, merges dimensions that are neighbours in both orders: afterwards no result dimension reads the
/// operand dimension that follows the one before it, and the permutation is the identity of one dimension only if
/// nothing moves.
///
///   dims {4,1,8,16}, permutation {2,3,0,1}: 2 and 3 stay neighbours (128 elements), 1 is dropped
///   -> inputDims {4,128}, permutation {1,0}
Permutation normalize(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> permutation) {
  // Runs of result dimensions that read consecutive operand dimensions.
  llvm::SmallVector<std::pair<int64_t, int64_t>> runs; // (first operand dim, size)
  int64_t previous = -2;
  for (int64_t dim : permutation) {
    if (dims[dim] == 1)
      continue;
    int64_t next = previous + 1;
    while (next >= 0 && next < dim && dims[next] == 1)
      ++next;
    if (previous >= 0 && next == dim)
      runs.back().second *= dims[dim];
    else
      runs.push_back({dim, dims[dim]});
    previous = dim;
  }
  llvm::SmallVector<std::pair<int64_t, int64_t>> inOrder = runs;
  llvm::sort(inOrder);
  Permutation result;
  for (auto [dim, size] : inOrder)
    result.inputDims.push_back(size);
  for (auto run : runs)
    result.permutation.push_back(llvm::find(inOrder, run) - inOrder.begin());
  return result;
}

/// The permutation of memory that a transpose, or a copy to another layout, is. Nothing for other instructions.
std::optional<Permutation> memoryPermutation(const HloInstruction &instr) {
  if (instr.opcode() != Opcode::Transpose && instr.opcode() != Opcode::Copy)
    return std::nullopt;
  if (!instr.shape().isArray() || instr.shape().numElements() == 0)
    return std::nullopt;
  const Shape &operand = instr.operand(0)->shape();
  unsigned rank = operand.rank();
  llvm::SmallVector<int64_t> dims(rank), positionOf(rank), permutation;
  for (unsigned i = 0; i < rank; ++i) {
    int64_t logical = operand.minorToMajor()[rank - 1 - i];
    dims[i] = operand.dim(logical);
    positionOf[logical] = i;
  }
  llvm::ArrayRef<int64_t> logicalPermutation = instr.ints(AttributeKey::Dimensions);
  for (int64_t dim : llvm::reverse(instr.shape().minorToMajor()))
    permutation.push_back(positionOf[instr.opcode() == Opcode::Transpose ? logicalPermutation[dim] : dim]);
  return normalize(dims, permutation);
}

/// Worth a tile: a loop over the result would read runs that are no whole sectors.
bool isTiled(const HloInstruction &instr, const Permutation &memory) {
  unsigned rank = memory.inputDims.size();
  if (rank < 2 || instr.shape().numElements() < leastElements)
    return false;
  if (memory.permutation.back() != int64_t(rank) - 1)
    return true;
  int64_t runBits = memory.inputDims.back() * deviceBits(instr.shape().elementType());
  return runBits < longRunBits && runBits % sectorBits != 0;
}

bool isHero(const HloInstruction &instr) {
  std::optional<Permutation> memory = memoryPermutation(instr);
  return memory && isTiled(instr, *memory);
}

/// Heroes that are one permutation of memory, and the kernel that is made of them.
struct Group {
  Permutation memory;
  TransposePlan plan;
  std::optional<Places<Own>> dependent = std::nullopt; ///< what reads the heroes
  bool makes(const FusionRoot &root) const { return dependent->at(*root.instr); }
};

std::vector<Group> groupsOf(llvm::ArrayRef<const HloInstruction *> heroes) {
  std::vector<Group> groups;
  for (const HloInstruction *hero : heroes) {
    Permutation memory = *memoryPermutation(*hero);
    auto own = llvm::find_if(groups, [&](const Group &group) { return group.memory == memory; });
    if (own == groups.end()) {
      groups.emplace_back().memory = memory;
      own = std::prev(groups.end());
    }
    own->plan.heroes.push_back(hero);
  }
  return groups;
}

uint64_t bytesOf(const Group &group) {
  uint64_t bytes = 0;
  for (const HloInstruction *hero : group.plan.heroes)
    bytes += hero->shape().byteSize();
  return bytes;
}

/// A kernel more costs a launch, as long as a device takes to move a few times so many bytes; transposed by a loop they
/// are read a few times.
bool isWorthKernel(const Group &group) { return bytesOf(group) >= 256 * 1024; }

/// Adds an output that a kernel of the group's tiles can make: outputs that depend on a tile, or have the result's
/// shape, are made when it is read; others when it is filled. False if it cannot.
bool addRoot(const FusionGraph &graph, unsigned number, Group &group) {
  const FusionRoot &root = graph.roots()[number];
  const HloInstruction &hero = *group.plan.heroes.front();
  if (group.makes(root))
    group.plan.roots.push_back(number);
  else if (sameArray(root.shape, hero.operand(0)->shape()))
    group.plan.sideRoots.push_back(number);
  else if (sameArray(root.shape, hero.shape()))
    group.plan.roots.push_back(number);
  else if (root.shape.numElements() == hero.shape().numElements())
    group.plan.sideRoots.push_back(number);
  else
    return false;
  return true;
}

/// Gives each output to one of the groups, and drops those that are left without. What reads transpositions of several
/// groups finds all but the largest in memory. Returns why there are none.
const char *assignRoots(const FusionGraph &graph, std::vector<Group> &groups) {
  if (groups.size() > 1 && llvm::none_of(groups, isWorthKernel))
    return "transpositions differ, and none is worth a kernel of its own";
  llvm::erase_if(groups, [&](Group &group) {
    group.dependent = dependentInOrder(graph, group.plan.heroes);
    return group.dependent->firstElsewhere() != nullptr;
  });
  if (groups.empty())
    return "the transposition is also read at other indices";
  std::vector<unsigned> others;
  for (unsigned number = 0; number < graph.roots().size(); ++number) {
    Group *own = nullptr;
    for (Group &group : groups)
      if (group.makes(graph.roots()[number]) && (!own || bytesOf(*own) < bytesOf(group)))
        own = &group;
    if (own)
      addRoot(graph, number, *own);
    else
      others.push_back(number);
  }
  llvm::erase_if(groups, [](const Group &group) { return group.plan.roots.empty(); });
  for (unsigned number : others)
    if (llvm::none_of(groups, [&](Group &group) { return addRoot(graph, number, group); }))
      return "an output has another number of elements than the transposition";
  // Tiles that nobody reads are not filled.
  for (Group &group : groups) {
    llvm::SmallVector<const HloInstruction *> roots;
    for (unsigned number : group.plan.roots)
      roots.push_back(graph.roots()[number].instr);
    llvm::BitVector isRead = readFor(graph, roots, group.plan.heroes);
    llvm::erase_if(group.plan.heroes, [&](const HloInstruction *hero) { return !isRead[hero->id()]; });
  }
  return nullptr;
}

/// What is moved on one side: `stored` outputs, and the parameters of as many elements that are read for them and for
/// `others`. What the tiles hold if there are none.
TransposeStreams streamsOf(const FusionGraph &graph, const TransposePlan &plan, llvm::ArrayRef<unsigned> stored,
                           llvm::ArrayRef<const HloInstruction *> others) {
  TransposeStreams streams;
  llvm::SmallVector<const HloInstruction *> roots(others);
  for (unsigned root : stored) {
    streams.addStored(graph.roots()[root].shape);
    roots.push_back(graph.roots()[root].instr);
  }
  const Shape &hero = plan.heroes.front()->shape();
  llvm::BitVector isRead = readFor(graph, roots, plan.heroes);
  bool any = !stored.empty();
  for (const HloInstruction *parameter : graph.parameters())
    if (isRead[parameter->id()] && parameter->shape().numElements() == hero.numElements()) {
      streams.addLoaded(parameter->shape());
      any = true;
    }
  if (!any)
    streams.addLoaded(hero);
  return streams;
}

TileChoice choosePlan(const FusionGraph &graph, Group &group, const TargetInfo &target) {
  TransposePlan &plan = group.plan;
  plan.inputDims = group.memory.inputDims;
  plan.permutation = group.memory.permutation;
  llvm::SmallVector<const HloInstruction *> filled;
  for (const HloInstruction *hero : plan.heroes)
    filled.push_back(hero->operand(0));
  int64_t maxElements = std::max<int64_t>(1, maxOpsPerThread / int64_t(graph.instructions().size()));
  return chooseTile(plan, streamsOf(graph, plan, plan.sideRoots, filled), streamsOf(graph, plan, plan.roots, {}),
                    maxElements, target);
}

} // namespace

template <>
HeroMatch<TransposePlan> matchHero<TransposePlan>(const FusionGraph &graph, const FusionAliasing &,
                                                  const TargetInfo &target, PlanContext &) {
  std::vector<const HloInstruction *> heroes;
  llvm::append_range(heroes, findHeroes(graph, isHero, readsSamePosition));
  if (heroes.empty())
    return Rejection{"no output reads a large transposition elementwise"};
  std::vector<Group> groups = groupsOf(heroes);
  if (const char *why = assignRoots(graph, groups))
    return Rejection{why};
  std::vector<FollowingKernel> kernels;
  for (Group &group : groups) {
    TileChoice choice = choosePlan(graph, group, target);
    if (choice.rejection)
      return Rejection{choice.rejection};
    kernels.push_back({std::move(group.plan), choice.launch});
  }
  OtherSteps others;
  llvm::append_range(others.following, llvm::make_range(std::make_move_iterator(kernels.begin() + 1),
                                                        std::make_move_iterator(kernels.end())));
  return {std::get<TransposePlan>(std::move(kernels.front().plan)), kernels.front().launch, std::move(others)};
}

/// Never: what one block reads another writes.
template <> bool mayTakePlace<TransposePlan>(const TransposePlan &, const FusionGraph &, unsigned, unsigned) {
  return false;
}

/// Tiles are filled at the indices of the operand, and read at those of the transposition.
template <>
ComputedSpaces computedSpaces<TransposePlan>(const TransposePlan &plan, const FusionGraph &graph,
                                             mlir::MLIRContext *context) {
  ComputedSpaces result;
  result.kept.append(plan.heroes.begin(), plan.heroes.end());
  ComputedSpace fill, read;
  auto add = [&](ComputedSpace &space, const Shape &points, const HloInstruction *instr, const Shape &shape) {
    space.values.push_back({instr, bitcastIndexing(points, shape, context)});
  };
  const Shape &operandShape = plan.heroes.front()->operand(0)->shape(), &heroShape = plan.heroes.front()->shape();
  for (const HloInstruction *hero : plan.heroes)
    add(fill, operandShape, hero->operand(0), hero->operand(0)->shape());
  for (unsigned root : plan.sideRoots)
    add(fill, operandShape, graph.roots()[root].instr, graph.roots()[root].shape);
  for (unsigned root : plan.roots)
    add(read, heroShape, graph.roots()[root].instr, graph.roots()[root].shape);
  result.spaces = {std::move(fill), std::move(read)};
  return result;
}

/// Another kernel's outputs, and what is read for them, are its own.
template <> KernelTraffic trafficOf<TransposePlan>(const TransposePlan &plan, const FusionGraph &graph) {
  KernelTraffic traffic;
  llvm::SmallVector<const HloInstruction *> roots;
  for (llvm::ArrayRef<unsigned> numbers : {llvm::ArrayRef(plan.roots), llvm::ArrayRef(plan.sideRoots)})
    for (unsigned number : numbers) {
      roots.push_back(graph.roots()[number].instr);
      traffic.written += graph.roots()[number].shape.byteSize();
    }
  llvm::BitVector isRead = readFor(graph, roots);
  for (const HloInstruction *parameter : graph.parameters())
    traffic.read += isRead[parameter->id()] ? parameter->shape().byteSize() : 0;
  return traffic;
}

/// Elements that are read of each tile at the same time, and turned in registers; what is computed of them is begun
/// before all are stored. Each tile has indices of its own.
template <> unsigned plannedRegisters<TransposePlan>(const TransposePlan &plan) {
  constexpr unsigned ofIndices = 32, most = 128;
  unsigned elements = plan.tileVector * plan.outputVector, registers = ofIndices;
  for (const HloInstruction *hero : plan.heroes)
    registers += elements * TransposePlan::tileBits(*hero) / 32;
  bool computes = llvm::any_of(plan.heroes.front()->parent()->instructions(), [](const HloInstruction *instr) {
    return isElementwise(instr->opcode()) && instr->opcode() != Opcode::Copy;
  });
  registers += computes ? elements : 0;
  unsigned least = KernelSpec::usualRegisters + ofIndices * unsigned(plan.heroes.size() - 1);
  return std::clamp(registers, std::min(least, most), most);
}

std::string TransposePlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "transpose: [";
  llvm::interleave(inputDims, os, ",");
  os << "] by {";
  llvm::interleave(permutation, os, ",");
  os << "}, " << heroes.size() << (heroes.size() == 1 ? " tile of " : " tiles of ");
  llvm::interleave(box, os, "x");
  if (inOutputOrder)
    os << " in the result's order";
  if (pad != 0)
    os << ", " << pad << " free after " << period;
  os << "; vectors of " << inputVector << " in, " << outputVector << " out";
  if (tileVector != 1)
    os << ", " << tileVector << " from the tile";
  os << "; roots ";
  llvm::interleave(roots, os, ",");
  if (!sideRoots.empty()) {
    os << ", side roots ";
    llvm::interleave(sideRoots, os, ",");
  }
  if (unsigned registers = plannedRegisters(*this); registers > KernelSpec::usualRegisters)
    os << ", up to " << registers << " registers for what is read of all tiles at once";
  return result;
}

} // namespace hloc
