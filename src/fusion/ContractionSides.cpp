// One idea: a dimension of the result that only one operand has is of its side; what lies side by side in memory
// decides which side is columns, and along what each is read.

#include "fusion/ContractionSides.h"

#include "fusion/OpWork.h"
#include "fusion/TileMaps.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/OutputMaps.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>

using namespace mlir;

namespace hloc {

ContractionSides::ContractionSides(ContractionPlan &plan, const FusionGraph &graph, const TargetInfo &target,
                                   MLIRContext *context)
    : plan(plan), graph(graph), target(target), space(plan.space = ContractionSpace(*plan.hero)) {
  for (const HloInstruction *hero : plan.heroes()) {
    auto factor = [&](unsigned i) {
      return Factor{hero->operand(i), factorMap(*hero, space, i, context), {}, 0, 0, {}};
    };
    factors.push_back({factor(0), factor(1)});
  }
}

void ContractionSides::forEachSide(llvm::function_ref<void(ContractionSide &)> visit) {
  visit(plan.rows);
  visit(plan.columns);
  for (ContractionTwin &twin : plan.twins)
    visit(twin.side);
}

ContractionSides::Factor &ContractionSides::factorOf(const ContractionSide &side) {
  const auto *twin = llvm::find_if(plan.twins, [&](const ContractionTwin &twin) { return &twin.side == &side; });
  return factors[twin == plan.twins.end() ? 0 : size_t(twin - plan.twins.begin()) + 1][side.operand];
}

std::optional<Rejection> ContractionSides::find(bool areTurned) {
  if (std::optional<Rejection> why = chooseDimensions())
    return why;
  if (areTurned)
    (void)turn();
  std::optional<Rejection> why = checkOutputs(plan, graph, context());
  if (why && (plan.storesColumns ? turn() : turnToOutputs()))
    why = checkOutputs(plan, graph, context());
  if (!why)
    why = placeTwins();
  if (why)
    return why;
  findStrides();
  orderDepth();
  return std::nullopt;
}

/// Twins read what is shared in the same way, and the dimensions that are their own are the same of the result.
std::optional<Rejection> ContractionSides::placeTwins() {
  for (auto [twin, own] : llvm::zip(plan.twins, llvm::drop_begin(factors))) {
    const unsigned operand = twin.side.operand;
    auto isAlike = [&](unsigned dim) { return dependsOnDim(own[operand].map, dim) == dependsOnDim(map(operand), dim); };
    if (own[1 - operand].map != map(1 - operand) || own[operand].map.ranges() != map(operand).ranges() ||
        own[operand].map.dims() != map(operand).dims() || !llvm::all_of(llvm::seq(space.rank()), isAlike))
      return Rejection{fmt::format("`{}` reads `{}` in another way than `{}`", twin.hero->name().str(),
                                   own[1 - operand].operand->name().str(), plan.hero->name().str())};
    twin.side = plan.rows.operand == operand ? plan.rows : plan.columns;
    twin.side.tests = testsBefore(*own[operand].operand);
  }
  return std::nullopt;
}

void ContractionSides::findStrides() {
  forEachSide([&](const ContractionSide &side) {
    Factor &factor = factorOf(side);
    factor.strides.emplace(*factor.operand, factor.map);
    std::tie(factor.work, factor.widest) = workOf(*factor.operand);
  });
}

/// Instructions that make an element of what a dot multiplies, each time that a tile is filled with it; bits of the
/// widest that is read for each.
std::pair<double, unsigned> ContractionSides::workOf(const HloInstruction &operand) const {
  llvm::SmallPtrSet<const HloInstruction *, 16> seen = {&operand};
  llvm::SmallVector<const HloInstruction *> open = {&operand};
  double sum = 0;
  unsigned bits = 0;
  while (!open.empty()) {
    const HloInstruction *instr = open.pop_back_val();
    if (instr->shape().numElements() != operand.shape().numElements())
      continue;
    if (instr->numOperands() == 0) {
      bits = std::max(bits, deviceBits(instr->shape().elementType()));
      continue;
    }
    sum += workPerElement(*instr);
    for (const HloInstruction *read : instr->operands())
      if (read->shape().isArray() && seen.insert(read).second)
        open.push_back(read);
  }
  return {sum, bits};
}

/// Where all outputs have other neighbours than the result, such as those of a transpose behind it: has the side of
/// these be the columns. False if outputs have none in common.
bool ContractionSides::turnToOutputs() {
  const std::vector<IndexingMap> places = outputMaps(graph, plan.heroes(), plan.roots, context());
  auto areNeighbours = [&](unsigned dim) {
    return llvm::all_of(llvm::zip_equal(plan.roots, places), [&](auto each) {
      auto &[number, place] = each;
      return neighboursKept(place, graph.roots()[number].shape, dim, 2) == 2;
    });
  };
  for (unsigned part = 0; part < space.rank(); ++part) {
    const unsigned dim = space.resultDim(part);
    const bool isWhole = space.dim(part) == plan.hero->shape().dim(dim);
    if (isWhole && space.dim(part) > 1 && !llvm::is_contained(plan.batch, part) && areNeighbours(dim)) {
      minorOfOutputs = part;
      return !chooseDimensionsAgain();
    }
  }
  return false;
}

/// Has what is rows as columns.
bool ContractionSides::turn() {
  for (unsigned dim : plan.rows.dims)
    minorOfOutputs = space.dim(dim) > 1 ? dim : minorOfOutputs;
  return !chooseDimensionsAgain();
}

std::optional<Rejection> ContractionSides::chooseDimensionsAgain() {
  plan.batch.clear();
  plan.batchSize = 1;
  return chooseDimensions();
}

std::optional<Rejection> ContractionSides::chooseDimensions() {
  for (const Factor &factor : factors.front())
    if (factor.map.isKnownEmpty())
      return Rejection{"there is nothing to add up"};
  ContractionSide sides[2];
  sides[1].operand = 1;
  for (ContractionSide &side : sides)
    side.tests = testsBefore(*plan.hero->operand(side.operand));
  std::optional<unsigned> sideOfMinor;
  llvm::SmallVector<int64_t> majorToMinor(llvm::reverse(space.shape().minorToMajor()));
  if (minorOfOutputs) {
    llvm::erase(majorToMinor, int64_t(*minorOfOutputs));
    majorToMinor.push_back(*minorOfOutputs);
  }
  for (int64_t dim : majorToMinor) {
    bool ofLeft = dependsOnDim(map(0), unsigned(dim)), ofRight = dependsOnDim(map(1), unsigned(dim));
    if (ofLeft == ofRight) {
      plan.batch.push_back(unsigned(dim));
      plan.batchSize *= space.dim(unsigned(dim));
      continue;
    }
    ContractionSide &side = sides[ofRight];
    side.dims.push_back(unsigned(dim));
    side.size *= space.dim(unsigned(dim));
    if (space.dim(unsigned(dim)) > 1)
      sideOfMinor = ofRight;
  }
  unsigned columns = sideOfMinor.value_or(1);
  plan.columns = std::move(sides[columns]);
  plan.rows = std::move(sides[1 - columns]);
  if (plan.rows.size == 1 || plan.columns.size == 1)
    return Rejection{"one side has a single row"};
  return plan.ragged ? placeGroups() : std::nullopt;
}

/// Rows of a group follow each other.
std::optional<Rejection> ContractionSides::placeGroups() {
  if (!plan.ragged->areOfRows())
    return std::nullopt;
  const unsigned dim = plan.ragged->dims.position;
  if (!llvm::is_contained(plan.rows.dims, dim))
    return Rejection{"its groups are of what lies side by side in the result"};
  llvm::erase(plan.rows.dims, dim);
  plan.rows.dims.insert(plan.rows.dims.begin(), dim);
  return std::nullopt;
}

Interval ContractionSides::depthBounds(unsigned variable) const {
  return map(0).ranges()[variable].bounds.intersect(map(1).ranges()[variable].bounds);
}

/// Outer to inner: neighbours of the inner ones are neighbours in the memory of the operand in which some are.
void ContractionSides::orderDepth() {
  unsigned count = map(0).ranges().size();
  auto strides = [&](unsigned operand) -> OperandStrides & { return *factors.front()[operand].strides; };
  auto least = [&](unsigned operand) {
    int64_t stride = std::numeric_limits<int64_t>::max();
    for (unsigned i = 0; i < count; ++i)
      if (!depthBounds(i).isPoint())
        stride = std::min(stride, strides(operand).ofRange(i));
    return stride;
  };
  unsigned operand = least(0) < least(1) ? 0 : 1;
  for (unsigned i = 0; i < count; ++i)
    plan.depth.push_back(i);
  llvm::stable_sort(plan.depth, [&](unsigned a, unsigned b) {
    bool aIsOne = depthBounds(a).isPoint(), bIsOne = depthBounds(b).isPoint();
    return aIsOne != bIsOne ? aIsOne : strides(operand).ofRange(a) > strides(operand).ofRange(b);
  });
  for (unsigned variable : plan.depth) {
    plan.depthStarts.push_back(depthBounds(variable).lower);
    plan.depthSizes.push_back(depthBounds(variable).size());
  }
}

void ContractionSides::chooseCopies() {
  forEachSide([&](ContractionSide &side) { chooseCopies(side); });
}

/// A side whose elements are read by `side.vector` can be copied, if it is stored as fragments are, in pieces of as
/// many or fewer.
void ContractionSides::chooseCopies(ContractionSide &side) {
  side.copied = false;
  const unsigned bits = plan.factorBits();
  if (!plan.tile.onTensorCores || (bits != 16 && bits != 64 && !plan.tile.promotes) || !target.hasAsyncCopies() ||
      plan.fragmentType(side) != plan.typeOfFactor(side))
    return;
  // The same for all tiles that are read so.
  auto [known, isNew] = factorOf(side).copiedBy.try_emplace(side.vector, 0);
  if (isNew)
    known->second = copiedAtOnce(side);
  if (const unsigned length = known->second) {
    side.copied = true;
    side.vector = length;
  }
}

/// Neighbours of a side that can be copied together, of up to `side.vector`; 0: none.
unsigned ContractionSides::copiedAtOnce(const ContractionSide &side) {
  constexpr unsigned leastBits = 32; // that a copy may have
  const Factor &factor = factorOf(side);
  const HloInstruction &operand = *factor.operand;
  const ElementType type = operand.shape().elementType();
  const IndexingMap &map = factor.map;
  if (plan.piecesOf(side) > 1 || side.tests > 0 || plan.isRaggedAlong(side) || !storedOperand(operand, map.context()))
    return 0;
  AffineExpr variable = getAffineSymbolExpr(plan.depth.back(), map.context());
  if (!side.alongDepth)
    for (unsigned dim : side.dims)
      if (space.dim(dim) > 1) {
        variable = getAffineDimExpr(dim, map.context());
        if (map.dims()[dim].bounds != Interval{0, space.dim(dim) - 1})
          return 0;
      }
  for (unsigned length = side.vector; length * deviceBits(type) >= leastBits; length /= 2)
    if (factor.strides->areAlignedPieces(variable, side.alongDepth ? plan.depthStarts.back() : 0, length))
      return length;
  return 0;
}

/// Along what, and how many neighbours at once, a side's elements are read.
void ContractionSides::chooseAccess(ContractionSide &side) {
  Factor &factor = factorOf(side);
  OperandStrides &own = *factor.strides;
  int64_t ofSide = std::numeric_limits<int64_t>::max(), sizeOfSide = 1;
  for (unsigned dim : side.dims)
    if (space.dim(dim) > 1) {
      ofSide = own.ofDim(dim);
      sizeOfSide = space.dim(dim);
    }
  int64_t ofDepth = own.ofRange(plan.depth.back()), sizeOfDepth = plan.depthSizes.back();
  side.alongDepth = sizeOfDepth > 1 && ofDepth < ofSide;
  int64_t tileRows = plan.isOfRows(side) ? plan.tile.rows() : plan.tile.columns();
  side.pad = side.alongDepth && !plan.tile.onTensorCores ? ContractionPlan::sharedVectorBits / int64_t(plan.bits) : 0;
  side.vector = 1;
  side.copied = false;
  side.map.reset();
  side.spread =
      spreadOf(side.alongDepth ? ofDepth : ofSide,
               side.alongDepth ? std::min(sizeOfDepth, plan.tile.depth) : std::min(sizeOfSide, tileRows), own.bits());
  if ((side.alongDepth ? ofDepth : ofSide) != 1)
    return;
  int64_t common = side.alongDepth ? (sizeOfDepth | plan.tile.depth) : (sizeOfSide | tileRows);
  for (auto [dim, variable] : llvm::enumerate(factor.map.dims()))
    if (!variable.bounds.isPoint() && own.ofDim(unsigned(dim)) != 1)
      common |= own.ofDim(unsigned(dim));
  for (auto [variable, size] : llvm::zip_equal(plan.depth, plan.depthSizes))
    if (size > 1 && own.ofRange(variable) != 1)
      common |= own.ofRange(variable);
  if (plan.isRaggedAlong(side) || side.branches())
    return; // loads are not merged: neighbouring lanes take neighbours
  // No more than what every thread has some of.
  const unsigned bits = std::max(own.bits(), plan.tile.onTensorCores ? plan.factorBits() : 8u);
  int64_t most =
      std::min<int64_t>(ContractionPlan::sharedVectorBits / bits, tileRows * plan.tile.depth / plan.tile.threads());
  side.vector = unsigned(std::clamp<int64_t>(common & -common, 1, std::max<int64_t>(most, 1)));
}

bool ContractionSides::chooseMap(ContractionSide &side) {
  side.map = findTileMap(plan, side, factorOf(side).map);
  return side.copied = side.map.has_value();
}

bool ContractionSides::chooseMaps() {
  bool areFound = true;
  forEachSide([&](ContractionSide &side) { areFound &= chooseMap(side); });
  return areFound;
}

void ContractionSides::chooseAccesses() {
  forEachSide([&](ContractionSide &side) { chooseAccess(side); });
}

} // namespace hloc
