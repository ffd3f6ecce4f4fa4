#include "emitters/heroes/ContractionEmitter.h"

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/ProductArithmetic.h"
#include "emitters/heroes/FragmentTiles.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {
namespace {

/// Products of the code of one iteration: as many terms as make about so many.
constexpr int64_t productsTogether = 128;

class ContractionEmitter : ContractionThreads {
public:
  ContractionEmitter(const ContractionPlan &plan, KernelBuilder &kernel)
      : ContractionThreads(plan, kernel), b(kernel.code()), context(kernel.context()),
        type(plan.hero->shape().elementType()), arithmetic(b, type), result(plan.hero->shape()) {
    for (unsigned i = 0; i < 2; ++i)
      maps.push_back(operandIndexing(*plan.hero, i, context)->map);
  }

  llvm::LogicalResult emit() {
    SmallVector<FunctionRequest, 3> requests;
    if (plan.stage != ReductionStage::Combine)
      requests = {operandRequest(plan.rows), operandRequest(plan.columns)};
    if (plan.stage != ReductionStage::Partial)
      requests.push_back(outputRequest());
    auto functions = kernel.emitFunctions(requests);
    if (failed(functions))
      return failure();
    if (plan.stage != ReductionStage::Partial)
      outputs = functions->back();
    if (plan.stage == ReductionStage::Combine)
      combine();
    else if (SmallVector<Value> made = sums({(*functions)[0], (*functions)[1]}); plan.outputVector)
      storeThroughShared(made);
    else
      storeTile(made);
    return success();
  }

private:
  /// The two sides, rows first, in all arrays of two.
  const ContractionSide &side(unsigned number) const { return number == 0 ? plan.rows : plan.columns; }
  const HloInstruction &operandOf(const ContractionSide &side) const { return *plan.hero->operand(side.operand); }
  ElementType typeOf(const ContractionSide &side) const { return operandOf(side).shape().elementType(); }

  FunctionRequest operandRequest(const ContractionSide &side) const {
    const HloInstruction &operand = operandOf(side);
    FunctionRequest request;
    request.indexSizes.assign(operand.shape().dims().begin(), operand.shape().dims().end());
    request.roots.push_back({&operand, 0, IndexingMap::identity(context, operand.shape().dims())});
    return request;
  }

  /// The outputs at an index of the hero, from its value there.
  FunctionRequest outputRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(result.dims().begin(), result.dims().end());
    for (unsigned number : plan.roots)
      request.roots.push_back({root(number).instr, root(number).result, mapTo(root(number).shape)});
    request.injected.push_back(plan.hero);
    return request;
  }

  const FusionRoot &root(unsigned number) const { return kernel.graph().roots()[number]; }
  IndexingMap mapTo(const Shape &shape) const {
    IndexingMap map = bitcastIndexing(result, shape, context);
    map.simplify();
    return map;
  }

  // --- values: factors and sums, as they are computed with. Integers narrower than a register have a whole one.

  Type computed() {
    if (isFloat(type))
      return computeType(type, context);
    return b.getIntegerType(plan.bits);
  }
  Value zero() { return isFloat(type) ? b.floating(computed(), 0.0) : b.integer(computed(), 0); }
  Value factor(Value stored, ElementType from) {
    Value value = arithmetic.factor(fromStorage(b, stored, from), from);
    return isFloat(type) ? value : b.castI(value, computed(), false);
  }
  Value stored(Value sum) {
    Value value = isFloat(type) ? sum : b.castI(sum, valueType(type, context), false);
    return toStorage(b, arithmetic.result(value), type);
  }

  // --- places. Maps have the launch space, then the number of a step where it matters.

