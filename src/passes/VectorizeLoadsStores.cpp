// Consecutive accesses of a counted loop become one vector access before (loads) or after (stores) it; loads may run
// backwards, leave out elements, or stand in branches that all iterations take or none.
#include "passes/CodeSize.h"
#include "passes/PassDetail.h"

#include "hloc/dialect/AppliedMap.h"
#include "hloc/indexing/Divisibility.h"
#include "passes/LowerAtomic.h"
#include "passes/Unroll.h"

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
/// helper that is still worth inlining (Inline.cpp). Few iterations are mostly a thread's own elements, whose stores
/// have to be vectors: these may become larger, but not without end (a nest of loops once came to 140,000 ops).
constexpr int64_t fewTrips = 8, maxUnrolledOps = 4000, maxUnrolledOpsOfFew = 20000;
/// What all loops of a kernel may come to by it before those of more than a few iterations get less than that, though
/// not less than loops are unrolled to without vectors (OptimizeLoops.cpp). A kernel that updates eleven parameters,
/// sums of 32 powers in each, came to 40,000.
constexpr int64_t maxUnrolledOpsOfKernel = 8000, leastUnrolledOps = 400;

/// Iterations of the loops within a loop of stores that become straight code, so that its loads become vectors: those
/// over small windows (LoopPlan counts on as many).
constexpr int64_t maxInnerIterations = 16;

/// Branches around a load that is moved before the loop.
constexpr unsigned maxBranches = 8;

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

/// An index that changes by `stride` with each iteration.
struct AffineAccess {
  AppliedMap lowest; ///< in the iteration in which it is least
  int64_t stride;
  int64_t offset = 0; ///< of that iteration's element in a vector that begins at `lowest`
};

/// An index as an expression of values outside the loop and of the induction variable, if it depends on that.
struct TracedIndex {
  AppliedMap applied;
  AffineExpr variable; ///< null: the same in all iterations
};

/// Values of which `value < bound` decides a comparison with a constant: one, or two where equality does.
SmallVector<int64_t, 2> boundsOf(arith::CmpIPredicate predicate, int64_t constant) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::sge:
    return {constant};
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::sgt:
    return {constant + 1};
  case arith::CmpIPredicate::ult:
  case arith::CmpIPredicate::uge:
    return {0, constant};
  case arith::CmpIPredicate::ule:
  case arith::CmpIPredicate::ugt:
    return {0, constant + 1};
  case arith::CmpIPredicate::eq:
  case arith::CmpIPredicate::ne:
    return {constant, constant + 1};
  }
  HLOC_UNREACHABLE("unknown comparison");
}

/// May a vector of them be the result of a branch? Small floats and packed integers are no vectors of LLVM's yet.
bool mayLeaveBranch(Type element) { return element.getIntOrFloatBitWidth() >= (isa<FloatType>(element) ? 16u : 8u); }

class LoopVectorizer {
public:
  LoopVectorizer(scf::ForOp loop, int64_t trips) : loop(loop), trips(trips), rewriter(loop.getContext()) {}

  void run() {
    SmallVector<scf::IfOp> branches;
    SmallVector<tensor::ExtractOp> extracts;
    collect(*loop.getBody(), branches, extracts);
    for (scf::IfOp branch : branches)
      if (Value condition = hoistCondition(branch.getCondition()))
        branch.getConditionMutable().assign(condition);
    for (tensor::ExtractOp extract : extracts)
      hoistLoad(extract);
    for (Operation &op : llvm::make_early_inc_range(*loop.getBody())) {
      auto insert = dyn_cast<tensor::InsertOp>(op);
      auto atomic = dyn_cast<AtomicRmwOp>(op);
      if ((insert && sinkStore(insert)) || (atomic && sinkAtomic(atomic)))
        return run(); // the loop was rebuilt
    }
  }

private:
  /// Branches and loads of the loop's body, those in branches included.
  static void collect(Block &block, SmallVector<scf::IfOp> &branches, SmallVector<tensor::ExtractOp> &extracts) {
    for (Operation &op : block) {
      if (auto extract = dyn_cast<tensor::ExtractOp>(op))
        extracts.push_back(extract);
      auto branch = dyn_cast<scf::IfOp>(op);
      if (!branch)
        continue;
      branches.push_back(branch);
      for (Region &region : branch->getRegions())
        for (Block &inner : region)
          collect(inner, branches, extracts);
    }
  }

