#include "prove/Values.h"

#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;

namespace hloc::prove {

namespace {

constexpr int64_t far = int64_t(1) << 60;

std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) || constant.getBitWidth() > 64)
    return std::nullopt;
  return value.getType().isInteger(1) ? int64_t(constant.getZExtValue()) : constant.getSExtValue();
}

using Predicate = arith::CmpIPredicate;

bool isUnsigned(Predicate predicate) {
  return predicate == Predicate::ult || predicate == Predicate::ule || predicate == Predicate::ugt ||
         predicate == Predicate::uge;
}

/// Of lhs - rhs; nothing if that does not decide.
std::optional<Interval> differences(Predicate predicate, bool nonNegative) {
  switch (predicate) {
  case Predicate::eq:
    return Interval{0, 0};
  case Predicate::ult:
    if (!nonNegative)
      return std::nullopt;
    [[fallthrough]];
  case Predicate::slt:
    return Interval{-far, -1};
  case Predicate::ule:
    if (!nonNegative)
      return std::nullopt;
    [[fallthrough]];
  case Predicate::sle:
    return Interval{-far, 0};
  case Predicate::ugt:
    if (!nonNegative)
      return std::nullopt;
    [[fallthrough]];
  case Predicate::sgt:
    return Interval{1, far};
  case Predicate::uge:
    if (!nonNegative)
      return std::nullopt;
    [[fallthrough]];
  case Predicate::sge:
    return Interval{0, far};
  case Predicate::ne:
    return std::nullopt;
  }
  return std::nullopt;
}

} // namespace

Interval Values::typeRange(Type type) {
  if (type.isIndex() || type.getIntOrFloatBitWidth() > 60)
    return {-far, far};
  if (type.isInteger(1))
    return {0, 1};
  int64_t half = int64_t(1) << (type.getIntOrFloatBitWidth() - 1);
  return {-half, half - 1};
}

AffineExpr Values::unknown(Interval bounds, ValueRange operands) {
  auto all = [&](auto isSo) {
    return !operands.empty() &&
           llvm::all_of(operands, [&](Value value) { return isInteger(value.getType()) && isSo(of(value)); });
  };
  return variables.add(VariableKind::Data, bounds, all([&](AffineExpr one) { return variables.isUniform(one); }),
                       all([&](AffineExpr one) { return variables.isEverywhere(one); }));
}

AffineExpr Values::of(Value value) {
  if (std::optional<int64_t> constant = constantOf(value))
    return variables.constant(*constant);
  AffineExpr &expression = known[value];
  if (!expression)
    expression = unknown(typeRange(value.getType()), {});
  return expression;
}

AffineExpr Values::product(AffineExpr lhs, AffineExpr rhs) {
  if (isa<AffineConstantExpr>(lhs) || isa<AffineConstantExpr>(rhs))
    return lhs * rhs;
  return variables.function(FunctionKind::Product, {lhs, rhs});
}

bool Values::isNonNegative(AffineExpr expression, ArrayRef<Constraint> path) const {
  return variables.range(expression).lower >= 0 ||
         isWithin(variables, expression, {0, std::numeric_limits<int64_t>::max() / 4}, path).verdict ==
             ProofVerdict::Proved;
}

/// Where one may be negative, it is large: `x <u n` says 0 <= x < n of an n that is not, `x <=u n` 0 <= x <= n.
AffineExpr Values::compareUnsigned(arith::CmpIOp op, ArrayRef<Constraint> path) {
  AffineExpr lhs = of(op.getLhs()), rhs = of(op.getRhs()), one = variables.constant(1);
  const Predicate predicate = op.getPredicate();
  if (!isNonNegative(rhs, path))
    return nullptr;
  auto less = [&](AffineExpr a, AffineExpr b) { return variables.function(FunctionKind::Less, {a, b}); };
  const bool isStrict = predicate == Predicate::ult || predicate == Predicate::uge;
  AffineExpr isInside = variables.function(
      FunctionKind::And, {one - less(lhs, variables.constant(0)), isStrict ? less(lhs, rhs) : one - less(rhs, lhs)});
  return predicate == Predicate::ult || predicate == Predicate::ule ? isInside : one - isInside;
}

