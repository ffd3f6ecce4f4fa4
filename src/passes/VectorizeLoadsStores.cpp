// Consecutive accesses of a counted loop become one vector access before (loads) or after (stores) it.
#include "passes/PassDetail.h"

#include "hloc/dialect/AppliedMap.h"
#include "hloc/indexing/Divisibility.h"

#include "mlir/IR/Matchers.h"

namespace hloc {
#define GEN_PASS_DEF_VECTORIZELOADSSTORES
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

/// Iterations of a loop that is made a vector. The loop emitter asks for 32 elements a thread at most.
constexpr int64_t maxElements = 64;
/// What one thread may hold of one array: 32 of the 255 registers that it can have.
constexpr int64_t maxBits = 1024;
/// Vectors force their loop to be unrolled. Beyond a few iterations it must not become larger than this: as large as a
/// helper that is still worth inlining (Inline.cpp).
constexpr int64_t fewTrips = 8, maxUnrolledOps = 4000;

/// The trip count of `for iv = 0 to n step 1` with constant n worth vectorizing.
std::optional<int64_t> tripCount(scf::ForOp loop) {
  APInt upper;
  if (!matchPattern(loop.getLowerBound(), m_Zero()) || !matchPattern(loop.getStep(), m_One()) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)))
    return std::nullopt;
  int64_t trips = upper.getSExtValue();
  return trips >= 2 && trips <= maxElements ? std::optional(trips) : std::nullopt;
}

/// The vector of `trips` elements of `tensor`, if it may be one.
VectorType vectorTypeOf(Type tensor, int64_t trips) {
  auto type = dyn_cast<RankedTensorType>(tensor);
  if (!type || type.getRank() != 1 || type.getEncoding() || !isa<FloatType, IntegerType>(type.getElementType()))
    return {};
  if (trips * type.getElementTypeBitWidth() > maxBits || type.getNumElements() < trips)
    return {};
  return VectorType::get({trips}, type.getElementType());
}

/// An index as start + stride * iv.
struct AffineAccess {
  AppliedMap start;
  int64_t stride;
};

class LoopVectorizer {
public:
  LoopVectorizer(scf::ForOp loop, int64_t trips) : loop(loop), trips(trips), rewriter(loop.getContext()) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(*loop.getBody()))
      if (auto extract = dyn_cast<tensor::ExtractOp>(op))
        hoistLoad(extract);
    for (Operation &op : llvm::make_early_inc_range(*loop.getBody()))
      if (auto insert = dyn_cast<tensor::InsertOp>(op))
        if (sinkStore(insert))
          return run(); // the loop was rebuilt
  }

