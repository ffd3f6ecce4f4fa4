#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

namespace hloc {
namespace {

constexpr int64_t lanes = 32;

/// A transposition in memory terms.
struct Permutation {
  llvm::SmallVector<int64_t> inputDims;
  llvm::SmallVector<int64_t> permutation;
  bool operator==(const Permutation &) const = default;
};

/// Drops sizes of 1, merges dimensions that are neighbours in both orders.
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

/// Worth a tile: the minor dimension moves, and both minor dimensions fill a good part of one.
bool isTiled(const HloInstruction &instr, const Permutation &memory) {
  unsigned rank = memory.inputDims.size();
  if (rank < 2 || memory.permutation.back() == int64_t(rank) - 1 || deviceBits(instr.shape().elementType()) < 8)
    return false;
  int64_t columns = memory.inputDims.back();
  int64_t rows = memory.inputDims[memory.permutation.back()];
  return (columns >= 16 && rows >= 16) || (columns >= 8 && rows >= 8 && columns * rows >= 8192);
}

bool isHero(const HloInstruction &instr) {
  std::optional<Permutation> memory = memoryPermutation(instr);
  return memory && isTiled(instr, *memory);
}

bool sameArray(const Shape &a, const Shape &b) { return a.sameDims(b) && a.minorToMajor() == b.minorToMajor(); }

/// Tiled transpositions that the roots read through elementwise ops alone.
llvm::SmallVector<const HloInstruction *, 2> findHeroes(const FusionGraph &graph) {
  llvm::SmallVector<const HloInstruction *, 2> heroes;
  std::vector<bool> inPlace(graph.computation().instructions().size(), false);
  for (const FusionRoot &root : graph.roots())
    inPlace[root.instr->id()] = true;
  for (const HloInstruction *instr : llvm::reverse(graph.instructions())) {
    if (!inPlace[instr->id()])
      continue;
    if (isHero(*instr)) {
      heroes.push_back(instr);
    } else if (readsOperandsInPlace(*instr)) {
      for (const HloInstruction *operand : instr->operands())
        inPlace[operand->id()] = true;
    }
  }
  std::reverse(heroes.begin(), heroes.end());
  return heroes;
}

/// Whatever depends on a hero reads it in place and has its shape: then its value in the tile is all that is needed.
bool readInPlace(const FusionGraph &graph, llvm::ArrayRef<const HloInstruction *> heroes,
                 std::vector<bool> &dependent) {
  dependent.assign(graph.computation().instructions().size(), false);
  for (const HloInstruction *hero : heroes)
    dependent[hero->id()] = true;
  for (const HloInstruction *instr : graph.instructions()) {
    bool depends = llvm::any_of(instr->operands(), [&](const HloInstruction *op) { return dependent[op->id()]; });
    if (!depends)
      continue;
    if (dependent[instr->id()] || !readsOperandsInPlace(*instr) || !instr->shape().isArray() ||
        !instr->shape().sameDims(heroes.front()->shape()))
      return false;
    dependent[instr->id()] = true;
  }
  return true;
}

bool assignRoots(const FusionGraph &graph, const std::vector<bool> &dependent, TransposePlan &plan) {
  const HloInstruction &hero = *plan.heroes.front();
  for (auto [i, root] : llvm::enumerate(graph.roots())) {
    if (dependent[root.instr->id()] || sameArray(root.shape, hero.shape())) {
      if (!sameArray(root.shape, hero.shape()))
        return false;
      plan.roots.push_back(i);
    } else if (sameArray(root.shape, hero.operand(0)->shape())) {
      plan.sideRoots.push_back(i);
    } else {
      return false;
    }
    if (deviceBits(root.shape.elementType()) < 8)
      return false;
  }
  return true;
}

/// Narrow elements move in groups of 4 bytes if the sizes allow it and the device stays filled.
void chooseTile(TransposePlan &plan, const TargetInfo &target) {
  unsigned widest = 8;
  for (const HloInstruction *hero : plan.heroes)
    widest = std::max(widest, deviceBits(hero->shape().elementType()));
  int64_t rows = plan.inputDims[plan.rowDim()], columns = plan.inputDims[plan.columnDim()];
  auto tiles = [&] {
    int64_t count = 1;
    for (unsigned i = 0; i < plan.inputDims.size(); ++i)
      count *= plan.tilesAlong(i);
    return count;
  };
  for (unsigned group = std::max(1u, 32 / widest); group >= 1; group /= 2) {
    plan.perThread = group;
    plan.tile = lanes * group;
    bool aligned = rows % group == 0 && columns % group == 0;
    if (group == 1 || (aligned && tiles() >= 2 * int64_t(target.multiprocessors)))
      break;
  }
  plan.block = {plan.perThread == 1 ? 128u : 256u, 1, 1};
  plan.sharedBytes = 0;
  for (const HloInstruction *hero : plan.heroes)
    plan.sharedBytes += plan.tile * (plan.tile + 1) * (deviceBits(hero->shape().elementType()) / 8);
  int64_t count = tiles();
  plan.grid = {count > int64_t(target.maxGridX) ? 0 : uint32_t(count), 1, 1};
}

} // namespace

int64_t TransposePlan::tilesAlong(unsigned dim) const {
  int64_t size = dim == rowDim() || dim == columnDim() ? tile : 1;
  return (inputDims[dim] + size - 1) / size;
}

template <>
std::optional<TransposePlan> matchHero<TransposePlan>(const FusionGraph &graph, const TargetInfo &target,
                                                      std::string &whyNot) {
  TransposePlan plan;
  plan.heroes = findHeroes(graph);
  if (plan.heroes.empty()) {
    whyNot = "no output reads a large transposition elementwise";
    return std::nullopt;
  }
  const HloInstruction &first = *plan.heroes.front();
  Permutation memory = *memoryPermutation(first);
  for (const HloInstruction *hero : plan.heroes)
    if (*memoryPermutation(*hero) != memory || !sameArray(hero->shape(), first.shape()) ||
        !sameArray(hero->operand(0)->shape(), first.operand(0)->shape())) {
      whyNot = "transpositions differ";
      return std::nullopt;
    }
  std::vector<bool> dependent;
  if (!readInPlace(graph, plan.heroes, dependent)) {
    whyNot = "the transposition is also read at other indices";
    return std::nullopt;
  }
  if (!assignRoots(graph, dependent, plan)) {
    whyNot = "an output has neither the shape of the transposition nor of its operand";
    return std::nullopt;
  }
  plan.inputDims = memory.inputDims;
  plan.permutation = memory.permutation;
  chooseTile(plan, target);
  if (plan.sharedBytes > target.staticSharedBytes || plan.grid.x == 0) {
    whyNot = plan.grid.x == 0 ? "too many tiles" : "the tiles do not fit into shared memory";
    return std::nullopt;
  }
  return plan;
}

std::string TransposePlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "transpose: [";
  llvm::interleave(inputDims, os, ",");
  os << "] by {";
  llvm::interleave(permutation, os, ",");
  os << "}, " << heroes.size() << " tile" << (heroes.size() == 1 ? "" : "s") << " of " << tile << "x" << tile << ", "
     << perThread << " per thread; roots ";
  llvm::interleave(roots, os, ",");
  if (!sideRoots.empty()) {
    os << ", side roots ";
    llvm::interleave(sideRoots, os, ",");
  }
  os << "; grid " << grid.x << ", block " << block.x << ", shared " << sharedBytes;
  return result;
}

} // namespace hloc
