#include "emitters/heroes/TransposeEmitter.h"

#include "emitters/ElementStorage.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {
namespace {

/// One order of a tile's box, dealt to threads: each takes groups of `vector` neighbours in a run, `turned` times along
/// the operand's minor dimension. Loop variables of the maps: step s0, then of a group s1 (along the minor dimension)
/// and s2 (in the run).
struct DealtWalk {
  TileWalk walk;
  int64_t vector, turned;
  int64_t groups, steps, active;
  SmallVector<AffineExpr> first; ///< of a group, within the box
  SmallVector<AffineExpr> local; ///< an element, within the box
  SmallVector<AffineExpr> array; ///< an element, in the array
};

class TransposeEmitter {
public:
  TransposeEmitter(const TransposePlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()),
        input(plan.heroes.front()->operand(0)->shape()), output(plan.heroes.front()->shape()),
        minor(plan.inputDims.size() - 1) {}

  llvm::LogicalResult emit() {
    FunctionRequest requests[] = {fillRequest(), readRequest()};
    auto functions = kernel.emitFunctions(requests);
    if (failed(functions))
      return failure();
    std::vector<Value> tiles = fill((*functions)[0]);
    auto sync = xla_gpu::SyncThreadsOp::create(b, TypeRange(ValueRange(tiles)), tiles);
    read((*functions)[1], sync.getResults());
    return success();
  }

private:
  const FusionRoot &root(unsigned number) const { return kernel.graph().roots()[number]; }

  IndexingMap mapTo(const Shape &space, const Shape &shape) const {
    IndexingMap map = bitcastIndexing(space, shape, context);
    map.simplify();
    return map;
  }

  /// The heroes' operands and the side outputs, at an index of the first operand.
  FunctionRequest fillRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(input.dims().begin(), input.dims().end());
    for (const HloInstruction *hero : plan.heroes)
      request.roots.push_back({hero->operand(0), 0, mapTo(input, hero->operand(0)->shape())});
    for (unsigned side : plan.sideRoots)
      request.roots.push_back({root(side).instr, root(side).result, mapTo(input, root(side).shape)});
    return request;
  }

