#include "fusion/HeroMatch.h"
#include "fusion/ReadMaps.h"
#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "mlir/IR/MLIRContext.h"

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

// --- operands that are made together

/// Instructions times elements of one thread's straight code up to which it makes several operands. An estimate.
constexpr size_t maxOpsTogether = 1024;
/// An instruction read in more ways than this is followed in so many.
constexpr size_t maxReads = 8;

/// Parameters with at least half as many elements as the segment has, as they are read for its elements and for what
/// outputs are made of besides.
class SegmentReads {
public:
  SegmentReads(const FusionGraph &graph, const ConcatenatePlan &plan, const ConcatenateSegment &segment,
               PlanContext &plans)
      : context(plans.mlir()) {
    ReadMaps maps(graph, plans, maxReads);
    const unsigned space = maps.newSpace();
    const HloInstruction &hero = *plan.heroes.front();
    llvm::ArrayRef<int64_t> dims = hero.operand(segment.operand)->shape().dims();
    for (const FusionRoot &root : graph.roots()) {
      IndexingMap map = compose(moved(dims, plan, segment.offset), bitcastIndexing(hero.shape(), root.shape, context));
      map.simplify();
      if (!map.isKnownEmpty())
        maps.read(*root.instr, {space, maps.maps().intern(std::move(map))});
    }
    const unsigned toOperand = maps.maps().intern(moved(hero.shape().dims(), plan, -segment.offset));
    maps.follow([&](const HloInstruction &instr, llvm::ArrayRef<ReadMaps::Read> own) {
      for (const ReadMaps::Read &read : own) {
        if (read.space != space)
          continue;
        if (llvm::is_contained(plan.heroes, &instr)) {
          const unsigned map = maps.maps().composed(read.map, toOperand).map;
          if (!maps.maps()[map].isKnownEmpty())
            maps.read(*instr.operand(segment.operand), {space, map});
        } else if (instr.opcode() == Opcode::Parameter) {
          if (2 * instr.shape().numElements() >= segment.elements)
            reads.push_back({&instr, maps.maps()[read.map]});
        } else if (instr.shape().isArray()) {
          maps.readOperands(instr, read);
        }
      }
    });
  }
  bool shares(const SegmentReads &other) const {
    return llvm::any_of(reads, [&](const auto &read) { return llvm::is_contained(other.reads, read); });
  }

private:
  /// The indices, `offset` further along the concatenated dimension.
  IndexingMap moved(llvm::ArrayRef<int64_t> dims, const ConcatenatePlan &plan, int64_t offset) const {
    llvm::SmallVector<mlir::AffineExpr> results;
    for (unsigned i = 0; i < dims.size(); ++i)
      results.push_back(mlir::getAffineDimExpr(i, context) + (i == plan.dimension() ? offset : 0));
    return IndexingMap::fromSizes(mlir::AffineMap::get(dims.size(), 0, results, context), dims);
  }

  mlir::MLIRContext *context;
  std::vector<std::pair<const HloInstruction *, IndexingMap>> reads;
};

/// By segment, the first one whose blocks make it, too: threads that make elements of several operands, because these
/// are made of the same values, load them once.
///
///   concatenate(a * x - b * y, a * y + b * x): both halves from one load of a, b, x and y
std::vector<size_t> madeTogether(const FusionGraph &graph, const ConcatenatePlan &plan, const TargetInfo &target,
                                 PlanContext &plans) {
  std::vector<size_t> leaders(plan.segments.size());
  std::iota(leaders.begin(), leaders.end(), size_t(0));
  const HloInstruction &hero = *plan.heroes.front();
  std::vector<std::optional<SegmentReads>> reads(plan.segments.size());
  auto readsOf = [&](size_t number) -> const SegmentReads & {
    if (!reads[number])
      reads[number].emplace(graph, plan, plan.segments[number], plans);
    return *reads[number];
  };
  std::vector<size_t> members(plan.segments.size(), 1);
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const ConcatenateSegment &own = plan.segments[i];
    for (size_t leader = 0; leader < i && leaders[i] == i; ++leader) {
      const ConcatenateSegment &first = plan.segments[leader];
      bool fills = own.elements / own.perThread >= int64_t(target.multiprocessors) * threadsPerLoopBlock;
      bool isShort = (members[leader] + 1) * own.perThread * graph.instructions().size() <= maxOpsTogether;
      if (leaders[leader] != leader || !fills || !isShort || first.perThread != own.perThread ||
          !hero.operand(first.operand)->shape().sameDims(hero.operand(own.operand)->shape()) ||
          !readsOf(leader).shares(readsOf(i)))
        continue;
      leaders[i] = leader;
      ++members[leader];
    }
  }
  return leaders;
}

} // namespace

