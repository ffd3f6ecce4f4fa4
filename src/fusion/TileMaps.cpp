// One idea: where an element lies in memory is a sum of indices, each times a distance. Indices that are one along
// memory become one dimension of the map.

#include "fusion/TileMaps.h"

#include "fusion/ContractionMatch.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/IR/AffineExprVisitor.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace hloc {
namespace {

/// Distances in elements by dim, then by range, if elements lie at nothing but their sum.
std::optional<SmallVector<int64_t>> distancesOf(const IndexingMap &map, const Shape &shape) {
  if (!map.constraints().empty() || !map.runtimes().empty())
    return std::nullopt;
  AffineExpr place = getAffineConstantExpr(0, map.context());
  int64_t distance = 1;
  for (int64_t dim : shape.minorToMajor()) {
    place = place + map.affine().getResult(unsigned(dim)) * distance;
    distance *= shape.dim(unsigned(dim));
  }
  const auto numDims = unsigned(map.dims().size()), numRanges = unsigned(map.ranges().size());
  SimpleAffineExprFlattener flattener(numDims, numRanges);
  if (failed(flattener.walkPostOrder(simplifyAffineExpr(place, numDims, numRanges))))
    return std::nullopt;
  SmallVector<int64_t> distances(llvm::ArrayRef<int64_t>(flattener.operandExprStack.back()));
  if (distances.size() != numDims + numRanges + 1 || distances.back() != 0)
    return std::nullopt;
  distances.pop_back();
  return distances;
}

struct Line {
  int64_t size, distance;
};

/// Lines of which the first are the outer ones as one, if they are one along memory.
std::optional<Line> joined(ArrayRef<Line> lines) {
  Line all = {1, 0};
  for (const Line &line : llvm::reverse(lines)) {
    if (line.size == 1)
      continue;
    if (all.size == 1)
      all = line;
    else if (line.distance == all.distance * all.size)
      all.size *= line.size;
    else
      return std::nullopt;
  }
  return all;
}

/// (What tensor cores multiply as words of f32 is rounded by the copy: to nearest, ties to even.)
std::optional<TensorMapType> mapType(ElementType type) {
  switch (deviceBits(type)) {
  case 8:
    return TensorMapType::U8;
  case 16:
    return type == ElementType::BF16 ? TensorMapType::Bf16 : TensorMapType::F16;
  case 32:
    return type == ElementType::F32 ? std::optional(TensorMapType::Tf32) : std::nullopt;
  default:
    return std::nullopt;
  }
}

TensorMapSwizzle swizzleOf(int64_t bytes) {
  return bytes == 128  ? TensorMapSwizzle::Bytes128
         : bytes == 64 ? TensorMapSwizzle::Bytes64
         : bytes == 32 ? TensorMapSwizzle::Bytes32
                       : TensorMapSwizzle::None;
}

} // namespace

std::optional<TileMap> findTileMap(const ContractionPlan &plan, const ContractionSide &side,
                                   const IndexingMap &factor) {
  const HloInstruction &operand = *plan.heroOf(side).operand(side.operand);
  const ElementType type = operand.shape().elementType();
  const std::optional<TensorMapType> element = mapType(type);
  if (!element || plan.fragmentType(side) != type || plan.piecesOf(side) > 1 || side.tests > 0 || plan.ragged ||
      llvm::any_of(plan.depthStarts, [](int64_t start) { return start != 0; }))
    return std::nullopt;
  MovedOperand moved = movedOperand(operand, factor.context(), [](const HloInstruction &) { return false; });
  if (moved.source->opcode() != Opcode::Parameter)
    return std::nullopt;
  IndexingMap map = compose(factor, moved.map);
  map.simplify();
  const std::optional<SmallVector<int64_t>> distances = distancesOf(map, moved.source->shape());
  if (!distances)
    return std::nullopt;
  SmallVector<Line> ofSide, ofDepth, ofBatch;
  for (unsigned dim : side.dims)
    ofSide.push_back({plan.space.dim(dim), (*distances)[dim]});
  for (auto [variable, size] : llvm::zip_equal(plan.depth, plan.depthSizes))
    ofDepth.push_back({size, (*distances)[map.dims().size() + variable]});
  for (unsigned dim : plan.batch)
    ofBatch.push_back({plan.space.dim(dim), (*distances)[dim]});
  const std::optional<Line> lines = joined(ofSide), terms = joined(ofDepth);
  if (!lines || !terms || lines->size != side.size || lines->size < 2 || terms->size < 2 ||
      (plan.outerDepth > 0 && plan.innerDepth() % plan.tile.depth != 0))
    return std::nullopt;
  TileMap found;
  found.parameter = unsigned(moved.source->parameterNumber());
  const int64_t bytes = deviceBits(type) / 8, panel = plan.panelOf(side);
  auto add = [&](TileMap::Dim dim, int64_t distance, int64_t box) {
    if (!found.dims.empty())
      found.recipe.strides.push_back(uint64_t(distance * bytes));
    found.recipe.dims.push_back(uint64_t(dim.size));
    found.recipe.box.push_back(uint32_t(box));
    found.dims.push_back(dim);
  };
  const TileMap::Dim alongSide{TileMap::Along::Side, lines->size}, alongDepth{TileMap::Along::Depth, terms->size};
  const Line &inner = side.alongDepth ? *terms : *lines, &outer = side.alongDepth ? *lines : *terms;
  const int64_t size = plan.stride(side), lineTile = side.alongDepth ? size / plan.copiersOf(side) : size;
  if (inner.distance != 1 || outer.distance <= 0)
    return std::nullopt;
  add(side.alongDepth ? alongDepth : alongSide, 1, panel);
  add(side.alongDepth ? alongSide : alongDepth, outer.distance, side.alongDepth ? lineTile : plan.tile.depth);
  const std::optional<Line> batch = joined(ofBatch);
  if (batch)
    ofBatch = {*batch};
  int64_t divisor = 1;
  for (const Line &line : llvm::reverse(ofBatch)) {
    if (line.size > 1)
      add({TileMap::Along::Batch, line.size, divisor}, line.distance, 1);
    divisor *= line.size;
  }
  found.recipe.type = *element;
  found.recipe.swizzle = swizzleOf(panel * bytes);
  found.recipe.l2 = TensorMapL2::Bytes128;
  if (found.dims.size() > TensorMapRecipe::maxRank || llvm::is_contained(found.recipe.strides, uint64_t(0)) ||
      !findTensorMapError(found.recipe, 0).empty())
    return std::nullopt;
  return found;
}

} // namespace hloc