  /// The outputs at an index of the first hero, from the heroes' values there.
  FunctionRequest readRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(output.dims().begin(), output.dims().end());
    for (unsigned number : plan.roots)
      request.roots.push_back({root(number).instr, root(number).result, mapTo(output, root(number).shape)});
    request.injected.assign(plan.heroes.begin(), plan.heroes.end());
    return request;
  }

  // --- who has which element

  /// `step`: of the block, s0 but for tails.
  DealtWalk deal(bool ofOutput, AffineExpr step) const {
    DealtWalk dealt{plan.walk(ofOutput),
                    ofOutput ? plan.outputVector : plan.inputVector,
                    ofOutput ? plan.tileVector : 1,
                    1,
                    1,
                    1,
                    {},
                    {},
                    {}};
    const TileWalk &walk = dealt.walk;
    SmallVector<int64_t> sizes = walk.box;
    SmallVector<int64_t> units(sizes.size(), 1);
    SmallVector<AffineExpr> within(sizes.size(), getAffineConstantExpr(0, context));
    for (unsigned i = 0; i < walk.outer; ++i)
      if (walk.order[i] == minor && dealt.turned > 1) {
        units[i] = dealt.turned;
        within[i] = getAffineSymbolExpr(1, context);
      }
    units.back() = dealt.vector;
    within.back() = getAffineSymbolExpr(2, context);
    for (auto [size, unit] : llvm::zip(sizes, units)) {
      size /= unit;
      dealt.groups *= size;
    }
    dealt.active = plan.activeThreads(sizes.back());
    dealt.steps = llvm::divideCeil(dealt.groups, dealt.active);

    SmallVector<AffineExpr> tile = tileOfBlock();
    SmallVector<AffineExpr> group = delinearize(groupNumber(dealt, step), sizes, context);
    for (size_t i = 0; i < sizes.size(); ++i) {
      dealt.first.push_back(group[i] * units[i]);
      dealt.local.push_back(dealt.first.back() + within[i]);
      // Beyond its first dimension a run has one tile.
      dealt.array.push_back(tile[walk.order[i]] * walk.box[i] + dealt.local.back());
    }
    return dealt;
  }

  AffineExpr groupNumber(const DealtWalk &dealt, AffineExpr step) const {
    return step * dealt.active + kernel.thread();
  }
  AffineExpr stepVariable() const { return getAffineSymbolExpr(0, context); }

  /// Number of the block's tile along each dimension of the operand.
  SmallVector<AffineExpr> tileOfBlock() const {
    SmallVector<int64_t> counts;
    for (unsigned i = 0; i < plan.inputDims.size(); ++i)
      counts.push_back(plan.tilesAlong(i));
    return delinearize(kernel.block(), counts, context);
  }

  /// Position of an element in a tile.
  AffineExpr positionInTile(const DealtWalk &dealt, ArrayRef<AffineExpr> local, bool ofOutput) const {
    AffineExpr position;
    if (ofOutput == plan.inOutputOrder) {
      position = linearize(local, dealt.walk.box, context);
    } else {
      const TileWalk &walk = dealt.walk;
      SmallVector<AffineExpr> coordinates(plan.inputDims.size());
      SmallVector<int64_t> runSizes;
      for (unsigned i = 0; i < walk.order.size(); ++i)
        if (i < walk.outer)
          coordinates[walk.order[i]] = local[i];
        else
          runSizes.push_back(plan.box[walk.order[i]]);
      for (auto [i, index] : llvm::enumerate(delinearize(local.back(), runSizes, context)))
        coordinates[walk.order[walk.outer + i]] = index;
      SmallVector<AffineExpr> ordered;
      SmallVector<int64_t> sizes;
      for (unsigned dim : plan.walk(plan.inOutputOrder).order) {
        ordered.push_back(coordinates[dim]);
        sizes.push_back(plan.box[dim]);
      }
      position = linearize(ordered, sizes, context);
    }
    return plan.pad == 0 ? position : position + position.floorDiv(plan.period) * plan.pad;
  }

  /// Map to the logical indices of `shape`, the array of the walk.
  IndexingMap arrayMap(const DealtWalk &dealt, const Shape &shape, ArrayRef<int64_t> loopSizes) const {
    SmallVector<int64_t> rowMajor;
    for (size_t i = 0; i < dealt.walk.dims.size(); ++i)
      rowMajor.insert(rowMajor.begin(), i);
    IndexingMap toShape = bitcastMap(dealt.walk.dims, rowMajor, shape.dims(), shape.minorToMajor(), context);
    SmallVector<AffineExpr> results;
    for (AffineExpr result : toShape.affine().getResults())
      results.push_back(result.replaceDims(dealt.array));
    return kernel.mapOf(results, loopSizes);
  }

  /// Groups are in the array as a whole or not at all, but along the operand's minor dimension.
  void constrain(IndexingMap &map, const DealtWalk &dealt) const {
    map.addConstraint(kernel.thread(), Interval{0, dealt.active - 1});
    map.addConstraint(groupNumber(dealt, stepVariable()), Interval{0, dealt.groups - 1});
    for (auto [i, position] : llvm::enumerate(dealt.array)) {
      bool isRun = i + 1 == dealt.array.size();
      AffineExpr first = isRun ? position - getAffineSymbolExpr(2, context) : position;
      map.addConstraint(first, Interval{0, dealt.walk.dims[i] - (isRun ? dealt.vector : 1)});
    }
  }

  /// `body` for each of a thread's elements, the last elements of an array that ends inside a group included. Results
  /// of the map are the indices in `shape`.
  using ElementBody = llvm::function_ref<SmallVector<Value>(const DealtWalk &, ValueRange operands, ValueRange indices,
                                                            ValueRange carried)>;
  SmallVector<Value> forEachElement(bool ofOutput, const Shape &shape, SmallVector<Value> carried, ElementBody body) {
    auto loop = [&](const DealtWalk &dealt, IndexingMap map) {
      map.simplify();
      carried = kernel.loop(map, carried, [&](ValueRange variables, ValueRange indices, ValueRange state) {
        SmallVector<Value> operands(kernel.ids());
        llvm::append_range(operands, variables);
        return body(dealt, operands, indices, state);
      });
    };
    DealtWalk dealt = deal(ofOutput, stepVariable());
    IndexingMap map = arrayMap(dealt, shape, {dealt.steps, 1, dealt.vector});
    constrain(map, dealt);
    loop(dealt, std::move(map));
    int64_t size = dealt.walk.dims.back(), tail = size % dealt.vector;
    if (tail == 0)
      return carried;
    // Of one thread of the last block; the run is all there is.
    int64_t whole = size - tail, step = whole % dealt.walk.box.back() / dealt.vector / dealt.active;
    DealtWalk last = deal(ofOutput, getAffineConstantExpr(step, context));
    IndexingMap tailMap = arrayMap(last, shape, {1, 1, tail});
    tailMap.addConstraint(kernel.thread(), Interval{0, last.active - 1});
    tailMap.addConstraint(groupNumber(last, getAffineConstantExpr(step, context)), Interval{0, last.groups - 1});
    tailMap.addConstraint(last.array.back() - getAffineSymbolExpr(2, context), Interval{whole, whole});
    loop(last, std::move(tailMap));
    return carried;
  }

  /// Of an element, for operands as a loop of `deal` has them.
  Value tileIndex(const DealtWalk &dealt, bool ofOutput, ValueRange operands) {
    AffineExpr position = positionInTile(dealt, dealt.local, ofOutput);
    return applyMap(b, kernel.mapOf({position}, {dealt.steps, dealt.turned, dealt.vector}), operands).front();
  }

  // --- filling

  Type elementType(const HloInstruction &hero) const { return storageType(hero.shape().elementType(), context); }
  /// Packed elements take a byte each.
  Type tileType(const HloInstruction &hero) const {
    Type element = elementType(hero);
    return element.isInteger() && element.getIntOrFloatBitWidth() < 8 ? Type(b.getI8Type()) : element;
  }
  Value toTile(const HloInstruction &hero, Value value) { return b.castI(value, tileType(hero), false); }

  /// The box goes to the tiles in the order of the operand. Returns the tiles.
  std::vector<Value> fill(func::FuncOp function) {
    SmallVector<Value> carried;
    for (const HloInstruction *hero : plan.heroes) {
      auto type = RankedTensorType::get({plan.tileElements()}, tileType(*hero));
      carried.push_back(xla_gpu::AllocateSharedOp::create(b, type));
    }
    for (unsigned side : plan.sideRoots)
      carried.push_back(kernel.outputs()[side]);
    SmallVector<Value> results = forEachElement(
        false, input, carried, [&](const DealtWalk &dealt, ValueRange operands, ValueRange indices, ValueRange state) {
          ValueRange values = kernel.call(function, indices);
          Value inTile = tileIndex(dealt, false, operands);
          SmallVector<Value> next;
          for (auto [i, hero] : llvm::enumerate(plan.heroes)) {
            Value value = tileType(*hero) == elementType(*hero) ? values[i] : toTile(*hero, values[i]);
            next.push_back(tensor::InsertOp::create(b, value, state[i], inTile));
          }
          for (auto [i, side] : llvm::enumerate(plan.sideRoots)) {
            unsigned number = plan.heroes.size() + i;
            SmallVector<Value> at = applyMap(b, mapTo(input, root(side).shape), indices);
            next.push_back(tensor::InsertOp::create(b, values[number], state[number], at));
          }
          return next;
        });
    for (auto [i, side] : llvm::enumerate(plan.sideRoots))
      kernel.outputs()[side] = results[plan.heroes.size() + i];
    results.resize(plan.heroes.size());
    return std::vector<Value>(results.begin(), results.end());
  }

  // --- reading

  Value fromTile(const HloInstruction &hero, Value value) {
    return tileType(hero) == elementType(hero) ? value : b.castI(value, elementType(hero), false);
  }

  SmallVector<Value> storeOutputs(func::FuncOp function, ValueRange indices, ArrayRef<Value> heroValues,
                                  ValueRange state) {
    ValueRange values = kernel.call(function, indices, heroValues);
    SmallVector<Value> next;
    for (auto [i, number] : llvm::enumerate(plan.roots)) {
      SmallVector<Value> at = applyMap(b, mapTo(output, root(number).shape), indices);
      next.push_back(tensor::InsertOp::create(b, values[i], state[i], at));
    }
    return next;
  }

  void read(func::FuncOp function, ValueRange tiles) {
    SmallVector<Value> carried;
    for (unsigned number : plan.roots)
      carried.push_back(kernel.outputs()[number]);
    SmallVector<Value> results =
        plan.tileVector > 1 ? readTurned(function, tiles, carried) : readElements(function, tiles, carried);
    for (auto [i, number] : llvm::enumerate(plan.roots))
      kernel.outputs()[number] = results[i];
  }

  SmallVector<Value> readElements(func::FuncOp function, ValueRange tiles, SmallVector<Value> carried) {
    return forEachElement(true, output, carried,
                          [&](const DealtWalk &dealt, ValueRange operands, ValueRange indices, ValueRange state) {
                            Value inTile = tileIndex(dealt, true, operands);
                            SmallVector<Value> heroValues;
                            for (auto [hero, tile] : llvm::zip(plan.heroes, tiles)) {
                              Value value = tensor::ExtractOp::create(b, tile, inTile);
                              heroValues.push_back(fromTile(*hero, value));
                            }
                            return storeOutputs(function, indices, heroValues, state);
                          });
  }

  /// A thread reads `tileVector` neighbours along the operand's minor dimension for each of `outputVector` elements
  /// along the run, and writes them the other way.
  SmallVector<Value> readTurned(func::FuncOp function, ValueRange tiles, SmallVector<Value> carried) {
    DealtWalk dealt = deal(true, stepVariable());
    SmallVector<int64_t> loopSizes = {dealt.steps, dealt.turned, dealt.vector};
    IndexingMap elements = arrayMap(dealt, output, loopSizes);
    constrain(elements, dealt);
    // Whether a thread has a group does not depend on s1, s2.
    IndexingMap groups = kernel.mapOf({}, {dealt.steps});
    groups.addConstraint(kernel.thread(), Interval{0, dealt.active - 1});
    for (const auto &[expression, interval] : elements.constraints())
      if (!expression.isFunctionOfSymbol(1) && !expression.isFunctionOfSymbol(2))
        groups.addConstraint(expression, interval);
    groups.simplify();
    return kernel.loop(groups, carried, [&](ValueRange step, ValueRange, ValueRange state) {
      SmallVector<Value> operands(kernel.ids());
      llvm::append_range(operands, step);
      SmallVector<Value> blocks;
      for (auto [hero, tile] : llvm::zip(plan.heroes, tiles))
        blocks.push_back(loadBlock(dealt, tileType(*hero), tile, operands));
      // The step is a dimension of the map of elements.
      SmallVector<IndexingVariable> dims(elements.dims()), ranges(elements.ranges());
      dims.push_back(ranges.front());
      ranges.erase(ranges.begin());
      AffineExpr stepDim = getAffineDimExpr(elements.dims().size(), context);
      SmallVector<AffineExpr> symbols = {stepDim, getAffineSymbolExpr(0, context), getAffineSymbolExpr(1, context)};
      auto inner = [&](AffineExpr expression) { return expression.replaceSymbols(symbols); };
      SmallVector<AffineExpr> results = llvm::map_to_vector(elements.affine().getResults(), inner);
      IndexingMap map(AffineMap::get(dims.size(), ranges.size(), results, context), dims, ranges, {});
      for (const auto &[expression, interval] : elements.constraints())
        map.addConstraint(inner(expression), interval);
      map.simplify();
      return kernel.loop(map, operands, state, [&](ValueRange variables, ValueRange indices, ValueRange inState) {
        AffineExpr lane = getAffineDimExpr(0, context) * dealt.vector + getAffineDimExpr(1, context);
        IndexingMap laneMap = IndexingMap::fromSizes(AffineMap::get(2, 0, lane, context), {dealt.turned, dealt.vector});
        Value inBlock = applyMap(b, laneMap, variables).front();
        SmallVector<Value> heroValues;
        for (auto [hero, block] : llvm::zip(plan.heroes, blocks))
          heroValues.push_back(fromTile(*hero, vector::ExtractOp::create(b, block, OpFoldResult(inBlock))));
        return storeOutputs(function, indices, heroValues, inState);
      });
    });
  }

  /// A thread's group of elements, the run innermost.
  Value loadBlock(const DealtWalk &dealt, Type element, Value tile, ValueRange operands) {
    // Rows of the tile, or neighbours across rows.
    int64_t together = plan.readsWholeRows() ? dealt.vector : dealt.turned;
    Value padding = ub::PoisonOp::create(b, element);
    SmallVector<Value> elements;
    for (int64_t i = 0; i < dealt.vector * dealt.turned; i += together) {
      SmallVector<AffineExpr> local = dealt.first;
      local.back() = local.back() + i / dealt.turned;
      for (unsigned dim = 0; dim < dealt.walk.outer; ++dim)
        if (dealt.walk.order[dim] == minor)
          local[dim] = local[dim] + i % dealt.turned;
      AffineExpr position = positionInTile(dealt, local, true);
      Value start = applyMap(b, kernel.mapOf({position}, {dealt.steps}), operands).front();
      Value read = vector::TransferReadOp::create(b, VectorType::get({together}, element), tile, start, padding,
                                                  ArrayRef<bool>{true});
      for (int64_t lane = 0; lane < together; ++lane)
        elements.push_back(vector::ExtractOp::create(b, read, lane));
    }
    SmallVector<Value> turned;
    for (int64_t column = 0; column < dealt.turned; ++column)
      for (int64_t inRun = 0; inRun < dealt.vector; ++inRun)
        turned.push_back(elements[inRun * dealt.turned + column]);
    return vector::FromElementsOp::create(b, VectorType::get({dealt.turned * dealt.vector}, element), turned);
  }

  const TransposePlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  const Shape input, output;
  const unsigned minor; ///< the operand's minor dimension
};

} // namespace

llvm::LogicalResult emitHero(const TransposePlan &plan, KernelBuilder &kernel) {
  return TransposeEmitter(plan, kernel).emit();
}

} // namespace hloc
