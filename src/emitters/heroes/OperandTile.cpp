// One idea: a thread's neighbours of the operand, wherever they lie in memory, are a vector, which is loaded in one
// step of the sums and put into shared memory in the next. What is missing at the edges of an array is zero.

#include "emitters/heroes/OperandTile.h"

#include "emitters/heroes/FactorPieces.h"
#include "emitters/heroes/FragmentTiles.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/Divisibility.h"
#include "hloc/support/Check.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {

SmallVector<Value> ifHolds(CodeBuilder &b, Value condition, ValueRange otherwise,
                           llvm::function_ref<SmallVector<Value>()> make) {
  auto branch = scf::IfOp::create(b, otherwise.getTypes(), condition, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, otherwise);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, make());
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> ifFollows(CodeBuilder &b, Value number, int64_t ahead, int64_t numbers, Value end,
                             ValueRange otherwise, llvm::function_ref<SmallVector<Value>(Value)> make) {
  if (numbers <= ahead || otherwise.empty())
    return SmallVector<Value>(otherwise);
  Value limit = end ? b.subI(end, b.index(ahead)) : b.index(numbers - ahead);
  Value follows = b.cmpI(CodeBuilder::IPred::slt, number, limit);
  IndexingMap next(AffineMap::get(1, 0, getAffineDimExpr(0, b.getContext()) + ahead),
                   IndexingVariable{Interval{0, numbers - 1 - ahead}, "step"}, {}, {});
  return ifHolds(b, follows, otherwise, [&] { return make(applyMap(b, next, number).front()); });
}

OperandTile::OperandTile(const ContractionPlan &plan, const ContractionSide &side, KernelBuilder &kernel,
                         const TilePlace &at)
    : ContractionPlaces(plan, kernel, at), b(kernel.code()), side(side), operand(*plan.hero->operand(side.operand)),
      type(operand.shape().elementType()), map(factorMap(*plan.hero, plan.space, side.operand, kernel.context())),
      values(b, plan) {}

FunctionRequest OperandTile::request() const {
  FunctionRequest request;
  request.indexSizes.assign(operand.shape().dims().begin(), operand.shape().dims().end());
  request.roots.push_back({&operand, 0, IndexingMap::identity(context, operand.shape().dims())});
  return request;
}

Type OperandTile::factorType() const {
  return tile.onTensorCores ? storageType(fragmentType(), context) : values.computed();
}

/// Of f32 a register has the same bits before: where tests stand before loads, each would be waited for to be rounded.
bool OperandTile::isRoundedInTile() const {
  return plan.piecesOf(side) > 1 ||
         (tile.onTensorCores && type == ElementType::F32 && fragmentType() == ElementType::F32);
}

Type OperandTile::heldType() const {
  if (isRoundedInTile())
    return values.computed();
  if (plan.isHeldAsBytes(side))
    return storageType(type, context);
  return tile.onTensorCores || !isHeldAsStored() ? factorType() : storageType(type, context);
}

Value OperandTile::allocate() const {
  auto type = RankedTensorType::get({tile.stages * plan.tileElements(side)}, factorType());
  if (!tile.ofWarpgroups)
    return xla_gpu::AllocateSharedOp::create(b, type);
  return xla_gpu::AllocateSharedOp::create(b, type, b.getI64IntegerAttr(ContractionPlan::alignmentOfTiles));
}

int64_t OperandTile::turns() const {
  return llvm::divideCeil(tileSize(side) * tile.depth / int64_t(side.vector), tile.threads());
}

// --- places

IndexingMap OperandTile::mapAt(ArrayRef<AffineExpr> results, ArrayRef<int64_t> loopSizes) const {
  SmallVector<IndexingVariable> dims(kernel.idVariables()), ranges;
  dims.push_back({Interval{0, at.numbers - 1}, "step"});
  for (int64_t size : loopSizes)
    ranges.push_back({Interval{0, size - 1}, {}});
  return IndexingMap(AffineMap::get(dims.size(), ranges.size(), results, context), dims, ranges, {});
}

SmallVector<Value> OperandTile::valuesAt(Value number) const {
  SmallVector<Value> operands(kernel.ids());
  operands.push_back(number);
  return operands;
}

