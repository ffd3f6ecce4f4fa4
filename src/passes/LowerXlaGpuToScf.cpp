// Loops over maps to scf, predicated accesses to scf.if, warp reductions to one instruction, or shuffles of
// 32-bit words.
#include "passes/PassDetail.h"

#include "hloc/dialect/AppliedMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "fmt/format.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

namespace hloc {
#define GEN_PASS_DEF_LOWERXLAGPUTOSCF
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

/// One constraint of a loop, checked as soon as `level` range variables are known.
struct BoundsCheck {
  AffineExpr expression;
  Interval interval;
  bool checkLower, checkUpper;
  unsigned level;
};

/// Range variables (symbols) that must be known to evaluate `expression`.
unsigned levelOf(AffineExpr expression) {
  unsigned level = 0;
  expression.walk([&](AffineExpr node) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(node))
      level = std::max(level, symbol.getPosition() + 1);
  });
  return level;
}

class LoopLowering {
public:
  LoopLowering(LoopOp loop, IRRewriter &rewriter) : loop(loop), rewriter(rewriter), map(loop.indexingMap()) {}

  void run() {
    map.simplify();
    rewriter.setInsertionPoint(loop);
    if (map.isKnownEmpty()) {
      rewriter.replaceOp(loop, loop.getInits());
      return;
    }
    collectChecks();
    SmallVector<Value> results = emitLevel(0, loop.getInits());
    rewriter.replaceOp(loop, results);
  }

private:
  void addCheck(AffineExpr expression, Interval interval, Interval known) {
    bool lower = known.lower<interval.lower, upper = known.upper> interval.upper;
    if (lower || upper)
      checks.push_back({expression, interval, lower, upper, levelOf(expression)});
  }

  void collectChecks() {
    constexpr Interval everything = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
    for (auto [i, dim] : llvm::enumerate(loop.getDims()))
      addCheck(getAffineDimExpr(i, map.context()), map.dims()[i].bounds, rangeOf(dim).value_or(everything));
    // Without its constraints the map does not know what they promise.
    IndexingMap unconstrained(map.affine(), map.dims(), map.ranges(), {}, {});
    for (const auto &[expression, interval] : map.constraints())
      addCheck(expression, interval, unconstrained.range(expression));
  }

  /// Values of `expressions` at the current point.
  SmallVector<Value> evaluate(ArrayRef<AffineExpr> expressions) {
    unsigned numSymbols = map.ranges().size();
    auto affine = AffineMap::get(map.dims().size(), numSymbols, expressions, map.context());
    IndexingMap point(affine, map.dims(), map.ranges(), {}, {});
    AppliedMap applied = {point.symbolsToDims(), SmallVector<Value>(loop.getDims())};
    for (unsigned i = 0; i < numSymbols; ++i)
      applied.operands.push_back(i < variables.size() ? variables[i] : Value());
    // Expressions of an outer level do not mention inner variables: drop those before they are looked at.
    SmallVector<bool> dropped = applied.map.removeUnusedDims();
    SmallVector<Value> kept;
    for (auto [i, operand] : llvm::enumerate(applied.operands))
      if (i >= dropped.size() || !dropped[i])
        kept.push_back(operand);
    applied.operands = std::move(kept);
    applied.simplify();
    return applied.materialize(rewriter, loop.getLoc());
  }

  Value emitChecks(unsigned level) {
    Location loc = loop.getLoc();
    Value all;
    auto require = [&](arith::CmpIPredicate predicate, Value value, int64_t bound) {
      Value limit = arith::ConstantIndexOp::create(rewriter, loc, bound);
      Value holds = rewriter.createOrFold<arith::CmpIOp>(loc, predicate, value, limit);
      all = all ? rewriter.createOrFold<arith::AndIOp>(loc, all, holds) : holds;
    };
    for (const BoundsCheck &check : checks) {
      if (check.level != level)
        continue;
      // The bounds of a dimension must not be taken for granted where they are checked.
      auto dim = dyn_cast<AffineDimExpr>(check.expression);
      Value value = dim ? loop.getDims()[dim.getPosition()] : evaluate({check.expression}).front();
      if (check.checkLower)
        require(arith::CmpIPredicate::sge, value, check.interval.lower);
      if (check.checkUpper)
        require(arith::CmpIPredicate::sle, value, check.interval.upper);
    }
    return all;
  }

