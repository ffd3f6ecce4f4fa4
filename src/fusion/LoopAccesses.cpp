#include "fusion/LoopAccesses.h"

#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/Divisibility.h"
#include "hloc/indexing/ShapeMaps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include "mlir/IR/MLIRContext.h"

using namespace mlir;

namespace hloc {
namespace {

/// An instruction read in more ways than this is followed in so many: their number can double with each instruction.
constexpr size_t maxReads = 8;
/// Arrays looked at: what a loop touches beyond that does not change the average.
constexpr size_t maxAccesses = 48;
/// Warps looked at, spread over the loop: the first, and others at no round place.
constexpr int64_t maxSamples = 3;

/// Points of the range variables of a read, as of a window, that are looked at.
constexpr int64_t maxPoints = 16;

/// Elements `offset` to `offset + count - 1` of every group are one request of a warp.
struct Request {
  unsigned offset, count;
};

/// Elements of a group are so far apart: how many of them a request for vectors has, at all points of the ranges, which
/// are few. They are those of a window.
int64_t togetherInWideVectors(AffineExpr lowest, const IndexingMap &map, unsigned group, int64_t spacing, unsigned bits,
                              int64_t elements) {
  ArrayRef<IndexingVariable> ranges = ArrayRef(map.ranges()).drop_front(); // the first is that of the group
  int64_t points = 1;
  for (const IndexingVariable &range : ranges)
    points = std::min(points * range.bounds.size(), maxPoints + 1);
  if (points > maxPoints)
    return 1;
  for (int64_t point = 0; point < points; ++point) {
    SmallVector<AffineExpr> symbols = {getAffineSymbolExpr(0, map.context())};
    int64_t rest = point;
    for (const IndexingVariable &range : ranges) {
      symbols.push_back(getAffineConstantExpr(range.bounds.lower + rest % range.bounds.size(), map.context()));
      rest /= range.bounds.size();
    }
    for (unsigned i = symbols.size(); i < map.affine().getNumSymbols(); ++i)
      symbols.push_back(getAffineSymbolExpr(i, map.context()));
    AffineExpr there = lowest.replaceDimsAndSymbols({getAffineDimExpr(0, map.context())}, symbols);
    if (!offsetInWideVectors(there, map, spacing, spacing * group, bits, elements))
      return 1;
  }
  return std::min<int64_t>(group, llvm::bit_floor(uint64_t(128 / bits / spacing)));
}

/// A map from positions, and its constraints, by (group, element of it); other variables of the map follow.
struct GroupedRead {
  IndexingMap unconstrained;
  SmallVector<IndexingMap::Constraint> constraints;