OperandTile::Group OperandTile::groupOf(int64_t turn) const {
  int64_t size = tileSize(side), vector = side.vector;
  Group group;
  group.groups = size * tile.depth / vector;
  group.first = kernel.thread() + turn * tile.threads();
  AffineExpr element = getAffineSymbolExpr(0, context);
  if (!side.alongDepth) {
    group.inSide = group.first % (size / vector) * vector + element;
    group.inDepth = group.first.floorDiv(size / vector);
    return group;
  }
  // Lanes side by side along a sum read a sector, no more: then they write to different banks. Chunks do if lanes
  // write whole rows.
  int64_t bytes = vector * std::max<int64_t>(deviceBits(type) / 8, 1);
  int64_t lanes = tile.onTensorCores ? tile.depth / vector : std::clamp<int64_t>(32 / bytes, 1, tile.depth / vector);
  group.inSide = group.first.floorDiv(lanes) % size;
  group.inDepth = (group.first % lanes + group.first.floorDiv(lanes * size) * lanes) * vector + element;
  return group;
}

OperandTile::Place OperandTile::placeOf(int64_t turn) const {
  Group group = groupOf(turn);
  Place found = placeOf(group);
  if (group.groups % tile.threads() != 0)
    found.conditions.push_back({group.first, Interval{0, group.groups - 1}});
  return found;
}

OperandTile::Place OperandTile::placeOf(const Group &group) const {
  Place found;
  SmallVector<AffineExpr> dims(space.rank(), constant(0)), ranges(map.ranges().size());
  AffineExpr position = firstAlong(side) + group.inSide;
  placeBatch(dims);
  place(side.dims, position, dims);
  if (map.dims().size() > dims.size())
    dims.push_back(at.group);
  if (side.size % tileSize(side) != 0 || (plan.isOfRows(side) && at.endOfRows))
    found.conditions.push_back(isInside(side, position));
  if (mapAt({at.step}, {}).range(at.step).upper >= plan.steps())
    found.conditions.push_back({at.step, Interval{0, plan.steps() - 1}});
  AffineExpr inner = at.step % plan.stepsOfInner() * tile.depth + group.inDepth;
  if (plan.innerDepth() % tile.depth != 0)
    found.conditions.push_back({inner, Interval{0, plan.innerDepth() - 1}});
  placeDepth(at.step.floorDiv(plan.stepsOfInner()), inner, ranges);
  if (at.firstOfTerms) {
    AffineExpr term = ranges[plan.ragged->dims.position];
    found.conditions.push_back({term - at.firstOfTerms, Interval{0, plan.ragged->extent}});
    found.conditions.push_back({at.endOfTerms - term, Interval{1, plan.ragged->extent}});
  }
  auto replace = [&](AffineExpr expression) { return expression.replaceDimsAndSymbols(dims, ranges); };
  for (const auto &[expression, interval] : map.constraints())
    found.conditions.push_back({replace(expression), interval});
  for (auto [dim, size] : llvm::enumerate(space.shape().dims()))
    if (Interval bounds = map.dims()[dim].bounds; bounds != Interval{0, size - 1})
      found.conditions.push_back({dims[dim], bounds});
  for (AffineExpr index : map.affine().getResults())
    found.indices.push_back(replace(index));
  return found;
}

void OperandTile::placeDepth(AffineExpr outer, AffineExpr inner, MutableArrayRef<AffineExpr> ranges) const {
  ArrayRef<int64_t> sizes = plan.depthSizes;
  SmallVector<AffineExpr> indices = delinearize(outer, sizes.take_front(plan.outerDepth), context);
  llvm::append_range(indices, delinearize(inner, sizes.drop_front(plan.outerDepth), context));
  for (auto [variable, start, index] : llvm::zip_equal(plan.depth, plan.depthStarts, indices))
    ranges[variable] = index + start;
}

// --- from memory to registers

