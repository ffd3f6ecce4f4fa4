// Maps to arithmetic. The ranges of a map decide everything: unsigned division where the dividend is not negative (it
// is shifted up by whole divisors where it may be), nuw and nsw where sums and products stay in range, and whether
// `index` needs 64 bits at all. The decision is left on the module as `xla_gpu.index_bits`; with 64, maps whose values
// all fit are still computed in 32.
#include "passes/PassDetail.h"

#include "hloc/dialect/AppliedMap.h"

#include <limits>

namespace hloc {
#define GEN_PASS_DEF_LOWERINDEX
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

constexpr Interval int32Range = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
constexpr Interval int64Range = {std::numeric_limits<int64_t>::min() / 2, std::numeric_limits<int64_t>::max() / 2};

/// How many blocks enclose the definition of `value`.
unsigned depthOf(Value value) {
  unsigned depth = 0;
  for (Operation *op = value.getParentBlock()->getParentOp(); op; op = op->getParentOp())
    ++depth;
  return depth;
}

/// What was computed of maps, by block and in its order: most of it is asked for again by the next map.
class KnownArithmetic {
public:
  Value constant(OpBuilder &builder, Location loc, Type type, int64_t value) {
    Value &known = constants[{{builder.getInsertionBlock(), type}, value}];
    if (!known)
      known = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
    return known;
  }

  /// `properties`: all that an op has beside its operands, which is whether it may overflow.
  template <typename Op, typename... Properties>
  Value binary(OpBuilder &builder, Location loc, Value lhs, Value rhs, Properties... properties) {
    const unsigned flags = (0u | ... | unsigned(properties));
    Value &known = ops[{{TypeID::get<Op>(), flags}, {builder.getInsertionBlock(), {lhs, rhs}}}];
    if (!known)
      known = Op::create(builder, loc, lhs, rhs, properties...);
    return known;
  }

private:
  using Key = std::pair<std::pair<TypeID, unsigned>, std::pair<Block *, std::pair<Value, Value>>>;
  llvm::DenseMap<std::pair<std::pair<Block *, Type>, int64_t>, Value> constants;
  llvm::DenseMap<Key, Value> ops;
};

class MapEmitter {
public:
  /// Computes in `type`, whose values are limited to `width`.
  MapEmitter(OpBuilder &builder, Location loc, const IndexingMap &map, ValueRange operands, Type type, Interval width,
             KnownArithmetic &known)
      : builder(builder), loc(loc), map(map), operands(operands), type(type), width(width), known(known) {}

  Value emit(AffineExpr expression) {
    switch (expression.getKind()) {
    case AffineExprKind::Constant:
      return constant(cast<AffineConstantExpr>(expression).getValue());
    case AffineExprKind::DimId:
      return operand(cast<AffineDimExpr>(expression).getPosition());
    case AffineExprKind::SymbolId:
      return operand(map.dims().size() + cast<AffineSymbolExpr>(expression).getPosition());
    case AffineExprKind::Add:
      return emitSum(expression);
    case AffineExprKind::Mul: {
      auto product = cast<AffineBinaryOpExpr>(expression);
      return emitProduct(product.getLHS(), cast<AffineConstantExpr>(product.getRHS()).getValue());
    }
    case AffineExprKind::FloorDiv:
    case AffineExprKind::CeilDiv:
    case AffineExprKind::Mod:
      return emitDivision(cast<AffineBinaryOpExpr>(expression));
    }
    HLOC_UNREACHABLE("unknown affine expression");
  }

private:
  Value constant(int64_t value) { return known.constant(builder, loc, type, value); }

  template <typename Op, typename... Properties> Value binary(Value lhs, Value rhs, Properties... properties) {
    return known.binary<Op>(builder, loc, lhs, rhs, properties...);
  }

  Value operand(unsigned i) {
    return type.isIndex() ? operands[i] : arith::IndexCastOp::create(builder, loc, type, operands[i]).getResult();
  }

  arith::IntegerOverflowFlags flags(Interval result, bool allNonNegative) {
    auto flags = arith::IntegerOverflowFlags::none;
    if (width.contains(result))
      flags = flags | arith::IntegerOverflowFlags::nsw;
    if (width.contains(result) && allNonNegative)
      flags = flags | arith::IntegerOverflowFlags::nuw;
    return flags;
  }

  Value emitProduct(AffineExpr factor, int64_t constantFactor) {
    Interval range = map.range(factor);
    Interval result = range * Interval{constantFactor, constantFactor};
    return binary<arith::MulIOp>(emit(factor), constant(constantFactor),
                                 flags(result, range.lower >= 0 && constantFactor >= 0));
  }