  /// The nest from range variable `level` inwards; returns what it yields.
  SmallVector<Value> emitLevel(unsigned level, ValueRange iterArguments) {
    Value condition = emitChecks(level);
    if (!condition)
      return emitLoop(level, iterArguments);
    Location loc = loop.getLoc();
    auto ifOp = scf::IfOp::create(rewriter, loc, iterArguments.getTypes(), condition, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    auto fill = [&](Block *block, auto produce) {
      // Without results the builder has already made the terminator.
      if (!block->empty())
        rewriter.eraseOp(&block->back());
      rewriter.setInsertionPointToEnd(block);
      SmallVector<Value> values = produce();
      scf::YieldOp::create(rewriter, loc, values);
    };
    fill(ifOp.thenBlock(), [&] { return emitLoop(level, iterArguments); });
    fill(ifOp.elseBlock(), [&] { return SmallVector<Value>(iterArguments); });
    return SmallVector<Value>(ifOp.getResults());
  }

  SmallVector<Value> emitLoop(unsigned level, ValueRange iterArguments) {
    if (level == map.ranges().size())
      return emitBody(iterArguments);
    Location loc = loop.getLoc();
    Interval bounds = map.ranges()[level].bounds;
    Value lower = arith::ConstantIndexOp::create(rewriter, loc, bounds.lower);
    if (bounds.isPoint()) {
      variables.push_back(lower);
      SmallVector<Value> results = emitLevel(level + 1, iterArguments);
      variables.pop_back();
      return results;
    }
    Value upper = arith::ConstantIndexOp::create(rewriter, loc, bounds.upper + 1);
    Value step = arith::ConstantIndexOp::create(rewriter, loc, 1);
    auto forOp = scf::ForOp::create(rewriter, loc, lower, upper, step, iterArguments);
    if (Attribute together = loop->getAttr(attr::unroll); together && level + 1 == map.ranges().size())
      forOp->setAttr(attr::unroll, together);
    OpBuilder::InsertionGuard guard(rewriter);
    if (!forOp.getBody()->empty())
      rewriter.eraseOp(forOp.getBody()->getTerminator());
    rewriter.setInsertionPointToEnd(forOp.getBody());
    variables.push_back(forOp.getInductionVar());
    SmallVector<Value> results = emitLevel(level + 1, forOp.getRegionIterArgs());
    variables.pop_back();
    scf::YieldOp::create(rewriter, loc, results);
    return SmallVector<Value>(forOp.getResults());
  }

  SmallVector<Value> emitBody(ValueRange iterArguments) {
    SmallVector<Value> arguments(variables);
    llvm::append_range(arguments, evaluate(map.affine().getResults()));
    llvm::append_range(arguments, iterArguments);
    SmallVector<Value> yielded(loop.yielded());
    // Arguments yielded as they are must follow their replacement.
    for (Value &value : yielded)
      if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == loop.getBody())
        value = arguments[argument.getArgNumber()];
    rewriter.eraseOp(loop.getBody()->getTerminator());
    rewriter.inlineBlockBefore(loop.getBody(), rewriter.getInsertionBlock(), rewriter.getInsertionPoint(), arguments);
    return yielded;
  }

  LoopOp loop;
  IRRewriter &rewriter;
  IndexingMap map;
  SmallVector<BoundsCheck> checks;
  SmallVector<Value> variables; ///< range variables of the enclosing levels
};

void lowerPredicatedInsert(PredicatedInsertOp op, IRRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  auto ifOp = scf::IfOp::create(
      rewriter, op.getLoc(), op.getCondition(),
      [&](OpBuilder &builder, Location loc) {
        Value inserted = tensor::InsertOp::create(builder, loc, op.getValue(), op.getDest(), op.getIndices());
        scf::YieldOp::create(builder, loc, inserted);
      },
      [&](OpBuilder &builder, Location loc) { scf::YieldOp::create(builder, loc, op.getDest()); });
  rewriter.replaceOp(op, ifOp);
}

void lowerPredicatedExtract(PredicatedExtractOp op, IRRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  auto ifOp = scf::IfOp::create(
      rewriter, op.getLoc(), op.getCondition(),
      [&](OpBuilder &builder, Location loc) {
        Value extracted = tensor::ExtractOp::create(builder, loc, op.getSource(), op.getIndices());
        scf::YieldOp::create(builder, loc, extracted);
      },
      [&](OpBuilder &builder, Location loc) { scf::YieldOp::create(builder, loc, op.getFallback()); });
  rewriter.replaceOp(op, ifOp);
}

