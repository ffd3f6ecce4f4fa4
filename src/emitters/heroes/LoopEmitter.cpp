#include "emitters/heroes/LoopEmitter.h"

#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {
namespace {

class LoopEmitter {
public:
  LoopEmitter(const LoopNest &nest, KernelBuilder &kernel)
      : nest(nest), kernel(kernel), first(kernel.graph().roots()[nest.roots.front()].shape) {}

  /// All outputs of the nest from one function: its indices are those of the first output.
  FunctionRequest request() const {
    FunctionRequest result;
    result.indexSizes.assign(first.dims().begin(), first.dims().end());
    for (unsigned number : nest.roots) {
      const FusionRoot &root = kernel.graph().roots()[number];
      result.roots.push_back({root.instr, root.result, mapTo(root.shape)});
    }
    return result;
  }

  void emit(func::FuncOp function) {
    if (nest.elementsOfRound > 0)
      return emitLoop(function, mapOfParts());
    // Blocks whose groups are all there, then the one that has the rest, then the elements that make no group.
    int64_t ofBlock = launchedThreads() * nest.perThread * nest.rounds;
    int64_t tail = nest.elements % nest.perThread, whole = nest.elements - tail;
    int64_t full = nest.rounds == 1 ? 0 : whole / ofBlock * ofBlock;
    if (nest.rounds == 1 && whole > 0)
      emitLoop(function, kernel.mapOfGroups(first, nest.perThread, whole));
    if (full > 0)
      emitLoop(function, mapOfFullBlocks(full / ofBlock));
    if (nest.rounds > 1 && full < whole)
      emitLoop(function, mapOfLastBlock(full, whole));
    if (tail != 0)
      emitLoop(function, tailMap(whole, tail));
  }

private:
  IndexingMap mapTo(const Shape &shape) const {
    IndexingMap map = bitcastIndexing(first, shape, kernel.context());
    map.simplify();
    return map;
  }

  int64_t launchedThreads() const { return int64_t(kernel.launch().block.x); }
  /// Elements that a block takes in one round.
  int64_t ofRound() const { return launchedThreads() * nest.perThread; }
  /// Where in its block's part of a round a thread begins.
  AffineExpr firstOfRound() const { return kernel.thread() * nest.perThread; }

  /// From the launch space, a round and an element of a group to indices, the block's part beginning at `begin`; rounds
  /// of `lanes` threads lie side by side.
  IndexingMap mapOfRounds(AffineExpr begin, int64_t rounds, int64_t lanes) const {
    AffineExpr round = getAffineSymbolExpr(0, kernel.context()), element = getAffineSymbolExpr(1, kernel.context());
    AffineExpr firstOfLanes = kernel.thread().floorDiv(lanes) * (lanes * nest.perThread * rounds);
    AffineExpr firstOfThread = (kernel.thread() % lanes) * nest.perThread;
    AffineExpr position = begin + firstOfLanes + round * (lanes * nest.perThread) + firstOfThread + element;
    return kernel.mapOf(memoryOrderIndices(first, position), {rounds, int64_t(nest.perThread)});
  }

  /// Each round is a part of the array.
  IndexingMap mapOfParts() const {
    AffineExpr round = getAffineSymbolExpr(0, kernel.context()), element = getAffineSymbolExpr(1, kernel.context());
    AffineExpr group = kernel.block() * ofRound() + firstOfRound();
    IndexingMap map = kernel.mapOf(memoryOrderIndices(first, group + round * nest.elementsOfRound + element),
                                   {int64_t(nest.rounds), int64_t(nest.perThread)});
    map.addConstraint(group, Interval{0, nest.elementsOfRound - nest.perThread});
    map.simplify();
    return map;
  }

  IndexingMap mapOfFullBlocks(int64_t blocks) const {
    IndexingMap map = mapOfRounds(kernel.block() * (ofRound() * nest.rounds), nest.rounds, nest.lanesOfRound);
    map.addConstraint(kernel.block(), Interval{0, blocks - 1});
    map.simplify();
    return map;
  }

  /// The whole groups of elements [begin, end), fewer than a full block has.
  IndexingMap mapOfLastBlock(int64_t begin, int64_t end) const {
    int64_t rounds = (end - begin + ofRound() - 1) / ofRound();
    IndexingMap map = mapOfRounds(getAffineConstantExpr(begin, kernel.context()), rounds, launchedThreads());
    int64_t block = begin / (ofRound() * nest.rounds);
    map.addConstraint(kernel.block(), Interval{block, block});
    AffineExpr round = getAffineSymbolExpr(0, kernel.context());
    map.addConstraint(firstOfRound() + round * ofRound(), Interval{0, end - begin - nest.perThread});
    map.simplify();
    return map;
  }

  /// The last elements are the work of the thread that comes after the last whole group, in the round in which it does.
  IndexingMap tailMap(int64_t firstElement, int64_t count) const {
    AffineExpr position = getAffineSymbolExpr(0, kernel.context()) + firstElement;
    IndexingMap map = kernel.mapOf(memoryOrderIndices(first, position), {count});
    int64_t round = firstElement / ofRound() % nest.rounds;
    AffineExpr begin = kernel.block() * (ofRound() * nest.rounds) + round * ofRound() + firstOfRound();
    map.addConstraint(begin, Interval{firstElement, firstElement});
    map.simplify();
    return map;
  }

  void emitLoop(func::FuncOp function, const IndexingMap &indexing) {
    CodeBuilder &b = kernel.code();
    SmallVector<Value> buffers;
    for (unsigned root : nest.roots)
      buffers.push_back(kernel.outputs()[root]);
    SmallVector<Value> results =
        kernel.loop(indexing, buffers, [&](ValueRange, ValueRange indices, ValueRange carried) {
          // All values before all stores: an input may be the buffer of an output.
          ValueRange values = kernel.call(function, indices);
          SmallVector<Value> stored;
          for (auto [i, number] : llvm::enumerate(nest.roots)) {
            SmallVector<Value> at = applyMap(b, mapTo(kernel.graph().roots()[number].shape), indices);
            stored.push_back(tensor::InsertOp::create(b, values[i], carried[i], at));
          }
          return stored;
        });
    for (auto [i, root] : llvm::enumerate(nest.roots))
      kernel.outputs()[root] = results[i];
  }

  const LoopNest &nest;
  KernelBuilder &kernel;
  const Shape first;
};

} // namespace

llvm::LogicalResult emitHero(const LoopPlan &plan, KernelBuilder &kernel) {
  std::vector<LoopEmitter> nests;
  std::vector<FunctionRequest> requests;
  for (const LoopNest &nest : plan.nests) {
    nests.emplace_back(nest, kernel);
    requests.push_back(nests.back().request());
  }
  auto functions = kernel.emitFunctions(requests);
  if (failed(functions))
    return failure();
  for (auto [nest, function] : llvm::zip_equal(nests, *functions))
    nest.emit(function);
  return success();
}

} // namespace hloc
