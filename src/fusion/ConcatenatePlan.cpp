#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>

namespace hloc {
namespace {

bool sameSegments(const HloInstruction &a, const HloInstruction &b) {
  return sameArray(a.shape(), b.shape()) && a.numOperands() == b.numOperands() &&
         a.ints(AttributeKey::Dimensions) == b.ints(AttributeKey::Dimensions) &&
         llvm::all_of(llvm::zip(a.operands(), b.operands()),
                      [](auto pair) { return std::get<0>(pair)->shape().sameDims(std::get<1>(pair)->shape()); });
}

/// The result in memory: rows, each made of a run of every operand.
struct Rows {
  int64_t count = 1;     ///< product of the dimensions that are major of the concatenated one
  int64_t inner = 1;     ///< of those that are minor of it
  int64_t rowLength = 0; ///< elements of a row
  int64_t runOf(int64_t size) const { return size * inner; }

  Rows(const Shape &shape, int64_t dimension) {
    int64_t *product = &inner;
    for (int64_t dim : shape.minorToMajor()) {
      if (dim == dimension)
        product = &count;
      else
        *product *= shape.dim(dim);
    }
    rowLength = runOf(shape.dim(dimension));
  }
  /// The largest power of two that divides all positions where the segment's groups of elements begin and must end.
  int64_t alignment(int64_t offset, int64_t size) const {
    int64_t divisor = runOf(offset);
    if (count > 1 && runOf(size) != rowLength)
      divisor = std::gcd(std::gcd(divisor, runOf(size)), rowLength);
    return divisor == 0 ? int64_t(1) << 32 : divisor & -divisor;
  }
};

/// A sector in which two runs meet is written by two blocks, while a loop's loads are spread over operands. By the
/// emulator's counters a concatenate of two f32 operands is on a par with the loop at runs of 3 and 4 elements, moves
/// half as many sectors at 5 to 9, and a quarter for 17 bytes: half a sector each is where it begins.
bool sharesSectors(const Rows &rows, const ConcatenatePlan &plan, unsigned bits) {
  if (rows.count == 1 || plan.segments.size() == 1)
    return false;
  int64_t shared = llvm::count_if(plan.segments, [&](const ConcatenateSegment &segment) {
    return rows.alignment(segment.offset, plan.shapeOf(segment).dim(plan.dimension())) * bits % sectorBits != 0;
  });
  return shared * sectorBits > 2 * rows.rowLength * bits;
}

} // namespace

Shape ConcatenatePlan::shapeOf(const ConcatenateSegment &segment) const {
  const HloInstruction &hero = *heroes.front();
  return Shape::array(hero.shape().elementType(), hero.operand(segment.operand)->shape().dims())
      .withLayout(hero.shape().minorToMajor());
}

template <>
HeroMatch<ConcatenatePlan> matchHero<ConcatenatePlan>(const FusionGraph &graph, const FusionAliasing &,
                                                      const TargetInfo &target) {
  ConcatenatePlan plan;
  auto isConcatenate = [](const HloInstruction &instr) { return instr.opcode() == Opcode::Concatenate; };
  plan.heroes = findHeroes(graph, isConcatenate, readsSamePosition);
  if (plan.heroes.empty())
    return Rejection{"no output reads a concatenate elementwise"};
  const HloInstruction &first = *plan.heroes.front();
  for (const HloInstruction *hero : plan.heroes)
    if (!sameSegments(*hero, first))
      return Rejection{"concatenates differ"};
  std::optional<std::vector<bool>> dependent = dependentInOrder(graph, plan.heroes);
  if (!dependent)
    return Rejection{"the concatenate is also read at other indices"};
  for (const FusionRoot &root : graph.roots())
    if (!(*dependent)[root.instr->id()] && !sameArray(root.shape, first.shape()))
      return Rejection{"an output has another shape than the concatenate"};

  Rows rows(first.shape(), plan.dimension());
  unsigned narrowest = narrowestOutput(graph);
  llvm::SmallVector<unsigned> roots = llvm::to_vector(llvm::seq<unsigned>(0, graph.roots().size()));
  int64_t offset = 0;
  for (auto [i, operand] : llvm::enumerate(first.operands())) {
    int64_t size = operand->shape().dim(plan.dimension()), elements = operand->shape().numElements();
    if (elements > 0) {
      int64_t alignment = rows.alignment(offset, size);
      if (alignment * narrowest < 8)
        return Rejection{"operands meet inside a byte"};
      unsigned perThread = elementsPerThread(roots, elements, first.shape().numElements(), graph, target);
      perThread = unsigned(std::min<int64_t>(perThread, alignment));
      plan.segments.push_back({{elements, perThread}, unsigned(i), offset});
    }
    offset += size;
  }
  if (plan.segments.empty())
    return Rejection{"the concatenate has no elements"};
  if (sharesSectors(rows, plan, narrowest))
    return Rejection{"its rows are made of runs so short that two often meet inside 32 bytes"};
  llvm::SmallVector<BlockSegment *> segments;
  for (ConcatenateSegment &segment : plan.segments)
    segments.push_back(&segment);
  std::optional<LaunchGeometry> launch = assignBlocks(segments, graph, target);
  if (!launch)
    return Rejection{"too many blocks"};
  return {std::move(plan), *launch};
}

/// Never the place of an operand, whose elements move. That of a parameter which the outputs read elementwise beside
/// the concatenate: each element is overwritten by the thread that alone reads it, after it has read it.
template <>
bool mayTakePlace<ConcatenatePlan>(const ConcatenatePlan &, const FusionGraph &graph, unsigned root,
                                   unsigned parameter) {
  return mayOverwriteElements(graph, root, parameter);
}

/// Each operand at its own indices, outputs at those of the result.
template <>
ComputedSpaces computedSpaces<ConcatenatePlan>(const ConcatenatePlan &plan, const FusionGraph &graph,
                                               mlir::MLIRContext *context) {
  ComputedSpaces result;
  result.kept.append(plan.heroes.begin(), plan.heroes.end());
  for (const ConcatenateSegment &segment : plan.segments) {
    ComputedSpace &space = result.spaces.emplace_back();
    for (const HloInstruction *hero : plan.heroes) {
      const HloInstruction *operand = hero->operand(segment.operand);
      space.values.push_back({operand, IndexingMap::identity(context, operand->shape().dims())});
    }
  }
  ComputedSpace &outputs = result.spaces.emplace_back();
  for (const FusionRoot &root : graph.roots())
    outputs.values.push_back({root.instr, bitcastIndexing(plan.heroes.front()->shape(), root.shape, context)});
  return result;
}

/// Neighbours that are alike in one entry.
std::string ConcatenatePlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "concatenate:";
  llvm::ListSeparator separator(";");
  for (size_t i = 0; i < segments.size();) {
    const ConcatenateSegment &segment = segments[i];
    size_t end = i + 1;
    while (end < segments.size() && segments[end].elements == segment.elements &&
           segments[end].perThread == segment.perThread)
      ++end;
    os << separator << " operand" << (end - i == 1 ? " " : "s ") << segment.operand;
    if (end - i > 1)
      os << "-" << segments[end - 1].operand;
    os << ", " << segment.elements << " elements, " << segment.perThread << " per thread";
    if (segment.rounds > 1)
      os << " in " << segment.rounds << " rounds";
    os << ", " << segment.blocks << (segment.blocks == 1 ? " block" : " blocks") << (end - i == 1 ? "" : " each");
    i = end;
  }
  return result;
}

} // namespace hloc