/// The value of the lane `distance` further, or of the one whose number differs by that bit, in words of 32 or 64 bits.
Value shuffle(OpBuilder &builder, Location loc, Value value, int64_t distance, gpu::ShuffleMode mode) {
  Type type = value.getType();
  if (isa<ComplexType>(type)) {
    Value real = shuffle(builder, loc, complex::ReOp::create(builder, loc, value), distance, mode);
    Value imaginary = shuffle(builder, loc, complex::ImOp::create(builder, loc, value), distance, mode);
    return complex::CreateOp::create(builder, loc, type, real, imaginary);
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = builder.getIntegerType(bits), word = builder.getI32Type();
  if (isa<FloatType>(type))
    value = arith::BitcastOp::create(builder, loc, integer, value);
  HLOC_CHECK(bits <= 32 || bits == 64, "shuffle of a scalar that is no word");
  if (bits < 32)
    value = arith::ExtUIOp::create(builder, loc, word, value);
  value = gpu::ShuffleOp::create(builder, loc, value, distance, 32, mode).getShuffleResult();
  if (bits < 32)
    value = arith::TruncIOp::create(builder, loc, integer, value);
  return isa<FloatType>(type) ? arith::BitcastOp::create(builder, loc, type, value) : value;
}

/// What `op` does to numbers, as the hardware knows it.
std::optional<gpu::AllReduceOperation> operationOf(Operation &op) {
  return llvm::TypeSwitch<Operation *, std::optional<gpu::AllReduceOperation>>(&op)
      .Case([](arith::AddIOp) { return gpu::AllReduceOperation::ADD; })
      .Case([](arith::AndIOp) { return gpu::AllReduceOperation::AND; })
      .Case([](arith::OrIOp) { return gpu::AllReduceOperation::OR; })
      .Case([](arith::XOrIOp) { return gpu::AllReduceOperation::XOR; })
      .Case([](arith::MaxSIOp) { return gpu::AllReduceOperation::MAXSI; })
      .Case([](arith::MaxUIOp) { return gpu::AllReduceOperation::MAXUI; })
      .Case([](arith::MinSIOp) { return gpu::AllReduceOperation::MINSI; })
      .Case([](arith::MinUIOp) { return gpu::AllReduceOperation::MINUI; })
      .Case([](arith::MaximumFOp) { return gpu::AllReduceOperation::MAXIMUMF; })
      .Case([](arith::MinimumFOp) { return gpu::AllReduceOperation::MINIMUMF; })
      .Default([](Operation *) { return std::nullopt; });
}

bool isBitwise(gpu::AllReduceOperation operation) {
  return operation == gpu::AllReduceOperation::AND || operation == gpu::AllReduceOperation::OR ||
         operation == gpu::AllReduceOperation::XOR;
}

/// What the target's instructions make of the lanes of a warp: truth values by a vote, words by a reduction that sm_80
/// brought, and the bits of two words apart from each other; few targets compare floats, as f32.
struct WarpInstructions {
  bool words, floats;

  bool combine(gpu::AllReduceOperation operation, Type type) const {
    if (type.isInteger(1))
      return operation == gpu::AllReduceOperation::AND || operation == gpu::AllReduceOperation::OR;
    if (isa<FloatType>(type))
      return floats && (type.isF32() || type.isF16() || type.isBF16());
    return words && (type.isInteger(32) || (type.isInteger(64) && isBitwise(operation)));
  }
};

/// By result of `combiner`: the operation that makes it of two values of its own, which nothing else reads, if a warp
/// has that.
SmallVector<std::optional<gpu::AllReduceOperation>> warpOperations(func::FuncOp combiner, WarpInstructions target) {
  SmallVector<std::optional<gpu::AllReduceOperation>> operations(combiner.getNumResults());
  if (combiner.isExternal() || !combiner.getBody().hasOneBlock())
    return operations;
  Block &body = combiner.getBody().front();
  for (auto [i, result] : llvm::enumerate(body.getTerminator()->getOperands())) {
    Operation *op = result.getDefiningOp();
    BlockArgument first = body.getArgument(i), second = body.getArgument(i + combiner.getNumResults());
    bool combines = op && op->getNumOperands() == 2 && first.hasOneUse() && second.hasOneUse() &&
                    *first.user_begin() == op && *second.user_begin() == op;
    std::optional<gpu::AllReduceOperation> operation = combines ? operationOf(*op) : std::nullopt;
    if (operation && target.combine(*operation, result.getType()))
      operations[i] = operation;
  }
  return operations;
}

Value combineWarp(OpBuilder &builder, Location loc, Value value, gpu::AllReduceOperation operation) {
  auto reduce = [&](Value word) -> Value {
    return gpu::SubgroupReduceOp::create(builder, loc, word, operation, /*uniform=*/true);
  };
  Type type = value.getType();
  if (type.isF16() || type.isBF16()) {
    Value wide = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
    return arith::TruncFOp::create(builder, loc, type, reduce(wide));
  }
  if (!type.isInteger(64))
    return reduce(value);
  Type word = builder.getI32Type();
  Value shift = arith::ConstantIntOp::create(builder, loc, value.getType(), 32);
  Value low = reduce(arith::TruncIOp::create(builder, loc, word, value));
  Value high = reduce(arith::TruncIOp::create(builder, loc, word, arith::ShRUIOp::create(builder, loc, value, shift)));
  high = arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, value.getType(), high), shift);
  return arith::OrIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, value.getType(), low), high);
}