AffineExpr Values::compare(arith::CmpIOp op, ArrayRef<Constraint> path) {
  AffineExpr lhs = of(op.getLhs()), rhs = of(op.getRhs());
  const bool nonNegative = !isUnsigned(op.getPredicate()) || (isNonNegative(lhs, path) && isNonNegative(rhs, path));
  AffineExpr one = variables.constant(1);
  auto less = [&](AffineExpr a, AffineExpr b) { return variables.function(FunctionKind::Less, {a, b}); };
  switch (op.getPredicate()) {
  case Predicate::eq:
    return variables.function(FunctionKind::Equal, {lhs, rhs});
  case Predicate::ne:
    return one - variables.function(FunctionKind::Equal, {lhs, rhs});
  default:
    break;
  }
  std::optional<Interval> interval = differences(op.getPredicate(), nonNegative);
  if (!interval)
    return compareUnsigned(op, path);
  if (interval->upper == -1)
    return less(lhs, rhs);
  if (interval->upper == 0)
    return one - less(rhs, lhs);
  return interval->lower == 1 ? less(rhs, lhs) : one - less(lhs, rhs);
}

/// `x == n ? 0 : x + 1` of x in [0, n] is (x + 1) mod (n + 1), as stages of a tile go round.
AffineExpr Values::select(arith::SelectOp op) {
  AffineExpr condition = of(op.getCondition()), first = of(op.getTrueValue()), second = of(op.getFalseValue());
  if (auto compare = op.getCondition().getDefiningOp<arith::CmpIOp>();
      compare && compare.getPredicate() == Predicate::eq && first == variables.constant(0)) {
    AffineExpr stage = of(compare.getLhs());
    auto last = dyn_cast<AffineConstantExpr>(of(compare.getRhs()));
    Interval range = variables.range(stage);
    if (last && range.lower >= 0 && range.upper <= last.getValue() && second == stage + 1)
      return (stage + 1) % (last.getValue() + 1);
  }
  return variables.function(FunctionKind::Select, {condition, first, second});
}

AffineExpr Values::minimum(Operation *op, bool isMinimum, bool isUnsigned) {
  AffineExpr lhs = of(op->getOperand(0)), rhs = of(op->getOperand(1));
  Interval a = variables.range(lhs), b = variables.range(rhs);
  // Unsigned, one that may be negative is large: the minimum is the other one's at most.
  if (isUnsigned && (a.lower < 0 || b.lower < 0)) {
    if (!isMinimum || (a.lower < 0 && b.lower < 0))
      return nullptr;
    return unknown({0, a.lower < 0 ? b.upper : a.upper}, op->getOperands());
  }
  if (isMinimum ? a.upper <= b.lower : a.lower >= b.upper)
    return lhs;
  if (isMinimum ? b.upper <= a.lower : b.lower >= a.upper)
    return rhs;
  return variables.function(isMinimum ? FunctionKind::Minimum : FunctionKind::Maximum, {lhs, rhs});
}

AffineExpr Values::computeArith(Operation *op, ArrayRef<Constraint> path) {
  auto operand = [&](unsigned i) { return of(op->getOperand(i)); };
  auto nonNegative = [&] {
    return llvm::all_of(op->getOperands(), [&](Value value) { return variables.range(of(value)).lower >= 0; });
  };
  auto function = [&](FunctionKind kind, bool allowed = true) {
    return allowed ? variables.function(kind, {operand(0), operand(1)}) : AffineExpr();
  };
  if (isa<arith::AddIOp>(op))
    return operand(0) + operand(1);
  if (isa<arith::SubIOp>(op))
    return operand(0) - operand(1);
  if (isa<arith::MulIOp>(op))
    return product(operand(0), operand(1));
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return op->getOperand(0).getType().isInteger(1) ? -operand(0) : operand(0);
  if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op)) {
    if (nonNegative())
      return operand(0);
    Type from = op->getOperand(0).getType();
    if (from.isIndex() || from.getIntOrFloatBitWidth() > 32)
      return nullptr;
    return unknown({0, (int64_t(1) << from.getIntOrFloatBitWidth()) - 1}, op->getOperands());
  }
  if (isa<arith::TruncIOp>(op))
    return operand(0);
  if (isa<arith::MinSIOp, arith::MinUIOp>(op))
    return minimum(op, true, isa<arith::MinUIOp>(op));
  if (isa<arith::MaxSIOp, arith::MaxUIOp>(op))
    return minimum(op, false, isa<arith::MaxUIOp>(op));
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return this->compare(compare, path);
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return this->select(select);
  if (isa<arith::XOrIOp>(op))
    return function(FunctionKind::Xor, nonNegative());
  if (isa<arith::AndIOp>(op))
    return function(FunctionKind::And);
  if (isa<arith::OrIOp>(op))
    return function(FunctionKind::Or, nonNegative());
  if (isa<arith::ShRUIOp>(op))
    return function(FunctionKind::ShiftRight, nonNegative());
  if (isa<arith::DivUIOp, arith::DivSIOp>(op))
    return function(FunctionKind::Divide, nonNegative() && variables.range(operand(1)).lower > 0);
  if (isa<arith::RemUIOp, arith::RemSIOp>(op))
    return function(FunctionKind::Remainder, nonNegative() && variables.range(operand(1)).lower > 0);
  return nullptr;
}