  std::optional<TracedIndex> trace(Value index) {
    AppliedMap applied = AppliedMap::identity(index, loop.getContext());
    applied.composeProducers();
    applied.simplify();
    AffineExpr variable;
    for (auto [i, operand] : llvm::enumerate(applied.operands)) {
      if (operand == loop.getInductionVar())
        variable = getAffineDimExpr(i, loop.getContext());
      else if (!loop.isDefinedOutsideOfLoop(operand))
        return std::nullopt;
    }
    if (variable && applied.map.range(variable) != Interval{0, trips - 1})
      return std::nullopt;
    return TracedIndex{std::move(applied), variable};
  }

  /// The index in one iteration.
  static AppliedMap at(const TracedIndex &index, int64_t iteration) {
    if (!index.variable)
      return index.applied;
    const IndexingMap &map = index.applied.map;
    AffineExpr there = map.result(0).replace(index.variable, getAffineConstantExpr(iteration, map.context()));
    auto affine = AffineMap::get(index.applied.operands.size(), 0, there, map.context());
    AppliedMap result = {IndexingMap(affine, map.dims(), {}, {}), index.applied.operands};
    result.simplify();
    return result;
  }

  std::optional<AffineAccess> analyze(Value index) {
    std::optional<TracedIndex> traced = trace(index);
    if (!traced)
      return std::nullopt;
    if (!traced->variable)
      return AffineAccess{traced->applied, 0};
    std::optional<int64_t> stride = strideOf(traced->applied.map.result(0), traced->variable, traced->applied.map);
    if (!stride)
      return std::nullopt;
    return AffineAccess{at(*traced, *stride < 0 ? trips - 1 : 0), *stride};
  }

