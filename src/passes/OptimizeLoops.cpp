// Unrolling. Loops with few iterations disappear, others are unrolled until their body has a few hundred operations.
#include "passes/CodeSize.h"
#include "passes/PassDetail.h"
#include "passes/Unroll.h"

#include "hloc/dialect/AppliedMap.h"
#include "hloc/indexing/Divisibility.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace hloc {
#define GEN_PASS_DEF_OPTIMIZELOOPS
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

/// No vector has more lanes: a loop over those that has more iterations is none, and is left as it is.
constexpr int64_t mostLanes = 4096;
/// The rule of XLA's pass of this name: a body is unrolled min(trips, 400 / size) times (size: CodeSize.h).
constexpr int64_t maxUnrolledSize = 400;
/// No body grows beyond this by unrolling a loop whose iterations are not tied together by a vector; with a vector
/// there is no choice, its lanes must have constant indices. Chosen so that compile time stays bounded, not tuned.
constexpr int64_t maxFullyUnrolledSize = 2000;
/// What a body loads is issued at once and held in registers until it is wanted, of which a thread has 64 or few more.
constexpr int64_t maxUnrolledLoads = 32;

/// However many are asked for (attr::unroll).
constexpr int64_t maxTogether = 64;

/// With fewer iterations, each is simplified by itself if its index is no plain sum: a progression costs as much as
/// three.
constexpr int64_t fewestForProgressions = 4;

struct BodyFacts {
  int64_t size = 0, loads = 0;
  bool hasVectorLane = false; ///< an element of a vector is addressed by the induction variable
  bool hasLoopOrCall = false;
  bool hasBarrier = false; ///< loads of one iteration are not to be started before that of the last
};

BodyFacts factsOf(scf::ForOp loop) {
  BodyFacts facts;
  loop.getBody()->walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      return;
    bool isLane = isa<vector::ExtractOp, vector::InsertOp>(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
                    auto apply = operand.getDefiningOp<ApplyIndexingOp>();
                    return operand == loop.getInductionVar() ||
                           (apply && llvm::is_contained(apply.getOperands(), loop.getInductionVar()));
                  });
    facts.hasVectorLane |= isLane;
    facts.hasLoopOrCall |= isa<scf::ForOp, scf::WhileOp, CallOpInterface>(op);
    facts.hasBarrier |= isa<SyncThreadsOp>(op);
    facts.loads += isa<tensor::ExtractOp, vector::TransferReadOp>(op);
    facts.size += codeSize(*op);
  });
  return facts;
}

/// One iteration of a loop that is unrolled: `offset`, or `base` plus `offset`, where `base` is in `range`.
struct Iteration {
  int64_t number, offset;
  Value base;
  Interval range;
};

/// Operands of `applied` that are `variable`, which is `base + offset`, become `base`: the constant joins those of the
/// map, where addresses absorb it.
void shiftOperands(AppliedMap &applied, Value variable, const Iteration &iteration) {
  MLIRContext *context = applied.map.context();
  SmallVector<AffineExpr> replacements;
  SmallVector<IndexingVariable> dims(applied.map.dims());
  bool changed = false;
  for (auto [i, operand] : llvm::enumerate(applied.operands)) {
    replacements.push_back(getAffineDimExpr(i, context));
    if (operand != variable)
      continue;
    replacements.back() = replacements.back() + iteration.offset;
    operand = iteration.base;
    dims[i].bounds = iteration.range;
    changed = true;
  }
  if (changed)
    applied.map =
        IndexingMap(applied.map.affine().replaceDimsAndSymbols(replacements, {}, dims.size(), 0), dims, {}, {});
}

/// An index computation that goes up by a constant with each iteration, so that one of them is simplified for all.
struct Progression {
  AppliedMap first;
  SmallVector<int64_t> strides; ///< of its results, an iteration
};

/// Those of a loop's body that read nothing else of it.
using Progressions = llvm::DenseMap<Operation *, Progression>;