  AffineExpr constant(int64_t value) const { return getAffineConstantExpr(value, context); }
  /// Of the step in its block, of the block's part of the sums, and of the step in its sums.
  AffineExpr stepOfBlock() const { return getAffineDimExpr(kernel.idVariables().size(), context); }
  AffineExpr split() const { return kernel.block().floorDiv(plan.tiles()); }
  AffineExpr stepNumber() const { return split() * plan.stepsOfSplit() + stepOfBlock(); }
  AffineExpr tileNumber() const { return kernel.block() % plan.tiles(); }
  SmallVector<IndexingVariable> variablesOfStep() const {
    SmallVector<IndexingVariable> variables(kernel.idVariables());
    variables.push_back({Interval{0, plan.stepsOfSplit() - 1}, "step"});
    return variables;
  }
  SmallVector<Value> valuesOfStep(Value step) const {
    SmallVector<Value> values(kernel.ids());
    values.push_back(step);
    return values;
  }
  IndexingMap mapOfStep(ArrayRef<AffineExpr> results, ArrayRef<int64_t> loopSizes) const {
    SmallVector<IndexingVariable> dims = variablesOfStep(), ranges;
    for (int64_t size : loopSizes)
      ranges.push_back({Interval{0, size - 1}, {}});
    return IndexingMap(AffineMap::get(dims.size(), ranges.size(), results, context), dims, ranges, {});
  }

  AffineExpr tileAlong(const ContractionSide &own) const {
    AffineExpr number = tileNumber() % (plan.rowTiles() * plan.columnTiles());
    return &own == &plan.rows ? number.floorDiv(plan.columnTiles()) : number % plan.columnTiles();
  }
  void placeBatch(MutableArrayRef<AffineExpr> indices) const {
    place(plan.batch, tileNumber().floorDiv(plan.rowTiles() * plan.columnTiles()), indices);
  }
  /// Indices of the result along `dims`, taken as one.
  void place(ArrayRef<unsigned> dims, AffineExpr position, MutableArrayRef<AffineExpr> indices) const {
    SmallVector<int64_t> sizes;
    for (unsigned dim : dims)
      sizes.push_back(result.dim(dim));
    for (auto [dim, index] : llvm::zip_equal(dims, delinearize(position, sizes, context)))
      indices[dim] = index;
  }

  // --- from memory to shared memory

  /// A thread's `vector` neighbours number `turn` of a side's tile.
  struct Group {
    AffineExpr inSide, inDepth; ///< of an element, in the tile; s0 is its number in the group
    AffineExpr first;           ///< number of the group
    int64_t groups;             ///< of the tile
  };

  Group groupOf(const ContractionSide &own, int64_t turn) const {
    int64_t size = tileSize(own), vector = own.vector;
    Group group;
    group.groups = size * tile.depth / vector;
    group.first = kernel.thread() + turn * tile.threads();
    AffineExpr element = getAffineSymbolExpr(0, context);
    if (!own.alongDepth) {
      group.inSide = group.first % (size / vector) * vector + element;
      group.inDepth = group.first.floorDiv(size / vector);
      return group;
    }
    // Lanes side by side along a sum read a sector, no more: then they write to different banks. Chunks do if lanes
    // write whole rows.
    int64_t bytes = vector * std::max<int64_t>(deviceBits(typeOf(own)) / 8, 1);
    int64_t lanes = tile.onTensorCores ? tile.depth / vector : std::clamp<int64_t>(32 / bytes, 1, tile.depth / vector);
    group.inSide = group.first.floorDiv(lanes) % size;
    group.inDepth = (group.first % lanes + group.first.floorDiv(lanes * size) * lanes) * vector + element;
    return group;
  }

  int64_t turnsOf(const ContractionSide &own) const {
    return llvm::divideCeil(tileSize(own) * tile.depth / int64_t(own.vector), tile.threads());
  }

  /// What has to hold for an element to be there, and where it is in the operand.
  struct Place {
    SmallVector<std::pair<AffineExpr, Interval>> conditions;
    SmallVector<AffineExpr> indices;
  };

