#include "emitters/heroes/TransposeEmitter.h"

#include "emitters/ElementStorage.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {
namespace {

class TransposeEmitter {
public:
  TransposeEmitter(const TransposePlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()),
        input(plan.heroes.front()->operand(0)->shape()), output(plan.heroes.front()->shape()) {}

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

  /// The heroes' operands and the side outputs, at an index of the operand.
  FunctionRequest fillRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(input.dims().begin(), input.dims().end());
    IndexingMap identity = IndexingMap::identity(context, input.dims());
    for (const HloInstruction *hero : plan.heroes)
      request.roots.push_back({hero->operand(0), 0, identity});
    for (unsigned side : plan.sideRoots)
      request.roots.push_back({root(side).instr, root(side).result, identity});
    return request;
  }

  /// The outputs at an index of the result, from the heroes' values there.
  FunctionRequest readRequest() const {
    FunctionRequest request;
    request.indexSizes.assign(output.dims().begin(), output.dims().end());
    IndexingMap identity = IndexingMap::identity(context, output.dims());
    for (unsigned number : plan.roots)
      request.roots.push_back({root(number).instr, root(number).result, identity});
    request.injected.assign(plan.heroes.begin(), plan.heroes.end());
    return request;
  }

  // Loop variables of all maps: step s0, element of a group s1.
  SmallVector<int64_t> loopSizes() const { return {plan.tile / plan.rowsPerStep, int64_t(plan.perThread)}; }
  /// Position in the tile along the dimension that lanes walk, and along the other.
  AffineExpr alongLanes() const { return kernel.lane() * plan.perThread + getAffineSymbolExpr(1, context); }
  AffineExpr alongSteps() const { return getAffineSymbolExpr(0, context) * plan.rowsPerStep + kernel.warp(); }

  /// Memory-order position of the operand's element at (row, column) of this block's tile, as merged indices.
  SmallVector<AffineExpr> mergedIndices(AffineExpr row, AffineExpr column) const {
    SmallVector<int64_t> counts;
    for (unsigned i = 0; i < plan.inputDims.size(); ++i)
      counts.push_back(plan.tilesAlong(i));
    SmallVector<AffineExpr> indices = delinearize(kernel.block(), counts, context);
    for (auto [i, index] : llvm::enumerate(indices)) {
      if (i == plan.rowDim())
        index = index * plan.tile + row;
      else if (i == plan.columnDim())
        index = index * plan.tile + column;
    }
    return indices;
  }

  /// Map to logical indices of `shape`, whose memory is `dims` with the given indices; bounds of rows and columns
  /// become constraints.
  IndexingMap indexing(const Shape &shape, ArrayRef<AffineExpr> merged, ArrayRef<int64_t> order) const {
    SmallVector<AffineExpr> ordered;
    SmallVector<int64_t> sizes, rowMajor;
    for (int64_t dim : order) {
      ordered.push_back(merged[dim]);
      sizes.push_back(plan.inputDims[dim]);
      rowMajor.insert(rowMajor.begin(), rowMajor.size());
    }
    IndexingMap toShape = bitcastMap(sizes, rowMajor, shape.dims(), shape.minorToMajor(), context);
    SmallVector<AffineExpr> results;
    for (AffineExpr result : toShape.affine().getResults())
      results.push_back(result.replaceDims(ordered));
    IndexingMap map = kernel.mapOf(results, loopSizes());
    for (unsigned dim : {plan.rowDim(), plan.columnDim()})
      map.addConstraint(merged[dim], Interval{0, plan.inputDims[dim] - 1});
    map.simplify();
    return map;
  }

  /// Index into a tile, which is stored by columns: reading it back is contiguous.
  SmallVector<Value> tileIndex(AffineExpr row, AffineExpr column, ValueRange steps) {
    SmallVector<Value> operands(kernel.ids());
    llvm::append_range(operands, steps);
    return applyMap(b, kernel.mapOf({column, row}, loopSizes()), operands);
  }

  /// Rows of the operand go into the tiles' columns. Returns the tiles.
  std::vector<Value> fill(func::FuncOp function) {
    SmallVector<Value> carried;
    for (const HloInstruction *hero : plan.heroes) {
      Type element = storageType(hero->shape().elementType(), context);
      auto type = RankedTensorType::get({plan.tile, plan.tile + plan.pad}, element);
      carried.push_back(xla_gpu::AllocateSharedOp::create(b, type));
    }
    for (unsigned side : plan.sideRoots)
      carried.push_back(kernel.outputs()[side]);
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, plan.inputDims.size()));
    IndexingMap map = indexing(input, mergedIndices(alongSteps(), alongLanes()), order);
    SmallVector<Value> results = kernel.loop(map, carried, [&](ValueRange steps, ValueRange indices, ValueRange state) {
      ValueRange values = kernel.call(function, indices);
      SmallVector<Value> inTile = tileIndex(alongSteps(), alongLanes(), steps);
      SmallVector<Value> next;
      for (auto [i, value] : llvm::enumerate(values)) {
        ValueRange at = i < plan.heroes.size() ? ValueRange(inTile) : indices;
        next.push_back(tensor::InsertOp::create(b, value, state[i], at));
      }
      return next;
    });
    for (auto [i, side] : llvm::enumerate(plan.sideRoots))
      kernel.outputs()[side] = results[plan.heroes.size() + i];
    results.resize(plan.heroes.size());
    return std::vector<Value>(results.begin(), results.end());
  }

  void read(func::FuncOp function, ValueRange tiles) {
    SmallVector<Value> carried;
    for (unsigned number : plan.roots)
      carried.push_back(kernel.outputs()[number]);
    IndexingMap map = indexing(output, mergedIndices(alongLanes(), alongSteps()), plan.permutation);
    SmallVector<Value> results = kernel.loop(map, carried, [&](ValueRange steps, ValueRange indices, ValueRange state) {
      SmallVector<Value> inTile = tileIndex(alongLanes(), alongSteps(), steps);
      SmallVector<Value> heroValues;
      for (Value tile : tiles)
        heroValues.push_back(tensor::ExtractOp::create(b, tile, inTile));
      ValueRange values = kernel.call(function, indices, heroValues);
      SmallVector<Value> next;
      for (auto [i, value] : llvm::enumerate(values))
        next.push_back(tensor::InsertOp::create(b, value, state[i], indices));
      return next;
    });
    for (auto [i, number] : llvm::enumerate(plan.roots))
      kernel.outputs()[number] = results[i];
  }

  const TransposePlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  const Shape input, output;
};

} // namespace

llvm::LogicalResult emitHero(const TransposePlan &plan, KernelBuilder &kernel) {
  return TransposeEmitter(plan, kernel).emit();
}

} // namespace hloc
