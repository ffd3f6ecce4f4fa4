// The last iteration of a loop is often the only one that needs its bounds check:
//   s0 in [0, 7], d0 * 8 + s0 in [0, 1000]  =>  s0 in [0, 6] unchecked, then s0 = 7 with the check on d0 alone.
#include "passes/PassDetail.h"

namespace hloc {
#define GEN_PASS_DEF_PEELLOOPS
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

/// Peeling is for loops that will be unrolled: beyond this many iterations (VectorizeLoadsStores' limit) a check is
/// noise.
constexpr int64_t maxIterations = 64;

bool constrains(const IndexingMap &map, unsigned range) {
  return llvm::any_of(map.constraints(),
                      [&](const auto &constraint) { return constraint.first.isFunctionOfSymbol(range); });
}

/// `map` with range variable `range` limited to `bounds`, simplified.
IndexingMap restricted(const IndexingMap &map, unsigned range, Interval bounds) {
  SmallVector<IndexingVariable> ranges(map.ranges());
  ranges[range].bounds = bounds;
  IndexingMap result(map.affine(), map.dims(), ranges, {}, map.constraints());
  result.simplify();
  return result;
}

/// Does the carried value only take part in what may be done in any order: whole numbers that are added, multiplied or
/// compared, floats too, whose sums are free to be taken in any order, and elements of tensors that each iteration
/// writes at places of its own?
bool isFree(Value carried, Value yielded) {
  if (carried == yielded)
    return true;
  Operation *op = yielded.getDefiningOp();
  if (!op || !yielded.hasOneUse() || !carried.hasOneUse() || *carried.user_begin() != op)
    return false;
  if (auto insert = dyn_cast<tensor::InsertOp>(op))
    return insert.getDest() == carried;
  return isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
             arith::AddIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::MaxSIOp, arith::MaxUIOp,
             arith::MinSIOp, arith::MinUIOp>(op);
}

/// Is nothing changed by carrying out the iterations in another order? A choice between equals, as that of select-and-
/// scatter and of many a variadic reduction, is the first in order, which is that of the HLO's window.
bool hasFreeOrder(LoopOp loop) {
  Block &body = loop.getRegion().front();
  ValueRange yielded = body.getTerminator()->getOperands();
  auto carried = body.getArguments().take_back(yielded.size());
  return llvm::all_of(llvm::zip_equal(carried, yielded),
                      [](auto pair) { return isFree(std::get<0>(pair), std::get<1>(pair)); });
}

/// The maps to loop over instead of `map`, in order; just `map` if nothing can be peeled. `inOrder`: iterations are
/// carried out in the order of the map, which the last of a range is not if there are ranges around it.
SmallVector<IndexingMap, 0> peel(const IndexingMap &map, bool inOrder) {
  IndexingMap main = map;
  SmallVector<IndexingMap, 0> tails;
  int64_t iterations = 1;
  auto isPoint = [](const IndexingVariable &range) { return range.bounds.isPoint(); };
  for (unsigned range = map.ranges().size(); range-- > 0 && iterations < maxIterations;) {
    Interval bounds = main.ranges()[range].bounds;
    iterations *= bounds.size();
    if (bounds.isPoint() || !constrains(main, range))
      continue;
    if (inOrder && !llvm::all_of(llvm::ArrayRef(main.ranges()).take_front(range), isPoint))
      continue;
    IndexingMap shorter = restricted(main, range, {bounds.lower, bounds.upper - 1});
    if (shorter.isKnownEmpty() || constrains(shorter, range))
      continue;
    tails.push_back(restricted(main, range, {bounds.upper, bounds.upper}));
    main = std::move(shorter);
  }
  SmallVector<IndexingMap, 0> maps = {std::move(main)};
  for (IndexingMap &tail : llvm::reverse(tails))
    if (!tail.isKnownEmpty())
      maps.push_back(std::move(tail));
  return maps;
}

/// Do warps go through a ring of tiles in its body? That is nearly all of a kernel, and is not unrolled.
bool isOfRing(LoopOp loop) {
  return loop.getBody()->walk([](AwaitPhaseOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

struct PeelLoopsPass : hloc::impl::PeelLoopsBase<PeelLoopsPass> {
  void runOnOperation() override {
    getOperation().walk([](LoopOp loop) {
      const IndexingMap &map = loop.indexingMap();
      if (map.isKnownEmpty() || map.constraints().empty() || isOfRing(loop))
        return;
      SmallVector<IndexingMap, 0> maps = peel(map, /*inOrder=*/!hasFreeOrder(loop));
      if (maps.size() == 1)
        return;
      OpBuilder builder(loop);
      SmallVector<Value> carried(loop.getInits());
      for (const IndexingMap &part : maps) {
        auto copy = cast<LoopOp>(builder.clone(*loop));
        copy.setMapAttr(IndexingMapAttr::get(part));
        copy.getInitsMutable().assign(carried);
        carried.assign(copy.getResults().begin(), copy.getResults().end());
      }
      loop.replaceAllUsesWith(carried);
      loop.erase();
    });
  }
};

} // namespace