Value OperandTile::holds(ArrayRef<Condition> conditions, ValueRange operands, int64_t elements) {
  Value all;
  auto require = [&](CodeBuilder::IPred predicate, Value value, int64_t bound) {
    Value one = b.cmpI(predicate, value, b.index(bound));
    all = all ? b.andI(all, one) : one;
  };
  for (const auto &[expression, interval] : conditions) {
    IndexingMap condition = mapAt({expression}, {elements});
    Interval known = condition.range(expression);
    condition.simplify();
    Value value = applyMap(b, condition, operands).front();
    if (known.lower < interval.lower)
      require(CodeBuilder::IPred::sge, value, interval.lower);
    if (known.upper > interval.upper)
      require(CodeBuilder::IPred::sle, value, interval.upper);
  }
  return all;
}

/// Is a condition's expression the same for all elements of a group; or of the first followed by those of the others,
/// and its interval by whole groups?
bool OperandTile::holdsForAll(const Condition &condition) const {
  const auto &[expression, interval] = condition;
  if (!expression.isFunctionOfSymbol(0))
    return true;
  const int64_t elements = side.vector;
  AffineExpr element = getAffineSymbolExpr(0, context), first = expression.replace(element, constant(0));
  const IndexingMap group = mapAt({expression}, {elements});
  const std::optional<int64_t> stride = strideOf(expression, element, group);
  if (stride != 1)
    return stride == 0;
  return knownDivisor(first, group) % elements == 0 && interval.lower % elements == 0 &&
         (interval.upper + 1) % elements == 0;
}

SmallVector<Value> OperandTile::load(Value number) {
  SmallVector<Value> vectors;
  for (int64_t turn = 0; turn < turns(); ++turn) {
    Place place = placeOf(turn);
    vectors.push_back(tile.onTensorCores ? loadChunk(place, number) : loadVector(place, number));
  }
  return vectors;
}

Value OperandTile::loadVector(const Place &place, Value number) {
  auto vector = VectorType::get({int64_t(side.vector)}, heldType());
  return kernel
      .loop(mapAt({}, {int64_t(side.vector)}), valuesAt(number), zeros(vector),
            [&](ValueRange element, ValueRange, ValueRange before) -> SmallVector<Value> {
              Value value = loadElement(place, number, element.front());
              return {vector::InsertOp::create(b, value, before.front(), OpFoldResult(element.front()))};
            })
      .front();
}

Value OperandTile::zeros(Type of) { return arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(of))); }

/// What `make` makes of type `of` where the condition holds, if there is one.
Value OperandTile::orZeros(Value condition, Type of, llvm::function_ref<Value()> make) {
  if (!condition)
    return make();
  auto branch = scf::IfOp::create(b, TypeRange{of}, condition, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, make());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, zeros(of));
  return branch.getResult(0);
}

/// A thread's neighbours as words where they fill any. What holds for all of them is tested once.
Value OperandTile::loadChunk(const Place &place, Value number) {
  const int64_t elements = side.vector;
  Place inGroup = place;
  SmallVector<Condition> ofGroup;
  llvm::erase_if(inGroup.conditions, [&](const Condition &condition) {
    if (!holdsForAll(condition))
      return false;
    ofGroup.push_back({condition.first.replace(getAffineSymbolExpr(0, context), constant(0)), condition.second});
    return true;
  });
  constexpr int64_t wordBits = 32;
  const int64_t bits = elements * plan.heldBits(side);
  const bool areWords = bits % wordBits == 0;
  auto words = areWords ? VectorType::get({bits / wordBits}, b.getI32Type()) : VectorType::get({elements}, heldType());
  SmallVector<Value> operands = valuesAt(number);
  operands.push_back(b.index(0));
  return orZeros(holds(ofGroup, operands, 1), words, [&]() -> Value {
    Value loaded = loadVector(inGroup, number);
    return areWords ? vector::BitCastOp::create(b, words, loaded) : loaded;
  });
}

Value OperandTile::loadElement(const Place &place, Value number, Value element) {
  SmallVector<Value> operands = valuesAt(number);
  operands.push_back(element);
  auto read = [&]() -> Value {
    IndexingMap indices = mapAt(place.indices, {int64_t(side.vector)});
    indices.simplify();
    Value stored = kernel.call(function, applyMap(b, indices, operands)).front();
    if (isRoundedInTile())
      return values.factor(stored, type);
    if (plan.isHeldAsBytes(side))
      return stored;
    if (tile.onTensorCores)
      return asFragmentFactor(b, stored, type, fragmentType());
    return isHeldAsStored() ? stored : values.factor(stored, type);
  };
  return orZeros(holds(place.conditions, operands, side.vector), heldType(), read);
}