  /// A condition that has the same value in all iterations, before the loop; null if that is not known.
  Value hoistCondition(Value condition) {
    if (loop.isDefinedOutsideOfLoop(condition))
      return condition;
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      Value left = hoistCondition(both.getLhs()), right = left ? hoistCondition(both.getRhs()) : Value();
      if (!right)
        return {};
      rewriter.setInsertionPoint(loop);
      return arith::AndIOp::create(rewriter, both.getLoc(), left, right);
    }
    auto comparison = condition.getDefiningOp<arith::CmpIOp>();
    APInt constant;
    if (!comparison || !comparison.getLhs().getType().isIndex() ||
        !matchPattern(comparison.getRhs(), m_ConstantInt(&constant)))
      return {};
    std::optional<TracedIndex> traced = trace(comparison.getLhs());
    if (!traced)
      return {};
    const IndexingMap &map = traced->applied.map;
    if (traced->variable)
      for (int64_t bound : boundsOf(comparison.getPredicate(), constant.getSExtValue()))
        if (!isSameSide(map.result(0), bound, traced->variable, map))
          return {};
    Location loc = comparison.getLoc();
    rewriter.setInsertionPoint(loop);
    Value value = at(*traced, 0).materialize(rewriter, loc).front();
    Value limit = arith::ConstantIndexOp::create(rewriter, loc, constant.getSExtValue());
    return arith::CmpIOp::create(rewriter, loc, comparison.getPredicate(), value, limit);
  }

  /// The branches around `op`, few of them and none that depends on the iteration, as one condition before the loop:
  /// null outside all branches. Fails if there are others.
  FailureOr<Value> conditionAround(Operation *op) {
    Value all;
    unsigned depth = 0;
    rewriter.setInsertionPoint(loop);
    for (Block *block = op->getBlock(); block != loop.getBody(); block = block->getParentOp()->getBlock()) {
      auto branch = cast<scf::IfOp>(block->getParentOp());
      Value condition = branch.getCondition();
      if (++depth > maxBranches || !loop.isDefinedOutsideOfLoop(condition))
        return failure();
      Location loc = branch.getLoc();
      if (block == branch.elseBlock())
        condition = arith::XOrIOp::create(rewriter, loc, condition, arith::ConstantIntOp::create(rewriter, loc, 1, 1));
      // No conjunction: what an inner condition computes outside of its branch may be poison.
      all = all ? arith::SelectOp::create(rewriter, loc, condition, all,
                                          arith::ConstantIntOp::create(rewriter, loc, 0, 1))
                : condition;
    }
    return all;
  }

  /// Where in the loop's body the value of `op` is available to all that can use its result.
  Operation *ancestorInBody(Operation *op) { return loop.getBody()->findAncestorOpInBlock(*op); }

  /// Vectors pay where at least two elements (and for packed types a byte) move together.
  bool worthIt(const AffineAccess &access, VectorType type) {
    int64_t divisor = knownDivisor(access.lowest.map.result(0), access.lowest.map);
    int64_t together = divisor == 0 ? trips : std::min<int64_t>(divisor & -divisor, trips & -trips);
    unsigned bits = type.getElementTypeBitWidth();
    return together >= 2 && (bits >= 8 || together * bits >= 8);
  }

  /// Makes `access`, to elements some distance apart, begin where vectors are aligned that have several of them each,
  /// and returns the type of what is read from there; null if there is no such place.
  VectorType widen(AffineAccess &access, Type tensor) {
    int64_t spacing = std::abs(access.stride);
    VectorType whole = spacing <= maxElements ? vectorTypeOf(tensor, trips * spacing) : VectorType();
    if (!whole)
      return {};
    const IndexingMap &map = access.lowest.map;
    std::optional<int64_t> offset =
        offsetInWideVectors(map.result(0), map, spacing, trips * spacing, whole.getElementTypeBitWidth(),
                            cast<RankedTensorType>(tensor).getNumElements());
    if (!offset)
      return {};
    AffineExpr begin = map.result(0) - *offset;
    auto affine = AffineMap::get(access.lowest.operands.size(), 0, begin, map.context());
    access.lowest.map = IndexingMap(affine, map.dims(), {}, {});
    access.lowest.simplify();
    access.offset = *offset;
    return whole;
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
    Type element = extract.getType();
    VectorType type = vectorTypeOf(extract.getTensor().getType(), trips);
    bool isVector = access->stride != 0;
    int64_t spacing = std::abs(access->stride);
    if (spacing > 1)
      type = widen(*access, extract.getTensor().getType());
    if (isVector && (!type || (spacing == 1 && !worthIt(*access, type)) || mayBeTakenForStored(extract.getTensor())))
      return;
    bool isInBranch = extract->getBlock() != loop.getBody();
    if (isInBranch && !(element.isIntOrFloat() && mayLeaveBranch(element)))
      return;
    FailureOr<Value> condition = conditionAround(extract);
    if (failed(condition))
      return;
    rewriter.setInsertionPoint(loop);
    auto load = [&]() -> Value {
      Value lowest = access->lowest.materialize(rewriter, loc).front();
      if (!isVector) // one value for all iterations
        return tensor::ExtractOp::create(rewriter, loc, extract.getTensor(), lowest);
      Value padding = ub::PoisonOp::create(rewriter, loc, element);
      return vector::TransferReadOp::create(rewriter, loc, type, extract.getTensor(), lowest, padding,
                                            ArrayRef<bool>{true});
    };
    Value loaded = *condition ? loadIf(*condition, isVector ? Type(type) : element, loc, load) : load();
    if (isVector && access->stride != 1) {
      SmallVector<int64_t> order;
      for (int64_t i = 0; i < trips; ++i)
        order.push_back(access->offset + spacing * (access->stride < 0 ? trips - 1 - i : i));
      loaded = vector::ShuffleOp::create(rewriter, loc, loaded, loaded, order);
    }
    if (isVector) {
      rewriter.setInsertionPoint(ancestorInBody(extract));
      loaded = vector::ExtractOp::create(rewriter, loc, loaded, OpFoldResult(loop.getInductionVar()));
    }
    rewriter.replaceOp(extract, loaded);
  }

  /// What `load` gives where the condition holds.
  Value loadIf(Value condition, Type type, Location loc, llvm::function_ref<Value()> load) {
    auto branch = scf::IfOp::create(rewriter, loc, TypeRange{type}, condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(rewriter, loc, load());
    rewriter.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, ub::PoisonOp::create(rewriter, loc, type).getResult());
    return branch.getResult(0);
  }

  /// What is written once after the loop: the vector of all that was written in it.
  struct Collected {
    Value vector, tensor, start;
    OpResult result; ///< of the loop, what the tensor became
  };

  /// Collects the `scalar`s with which `op` updates a tensor, and removes it.
  std::optional<Collected> collectUpdates(Operation *op, Value tensor, ValueRange indices, Value scalar) {
    auto dest = dyn_cast<BlockArgument>(tensor);
    if (!dest || dest.getOwner() != loop.getBody() || dest.getArgNumber() == 0 || !dest.hasOneUse() ||
        !op->hasOneUse() || indices.size() != 1)
      return std::nullopt;
    unsigned position = dest.getArgNumber() - 1;
    Operation *yield = loop.getBody()->getTerminator();
    if (yield->getOperand(position) != op->getResult(0))
      return std::nullopt;
    VectorType type = vectorTypeOf(tensor.getType(), trips);
    std::optional<AffineAccess> access = analyze(indices[0]);
    if (!type || !access || access->stride != 1 || !worthIt(*access, type))
      return std::nullopt;

    Location loc = op->getLoc();
    Value init = loop.getInitArgs()[position];
    rewriter.setInsertionPoint(loop);
    Value poison = ub::PoisonOp::create(rewriter, loc, type);
    auto replaced = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        rewriter, poison, /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &builder, Location, ArrayRef<BlockArgument> arguments) -> SmallVector<Value> {
          Value inserted =
              vector::InsertOp::create(builder, loc, scalar, arguments[0], OpFoldResult(loop.getInductionVar()));
          return {inserted};
        }));
    loop = replaced;
    yield = loop.getBody()->getTerminator();
    yield->setOperand(position, loop.getRegionIterArgs()[position]);
    rewriter.eraseOp(op);
    rewriter.setInsertionPointAfter(loop);
    Value start = access->lowest.materialize(rewriter, loc).front();
    return Collected{loop.getResults().back(), init, start, loop->getResult(position)};
  }

  bool sinkStore(tensor::InsertOp insert) {
    Location loc = insert.getLoc();
    std::optional<Collected> all = collectUpdates(insert, insert.getDest(), insert.getIndices(), insert.getScalar());
    if (!all)
      return false;
    auto write =
        vector::TransferWriteOp::create(rewriter, loc, all->vector, all->tensor, all->start, ArrayRef<bool>{true});
    rewriter.replaceAllUsesWith(all->result, write.getResult());
    return true;
  }

  /// Updates that hardware does on several elements at once.
  bool sinkAtomic(AtomicRmwOp atomic) {
    using Kind = LLVM::AtomicBinOp;
    Location loc = atomic.getLoc();
    Type element = atomic.current().getType();
    std::optional<NativeUpdate> update = matchNativeUpdate(atomic);
    bool sums = update && update->kind == Kind::fadd && (element.isF32() || element.isF16() || element.isBF16());
    bool exchanges =
        update && update->kind == Kind::xchg && element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 8;
    if (!sums && !exchanges)
      return false;
    std::optional<Collected> all = collectUpdates(atomic, atomic.getInput(), atomic.getIndices(), update->operand);
    if (!all)
      return false;
    auto vector = AtomicRmwOp::create(rewriter, loc, all->tensor, all->start);
    Value current = vector.current();
    current.setType(all->vector.getType());
    rewriter.setInsertionPointToEnd(vector.getBody());
    Value next = exchanges ? all->vector : arith::AddFOp::create(rewriter, loc, current, all->vector).getResult();
    YieldOp::create(rewriter, loc, next);
    rewriter.replaceAllUsesWith(all->result, vector.getResult());
    return true;
  }

  scf::ForOp loop;
  int64_t trips;
  IRRewriter rewriter;
};