  struct Term {
    AffineExpr expression;
    bool negative;
    Interval range; ///< of `expression`, without the sign
    unsigned depth; ///< of the innermost value it uses
    unsigned position;
  };

  unsigned depth(AffineExpr expression) {
    unsigned deepest = 0;
    expression.walk([&](AffineExpr node) {
      if (auto dim = dyn_cast<AffineDimExpr>(node))
        deepest = std::max(deepest, depthOf(operands[dim.getPosition()]));
      else if (auto symbol = dyn_cast<AffineSymbolExpr>(node))
        deepest = std::max(deepest, depthOf(operands[map.dims().size() + symbol.getPosition()]));
    });
    return deepest;
  }

  void collectTerms(AffineExpr expression, SmallVectorImpl<Term> &terms) {
    if (expression.getKind() == AffineExprKind::Add) {
      auto sum = cast<AffineBinaryOpExpr>(expression);
      collectTerms(sum.getLHS(), terms);
      collectTerms(sum.getRHS(), terms);
      return;
    }
    bool negative = false;
    if (expression.getKind() == AffineExprKind::Mul) {
      auto product = cast<AffineBinaryOpExpr>(expression);
      int64_t factor = cast<AffineConstantExpr>(product.getRHS()).getValue();
      if (factor < 0 && factor != std::numeric_limits<int64_t>::min()) {
        negative = true;
        expression = product.getLHS() * -factor;
      }
    }
    terms.push_back({expression, negative, map.range(expression), depth(expression), unsigned(terms.size())});
  }

  /// What loops do not change first, so that it can leave them; constants last, where addresses absorb them.
  Value emitSum(AffineExpr expression) {
    SmallVector<Term> terms;
    collectTerms(expression, terms);
    llvm::sort(terms, [](const Term &a, const Term &b) {
      auto key = [](const Term &term) {
        return std::tuple(isa<AffineConstantExpr>(term.expression), term.depth, term.negative, term.position);
      };
      return key(a) < key(b);
    });
    Value sum;
    Interval range = {0, 0};
    for (const Term &term : terms) {
      bool wasNonNegative = range.lower >= 0;
      range = range + (term.negative ? -term.range : term.range);
      Value value = emit(term.expression);
      if (!sum && !term.negative)
        sum = value;
      else if (term.negative)
        sum = binary<arith::SubIOp>(sum ? sum : constant(0), value, flags(range, false));
      else
        sum = binary<arith::AddIOp>(sum, value, flags(range, wasNonNegative && term.range.lower >= 0));
    }
    return sum;
  }

  Value emitDivision(AffineBinaryOpExpr division) {
    AffineExpr dividend = division.getLHS();
    int64_t divisor = cast<AffineConstantExpr>(division.getRHS()).getValue();
    if (division.getKind() == AffineExprKind::CeilDiv)
      dividend = dividend + (divisor - 1);
    bool isMod = division.getKind() == AffineExprKind::Mod;
    Interval range = map.range(dividend);
    // Whole divisors that make the dividend non-negative.
    int64_t lift = range.lower >= 0 || !width.contains(range) ? 0 : llvm::divideCeil(-range.lower, divisor);
    Interval lifted = range + Interval{lift * divisor, lift * divisor};
    if (!width.contains(lifted) || lifted.lower < 0)
      return emitSignedDivision(emit(dividend), divisor, isMod);
    Value value = emit(lift == 0 ? dividend : dividend + lift * divisor);
    if (isMod)
      return binary<arith::RemUIOp>(value, constant(divisor));
    Value quotient = binary<arith::DivUIOp>(value, constant(divisor));
    return lift == 0 ? quotient : binary<arith::SubIOp>(quotient, constant(lift), arith::IntegerOverflowFlags::nsw);
  }

  /// Rounds towards minus infinity where nothing is known about the sign.
  Value emitSignedDivision(Value dividend, int64_t divisor, bool isMod) {
    Value by = constant(divisor), zero = constant(0);
    Value remainder = arith::RemSIOp::create(builder, loc, dividend, by);
    Value negative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, remainder, zero);
    if (isMod) {
      Value raised = arith::AddIOp::create(builder, loc, remainder, by);
      return arith::SelectOp::create(builder, loc, negative, raised, remainder);
    }
    Value quotient = arith::DivSIOp::create(builder, loc, dividend, by);
    Value lowered = arith::SubIOp::create(builder, loc, quotient, constant(1));
    return arith::SelectOp::create(builder, loc, negative, lowered, quotient);
  }

