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

/// Worth a tile: the minor dimension moves, and both minor dimensions fill a good part of one. The limits are those of
/// XLA's transpose emitter: half a warp of rows and columns, or a quarter if the two together have 8192 elements.
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
LaunchGeometry chooseTile(TransposePlan &plan, const TargetInfo &target) {
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
  plan.rowsPerStep = plan.perThread == 1 ? 4 : 8;
  LaunchGeometry launch;
  launch.block = {uint32_t(lanes * plan.rowsPerStep), 1, 1};
  for (const HloInstruction *hero : plan.heroes)
    launch.sharedBytes += plan.tile * (plan.tile + plan.pad) * (deviceBits(hero->shape().elementType()) / 8);
  int64_t count = tiles();
  launch.grid = {count > int64_t(target.maxGridX) ? 0 : uint32_t(count), 1, 1};
  return launch;
}

} // namespace

int64_t TransposePlan::tilesAlong(unsigned dim) const {
  int64_t size = dim == rowDim() || dim == columnDim() ? tile : 1;
  return (inputDims[dim] + size - 1) / size;
}

template <>
HeroMatch<TransposePlan> matchHero<TransposePlan>(const FusionGraph &graph, const FusionAliasing &,
                                                  const TargetInfo &target) {
  TransposePlan plan;
  auto isElementwise = [](const HloInstruction &instr, unsigned) { return readsOperandsInPlace(instr); };
  plan.heroes = findHeroes(graph, isHero, isElementwise);
  if (plan.heroes.empty())
    return Rejection{"no output reads a large transposition elementwise"};
  const HloInstruction &first = *plan.heroes.front();
  Permutation memory = *memoryPermutation(first);
  for (const HloInstruction *hero : plan.heroes)
    if (*memoryPermutation(*hero) != memory || !sameArray(hero->shape(), first.shape()) ||
        !sameArray(hero->operand(0)->shape(), first.operand(0)->shape()))
      return Rejection{"transpositions differ"};
  std::optional<std::vector<bool>> dependent = dependentInPlace(graph, plan.heroes);
  if (!dependent)
    return Rejection{"the transposition is also read at other indices"};
  if (!assignRoots(graph, *dependent, plan))
    return Rejection{"an output has neither the shape of the transposition nor of its operand"};
  plan.inputDims = memory.inputDims;
  plan.permutation = memory.permutation;
  LaunchGeometry launch = chooseTile(plan, target);
  if (launch.grid.x == 0)
    return Rejection{"too many tiles"};
  if (launch.sharedBytes > target.staticSharedBytes)
    return Rejection{"the tiles do not fit into shared memory"};
  return {std::move(plan), launch};
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
  return result;
}

} // namespace hloc