  AffineExpr element() const { return getAffineSymbolExpr(0, unconstrained.context()); }
  AffineExpr range(unsigned i) const { return getAffineSymbolExpr(1 + i, unconstrained.context()); }
  /// Where the elements of a group begin whose first is element `first`.
  AffineExpr lowest(int64_t first) const {
    MLIRContext *context = unconstrained.context();
    SmallVector<AffineExpr> replaced = {getAffineConstantExpr(first, context)};
    for (unsigned i = 1; i < unconstrained.affine().getNumSymbols(); ++i)
      replaced.push_back(getAffineSymbolExpr(i, context));
    return unconstrained.result(0).replaceDimsAndSymbols({getAffineDimExpr(0, context)}, replaced);
  }
};

GroupedRead inGroups(const IndexingMap &map, unsigned group) {
  MLIRContext *context = map.context();
  SmallVector<AffineExpr> symbols;
  for (unsigned i = 0; i < map.affine().getNumSymbols(); ++i)
    symbols.push_back(getAffineSymbolExpr(i + 1, context));
  AffineExpr position = getAffineDimExpr(0, context) * group + getAffineSymbolExpr(0, context);
  auto regroup = [&](AffineExpr expression) { return expression.replaceDimsAndSymbols({position}, symbols); };
  SmallVector<IndexingVariable> ranges = {{Interval{0, int64_t(group) - 1}, {}}};
  llvm::append_range(ranges, map.ranges());
  auto affine = AffineMap::get(1, symbols.size() + 1, regroup(map.result(0)), context);
  int64_t groups = map.dims().front().bounds.size() / group;
  GroupedRead result = {IndexingMap(affine, {{Interval{0, groups - 1}, {}}}, ranges, map.runtimes()), {}};
  for (const auto &[expression, interval] : map.constraints())
    result.constraints.push_back({regroup(expression), interval});
  return result;
}

/// The accesses of one group, as VectorizeLoadsStores and LowerTensors make them of what is provable about `map`, to an
/// array of `elements`.
SmallVector<Request> requestsOf(const IndexingMap &map, unsigned group, ElementType type, int64_t elements,
                                int64_t vectorBits) {
  unsigned bits = deviceBits(type);
  SmallVector<Request> single;
  for (unsigned i = 0; i < group; ++i)
    single.push_back({i, 1});
  if (group == 1 || map.dims().front().bounds.size() < group)
    return single;
  GroupedRead read = inGroups(map, group);
  const IndexingMap &unconstrained = read.unconstrained;
  // A branch around the access must be taken by all elements or by none, and be no way that a vector cannot take.
  if (!read.constraints.empty() && (bits < 8 || (bits == 8 && isFloat(type))))
    return single;
  for (const auto &[expression, interval] : read.constraints)
    if (!isSameSide(expression, interval.lower, read.element(), unconstrained) ||
        !isSameSide(expression, interval.upper + 1, read.element(), unconstrained))
      return single;
  std::optional<int64_t> stride = strideOf(unconstrained.result(0), read.element(), unconstrained);
  if (stride == 0)
    return {{0, 1}};
  if (!stride || (isComplex(type) && std::abs(*stride) != 1))
    return single;
  // Loads of complex numbers are merged late, where they stand side by side.
  if (isComplex(type) && !read.constraints.empty())
    return single;
  AffineExpr lowest = read.lowest(*stride > 0 ? 0 : group - 1);
  int64_t divisor = knownDivisor(lowest, unconstrained);
  int64_t together = divisor == 0 ? group : std::min<int64_t>(divisor & -divisor, group);
  together = std::min<int64_t>(together, std::max<int64_t>(1, vectorBits / bits));
  if (int64_t spacing = std::abs(*stride); spacing > 1)
    together = togetherInWideVectors(lowest, unconstrained, group, spacing, bits, elements);
  if (together < 2 || together * bits < 8)
    return single;
  SmallVector<Request> vectors;
  for (unsigned i = 0; i < group; i += together)
    vectors.push_back({i, unsigned(together)});
  return vectors;
}

/// Sectors touched for each element where windows are rows and those of a group lie side by side, without gaps: its
/// loads are merged over the windows' bounds (MergeAccesses), so that a lane reads whole vectors. None if that is not
/// so.
std::optional<double> sectorsOfJoinedWindows(const IndexingMap &map, unsigned group, ElementType type,
                                             int64_t vectorBits) {
  unsigned bits = deviceBits(type);
  int64_t points = 1;
  for (const IndexingVariable &range : map.ranges())
    points = std::min(points * range.bounds.size(), maxPoints + 1);
  if (points == 1 || points > maxPoints || bits < 8 || isComplex(type) || !map.constraints().empty() ||
      map.dims().front().bounds.size() < std::max(group, 2u))
    return std::nullopt;
  // Of one element alone, neighbours tell how far it is to the next.
  GroupedRead read = inGroups(map, std::max(group, 2u));
  std::optional<int64_t> spacing = strideOf(read.unconstrained.result(0), read.element(), read.unconstrained);
  if (group == 1)
    read = inGroups(map, group);
  for (auto [i, range] : llvm::enumerate(map.ranges())) {
    const int64_t size = range.bounds.size();
    if (size < 2 || spacing != size || strideOf(read.lowest(0), read.range(i), read.unconstrained) != 1)
      continue;
    SmallVector<AffineExpr> symbols;
    for (unsigned k = 0; k < read.unconstrained.affine().getNumSymbols(); ++k)
      symbols.push_back(getAffineSymbolExpr(k, map.context()));
    symbols[1 + i] = getAffineConstantExpr(range.bounds.lower, map.context());
    AffineExpr begin = read.lowest(0).replaceDimsAndSymbols({getAffineDimExpr(0, map.context())}, symbols);
    int64_t length = group * size, divisor = knownDivisor(begin, read.unconstrained);
    int64_t together = std::min(length & -length, std::max<int64_t>(1, vectorBits / bits));
    if (divisor != 0)
      together = std::min(together, divisor & -divisor);
    if (together < 2)
      return std::nullopt;
    // A vector is within a sector; lanes share one if they are closer than that.
    double ofLane = std::min(1.0, double(length * bits) / sectorBits);
    return double(points / size) * double(length / together) * ofLane / group;
  }
  return std::nullopt;
}

/// Distinct sectors that one request of the warp whose elements `positions` are touches.
size_t sectorsOf(const Request &request, ArrayRef<int64_t> positions, unsigned group, unsigned bits) {
  SmallVector<int64_t, 64> touched;
  for (unsigned lane = 0; lane < 32 && (lane + 1) * group <= positions.size(); ++lane) {
    ArrayRef<int64_t> elements = positions.slice(lane * group + request.offset, request.count);
    // The elements of a vector are neighbours, in this order or the other.
    int64_t first = std::min(elements.front(), elements.back()), last = std::max(elements.front(), elements.back());
    if (first < 0)
      continue;
    for (int64_t sector = first * bits / sectorBits; sector <= ((last + 1) * bits - 1) / sectorBits; ++sector)
      touched.push_back(sector);
  }
  llvm::sort(touched);
  return std::unique(touched.begin(), touched.end()) - touched.begin();
}

} // namespace

LoopAccesses::LoopAccesses(const FusionGraph &graph, ArrayRef<unsigned> roots, PlanContext &plans)
    : order(graph.roots()[roots.front()].shape), reads(graph, plans, maxReads) {
  const unsigned loop = reads.newSpace();
  for (unsigned root : roots) {
    const FusionRoot &output = graph.roots()[root];
    unsigned map = MapPool::same;
    if (!sameArray(output.shape, order)) {
      IndexingMap renamed = bitcastIndexing(order, output.shape, reads.context());
      renamed.simplify();
      map = reads.maps().intern(std::move(renamed));
    }
    add(nullptr, output.shape, map);
    if (output.instr->shape().isArray())
      reads.read(*output.instr, {loop, map});
  }
  reads.follow([&](const HloInstruction &instr, ArrayRef<ReadMaps::Read> own) {
    if (!instr.shape().isArray() || instr.shape().numElements() <= 1)
      return;
    std::vector<ReadMaps::Read> described; // and each once, in whichever loop
    for (const ReadMaps::Read &read : own)
      if (read.space == loop &&
          llvm::none_of(described, [&](const ReadMaps::Read &other) { return other.map == read.map; }))
        described.push_back(read);
    if (instr.opcode() == Opcode::Parameter)
      for (const ReadMaps::Read &read : described)
        add(&instr, instr.shape(), read.map);
    else
      for (unsigned i = 0; i < instr.numOperands(); ++i)
        if (const Shape &shape = instr.operand(i)->shape(); shape.isArray() && shape.numElements() > 1)
          reads.readOperand(instr, i, described);
  });
}

void LoopAccesses::add(const HloInstruction *parameter, const Shape &shape, unsigned read) {
  if (accesses.size() == maxAccesses)
    return;
  Access access;
  access.parameter = parameter;
  access.type = shape.elementType();
  access.elements = shape.numElements();
  if (read != MapPool::same || !sameArray(shape, order)) {
    MLIRContext *context = reads.context();
    int64_t flat[] = {shape.numElements()}, flatLayout[] = {0};
    IndexingMap map = memoryOrderIndexing(order, context);
    if (read != MapPool::same)
      map = compose(map, reads.maps()[read]);
    map = compose(map, bitcastMap(shape.dims(), shape.minorToMajor(), flat, flatLayout, context));
    map.simplify();
    if (map.isKnownEmpty())
      return;
    if (map.result(0) != getAffineDimExpr(0, context) || !map.constraints().empty())
      access.map = std::move(map);
  }
  accesses.push_back(std::move(access));
}

void LoopAccesses::sample(unsigned most) {
  int64_t elements = order.numElements(), length = std::min<int64_t>(elements, 32 * int64_t(most));
  for (Access &access : accesses) {
    if (!access.map)
      continue;
    SmallVector<int64_t> symbols;
    for (const IndexingVariable &variable : access.map->ranges())
      symbols.push_back(variable.bounds.lower);
    for (const IndexingVariable &variable : access.map->runtimes())
      symbols.push_back(variable.bounds.lower);
    for (int64_t i = 0; i < maxSamples; ++i) {
      int64_t start = (elements - length) / maxSamples * i / length * length;
      if (i > 0 && start == 0)
        break;
      std::vector<int64_t> &positions = access.samples.emplace_back();
      for (int64_t position = start; position < start + length; ++position) {
        auto index = access.map->evaluate({position}, symbols);
        positions.push_back(index ? index->front() : -1);
      }
    }
  }
}

std::string LoopAccesses::nameOf(size_t access) const {
  return accesses[access].parameter ? accesses[access].parameter->name().str() : "an output";
}

double LoopAccesses::sectors(size_t number, unsigned group, const TargetInfo &target) const {
  const Access &access = accesses[number];
  int64_t vectorBits = int64_t(target.maxVectorBytes) * 8, groupBits = int64_t(group) * deviceBits(access.type);
  if (!access.map) {
    // Vectors of one lane that do not fill a sector each touch one of their own, if the lane has several.
    int64_t requests = std::max<int64_t>(1, groupBits / vectorBits);
    double each =
        requests == 1 ? double(32 * groupBits) / sectorBits : 32.0 * std::max<int64_t>(1, vectorBits / sectorBits);
    return double(requests) * each / (32.0 * group);
  }
  if (std::optional<double> joined = sectorsOfJoinedWindows(*access.map, group, access.type, vectorBits))
    return *joined;
  SmallVector<Request> requests = requestsOf(*access.map, group, access.type, access.elements, vectorBits);
  size_t touched = 0, elements = 0;
  for (const std::vector<int64_t> &positions : access.samples) {
    size_t lanes = std::min<size_t>(32, positions.size() / group);
    elements += lanes * group;
    for (const Request &request : requests)
      touched += sectorsOf(request, positions, group, deviceBits(access.type));
  }
  const double points = pointsOf(access.map->ranges()); // of a window's elements, of which the samples are the first
  return elements == 0 ? 0 : points * double(touched) / double(elements);
}

bool LoopAccesses::readsOneForRow(int64_t row) const {
  auto isConstant = [&](const Access &access) {
    if (!access.parameter || access.samples.empty())
      return false;
    ArrayRef<int64_t> positions = access.samples.front(); // of the first elements
    size_t count = std::min<size_t>(positions.size(), size_t(row));
    return count > 1 && positions.front() >= 0 && llvm::all_equal(positions.take_front(count));
  };
  return llvm::any_of(accesses, isConstant);
}

unsigned LoopAccesses::streamedBits() const {
  unsigned bits = 0;
  for (const Access &access : accesses)
    if (access.parameter && 2 * access.parameter->shape().numElements() >= order.numElements())
      bits += deviceBits(access.type);
  return bits;
}

unsigned LoopAccesses::narrowest() const {
  unsigned bits = 128;
  for (const Access &access : accesses)
    if (!access.parameter || access.parameter->shape().numElements() == order.numElements())
      bits = std::min(bits, deviceBits(access.type));
  return bits;
}

} // namespace hloc