  OpBuilder &builder;
  Location loc;
  const IndexingMap &map;
  ValueRange operands;
  Type type;
  Interval width;
  KnownArithmetic &known;
};

/// Whether everything computed on the way to the results fits 32 bits.
bool fitsInt32(const IndexingMap &map) {
  for (const IndexingVariable &dim : map.dims())
    if (!int32Range.contains(dim.bounds))
      return false;
  bool fits = true;
  for (AffineExpr result : map.affine().getResults())
    result.walk([&](AffineExpr node) {
      fits = fits && int32Range.contains(map.range(node));
      // Sums are emitted in another order: no partial sum may leave the range either.
      if (auto constant = dyn_cast<AffineConstantExpr>(node))
        fits = fits && int32Range.contains(Interval{constant.getValue(), constant.getValue()});
    });
  return fits;
}

bool fitsInt32(Operation *op) {
  if (auto apply = dyn_cast<ApplyIndexingOp>(op))
    return fitsInt32(apply.indexingMap());
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
    return int32Range.contains(Interval{constant.value(), constant.value()});
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op) && op->getResult(0).getType().isIndex()) {
    std::optional<Interval> range = rangeOf(op->getResult(0));
    unsigned bits = op->getOperand(0).getType().getIntOrFloatBitWidth();
    bool isUnsigned = isa<arith::IndexCastUIOp>(op);
    return bits < 32 || (bits == 32 && !isUnsigned) || (range && int32Range.contains(*range));
  }
  return true;
}

/// Does `value` add to what may be negative? Only if it is extended as a signed number can LLVM take its constant
/// apart, and have several addresses of one base.
bool isSignedSum(Value value) {
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && !bitEnumContainsAny(sum.getOverflowFlags(), arith::IntegerOverflowFlags::nuw);
}

/// Extends an index that is not negative, and fits 32 bits, as a signed number wherever it is extended.
void extendSigned(Value index, OpBuilder &builder) {
  for (Operation *user : llvm::make_early_inc_range(index.getUsers())) {
    auto extension = dyn_cast<arith::IndexCastUIOp>(user);
    if (!extension)
      continue;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(extension);
    extension.replaceAllUsesWith(
        arith::IndexCastOp::create(builder, extension.getLoc(), extension.getType(), index).getResult());
    extension.erase();
  }
}

struct LowerIndexPass : hloc::impl::LowerIndexBase<LowerIndexPass> {
  void runOnOperation() override {
    SmallVector<ApplyIndexingOp> applies;
    bool narrow = true;
    getOperation().walk([&](Operation *op) {
      narrow = narrow && fitsInt32(op);
      if (auto apply = dyn_cast<ApplyIndexingOp>(op))
        applies.push_back(apply);
    });
    known = {};
    OpBuilder builder(&getContext());
    getOperation()->setAttr(attr::indexBits, builder.getI32IntegerAttr(narrow ? 32 : 64));
    for (ApplyIndexingOp apply : applies)
      lower(apply, builder, narrow);
  }

  /// With 32-bit `index` the arithmetic is on `index` itself, but its overflow limits are those of 32 bits: fitsInt32
  /// has checked them for every map.
  void lower(ApplyIndexingOp apply, OpBuilder &builder, bool narrow) {
    builder.setInsertionPoint(apply);
    const IndexingMap &map = apply.indexingMap();
    Type index = builder.getIndexType();
    bool fits = narrow || fitsInt32(map);
    Type type = !narrow && fits ? Type(builder.getI32Type()) : index;
    MapEmitter emitter(builder, apply.getLoc(), map, apply.getOperands(), type, fits ? int32Range : int64Range, known);
    for (OpResult result : apply->getResults()) {
      AffineExpr expression = map.result(result.getResultNumber());
      Value value = emitter.emit(expression);
      bool isSigned = isSignedSum(value);
      if (type != index)
        value = map.range(expression).lower >= 0 && !isSigned
                    ? arith::IndexCastUIOp::create(builder, apply.getLoc(), index, value).getResult()
                    : arith::IndexCastOp::create(builder, apply.getLoc(), index, value).getResult();
      if (fits && isSigned && map.range(expression).lower >= 0)
        extendSigned(result, builder);
      result.replaceAllUsesWith(value);
    }
    apply.erase();
  }

  KnownArithmetic known;
};

} // namespace