  Place placeOf(const ContractionSide &own, const Group &group) const {
    const IndexingMap &map = maps[own.operand];
    Place found;
    SmallVector<AffineExpr> dims(result.rank(), constant(0)), ranges(map.ranges().size());
    AffineExpr position = tileAlong(own) * tileSize(own) + group.inSide;
    placeBatch(dims);
    place(own.dims, position, dims);
    if (own.size % tileSize(own) != 0)
      found.conditions.push_back({position, Interval{0, own.size - 1}});
    if (plan.stepsOfSplit() * plan.splits != plan.steps())
      found.conditions.push_back({stepNumber(), Interval{0, plan.steps() - 1}});
    AffineExpr inner = stepNumber() % plan.stepsOfInner() * tile.depth + group.inDepth;
    if (plan.innerDepth() % tile.depth != 0)
      found.conditions.push_back({inner, Interval{0, plan.innerDepth() - 1}});
    placeDepth(stepNumber().floorDiv(plan.stepsOfInner()), inner, ranges);
    auto replace = [&](AffineExpr expression) { return expression.replaceDimsAndSymbols(dims, ranges); };
    for (const auto &[expression, interval] : map.constraints())
      found.conditions.push_back({replace(expression), interval});
    for (auto [dim, size] : llvm::enumerate(result.dims()))
      if (Interval bounds = map.dims()[dim].bounds; bounds != Interval{0, size - 1})
        found.conditions.push_back({dims[dim], bounds});
    for (AffineExpr index : map.affine().getResults())
      found.indices.push_back(replace(index));
    return found;
  }

  void placeDepth(AffineExpr outer, AffineExpr inner, MutableArrayRef<AffineExpr> ranges) const {
    ArrayRef<int64_t> sizes = plan.depthSizes;
    SmallVector<AffineExpr> values = delinearize(outer, sizes.take_front(plan.outerDepth), context);
    llvm::append_range(values, delinearize(inner, sizes.drop_front(plan.outerDepth), context));
    for (auto [variable, start, value] : llvm::zip_equal(plan.depth, plan.depthStarts, values))
      ranges[variable] = value + start;
  }

  Value holds(ArrayRef<std::pair<AffineExpr, Interval>> conditions, ValueRange operands, int64_t elements) {
    Value all;
    auto require = [&](CodeBuilder::IPred predicate, Value value, int64_t bound) {
      Value one = b.cmpI(predicate, value, b.index(bound));
      all = all ? b.andI(all, one) : one;
    };
    for (const auto &[expression, interval] : conditions) {
      IndexingMap map = mapOfStep({expression}, {elements});
      Interval known = map.range(expression);
      map.simplify();
      Value value = applyMap(b, map, operands).front();
      if (known.lower < interval.lower)
        require(CodeBuilder::IPred::sge, value, interval.lower);
      if (known.upper > interval.upper)
        require(CodeBuilder::IPred::sle, value, interval.upper);
    }
    return all;
  }

  Place placeOf(const ContractionSide &own, int64_t turn) const {
    Group group = groupOf(own, turn);
    Place at = placeOf(own, group);
    if (group.groups % tile.threads() != 0)
      at.conditions.push_back({group.first, Interval{0, group.groups - 1}});
    return at;
  }

  /// Is the side held as it is stored until it goes to shared memory? Behind tests, as factors, each vector would be
  /// waited for before the next is loaded.
  ElementType fragmentType(const ContractionSide &own) const { return *ContractionPlan::fragmentType(typeOf(own)); }
  bool isHeldAsStored(const ContractionSide &own) const {
    return tile.onTensorCores || !placeOf(own, int64_t(0)).conditions.empty();
  }
  Type heldType(const ContractionSide &own) {
    if (tile.onTensorCores)
      return storageType(fragmentType(own), context);
    return isHeldAsStored(own) ? storageType(typeOf(own), context) : computed();
  }

  /// A thread's elements of a side's tile in step `step`; zeros where there are none.
  SmallVector<Value> load(const ContractionSide &own, func::FuncOp function, Value step) {
    SmallVector<Value> vectors;
    for (int64_t turn = 0; turn < turnsOf(own); ++turn) {
      Place at = placeOf(own, turn);
      vectors.push_back(tile.onTensorCores ? loadChunk(own, function, at, step) : loadVector(own, function, at, step));
    }
    return vectors;
  }

