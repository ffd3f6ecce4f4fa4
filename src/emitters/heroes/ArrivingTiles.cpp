// One idea: a tile is on its way while the one before it is multiplied, so that there is one barrier a tile.

#include "emitters/heroes/ArrivingTiles.h"

#include "hloc/dialect/XlaGpu.h"

using namespace mlir;

namespace hloc {

void ArrivingTiles::allocate(int64_t elementsOfStage, int64_t numStages, Type element) {
  auto type = RankedTensorType::get({numStages * elementsOfStage}, element);
  tiles = xla_gpu::AllocateSharedOp::create(b, type, alignment());
}

IntegerAttr ArrivingTiles::alignment() {
  return ofWarpgroups ? b.getI64IntegerAttr(ContractionPlan::alignmentOfTiles) : IntegerAttr();
}

Value ArrivingTiles::synchronized(Value tile) {
  return xla_gpu::SyncThreadsOp::create(b, TypeRange(tile), ValueRange(tile)).getResult(0);
}

Value ArrivingTiles::arrived(Value tile) {
  Value committed = xla_gpu::CommitCopiesOp::create(b, TypeRange(tile), ValueRange(tile)).getResult(0);
  return xla_gpu::AwaitCopiesOp::create(b, TypeRange(tile), ValueRange(committed), uint64_t(0)).getResult(0);
}

ArrivingTiles::Values ArrivingTiles::begin(OperandTile &operand, Value number, Value stage) {
  if (!operand.isCopied())
    return operand.load(number);
  tiles = operand.copy(number, tiles, stage);
  return {};
}

ArrivingTiles::Values ArrivingTiles::beginFollowing(OperandTile &operand, Value turn, Value stage, Value end,
                                                    ValueRange otherwise,
                                                    llvm::function_ref<Value(Value turn)> numberOf) {
  Values state(otherwise);
  state.push_back(tiles);
  state = ifFollows(b, turn, 1, numbers, end, state, [&](Value next) {
    Values begun = begin(operand, numberOf(next), stage);
    begun.push_back(tiles);
    return begun;
  });
  tiles = state.pop_back_val();
  return state;
}

void ArrivingTiles::arrive(OperandTile &operand, ValueRange loaded, Value stage) {
  if (!operand.isCopied())
    tiles = operand.fill(loaded, tiles, stage);
  if (operand.isCopied() || bringsOthers)
    tiles = arrived(tiles);
  if (ofWarpgroups)
    tiles = xla_gpu::PublishTilesOp::create(b, TypeRange(tiles), ValueRange(tiles)).getResult(0);
  tiles = synchronized(tiles);
}

void ArrivingTiles::awaitUnused(OperandTile &operand, Value first) {
  if (first && operand.isCopied())
    tiles = arrived(tiles);
}

Value ArrivingTiles::otherStage(Value stage) {
  Value other = b.subI(b.index(stages - 1), stage);
  other.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(b.getContext(), Interval{0, stages - 1}));
  return other;
}

} // namespace hloc