void lowerShuffleReduce(ShuffleReduceOp op, WarpInstructions target, IRRewriter &rewriter) {
  constexpr int64_t halfOfWarp = 16;
  gpu::ShuffleMode mode = op.getToAll() ? gpu::ShuffleMode::XOR : gpu::ShuffleMode::DOWN;
  rewriter.setInsertionPoint(op);
  SmallVector<Value> values(op.getOperands());
  SmallVector<std::optional<gpu::AllReduceOperation>> atOnce(values.size());
  if (auto combiner = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCombinerAttr());
      combiner && op.getMaxDistance() == halfOfWarp)
    atOnce = warpOperations(combiner, target);
  for (auto [value, operation] : llvm::zip_equal(values, atOnce))
    if (operation)
      value = combineWarp(rewriter, op.getLoc(), value, *operation);
  bool allAtOnce = llvm::all_of(atOnce, [](const auto &operation) { return operation.has_value(); });
  for (int64_t distance = allAtOnce ? 0 : op.getMaxDistance(); distance >= 1; distance /= 2) {
    SmallVector<Value> arguments(values);
    for (auto [value, operation] : llvm::zip_equal(values, atOnce))
      arguments.push_back(operation ? value : shuffle(rewriter, op.getLoc(), value, distance, mode));
    auto call = PureCallOp::create(rewriter, op.getLoc(), op.getCombinerAttr(), op.getResultTypes(), arguments);
    for (auto [value, operation, combined] : llvm::zip_equal(values, atOnce, call.getResults()))
      value = operation ? value : combined;
  }
  rewriter.replaceOp(op, values);
}

/// A target's products of fragments: all at once, or of a part of the rows and terms at a time.
struct MmaShape {
  std::string name;     ///< LLVM's
  size_t rowHalves = 0; ///< of a part, which has one word of %b; 0: of all at once
};

MmaShape shapeOf(MultiplyFragmentsOp op, int64_t computeCapability) {
  Type element = op.getElement();
  auto ofBytes = [](Type type) { return type.isSignedInteger() ? ".s8" : ".u8"; };
  auto named = [](const char *shape, const std::string &types) {
    return fmt::format("llvm.nvvm.mma.{}.row.col{}", shape, types);
  };
  if (element.isInteger(8)) {
    const std::string types = ofBytes(element) + std::string(op.getRhsElement() ? ofBytes(*op.getRhsElement()) : "");
    return computeCapability < 80 ? MmaShape{named("m8n8k16", types), 1} : MmaShape{named("m16n8k32", types)};
  }
  if (element.isF64())
    return computeCapability / 10 == 9 ? MmaShape{named("m16n8k8", ".f64")} : MmaShape{named("m8n8k4", ".f64"), 1};
  if (element.isTF32())
    return {named("m16n8k8", ".tf32")};
  if (element.isF16() && computeCapability < 80)
    return {named("m16n8k8", ".f32.f32"), 2};
  return {named("m16n8k16", element.isF16() ? ".f32.f32" : ".bf16")};
}

/// Products of fragments become LLVM's functions, which take and give words one by one, but halves in pairs. Sums that
/// go from one product to the next are not put together in between.
class ProductLowering {
public:
  ProductLowering(int64_t computeCapability, IRRewriter &rewriter)
      : computeCapability(computeCapability), rewriter(rewriter) {}