  Value loadVector(const ContractionSide &own, func::FuncOp function, const Place &at, Value step) {
    auto type = VectorType::get({int64_t(own.vector)}, heldType(own));
    return kernel
        .loop(mapOfStep({}, {int64_t(own.vector)}), valuesOfStep(step), zeros(type),
              [&](ValueRange element, ValueRange, ValueRange before) -> SmallVector<Value> {
                Value value = loadElement(own, function, at, step, element.front());
                return {vector::InsertOp::create(b, value, before.front(), OpFoldResult(element.front()))};
              })
        .front();
  }

  Value zeros(Type type) { return arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(type))); }
  /// What `make` makes of `type` where the condition holds, if there is one.
  Value orZeros(Value condition, Type type, llvm::function_ref<Value()> make) {
    if (!condition)
      return make();
    auto branch = scf::IfOp::create(b, TypeRange{type}, condition, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, make());
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, zeros(type));
    return branch.getResult(0);
  }

  /// Is a condition's expression, of the first element, followed by those of the others, and its interval by whole
  /// groups?
  bool holdsForAll(const std::pair<AffineExpr, Interval> &condition, int64_t elements) const {
    const auto &[expression, interval] = condition;
    if (!expression.isFunctionOfSymbol(0))
      return true;
    AffineExpr element = getAffineSymbolExpr(0, context), first = expression.replace(element, constant(0));
    const unsigned numDims = unsigned(kernel.idVariables().size()) + 1;
    return simplifyAffineExpr(expression - first - element, numDims, 1) == constant(0) &&
           first.getLargestKnownDivisor() % elements == 0 && interval.lower % elements == 0 &&
           (interval.upper + 1) % elements == 0;
  }

  /// A thread's neighbours as words where they fill any. What holds for all of them is tested once.
  Value loadChunk(const ContractionSide &own, func::FuncOp function, const Place &at, Value step) {
    const int64_t elements = own.vector;
    Place inGroup = at;
    SmallVector<std::pair<AffineExpr, Interval>> ofGroup;
    llvm::erase_if(inGroup.conditions, [&](const auto &condition) {
      if (!holdsForAll(condition, elements))
        return false;
      ofGroup.push_back({condition.first.replace(getAffineSymbolExpr(0, context), constant(0)), condition.second});
      return true;
    });
    const bool areWords = elements % 2 == 0;
    auto words =
        areWords ? VectorType::get({elements / 2}, b.getI32Type()) : VectorType::get({elements}, heldType(own));
    SmallVector<Value> operands = valuesOfStep(step);
    operands.push_back(b.index(0));
    return orZeros(holds(ofGroup, operands, 1), words, [&]() -> Value {
      Value loaded = loadVector(own, function, inGroup, step);
      return areWords ? vector::BitCastOp::create(b, words, loaded) : loaded;
    });
  }

  Value loadElement(const ContractionSide &own, func::FuncOp function, const Place &at, Value step, Value element) {
    SmallVector<Value> operands = valuesOfStep(step);
    operands.push_back(element);
    auto read = [&]() -> Value {
      IndexingMap map = mapOfStep(at.indices, {int64_t(own.vector)});
      map.simplify();
      Value stored = kernel.call(function, applyMap(b, map, operands)).front();
      if (tile.onTensorCores)
        return typeOf(own) == fragmentType(own) ? stored : convertElement(b, stored, typeOf(own), fragmentType(own));
      return isHeldAsStored(own) ? stored : factor(stored, typeOf(own));
    };
    return orZeros(holds(at.conditions, operands, own.vector), heldType(own), read);
  }

  /// Puts what was loaded into a side's tile, as factors.
  Value fill(const ContractionSide &own, ValueRange vectors, Value shared) {
    if (tile.onTensorCores)
      return fillChunks(own, vectors, shared);
    for (auto [turn, values] : llvm::enumerate(vectors)) {
      Group group = groupOf(own, int64_t(turn));
      IndexingMap map = kernel.mapOf({group.inDepth * plan.stride(own) + group.inSide}, {int64_t(own.vector)});
      if (group.groups % tile.threads() != 0)
        map.addConstraint(group.first, Interval{0, group.groups - 1});
      map.simplify();
      shared =
          kernel
              .loop(map, shared,
                    [&, values = values](ValueRange element, ValueRange at, ValueRange before) -> SmallVector<Value> {
                      Value value = vector::ExtractOp::create(b, values, OpFoldResult(element.front()));
                      if (isHeldAsStored(own))
                        value = factor(value, typeOf(own));
                      return {tensor::InsertOp::create(b, value, before.front(), at)};
                    })
              .front();
    }
    return shared;
  }

  Value fillChunks(const ContractionSide &own, ValueRange vectors, Value shared) {
    for (auto [turn, values] : llvm::enumerate(vectors)) {
      Group group = groupOf(own, int64_t(turn));
      if (group.groups % tile.threads() == 0) {
        shared = putChunk(own, group, values, shared);
        continue;
      }
      IndexingMap map = kernel.mapOf({}, {1});
      map.addConstraint(group.first, Interval{0, group.groups - 1});
      map.simplify();
      shared = kernel
                   .loop(map, shared,
                         [&, values = values](ValueRange, ValueRange, ValueRange before) -> SmallVector<Value> {
                           return {putChunk(own, group, values, before.front())};
                         })
                   .front();
    }
    return shared;
  }

  Value putChunk(const ContractionSide &own, const Group &group, Value values, Value shared) {
    auto ofFirst = [&](AffineExpr expression) {
      return expression.replace(getAffineSymbolExpr(0, context), constant(0));
    };
    AffineExpr side = ofFirst(group.inSide), depth = ofFirst(group.inDepth);
    Value at = FragmentTiles(plan, kernel, heldType(own))
                   .placeOf(own, own.alongDepth ? side : depth, own.alongDepth ? depth : side);
    auto stored = VectorType::get({int64_t(own.vector)}, heldType(own));
    if (values.getType() != stored)
      values = vector::BitCastOp::create(b, stored, values);
    return vector::TransferWriteOp::create(b, b.getLoc(), values, shared, ValueRange{at}, ArrayRef<bool>{true})
        .getResult();
  }

  // --- sums

  /// A thread's sums, by row and column, of all terms. While a step's products are added up, what the next one needs is
  /// on its way to registers.
  SmallVector<Value> sums(std::array<func::FuncOp, 2> functions) {
    SmallVector<Value> carried;
    for (unsigned i = 0; i < 2; ++i)
      carried.push_back(xla_gpu::AllocateSharedOp::create(
          b, RankedTensorType::get({plan.tileElements(side(i))}, tile.onTensorCores ? heldType(side(i)) : computed())));
    const int64_t numSums = tile.threadRows * tile.threadColumns, numTurns = turnsOf(plan.rows);
    carried.append(numSums, zero());
    llvm::append_range(carried, loadBoth(functions, b.index(0)));
    IndexingMap steps = IndexingMap::fromSizes(AffineMap::get(0, 1, {}, context), {}, {plan.stepsOfSplit()});
    carried = kernel.loop(steps, {}, carried, [&](ValueRange step, ValueRange, ValueRange before) {
      ValueRange loaded = before.drop_front(2 + numSums);
      SmallVector<Value> tiles = synchronize({fill(plan.rows, loaded.take_front(numTurns), before[0]),
                                              fill(plan.columns, loaded.drop_front(numTurns), before[1])});
      SmallVector<Value> following = loadFollowing(functions, step.front(), loaded);
      SmallVector<Value> added =
          tile.onTensorCores
              ? FragmentTiles(plan, kernel, heldType(plan.rows)).multiply(tiles, before.slice(2, numSums))
              : multiply(tiles, before.slice(2, numSums));
      SmallVector<Value> next = synchronize(tiles);
      llvm::append_range(next, added);
      llvm::append_range(next, following);
      return next;
    });
    return SmallVector<Value>(ArrayRef(carried).slice(2, numSums));
  }

  SmallVector<Value> loadBoth(std::array<func::FuncOp, 2> functions, Value step) {
    SmallVector<Value> loaded = load(plan.rows, functions[0], step);
    llvm::append_range(loaded, load(plan.columns, functions[1], step));
    return loaded;
  }

  /// What the step after `step` needs; `otherwise` where there is none.
  SmallVector<Value> loadFollowing(std::array<func::FuncOp, 2> functions, Value step, ValueRange otherwise) {
    if (plan.stepsOfSplit() == 1)
      return SmallVector<Value>(otherwise);
    Value follows = b.cmpI(CodeBuilder::IPred::slt, step, b.index(plan.stepsOfSplit() - 1));
    auto branch = scf::IfOp::create(b, otherwise.getTypes(), follows, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, otherwise);
    b.setInsertionPointToEnd(branch.thenBlock());
    IndexingMap next(AffineMap::get(1, 0, getAffineDimExpr(0, context) + 1),
                     IndexingVariable{Interval{0, plan.stepsOfSplit() - 2}, "step"}, {}, {});
    scf::YieldOp::create(b, loadBoth(functions, applyMap(b, next, step).front()));
    return SmallVector<Value>(branch.getResults());
  }

  SmallVector<Value> synchronize(ValueRange tiles) {
    return SmallVector<Value>(xla_gpu::SyncThreadsOp::create(b, TypeRange(tiles), tiles).getResults());
  }

  /// Adds the products of what is in the tiles.
  SmallVector<Value> multiply(ArrayRef<Value> tiles, ValueRange sums) {
    int64_t together = std::clamp<int64_t>(productsTogether / (tile.threadRows * tile.threadColumns), 1, tile.depth);
    IndexingMap loop = IndexingMap::fromSizes(AffineMap::get(0, 1, {}, context), {}, {tile.depth / together});
    return kernel.loop(loop, {}, sums, [&](ValueRange number, ValueRange, ValueRange before) {
      SmallVector<Value> next(before);
      for (int64_t term = 0; term < together; ++term) {
        SmallVector<Value> factors[2];
        for (unsigned i = 0; i < 2; ++i)
          factors[i] = readFactors(side(i), tiles[i], number.front(), together, term);
        for (int64_t i = 0; i < int64_t(next.size()); ++i)
          next[i] = arithmetic.add(
              next[i], arithmetic.multiply(factors[0][i / tile.threadColumns], factors[1][i % tile.threadColumns]));
      }
      return next;
    });
  }

  /// A thread's factors of one side, of term `number * together + term` of those in the tile.
  SmallVector<Value> readFactors(const ContractionSide &own, Value shared, Value number, int64_t together,
                                 int64_t term) {
    SmallVector<Value> factors;
    auto vectorType = VectorType::get({pieceOf(own)}, computed());
    Value padding = ub::PoisonOp::create(b, computed());
    for (int64_t piece = 0; piece < perThread(own) / pieceOf(own); ++piece) {
      AffineExpr depth = getAffineSymbolExpr(0, context) * together + term;
      IndexingMap map = kernel.mapOf({depth * plan.stride(own) + firstOfPiece(own, piece)}, {tile.depth / together});
      map.simplify();
      SmallVector<Value> operands(kernel.ids());
      operands.push_back(number);
      Value start = applyMap(b, map, operands).front();
      Value read = vector::TransferReadOp::create(b, vectorType, shared, start, padding, ArrayRef<bool>{true});
      for (int64_t i = 0; i < pieceOf(own); ++i)
        factors.push_back(vector::ExtractOp::create(b, read, i));
    }
    return factors;
  }

  // --- outputs

  void storeTile(ArrayRef<Value> sums) {
    int64_t vector = pieceOf(plan.columns);
    for (int64_t row = 0; row < tile.threadRows; ++row)
      for (int64_t piece = 0; piece < tile.threadColumns / vector; ++piece)
        storePiece(row, piece, sums.slice(row * tile.threadColumns + piece * vector, vector));
  }

  /// Some of all threads' rows at a time.
  void storeThroughShared(ArrayRef<Value> sums) {
    const int64_t together = plan.outputRowsOfThread();
    Value shared = xla_gpu::AllocateSharedOp::create(
        b, RankedTensorType::get({plan.outputElements()}, storageType(type, context)));
    for (int64_t first = 0; first < tile.threadRows; first += together) {
      for (int64_t row = 0; row < together; ++row)
        for (int64_t piece = 0; piece < tile.threadColumns / 2; ++piece)
          shared = putPair(row, together, piece, sums.slice((first + row) * tile.threadColumns + 2 * piece, 2), shared);
      shared = synchronize(shared).front();
      storeRows(first, together, shared);
      if (first + together < tile.threadRows)
        shared = synchronize(shared).front();
    }
  }

  Value putPair(int64_t row, int64_t together, int64_t piece, ArrayRef<Value> sums, Value shared) {
    AffineExpr rowInShared =
        warpAlong(plan.rows) * (tile.laneRows() * together) + row * tile.laneRows() + laneAlong(plan.rows);
    IndexingMap map = kernel.mapOf({rowInShared * plan.outputStride() + firstOfPiece(plan.columns, piece)}, {});
    map.simplify();
    Value at = applyMap(b, map, kernel.ids()).front();
    Value values = vector::FromElementsOp::create(b, VectorType::get({2}, storageType(type, context)),
                                                  ValueRange{stored(sums[0]), stored(sums[1])});
    return vector::TransferWriteOp::create(b, b.getLoc(), values, shared, ValueRange{at}, ArrayRef<bool>{true})
        .getResult();
  }

  /// The outputs of those of each thread's rows, from `first` on, that are in shared memory: in their order in memory.
  void storeRows(int64_t first, int64_t together, Value shared) {
    const int64_t vector = plan.outputVector, vectorsOfRow = tile.columns() / vector,
                  ofWarp = tile.laneRows() * together;
    const int64_t vectors = tile.warpRows * ofWarp * vectorsOfRow, turns = llvm::divideCeil(vectors, tile.threads());
    AffineExpr number = kernel.thread() + getAffineSymbolExpr(0, context) * tile.threads();
    AffineExpr row = number.floorDiv(vectorsOfRow);
    AffineExpr column = number % vectorsOfRow * vector + getAffineSymbolExpr(1, context);
    AffineExpr rowPosition = tileAlong(plan.rows) * tile.rows() +
                             row.floorDiv(ofWarp) * (tile.laneRows() * tile.threadRows) + first * tile.laneRows() +
                             row % ofWarp;
    AffineExpr columnPosition = tileAlong(plan.columns) * tile.columns() + column;
    SmallVector<AffineExpr> indices(result.rank());
    placeBatch(indices);
    place(plan.rows.dims, rowPosition, indices);
    place(plan.columns.dims, columnPosition, indices);
    indices.push_back(row * plan.outputStride() + column);
    IndexingMap map = kernel.mapOf(indices, {turns, vector});
    map.addConstraint(rowPosition, Interval{0, plan.rows.size - 1});
    map.addConstraint(columnPosition, Interval{0, plan.columns.size - 1});
    if (vectors % tile.threads() != 0)
      map.addConstraint(number, Interval{0, vectors - 1});
    map.simplify();
    SmallVector<Value> made = kernel.loop(map, kernel.outputs(), [&](ValueRange, ValueRange at, ValueRange before) {
      Value value = tensor::ExtractOp::create(b, shared, at.back());
      return insertOutputs(at.drop_back(), value, before);
    });
    kernel.outputs().assign(made.begin(), made.end());
  }

  /// What is made of the hero's value at an index of it.
  SmallVector<Value> insertOutputs(ValueRange at, Value value, ValueRange before) {
    ValueRange results = kernel.call(outputs, at, value);
    SmallVector<Value> next(before);
    for (auto [result, number] : llvm::zip_equal(results, plan.roots))
      next[number] = tensor::InsertOp::create(b, result, next[number], applyMap(b, mapTo(root(number).shape), at));
    return next;
  }

  /// Neighbouring results of one row.
  void storePiece(int64_t row, int64_t piece, ArrayRef<Value> sums) {
    int64_t rowPiece = pieceOf(plan.rows), vector = pieceOf(plan.columns);
    AffineExpr rowPosition =
        tileAlong(plan.rows) * tile.rows() + firstOfPiece(plan.rows, row / rowPiece) + row % rowPiece;
    AffineExpr first = tileAlong(plan.columns) * tile.columns() + firstOfPiece(plan.columns, piece);
    AffineExpr columnPosition = first + getAffineSymbolExpr(0, context);
    SmallVector<AffineExpr> indices(result.rank());
    placeBatch(indices);
    place(plan.rows.dims, rowPosition, indices);
    place(plan.columns.dims, columnPosition, indices);
    const bool isPartial = plan.stage == ReductionStage::Partial;
    if (isPartial)
      indices.insert(indices.begin(), split());
    IndexingMap map = kernel.mapOf(indices, {vector});
    map.addConstraint(rowPosition, Interval{0, plan.rows.size - 1});
    map.addConstraint(columnPosition, Interval{0, plan.columns.size - 1});
    map.simplify();
    if (isPartial)
      storePartial(map, sums);
    else
      storeOutputs(map, sums);
  }

  Value vectorOf(ArrayRef<Value> sums) {
    return vector::FromElementsOp::create(b, VectorType::get({int64_t(sums.size())}, computed()), sums);
  }

  void storePartial(const IndexingMap &map, ArrayRef<Value> sums) {
    Value values = vectorOf(sums);
    SmallVector<Value> stored = kernel.loop(
        map, kernel.scratch(), [&](ValueRange element, ValueRange at, ValueRange before) -> SmallVector<Value> {
          Value sum = vector::ExtractOp::create(b, values, OpFoldResult(element.front()));
          return {tensor::InsertOp::create(b, sum, before.front(), at)};
        });
    kernel.scratch().assign(stored.begin(), stored.end());
  }

  /// What is made of `sums`, whose indices `map` has.
  void storeOutputs(const IndexingMap &map, ArrayRef<Value> sums) {
    Value values = vectorOf(sums);
    SmallVector<Value> made =
        kernel.loop(map, kernel.outputs(), [&](ValueRange element, ValueRange at, ValueRange before) {
          Value sum = vector::ExtractOp::create(b, values, OpFoldResult(element.front()));
          return insertOutputs(at, stored(sum), before);
        });
    kernel.outputs().assign(made.begin(), made.end());
  }

  // --- sums of several blocks

  /// Adds up what blocks left of a thread's sums, which are neighbours in memory.
  void combine() {
    const int64_t perThread = plan.perThread;
    AffineExpr first = kernel.firstPosition(perThread);
    const Interval all{0, result.numElements() - perThread};
    /// From the launch space and a loop over the neighbours to these, with what `before` gives in front.
    auto neighbours = [&](ArrayRef<AffineExpr> before, ArrayRef<int64_t> loopSizes) {
      SmallVector<AffineExpr> indices(before);
      AffineExpr element = getAffineSymbolExpr(unsigned(loopSizes.size()) - 1, context);
      llvm::append_range(indices, memoryOrderIndices(result, first + element));
      IndexingMap map = kernel.mapOf(indices, loopSizes);
      map.addConstraint(first, all);
      map.simplify();
      return map;
    };
    IndexingMap parts = neighbours({getAffineSymbolExpr(0, context)}, {plan.splits, perThread});
    IndexingMap loop = kernel.mapOf({}, {plan.splits});
    loop.addConstraint(first, all);
    SmallVector<Value> sums(size_t(perThread), zero());
    sums = kernel.loop(loop, sums, [&](ValueRange split, ValueRange, ValueRange before) {
      SmallVector<Value> next;
      for (auto [i, sum] : llvm::enumerate(before)) {
        SmallVector<Value> variables(kernel.ids());
        variables.append({split.front(), b.index(int64_t(i))});
        SmallVector<Value> at = applyMap(b, parts, variables);
        next.push_back(arithmetic.add(sum, tensor::ExtractOp::create(b, kernel.scratch().front(), at)));
      }
      return next;
    });
    storeOutputs(neighbours({}, {perThread}), sums);
  }

  CodeBuilder &b;
  MLIRContext *context;
  const ElementType type;
  ProductArithmetic arithmetic;
  const Shape result;
  std::vector<IndexingMap> maps;
  func::FuncOp outputs; ///< of kernels that make them
};

} // namespace

llvm::LogicalResult emitHero(const ContractionPlan &plan, KernelBuilder &kernel) {
  return ContractionEmitter(plan, kernel).emit();
}

} // namespace hloc