// --- from registers to shared memory

Value OperandTile::fill(ValueRange vectors, Value shared, Value stage) {
  for (auto [turn, loaded] : llvm::enumerate(vectors)) {
    Group group = groupOf(int64_t(turn));
    if (tile.onTensorCores) {
      shared = whereGroupIs(group, shared,
                            [&, loaded = loaded](Value before) { return putChunk(group, loaded, before, stage); });
      continue;
    }
    IndexingMap places = kernel.mapOf({group.inDepth * plan.stride(side) + group.inSide}, {int64_t(side.vector)});
    if (group.groups % tile.threads() != 0)
      places.addConstraint(group.first, Interval{0, group.groups - 1});
    places.simplify();
    shared =
        kernel
            .loop(places, shared,
                  [&, loaded = loaded](ValueRange element, ValueRange at, ValueRange before) -> SmallVector<Value> {
                    Value value = vector::ExtractOp::create(b, loaded, OpFoldResult(element.front()));
                    if (isHeldAsStored())
                      value = values.factor(value, type);
                    return {tensor::InsertOp::create(b, value, before.front(), at)};
                  })
            .front();
  }
  return shared;
}

Value OperandTile::copy(Value number, Value shared, Value stage) {
  for (int64_t turn = 0; turn < turns(); ++turn) {
    Group group = groupOf(turn);
    shared = whereGroupIs(group, shared, [&](Value before) { return copyChunk(group, number, before, stage); });
  }
  return shared;
}

Value OperandTile::whereGroupIs(const Group &group, Value shared, llvm::function_ref<Value(Value)> make) {
  if (group.groups % tile.threads() == 0)
    return make(shared);
  IndexingMap exists = kernel.mapOf({}, {1});
  exists.addConstraint(group.first, Interval{0, group.groups - 1});
  exists.simplify();
  return kernel
      .loop(exists, shared,
            [&](ValueRange, ValueRange, ValueRange before) -> SmallVector<Value> { return {make(before.front())}; })
      .front();
}

Value OperandTile::putChunk(const Group &group, Value loaded, Value shared, Value stage) {
  auto held = VectorType::get({int64_t(side.vector)}, heldType());
  if (loaded.getType() != held)
    loaded = vector::BitCastOp::create(b, held, loaded);
  if (plan.isHeldAsBytes(side))
    loaded = convertBytes(loaded);
  if (!isRoundedInTile())
    return putPiece(group, loaded, 0, shared, stage);
  const unsigned number = plan.piecesOf(side);
  SmallVector<SmallVector<Value>> pieces(number);
  for (int64_t i = 0; i < int64_t(side.vector); ++i) {
    SmallVector<Value> ofOne = factorPieces(b, vector::ExtractOp::create(b, loaded, i), fragmentType(), number);
    for (auto [piece, value] : llvm::zip_equal(pieces, ofOne))
      piece.push_back(value);
  }
  for (auto [piece, factors] : llvm::enumerate(pieces)) {
    Value vector = vector::FromElementsOp::create(b, VectorType::get({int64_t(side.vector)}, factorType()), factors);
    shared = putPiece(group, vector, int64_t(piece), shared, stage);
  }
  return shared;
}

/// Where they are put, and not where they are loaded: there each load would be waited for before anything is
/// multiplied.
Value OperandTile::convertBytes(Value loaded) {
  SmallVector<Value> factors;
  for (int64_t i = 0; i < int64_t(side.vector); ++i)
    factors.push_back(asFragmentFactor(b, vector::ExtractOp::create(b, loaded, i), type, fragmentType()));
  return vector::FromElementsOp::create(b, VectorType::get({int64_t(side.vector)}, factorType()), factors);
}

Value OperandTile::placeOfChunk(const Group &group, Value stage, int64_t piece) {
  auto ofFirst = [&](AffineExpr expression) {
    return expression.replace(getAffineSymbolExpr(0, context), constant(0));
  };
  AffineExpr inSide = ofFirst(group.inSide), inDepth = ofFirst(group.inDepth);
  return FragmentTiles(plan, kernel, factorType(), stage)
      .placeOf(side, side.alongDepth ? inSide : inDepth, side.alongDepth ? inDepth : inSide, piece);
}

