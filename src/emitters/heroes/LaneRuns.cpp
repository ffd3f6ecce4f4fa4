#include "emitters/heroes/LaneRuns.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace hloc {
namespace {

constexpr int64_t warpSize = 32;
using Mode = gpu::ShuffleMode;
using IPred = CodeBuilder::IPred;

/// The value of another lane. The hardware moves words of 32 bits.
Value shuffled(CodeBuilder &b, Value value, Mode mode, int32_t distance) {
  Type type = value.getType(), word = b.getI32Type();
  Value bits = b.bitcast(value, b.intTypeOf(value));
  auto move = [&](Value source) -> Value {
    return gpu::ShuffleOp::create(b, source, distance, warpSize, mode).getShuffleResult();
  };
  if (bits.getType().getIntOrFloatBitWidth() <= 32)
    return b.bitcast(b.castI(move(b.castI(bits, word, false)), bits.getType(), false), type);
  Value low = move(b.castI(bits, word, false)), high = move(b.castI(b.shrU(bits, 32), word, false));
  return b.bitcast(b.orI(b.shl(b.castI(high, bits.getType(), false), 32), b.castI(low, bits.getType(), false)), type);
}

} // namespace

CombinedRuns combineLanes(CodeBuilder &b, const LaneRuns &own, llvm::function_ref<Value(Value, Value)> combine) {
  Value lane = b.andI(arith::IndexCastUIOp::create(b, b.getI32Type(), own.thread).getResult(), warpSize - 1);
  // Whether the place of the last window is that of the next lane's first.
  Value goesOn = b.andI(own.exists, b.cmpI(IPred::ne, lane, warpSize - 1));
  if (!own.warpsAreWhole)
    goesOn = b.andI(goesOn, shuffled(b, own.exists, Mode::DOWN, 1));
  for (auto [last, first] : llvm::zip_equal(own.last, own.first))
    goesOn = b.andI(goesOn, b.cmpI(IPred::eq, last, shuffled(b, first, Mode::DOWN, 1)));

  // The lane, this one or one behind it, in which the place of the own first window ends.
  Value passes = b.andI(own.isOne, goesOn);
  Value end = b.select(passes, b.integerLike(lane, warpSize - 1), lane);
  for (int32_t distance = warpSize / 2; distance > 0; distance /= 2)
    end = b.minU(end, shuffled(b, end, Mode::DOWN, distance));
  // First sums from the own to that lane's; each distance doubles how many have been added.
  Value sum = own.firstSum;
  for (int32_t distance = warpSize / 2; distance > 0; distance /= 2) {
    Value other = shuffled(b, sum, Mode::DOWN, distance);
    sum = b.select(b.cmpI(IPred::ule, b.addI(lane, distance), end), combine(sum, other), sum);
  }
  Value behind = combine(own.lastSum, shuffled(b, sum, Mode::DOWN, 1));
  CombinedRuns combined;
  combined.isTaken = b.andI(b.cmpI(IPred::ne, lane, 0), shuffled(b, goesOn, Mode::UP, 1));
  combined.lastSum = b.select(own.isOne, sum, b.select(goesOn, behind, own.lastSum));
  return combined;
}

} // namespace hloc
