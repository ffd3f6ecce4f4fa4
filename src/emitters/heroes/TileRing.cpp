// One idea: who fills stages and who multiplies them wait for each other at barriers in shared memory alone, so that
// each goes as far ahead as the ring lets it.

#include "emitters/heroes/TileRing.h"

#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace hloc {

void TileRing::run(int64_t registersOfConsumers, llvm::function_ref<void()> fill, llvm::function_ref<void()> multiply) {
  SmallVector<int64_t> arrivals(size_t(tile.stages), 1);
  arrivals.append(size_t(tile.stages), tile.threads() / threadsOfUser * tile.cluster);
  if (mayTell)
    arrivals.push_back(1);
  barriers = xla_gpu::AllocateSharedOp::create(b, RankedTensorType::get({int64_t(arrivals.size())}, b.getI64Type()));
  byThread(0, [&] { xla_gpu::InitBarriersOp::create(b, barriers, arrivals); });
  barriers = xla_gpu::SyncThreadsOp::create(b, TypeRange(barriers), ValueRange(barriers)).getResult(0);
  syncCluster();
  Value thread = kernel.ids().front();
  Value multiplies = b.cmpI(CodeBuilder::IPred::slt, thread, b.index(tile.threads()));
  SmallVector<Value> written(kernel.outputs().begin(), kernel.outputs().end());
  llvm::append_range(written, kernel.scratch());
  auto branch = scf::IfOp::create(b, TypeRange(ValueRange(written)), multiplies, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.elseBlock());
  if (registersOfConsumers)
    xla_gpu::SetRegistersOp::create(b, uint64_t(ContractionPlan::registersOfProducer), /*more=*/false);
  byThread(tile.threads(), fill);
  syncCluster();
  scf::YieldOp::create(b, written);
  b.setInsertionPointToEnd(branch.thenBlock());
  if (registersOfConsumers)
    xla_gpu::SetRegistersOp::create(b, uint64_t(registersOfConsumers), /*more=*/true);
  Value own = b.minS(thread, b.index(tile.threads() - 1));
  own.getDefiningOp()->setAttr(xla_gpu::attr::range,
                               xla_gpu::rangeAttr(b.getContext(), Interval{0, tile.threads() - 1}));
  kernel.setThread(own, tile.threads());
  IndexingMap ofUser = kernel.mapOf({kernel.thread() % threadsOfUser}, {});
  isFirstOfUser = b.cmpI(CodeBuilder::IPred::eq, applyMap(b, ofUser, kernel.ids()).front(), b.index(0));
  multiply();
  syncCluster();
  SmallVector<Value> after(kernel.outputs().begin(), kernel.outputs().end());
  llvm::append_range(after, kernel.scratch());
  scf::YieldOp::create(b, after);
  const size_t numOutputs = kernel.outputs().size();
  kernel.outputs().assign(branch.getResults().begin(), branch.getResults().begin() + ptrdiff_t(numOutputs));
  kernel.scratch().assign(branch.getResults().begin() + ptrdiff_t(numOutputs), branch.getResults().end());
}

/// Barriers are there before a neighbour arrives at them, and as long as one may.
void TileRing::syncCluster() {
  if (tile.cluster > 1)
    xla_gpu::SyncClusterOp::create(b);
}

void TileRing::byThread(int64_t number, llvm::function_ref<void()> make) {
  IndexingMap map = kernel.mapOf({}, {1});
  map.addConstraint(kernel.thread(), Interval{number, number});
  kernel.loop(map, {}, [&](ValueRange, ValueRange, ValueRange) -> SmallVector<Value> {
    make();
    return {};
  });
}

Value TileRing::stageAfter(CodeBuilder &b, int64_t stages, Value stage, int64_t number) {
  if (stages == 1)
    return stage;
  const int64_t back = stages - number;
  Value isBehind = b.cmpI(CodeBuilder::IPred::sge, stage, b.index(back));
  if (number == 1)
    isBehind = b.cmpI(CodeBuilder::IPred::eq, stage, b.index(back));
  Value next =
      b.select(isBehind, number == 1 ? b.index(0) : b.subI(stage, b.index(back)), b.addI(stage, b.index(number)));
  next.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(b.getContext(), Interval{0, stages - 1}));
  return next;
}

TileRing::Turn TileRing::following(const Turn &turn) {
  Value stage = stageAfter(turn.stage);
  Value isFirst = b.cmpI(CodeBuilder::IPred::eq, stage, b.index(0));
  return {stage, b.select(isFirst, b.xorI(turn.parity, b.integer(b.getI32Type(), 1)), turn.parity)};
}

/// Of the barrier that says that a stage is free.
Value TileRing::freeAt(Value stage) {
  Value index = b.addI(stage, b.index(tile.stages));
  index.getDefiningOp()->setAttr(xla_gpu::attr::range,
                                 xla_gpu::rangeAttr(b.getContext(), Interval{tile.stages, 2 * tile.stages - 1}));
  return index;
}

/// (Of what was not begun, the phase before is over.)
void TileRing::begin(const Turn &turn, int64_t bytes) {
  xla_gpu::AwaitPhaseOp::create(b, TypeRange(), barriers, freeAt(turn.stage), turn.parity, ValueRange());
  xla_gpu::ArriveOp::create(b, barriers, turn.stage, b.getI64IntegerAttr(bytes), IntegerAttr(), UnitAttr(), Value());
}

SmallVector<Value> TileRing::await(const Turn &turn, ValueRange tiles) {
  auto done = xla_gpu::AwaitPhaseOp::create(b, TypeRange(tiles), barriers, turn.stage, turn.parity, tiles);
  return SmallVector<Value>(done.getResults());
}

void TileRing::release(Value stage, Value where) {
  const IntegerAttr blocks = tile.cluster > 1 ? b.getI64IntegerAttr(tile.cluster) : IntegerAttr();
  xla_gpu::ArriveOp::create(b, barriers, freeAt(stage), IntegerAttr(), blocks,
                            threadsOfUser == threadsOfWarp ? b.getUnitAttr() : UnitAttr(),
                            where ? b.andI(isFirstOfUser, where) : isFirstOfUser);
}

SmallVector<Value> TileRing::synchronized(ValueRange tensors) {
  auto barrier = xla_gpu::SyncThreadsOp::create(b, TypeRange(tensors), tensors);
  barrier.setThreads(uint64_t(tile.threads()));
  return SmallVector<Value>(barrier.getResults());
}

void TileRing::tell() {
  IndexingMap ofThread = kernel.mapOf({kernel.thread()}, {});
  Value isFirst = b.cmpI(CodeBuilder::IPred::eq, applyMap(b, ofThread, kernel.ids()).front(), b.index(0));
  xla_gpu::ArriveOp::create(b, barriers, b.index(2 * tile.stages), IntegerAttr(), IntegerAttr(), UnitAttr(), isFirst);
}

void TileRing::awaitTold() {
  xla_gpu::AwaitPhaseOp::create(b, TypeRange(), barriers, b.index(2 * tile.stages), b.integer(b.getI32Type(), 0),
                                ValueRange());
}

} // namespace hloc