Shape ConcatenatePlan::shapeOf(const ConcatenateSegment &segment) const {
  const HloInstruction &hero = *heroes.front();
  return Shape::array(hero.shape().elementType(), hero.operand(segment.operand)->shape().dims())
      .withLayout(hero.shape().minorToMajor());
}

template <>
HeroMatch<ConcatenatePlan> matchHero<ConcatenatePlan>(const FusionGraph &graph, const FusionAliasing &,
                                                      const TargetInfo &target, PlanContext &plans) {
  ConcatenatePlan plan;
  auto isConcatenate = [](const HloInstruction &instr) { return instr.opcode() == Opcode::Concatenate; };
  plan.heroes = findHeroes(graph, isConcatenate, readsSamePosition);
  if (plan.heroes.empty())
    return Rejection{"no output reads a concatenate elementwise"};
  const HloInstruction &first = *plan.heroes.front();
  for (const HloInstruction *hero : plan.heroes)
    if (!sameSegments(*hero, first))
      return Rejection{"concatenates differ"};
  const Places<Own> dependent = dependentInOrder(graph, plan.heroes);
  if (dependent.firstElsewhere())
    return Rejection{"the concatenate is also read at other indices"};
  for (const FusionRoot &root : graph.roots())
    if (!dependent.at(*root.instr) && !sameArray(root.shape, first.shape()))
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
  std::vector<size_t> leaders = madeTogether(graph, plan, target, plans);
  llvm::SmallVector<BlockSegment *> segments;
  for (auto [i, segment] : llvm::enumerate(plan.segments))
    if (leaders[i] == i)
      segments.push_back(&segment);
  std::optional<LaunchGeometry> launch = assignBlocks(segments, graph, target);
  if (!launch)
    return Rejection{"too many blocks"};
  for (auto [segment, leader] : llvm::zip(plan.segments, leaders))
    static_cast<BlockSegment &>(segment) = plan.segments[leader];
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

template <> KernelTraffic trafficOf<ConcatenatePlan>(const ConcatenatePlan &, const FusionGraph &graph) {
  return wholeTraffic(graph);
}

template <> unsigned plannedRegisters<ConcatenatePlan>(const ConcatenatePlan &) { return KernelSpec::usualRegisters; }

/// Operands made together in one entry, and neighbours that are alike.
std::string ConcatenatePlan::toString() const {
  std::vector<llvm::SmallVector<const ConcatenateSegment *>> entries;
  for (const ConcatenateSegment &segment : segments) {
    auto own =
        llvm::find_if(entries, [&](const auto &entry) { return entry.front()->firstBlock == segment.firstBlock; });
    if (own == entries.end())
      entries.push_back({&segment});
    else
      own->push_back(&segment);
  }
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "concatenate:";
  llvm::ListSeparator separator(";");
  for (size_t i = 0; i < entries.size();) {
    const ConcatenateSegment &segment = *entries[i].front();
    bool together = entries[i].size() > 1;
    auto isLike = [&](const auto &entry) {
      return !together && entry.size() == 1 && entry.front()->elements == segment.elements &&
             entry.front()->perThread == segment.perThread;
    };
    size_t end = i + 1;
    while (end < entries.size() && isLike(entries[end]))
      ++end;
    bool several = together || end - i > 1;
    os << separator << " operand" << (several ? "s " : " ");
    if (together)
      llvm::interleave(entries[i], os, [&](const ConcatenateSegment *member) { os << member->operand; }, ",");
    else
      os << segment.operand;
    if (end - i > 1)
      os << "-" << entries[end - 1].front()->operand;
    os << ", " << segment.elements << " elements, " << segment.perThread << " per thread";
    if (segment.rounds > 1)
      os << " in " << segment.rounds << " rounds";
    os << ", " << segment.blocks << (segment.blocks == 1 ? " block" : " blocks");
    if (several)
      os << (together ? " together" : " each");
    i = end;
  }
  return result;
}

} // namespace hloc