/// The coefficient of `dim`, if `expression` is a sum with it.
std::optional<int64_t> coefficientOf(AffineExpr expression, unsigned dim) {
  if (!expression.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(expression))
    return 1;
  auto binary = cast<AffineBinaryOpExpr>(expression);
  std::optional<int64_t> left = coefficientOf(binary.getLHS(), dim);
  if (!left)
    return std::nullopt;
  int64_t result;
  if (binary.getKind() == AffineExprKind::Add) {
    std::optional<int64_t> right = coefficientOf(binary.getRHS(), dim);
    return !right || llvm::AddOverflow(*left, *right, result) ? std::nullopt : std::optional(result);
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (binary.getKind() != AffineExprKind::Mul || !factor || llvm::MulOverflow(*left, factor.getValue(), result))
    return std::nullopt;
  return result;
}

/// Strides of the results, an iteration of `step`; empty if they are not known.
template <typename StrideOf> SmallVector<int64_t> stridesOf(const IndexingMap &map, int64_t step, StrideOf strideOf) {
  SmallVector<int64_t> strides;
  for (AffineExpr expression : map.affine().getResults()) {
    std::optional<int64_t> stride = strideOf(expression);
    int64_t ofIteration;
    if (!stride || llvm::MulOverflow(*stride, step, ofIteration))
      return {};
    strides.push_back(ofIteration);
  }
  return strides;
}

/// `first` is not an iteration yet, but a function of the induction variable.
std::optional<Progression> findProgression(ApplyIndexingOp apply, scf::ForOp loop, int64_t step, int64_t iterations) {
  Value variable = loop.getInductionVar();
  AppliedMap whole = AppliedMap::of(apply);
  if (!llvm::is_contained(whole.operands, variable) || !llvm::all_of(whole.operands, [&](Value operand) {
        return operand == variable || loop.isDefinedOutsideOfLoop(operand);
      }))
    return std::nullopt;
  auto isOnce = [&] { return llvm::count(whole.operands, variable) == 1 && !whole.map.isKnownEmpty(); };
  auto number = [&] { return unsigned(llvm::find(whole.operands, variable) - whole.operands.begin()); };
  if (isOnce())
    if (auto strides = stridesOf(whole.map, step, [&](AffineExpr e) { return coefficientOf(e, number()); });
        !strides.empty())
      return Progression{std::move(whole), strides};
  if (iterations < fewestForProgressions)
    return std::nullopt;
  whole.simplify();
  if (!isOnce())
    return std::nullopt;
  AffineExpr dim = getAffineDimExpr(number(), loop.getContext());
  auto strides = stridesOf(whole.map, step, [&](AffineExpr e) { return strideOf(e, dim, whole.map); });
  return strides.empty() ? std::nullopt : std::optional(Progression{std::move(whole), strides});
}

/// `variable` is that of iteration 0: a constant, or the induction variable of the new loop, with its range.
Progressions findProgressions(scf::ForOp loop, int64_t step, int64_t iterations, Value variable, Interval range) {
  Progressions progressions;
  for (auto apply : loop.getBody()->getOps<ApplyIndexingOp>()) {
    std::optional<Progression> found = findProgression(apply, loop, step, iterations);
    if (!found)
      continue;
    AppliedMap &first = found->first;
    SmallVector<IndexingVariable> dims(first.map.dims());
    unsigned number = llvm::find(first.operands, loop.getInductionVar()) - first.operands.begin();
    dims[number].bounds = range;
    first.map = IndexingMap(first.map.affine(), dims, {}, {});
    first.operands[number] = variable;
    first.simplify();
    progressions.try_emplace(apply, std::move(*found));
  }
  return progressions;
}

AppliedMap iterationOf(const Progression &progression, int64_t number) {
  AppliedMap result = progression.first;
  SmallVector<AffineExpr> expressions;
  for (auto [expression, stride] : llvm::zip_equal(result.map.affine().getResults(), progression.strides))
    expressions.push_back(expression + stride * number);
  auto affine = AffineMap::get(result.operands.size(), 0, expressions, result.map.context());
  result.map = IndexingMap(affine, result.map.dims(), {}, {});
  return result;
}

/// The body for one iteration, with index computations folded as they are made. Returns what is carried on.
SmallVector<Value> cloneBody(IRRewriter &rewriter, scf::ForOp loop, const Progressions &progressions,
                             const Iteration &iteration, ValueRange carried) {
  Location loc = loop.getLoc();
  IRMapping mapping;
  Value variable = iteration.base;
  if (!iteration.base) {
    variable = arith::ConstantIndexOp::create(rewriter, loc, iteration.offset);
  } else if (iteration.offset != 0) {
    auto sum = AffineMap::get(1, 0, getAffineDimExpr(0, rewriter.getContext()) + iteration.offset);
    IndexingVariable base{iteration.range, ""};
    variable = ApplyIndexingOp::create(rewriter, loc, iteration.base, sum, base).getResult(0);
  }
  mapping.map(loop.getInductionVar(), variable);
  mapping.map(loop.getRegionIterArgs(), carried);
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto progression = progressions.find(&op); progression != progressions.end()) {
      AppliedMap applied = iterationOf(progression->second, iteration.number);
      mapping.map(op.getResults(), applied.materialize(rewriter, op.getLoc()));
      continue;
    }
    if (auto apply = dyn_cast<ApplyIndexingOp>(op)) {
      AppliedMap applied = AppliedMap::of(apply);
      for (Value &operand : applied.operands)
        operand = mapping.lookupOrDefault(operand);
      if (iteration.base && iteration.offset != 0)
        shiftOperands(applied, variable, iteration);
      applied.simplify();
      mapping.map(apply.getResults(), applied.materialize(rewriter, op.getLoc()));
      continue;
    }
    auto extract = dyn_cast<vector::ExtractOp>(op);
    auto insert = dyn_cast<vector::InsertOp>(op);
    if (!iteration.base && extract && extract.getDynamicPosition() == ValueRange(loop.getInductionVar())) {
      Value vector = mapping.lookupOrDefault(extract->getOperand(0));
      mapping.map(extract.getResult(), rewriter.createOrFold<vector::ExtractOp>(op.getLoc(), vector, iteration.offset));
      continue;
    }
    if (!iteration.base && insert && insert.getDynamicPosition() == ValueRange(loop.getInductionVar())) {
      Value value = mapping.lookupOrDefault(insert->getOperand(0)),
            vector = mapping.lookupOrDefault(insert->getOperand(1));
      mapping.map(insert.getResult(),
                  vector::InsertOp::create(rewriter, op.getLoc(), value, vector, iteration.offset).getResult());
      continue;
    }
    rewriter.clone(op, mapping);
  }
  return llvm::map_to_vector(loop.getBody()->getTerminator()->getOperands(),
                             [&](Value yielded) { return mapping.lookupOrDefault(yielded); });
}

} // namespace