/// The ops that `loop` becomes if it is unrolled together with those inside, or more than `most`.
int64_t unrolledOps(scf::ForOp loop, int64_t trips, int64_t most) {
  int64_t ops = 0;
  loop.getBody()->walk([&](Operation *op) {
    int64_t times = trips;
    for (Operation *around = op->getParentOp(); around != loop && times <= most; around = around->getParentOp())
      if (auto inner = dyn_cast<scf::ForOp>(around))
        times *= tripCount(inner).value_or(1);
    ops += times * codeSize(*op);
    return ops > most ? WalkResult::interrupt() : WalkResult::advance();
  });
  return ops;
}

/// `limit` is for loops of more than a few iterations. Loops inside may have become vectors already, and are unrolled
/// with it.
bool mayUnroll(scf::ForOp loop, int64_t trips, int64_t limit) {
  const int64_t most = trips <= fewTrips ? maxUnrolledOpsOfFew : limit;
  return unrolledOps(loop, trips, most) <= most;
}

/// To how many ops a loop of more than a few iterations may be unrolled, so that the kernel stays within its limit.
int64_t limitOfLoops(Operation *kernel) {
  int64_t all = 0;
  kernel->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    std::optional<int64_t> trips = tripCount(loop);
    if (!trips || !mayUnroll(loop, *trips, maxUnrolledOps))
      return WalkResult::advance();
    all += unrolledOps(loop, *trips, maxUnrolledOpsOfFew);
    return WalkResult::skip();
  });
  return all <= maxUnrolledOpsOfKernel ? maxUnrolledOps
                                       : std::max(leastUnrolledOps, maxUnrolledOps * maxUnrolledOpsOfKernel / all);
}