void Values::compute(Operation *op, ArrayRef<Constraint> path) {
  if (auto apply = dyn_cast<xla_gpu::ApplyIndexingOp>(op)) {
    const IndexingMap &map = apply.indexingMap();
    SmallVector<AffineExpr> dims, symbols;
    for (Value operand : apply.dimOperands())
      dims.push_back(of(operand));
    for (Value operand : apply.rangeOperands())
      symbols.push_back(of(operand));
    auto claim = [&](ArrayRef<AffineExpr> operands, ArrayRef<IndexingVariable> bounds) {
      for (auto [operand, variable] : llvm::zip_equal(operands, bounds))
        if (!variable.bounds.contains(variables.range(operand)))
          kernel.claims.push_back({operand, variable.bounds, SmallVector<Constraint, 4>(path), op});
    };
    claim(dims, map.dims());
    claim(symbols, map.ranges());
    for (OpResult result : op->getResults())
      set(result, map.result(result.getResultNumber()).replaceDimsAndSymbols(dims, symbols));
    return;
  }
  if (op->getNumResults() != 1 || !isInteger(op->getResult(0).getType())) {
    for (Value result : op->getResults())
      forget(result); // it may have been computed before, in another round
    return;
  }
  Value result = op->getResult(0);
  if (constantOf(result))
    return;
  AffineExpr expression = isa<arith::ArithDialect>(op->getDialect()) ? computeArith(op, path) : AffineExpr();
  Interval limits = typeRange(result.getType());
  // What wraps around is anything.
  if (!expression || !limits.contains(variables.range(expression)))
    expression = unknown(limits, isa<arith::ArithDialect>(op->getDialect()) ? op->getOperands() : ValueRange());
  if (result.getType().isIndex() && isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    kernel.arithmetic.push_back({expression, limits, SmallVector<Constraint, 4>(path), op});
  if (auto bounds = op->getAttrOfType<ArrayAttr>(xla_gpu::attr::range)) {
    Interval claimed = {cast<IntegerAttr>(bounds[0]).getInt(), cast<IntegerAttr>(bounds[1]).getInt()};
    if (!claimed.contains(variables.range(expression)))
      kernel.claims.push_back({expression, claimed, SmallVector<Constraint, 4>(path), op});
  }
  set(result, expression);
}

void Values::addConstraint(AffineExpr expression, Interval interval, SmallVectorImpl<Constraint> &path) {
  if (auto sum = dyn_cast<AffineBinaryOpExpr>(expression); sum && sum.getKind() == AffineExprKind::Add)
    if (auto constant = dyn_cast<AffineConstantExpr>(sum.getRHS())) {
      expression = sum.getLHS();
      interval = interval + Interval{-constant.getValue(), -constant.getValue()};
    }
  if (const int64_t divisor = expression.getLargestKnownDivisor(); divisor > 1 && !isa<AffineConstantExpr>(expression))
    interval = {llvm::divideCeilSigned(interval.lower, divisor) * divisor,
                llvm::divideFloorSigned(interval.upper, divisor) * divisor};
  Interval range = variables.range(expression);
  if (!interval.contains(range))
    path.push_back({expression, interval.intersect(range)});
}

void Values::assume(Value condition, bool truth, SmallVectorImpl<Constraint> &path) {
  Operation *op = condition.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp>(op) && truth) {
    assume(op->getOperand(0), true, path);
    return assume(op->getOperand(1), true, path);
  }
  if (isa_and_nonnull<arith::OrIOp>(op) && !truth) {
    assume(op->getOperand(0), false, path);
    return assume(op->getOperand(1), false, path);
  }
  if (isa_and_nonnull<arith::XOrIOp>(op) && constantOf(op->getOperand(1)) == 1)
    return assume(op->getOperand(0), !truth, path);
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op)) {
    AffineExpr lhs = of(compare.getLhs()), rhs = of(compare.getRhs());
    Predicate predicate = truth ? compare.getPredicate() : arith::invertPredicate(compare.getPredicate());
    const bool nonNegative = !isUnsigned(predicate) || (isNonNegative(lhs, path) && isNonNegative(rhs, path));
    const bool isStrict = predicate == Predicate::ult;
    if ((isStrict || predicate == Predicate::ule) && !nonNegative && isNonNegative(rhs, path)) {
      addConstraint(lhs, {0, far}, path);
      return addConstraint(lhs - rhs, {-far, isStrict ? -1 : 0}, path);
    }
    if (std::optional<Interval> interval = differences(predicate, nonNegative))
      return addConstraint(lhs - rhs, *interval, path);
  }
  addConstraint(of(condition), {truth, truth}, path);
}

} // namespace hloc::prove