/// Is there no loop around it that may be unrolled as well? Limits of that count all ops of its body.
static bool isUnrolledLast(scf::ForOp loop) {
  for (auto around = loop->getParentOfType<scf::ForOp>(); around; around = around->getParentOfType<scf::ForOp>())
    if (around.getOps<SyncThreadsOp>().empty())
      return false;
  return true;
}

/// Index computations are left without users by accesses that became vectors: copies of them would be simplified, too.
static void eraseUnused(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// The vector that a loop does nothing but copy, lane by lane; none if it does anything else.
static Value copiedVector(scf::ForOp loop, int64_t lower, int64_t step, int64_t trips) {
  if (loop.getNumResults() != 1 || lower != 0 || step != 1)
    return {};
  auto insert = loop.getYieldedValues()[0].getDefiningOp<vector::InsertOp>();
  auto extract = insert ? insert->getOperand(0).getDefiningOp<vector::ExtractOp>() : vector::ExtractOp();
  auto isOfLane = [&](ValueRange position) { return position == ValueRange(loop.getInductionVar()); };
  if (!extract || insert->getOperand(1) != loop.getRegionIterArg(0) || !isOfLane(insert.getDynamicPosition()) ||
      !isOfLane(extract.getDynamicPosition()))
    return {};
  Value vector = extract->getOperand(0);
  const bool isWhole =
      vector.getType() == insert.getType() && cast<VectorType>(vector.getType()).getShape() == ArrayRef<int64_t>(trips);
  const bool isAll = std::distance(loop.getBody()->begin(), loop.getBody()->end()) == 3;
  return isWhole && isAll && loop.isDefinedOutsideOfLoop(vector) ? vector : Value();
}

void hloc::unrollFully(scf::ForOp loop, int64_t lower, int64_t step, int64_t trips) {
  IRRewriter rewriter(loop);
  const bool isLast = isUnrolledLast(loop);
  if (isLast)
    eraseUnused(*loop.getBody());
  if (Value vector = isLast ? copiedVector(loop, lower, step, trips) : Value()) {
    rewriter.replaceOp(loop, vector);
    return;
  }
  SmallVector<Value> carried(loop.getInitArgs());
  Value first = arith::ConstantIndexOp::create(rewriter, loop.getLoc(), lower);
  Progressions progressions = findProgressions(loop, step, trips, first, {lower, lower});
  for (int64_t trip = 0; trip < trips; ++trip)
    carried = cloneBody(rewriter, loop, progressions, {trip, lower + trip * step, {}, {}}, carried);
  rewriter.replaceOp(loop, carried);
}

namespace {

/// `factor` iterations a round; those that make no whole round follow the loop.
void unrollPartly(scf::ForOp loop, int64_t lower, int64_t step, int64_t trips, int64_t factor) {
  IRRewriter rewriter(loop);
  if (isUnrolledLast(loop))
    eraseUnused(*loop.getBody());
  const Location loc = loop.getLoc();
  const int64_t rest = trips % factor, end = lower + (trips - rest) * step;
  Value stride = arith::ConstantIndexOp::create(rewriter, loc, step * factor);
  Value upper = rest ? arith::ConstantIndexOp::create(rewriter, loc, end).getResult() : loop.getUpperBound();
  auto unrolled = scf::ForOp::create(rewriter, loc, loop.getLowerBound(), upper, stride, loop.getInitArgs());
  unrolled->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  if (!unrolled.getBody()->empty())
    rewriter.eraseOp(unrolled.getBody()->getTerminator());
  rewriter.setInsertionPointToEnd(unrolled.getBody());
  SmallVector<Value> carried(unrolled.getRegionIterArgs());
  Interval range{lower, end - factor * step};
  Value variable = unrolled.getInductionVar();
  Progressions progressions = findProgressions(loop, step, factor, variable, range);
  for (int64_t copy = 0; copy < factor; ++copy)
    carried = cloneBody(rewriter, loop, progressions, {copy, copy * step, variable, range}, carried);
  scf::YieldOp::create(rewriter, loc, carried);
  rewriter.setInsertionPoint(loop);
  carried.assign(unrolled.result_begin(), unrolled.result_end());
  Value first = arith::ConstantIndexOp::create(rewriter, loc, end);
  progressions = findProgressions(loop, step, rest, first, {end, end});
  for (int64_t trip = 0; trip < rest; ++trip)
    carried = cloneBody(rewriter, loop, progressions, {trip, end + trip * step, {}, {}}, carried);
  rewriter.replaceOp(loop, carried);
}

/// Iterations of a round of `trips`, at most `most`: the most that leave no rest, if that is not much less.
int64_t factorOf(int64_t trips, int64_t most) {
  int64_t factor = std::min(trips, most);
  while (trips % factor != 0)
    --factor;
  return 2 * factor > most ? factor : std::min(trips, most);
}

struct OptimizeLoopsPass : hloc::impl::OptimizeLoopsBase<OptimizeLoopsPass> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([&](scf::ForOp loop) { optimize(loop); }); // inner loops first
  }

  void optimize(scf::ForOp loop) {
    APInt lower, upper, step;
    if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
        !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
        !matchPattern(loop.getStep(), m_ConstantInt(&step)))
      return;
    int64_t stride = step.getSExtValue();
    int64_t trips = std::max<int64_t>(0, llvm::divideCeil(upper.getSExtValue() - lower.getSExtValue(), stride));
    BodyFacts facts = factsOf(loop);
    if (trips <= 1 || (facts.hasVectorLane && trips <= mostLanes)) {
      unrollFully(loop, lower.getSExtValue(), stride, trips);
      return;
    }
    if (auto together = loop->getAttrOfType<IntegerAttr>(attr::unroll)) {
      unrollBy(loop, lower.getSExtValue(), stride, trips, std::min(together.getInt(), maxTogether));
      return;
    }
    if (facts.hasLoopOrCall || facts.hasBarrier)
      return;
    if (trips <= maxUnrollFactor && facts.size * trips <= maxFullyUnrolledSize) {
      unrollFully(loop, lower.getSExtValue(), stride, trips);
      return;
    }
    int64_t factor = std::min(trips, std::max<int64_t>(1, maxUnrolledSize / facts.size));
    if (facts.loads)
      factor = std::min(factor, std::max<int64_t>(1, maxUnrolledLoads / facts.loads));
    unrollBy(loop, lower.getSExtValue(), stride, trips, factorOf(trips, factor));
  }

  static void unrollBy(scf::ForOp loop, int64_t lower, int64_t step, int64_t trips, int64_t factor) {
    if (trips < 2 * factor)
      unrollFully(loop, lower, step, trips);
    else if (factor > 1)
      unrollPartly(loop, lower, step, trips, factor);
  }
};

} // namespace