Value OperandTile::putPiece(const Group &group, Value factors, int64_t piece, Value shared, Value stage) {
  Value place = placeOfChunk(group, stage, piece);
  return vector::TransferWriteOp::create(b, b.getLoc(), factors, shared, ValueRange{place}, ArrayRef<bool>{true})
      .getResult();
}

/// What holds for one element of a piece holds for all.
Value OperandTile::copyChunk(const Group &group, Value number, Value shared, Value stage) {
  std::optional<StoredOperand> stored = storedOperand(operand, context);
  HLOC_CHECK(stored, "a tile is copied of what is computed");
  Place place = placeOf(group);
  AffineExpr element = getAffineSymbolExpr(0, context);
  for (Condition &condition : place.conditions) {
    HLOC_CHECK(holdsForAll(condition), "a piece that is copied is not whole");
    condition.first = condition.first.replace(element, constant(0));
  }
  SmallVector<AffineExpr> indices;
  for (AffineExpr index : stored->map.affine().getResults())
    indices.push_back(index.replaceDims(place.indices).replace(element, constant(0)));
  SmallVector<Value> operands = valuesAt(number);
  operands.push_back(b.index(0));
  Value isThere = holds(place.conditions, operands, 1);
  IndexingMap source = mapAt(indices, {1});
  source.simplify();
  return xla_gpu::CopyAsyncOp::create(b, shared.getType(), kernel.parameter(stored->parameter),
                                      applyMap(b, source, operands), shared, placeOfChunk(group, stage), side.vector,
                                      isThere);
}

// --- in bulk

void OperandTile::copyInBulk(unsigned number, Value step, Value shared, Value stage, Value barriers) {
  const TileMap &map = *side.map;
  // Of what the blocks of a cluster share, each has a part: of panels, or of the rows of the only one.
  const int64_t blocks = plan.copiersOf(side), panel = plan.panelOf(side),
                inRow = side.alongDepth ? tile.depth : tileSize(side),
                rows = side.alongDepth ? tileSize(side) : tile.depth;
  const int64_t partOfSide = tileSize(side) / blocks, copies = inRow / panel / (side.alongDepth ? 1 : blocks);
  AffineExpr firstInTile = kernel.block() % blocks * partOfSide;
  for (int64_t copy = 0; copy < copies; ++copy) {
    SmallVector<AffineExpr> coordinates;
    for (const TileMap::Dim &dim : map.dims)
      switch (dim.along) {
      case TileMap::Along::Side:
        coordinates.push_back(firstAlong(side) + firstInTile + (side.alongDepth ? 0 : copy * panel));
        break;
      case TileMap::Along::Depth:
        coordinates.push_back(at.step * tile.depth + (side.alongDepth ? copy * panel : 0));
        break;
      case TileMap::Along::Batch:
        coordinates.push_back(at.batch.floorDiv(dim.divisor) % dim.size);
        break;
      }
    // In a stage: rows of a panel follow each other, panels those.
    coordinates.push_back(side.alongDepth ? copy * panel * rows + firstInTile * panel
                                          : firstInTile * rows + copy * panel * rows);
    IndexingMap source = mapAt(coordinates, {});
    source.simplify();
    SmallVector<Value> values = applyMap(b, source, valuesAt(step));
    AffineExpr d0 = getAffineDimExpr(0, context), d1 = getAffineDimExpr(1, context);
    IndexingMap dest(AffineMap::get(2, 0, d0 * plan.stageElements(side) + d1),
                     {{Interval{0, tile.stages - 1}, "stage"}, {Interval{0, plan.stageElements(side) - 1}, {}}}, {},
                     {});
    Value place = applyMap(b, dest, {stage, values.pop_back_val()}).front();
    xla_gpu::CopyBoxOp::create(b, kernel.tensorMap(number), values, shared, place, barriers, stage,
                               blocks > 1 ? b.getI64IntegerAttr((1 << blocks) - 1) : IntegerAttr());
  }
}

} // namespace hloc