private:
  std::optional<AffineAccess> analyze(Value index) {
    AppliedMap applied = AppliedMap::identity(index, loop.getContext());
    applied.composeProducers();
    applied.simplify();
    std::optional<unsigned> dim;
    for (auto [i, operand] : llvm::enumerate(applied.operands)) {
      if (operand == loop.getInductionVar())
        dim = i;
      else if (!loop.isDefinedOutsideOfLoop(operand))
        return std::nullopt;
    }
    if (!dim)
      return AffineAccess{applied, 0};
    AffineExpr expression = applied.map.result(0);
    MLIRContext *context = loop.getContext();
    AffineExpr variable = getAffineDimExpr(*dim, context);
    std::optional<int64_t> stride = strideOf(expression, variable, applied.map);
    if (!stride || applied.map.dims()[*dim].bounds != Interval{0, trips - 1})
      return std::nullopt;
    AffineExpr first = expression.replace(variable, getAffineConstantExpr(0, context));
    auto affine = AffineMap::get(applied.operands.size(), 0, first, context);
    AppliedMap start = {IndexingMap(affine, applied.map.dims(), {}, {}), applied.operands};
    start.simplify();
    return AffineAccess{start, *stride};
  }

  /// Vectors pay where at least two elements (and for packed types a byte) move together.
  bool worthIt(const AffineAccess &access, VectorType type) {
    int64_t divisor = knownDivisor(access.start.map.result(0), access.start.map);
    int64_t together = divisor == 0 ? trips : std::min<int64_t>(divisor & -divisor, trips & -trips);
    unsigned bits = type.getElementTypeBitWidth();
    return together >= 2 && (bits >= 8 || together * bits >= 8);
  }

  /// MLIR folds a vector that is all of one tensor, written to all of another, to the tensor that was read: equal
  /// values, but the memory of the other stays as it is.
  bool mayBeTakenForStored(Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getNumElements() == trips &&
           llvm::is_contained(loop->getResultTypes(), tensor.getType());
  }

  void hoistLoad(tensor::ExtractOp extract) {
    if (!loop.isDefinedOutsideOfLoop(extract.getTensor()) || extract.getIndices().size() != 1)
      return;
    std::optional<AffineAccess> access = analyze(extract.getIndices()[0]);
    if (!access)
      return;
    Location loc = extract.getLoc();
    VectorType type = vectorTypeOf(extract.getTensor().getType(), trips);
    if (access->stride == 0) { // one value for all iterations
      rewriter.setInsertionPoint(loop);
      Value start = access->start.materialize(rewriter, loc).front();
      rewriter.replaceOpWithNewOp<tensor::ExtractOp>(extract, extract.getTensor(), start);
      return;
    }
    if (access->stride != 1 || !type || !worthIt(*access, type) || mayBeTakenForStored(extract.getTensor()))
      return;
    rewriter.setInsertionPoint(loop);
    Value start = access->start.materialize(rewriter, loc).front();
    Value padding = ub::PoisonOp::create(rewriter, loc, type.getElementType());
    Value vector =
        vector::TransferReadOp::create(rewriter, loc, type, extract.getTensor(), start, padding, ArrayRef<bool>{true});
    rewriter.setInsertionPoint(extract);
    rewriter.replaceOpWithNewOp<vector::ExtractOp>(extract, vector, OpFoldResult(loop.getInductionVar()));
  }

  /// Collects the stored values in a vector that is written once after the loop.
  bool sinkStore(tensor::InsertOp insert) {
    auto dest = dyn_cast<BlockArgument>(insert.getDest());
    if (!dest || dest.getOwner() != loop.getBody() || dest.getArgNumber() == 0 || !dest.hasOneUse() ||
        !insert->hasOneUse() || insert.getIndices().size() != 1)
      return false;
    unsigned position = dest.getArgNumber() - 1;
    Operation *yield = loop.getBody()->getTerminator();
    if (yield->getOperand(position) != insert.getResult())
      return false;
    VectorType type = vectorTypeOf(insert.getDest().getType(), trips);
    std::optional<AffineAccess> access = analyze(insert.getIndices()[0]);
    if (!type || !access || access->stride != 1 || !worthIt(*access, type))
      return false;

    Location loc = insert.getLoc();
    Value init = loop.getInitArgs()[position];
    rewriter.setInsertionPoint(loop);
    Value poison = ub::PoisonOp::create(rewriter, loc, type);
    auto replaced = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        rewriter, poison, /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &builder, Location, ArrayRef<BlockArgument> arguments) -> SmallVector<Value> {
          Value inserted = vector::InsertOp::create(builder, loc, insert.getScalar(), arguments[0],
                                                    OpFoldResult(loop.getInductionVar()));
          return {inserted};
        }));
    loop = replaced;
    yield = loop.getBody()->getTerminator();
    yield->setOperand(position, loop.getRegionIterArgs()[position]);
    rewriter.eraseOp(insert);
    rewriter.setInsertionPointAfter(loop);
    Value start = access->start.materialize(rewriter, loc).front();
    auto write =
        vector::TransferWriteOp::create(rewriter, loc, loop.getResults().back(), init, start, ArrayRef<bool>{true});
    rewriter.replaceAllUsesWith(loop.getResult(position), write.getResult());
    return true;
  }

  scf::ForOp loop;
  int64_t trips;
  IRRewriter rewriter;
};

bool mayUnroll(scf::ForOp loop, int64_t trips) {
  if (trips <= fewTrips)
    return true;
  int64_t ops = 0;
  loop.getBody()->walk(
      [&](Operation *) { return ++ops * trips > maxUnrolledOps ? WalkResult::interrupt() : WalkResult::advance(); });
  return ops * trips <= maxUnrolledOps;
}

struct VectorizeLoadsStoresPass : hloc::impl::VectorizeLoadsStoresBase<VectorizeLoadsStoresPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (std::optional<int64_t> trips = tripCount(loop); trips && mayUnroll(loop, *trips))
        LoopVectorizer(loop, *trips).run();
  }
};

} // namespace