bool storesTensor(scf::ForOp loop) {
  return llvm::any_of(loop.getResultTypes(), [](Type type) { return isa<TensorType>(type); });
}

/// Whose iterations follow each other, whatever they store.
bool hasBarrier(scf::ForOp loop) {
  return loop.walk([](xla_gpu::SyncThreadsOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Unrolls the loops in one that stores something, where they have few iterations together and store nothing.
void unrollInside(scf::ForOp loop, int64_t trips, int64_t limit) {
  SmallVector<scf::ForOp> inner;
  bool isSmall = true;
  loop.walk([&](scf::ForOp other) {
    if (other == loop)
      return;
    isSmall &= !storesTensor(other);
    int64_t iterations = 1;
    for (Operation *around = other; around != loop && isSmall; around = around->getParentOp())
      if (auto each = dyn_cast<scf::ForOp>(around)) {
        iterations *= tripCount(each).value_or(maxInnerIterations + 1);
        isSmall = iterations <= maxInnerIterations;
      }
    inner.push_back(other); // inner ones first
  });
  if (!isSmall || inner.empty() || !mayUnroll(loop, trips, limit))
    return;
  for (scf::ForOp each : inner)
    unrollFully(each, 0, 1, *tripCount(each));
}

struct VectorizeLoadsStoresPass : hloc::impl::VectorizeLoadsStoresBase<VectorizeLoadsStoresPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> storing;
    getOperation().walk([&](scf::ForOp loop) { storing.push_back(loop); });
    llvm::erase_if(storing,
                   [](scf::ForOp loop) { return !storesTensor(loop) || !tripCount(loop) || hasBarrier(loop); });
    const int64_t limit = limitOfLoops(getOperation());
    for (scf::ForOp loop : storing)
      unrollInside(loop, *tripCount(loop), limit);
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (std::optional<int64_t> trips = tripCount(loop); trips && mayUnroll(loop, *trips, limit))
        LoopVectorizer(loop, *trips).run();
  }
};

} // namespace