  /// In the order of the program. Words of %a are, for each word of %b, of the first and the second half of its rows,
  /// as pairs of sums are.
  void lower(MultiplyFragmentsOp op) {
    rewriter.setInsertionPoint(op);
    SmallVector<Value> lhs = elementsOf(op.getLhs()), rhs = elementsOf(op.getRhs()), sums = elementsOf(op.getSums());
    const MmaShape shape = shapeOf(op, computeCapability);
    if (shape.rowHalves == 0)
      multiply(op, shape, lhs, rhs, sums);
    else
      for (size_t terms = 0; terms < rhs.size(); ++terms)
        for (size_t half = 0; half < 2; half += shape.rowHalves)
          multiply(op, shape, ArrayRef(lhs).slice(2 * terms + half, shape.rowHalves), rhs[terms],
                   MutableArrayRef(sums).slice(2 * half, 2 * shape.rowHalves));
    replace(op, sums);
  }

private:
  /// Once for each block: a fragment is multiplied by several others.
  SmallVector<Value> elementsOf(Value vector) {
    if (auto joined = vector.getDefiningOp<vector::FromElementsOp>())
      return joined.getElements();
    SmallVector<Value> &elements = known[{vector, rewriter.getInsertionBlock()}];
    const int64_t count = cast<VectorType>(vector.getType()).getNumElements();
    for (int64_t i = int64_t(elements.size()); i < count; ++i)
      elements.push_back(vector::ExtractOp::create(rewriter, vector.getLoc(), vector, i));
    return elements;
  }

  void multiply(MultiplyFragmentsOp op, const MmaShape &shape, ArrayRef<Value> lhs, ArrayRef<Value> rhs,
                MutableArrayRef<Value> sums) {
    Location loc = op.getLoc();
    SmallVector<Value> operands;
    for (Value factor : llvm::concat<const Value>(lhs, rhs))
      operands.push_back(
          op.getElement().isF16()
              ? LLVM::BitcastOp::create(rewriter, loc, VectorType::get({2}, rewriter.getF16Type()), factor)
              : factor);
    llvm::append_range(operands, sums);
    SmallVector<Type> types(sums.size(), sums.front().getType());
    Value made = LLVM::CallIntrinsicOp::create(rewriter, loc, LLVM::LLVMStructType::getLiteral(op.getContext(), types),
                                               rewriter.getStringAttr(shape.name), operands)
                     .getResult(0);
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = LLVM::ExtractValueOp::create(rewriter, loc, made, int64_t(i));
  }

  void replace(MultiplyFragmentsOp op, ArrayRef<Value> sums) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (auto extract = dyn_cast<vector::ExtractOp>(user); extract && !extract.hasDynamicPosition())
        rewriter.replaceOp(extract, sums[size_t(extract.getStaticPosition().front())]);
    auto before = op.getSums().getDefiningOp<vector::FromElementsOp>();
    if (op->use_empty())
      rewriter.eraseOp(op);
    else
      rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, op.getResult().getType(), sums);
    if (before && before->use_empty())
      rewriter.eraseOp(before);
  }

  const int64_t computeCapability;
  IRRewriter &rewriter;
  llvm::DenseMap<std::pair<Value, Block *>, SmallVector<Value>> known;
};

struct LowerXlaGpuToScfPass : hloc::impl::LowerXlaGpuToScfBase<LowerXlaGpuToScfPass> {
  using Base::Base;
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<MultiplyFragmentsOp> products;
    getOperation().walk([&](Operation *op) { // inner loops first
      if (auto loop = dyn_cast<LoopOp>(op))
        LoopLowering(loop, rewriter).run();
      else if (auto insert = dyn_cast<PredicatedInsertOp>(op))
        lowerPredicatedInsert(insert, rewriter);
      else if (auto extract = dyn_cast<PredicatedExtractOp>(op))
        lowerPredicatedExtract(extract, rewriter);
      else if (auto reduce = dyn_cast<ShuffleReduceOp>(op))
        lowerShuffleReduce(reduce, {computeCapability >= 80, reducesFloats}, rewriter);
      else if (auto multiply = dyn_cast<MultiplyFragmentsOp>(op))
        products.push_back(multiply);
    });
    ProductLowering lowering(computeCapability, rewriter);
    for (MultiplyFragmentsOp product : products)
      lowering.lower(product);
  }
};

} // namespace
