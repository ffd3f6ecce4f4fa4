#include "prove/Variables.h"

#include "hloc/support/Check.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace hloc::prove {

namespace {

constexpr Interval unbounded = {std::numeric_limits<int64_t>::min() / 4, std::numeric_limits<int64_t>::max() / 4};

/// All values have these bits at most, if none is negative.
Interval upToAllBits(Interval a, Interval b) {
  if (a.lower < 0 || b.lower < 0)
    return unbounded;
  uint64_t most = uint64_t(std::max(a.upper, b.upper)), bits = 1;
  while (bits <= most)
    bits <<= 1;
  return {0, int64_t(bits - 1)};
}

} // namespace

int64_t apply(FunctionKind kind, ArrayRef<int64_t> a) {
  switch (kind) {
  case FunctionKind::Xor:
    return a[0] ^ a[1];
  case FunctionKind::And:
    return a[0] & a[1];
  case FunctionKind::Or:
    return a[0] | a[1];
  case FunctionKind::Minimum:
    return std::min(a[0], a[1]);
  case FunctionKind::Maximum:
    return std::max(a[0], a[1]);
  case FunctionKind::Select:
    return a[0] ? a[1] : a[2];
  case FunctionKind::Equal:
    return a[0] == a[1];
  case FunctionKind::Less:
    return a[0] < a[1];
  case FunctionKind::Divide:
    return a[1] > 0 ? llvm::divideFloorSigned(a[0], a[1]) : 0;
  case FunctionKind::Remainder:
    return a[1] > 0 ? a[0] - llvm::divideFloorSigned(a[0], a[1]) * a[1] : 0;
  case FunctionKind::Product:
    return int64_t(uint64_t(a[0]) * uint64_t(a[1]));
  case FunctionKind::ShiftRight:
    return a[1] >= 0 && a[1] < 63 ? a[0] >> a[1] : 0;
  }
  HLOC_UNREACHABLE("unknown function");
}

AffineExpr Variables::add(VariableKind kind, Interval bounds, bool uniform, bool everywhere) {
  variables.push_back({kind, bounds, uniform, everywhere, FunctionKind::Xor, {}});
  return getAffineDimExpr(unsigned(variables.size() - 1), context);
}

AffineExpr Variables::function(FunctionKind kind, ArrayRef<AffineExpr> arguments) {
  SmallVector<int64_t> constants;
  SmallVector<Interval> ranges;
  for (AffineExpr argument : arguments) {
    if (auto value = dyn_cast<AffineConstantExpr>(argument))
      constants.push_back(value.getValue());
    ranges.push_back(range(argument));
  }
  if (constants.size() == arguments.size())
    return constant(apply(kind, constants));
  Interval bounds = rangeOfFunction(kind, ranges);
  if (bounds.isPoint())
    return constant(bounds.lower);
  if (kind == FunctionKind::Select && arguments[1] == arguments[2])
    return arguments[1];
  for (auto [i, variable] : llvm::enumerate(variables))
    if (variable.kind == VariableKind::Function && variable.function == kind &&
        ArrayRef<AffineExpr>(variable.arguments) == arguments)
      return getAffineDimExpr(unsigned(i), context);
  variables.push_back({VariableKind::Function, bounds, false, false, kind, SmallVector<AffineExpr, 3>(arguments)});
  return getAffineDimExpr(unsigned(variables.size() - 1), context);
}

Interval Variables::rangeOfFunction(FunctionKind kind, ArrayRef<Interval> a) const {
  switch (kind) {
  case FunctionKind::Xor:
  case FunctionKind::Or:
    return upToAllBits(a[0], a[1]);
  case FunctionKind::And:
    if (a[0].lower >= 0 && a[1].lower >= 0)
      return {0, std::min(a[0].upper, a[1].upper)};
    if (a[0].lower >= 0 || a[1].lower >= 0)
      return {0, a[0].lower >= 0 ? a[0].upper : a[1].upper};
    return unbounded;
  case FunctionKind::Minimum:
    return {std::min(a[0].lower, a[1].lower), std::min(a[0].upper, a[1].upper)};
  case FunctionKind::Maximum:
    return {std::max(a[0].lower, a[1].lower), std::max(a[0].upper, a[1].upper)};
  case FunctionKind::Select:
    return a[0].isPoint() ? (a[0].lower ? a[1] : a[2]) : a[1].unite(a[2]);
  case FunctionKind::Equal:
    if (a[0].isPoint() && a[0] == a[1])
      return {1, 1};
    return {0, a[0].intersect(a[1]).isEmpty() ? 0 : 1};
  case FunctionKind::Less:
    return {a[0].upper < a[1].lower ? 1 : 0, a[0].lower < a[1].upper ? 1 : 0};
  case FunctionKind::Divide:
    if (a[0].lower >= 0 && a[1].lower > 0)
      return {llvm::divideFloorSigned(a[0].lower, a[1].upper), llvm::divideFloorSigned(a[0].upper, a[1].lower)};
    return unbounded;
  case FunctionKind::Remainder:
    return a[0].lower >= 0 && a[1].lower > 0 ? Interval{0, std::min(a[0].upper, a[1].upper - 1)} : unbounded;
  case FunctionKind::Product:
    return a[0] * a[1];
  case FunctionKind::ShiftRight:
    if (a[1].isPoint() && a[1].lower >= 0 && a[1].lower < 63)
      return {a[0].lower >> a[1].lower, a[0].upper >> a[1].lower};
    return a[0].lower >= 0 ? Interval{0, a[0].upper} : unbounded;
  }
  HLOC_UNREACHABLE("unknown function");
}

Interval Variables::range(AffineExpr expression, ArrayRef<Constraint> known) const {
  Interval result = unbounded;
  switch (expression.getKind()) {
  case AffineExprKind::Constant: {
    int64_t value = cast<AffineConstantExpr>(expression).getValue();
    return {value, value};
  }
  case AffineExprKind::DimId:
    result = variables[cast<AffineDimExpr>(expression).getPosition()].bounds;
    break;
  case AffineExprKind::SymbolId:
    HLOC_UNREACHABLE("all variables are dimensions");
  default: {
    auto binary = cast<AffineBinaryOpExpr>(expression);
    Interval lhs = range(binary.getLHS(), known), rhs = range(binary.getRHS(), known);
    if (expression.getKind() == AffineExprKind::Add) {
      result = lhs + rhs;
    } else if (expression.getKind() == AffineExprKind::Mul) {
      result = lhs * rhs;
    } else if (rhs.isPoint() && rhs.lower > 0) {
      int64_t by = rhs.lower;
      if (expression.getKind() == AffineExprKind::FloorDiv)
        result = {llvm::divideFloorSigned(lhs.lower, by), llvm::divideFloorSigned(lhs.upper, by)};
      else if (expression.getKind() == AffineExprKind::CeilDiv)
        result = {-llvm::divideFloorSigned(-lhs.lower, by), -llvm::divideFloorSigned(-lhs.upper, by)};
      else if (int64_t period = llvm::divideFloorSigned(lhs.lower, by);
               period == llvm::divideFloorSigned(lhs.upper, by))
        result = {lhs.lower - period * by, lhs.upper - period * by};
      else
        result = {0, by - 1};
    }
  }
  }
  for (const Constraint &constraint : known)
    if (constraint.first == expression)
      result = result.intersect(constraint.second);
  return result;
}

void Variables::collect(AffineExpr expression, llvm::BitVector &into) const {
  into.resize(std::max<size_t>(into.size(), variables.size()));
  expression.walk([&](AffineExpr part) {
    auto dim = dyn_cast<AffineDimExpr>(part);
    if (!dim || into[dim.getPosition()])
      return;
    into.set(dim.getPosition());
    for (AffineExpr argument : variables[dim.getPosition()].arguments)
      collect(argument, into);
  });
}

bool Variables::dependsOn(AffineExpr expression, VariableKind kind) const {
  llvm::BitVector used;
  collect(expression, used);
  return llvm::any_of(used.set_bits(), [&](unsigned i) { return variables[i].kind == kind; });
}

bool Variables::isUniform(AffineExpr expression) const {
  llvm::BitVector used;
  collect(expression, used);
  return llvm::none_of(used.set_bits(), [&](unsigned i) {
    const Variable &variable = variables[i];
    return variable.kind == VariableKind::Thread || (variable.kind == VariableKind::Data && !variable.uniform);
  });
}

bool Variables::isEverywhere(AffineExpr expression) const {
  llvm::BitVector used;
  collect(expression, used);
  return llvm::all_of(used.set_bits(), [&](unsigned i) {
    const Variable &variable = variables[i];
    return variable.kind == VariableKind::Function || (variable.kind == VariableKind::Data && variable.everywhere);
  });
}

void Point::set(unsigned variable, int64_t value) {
  values[variable] = value;
  known.set(variable);
}

int64_t Point::operator[](unsigned i) const {
  if (known[i])
    return values[i];
  const Variable &variable = variables[i];
  values[i] = variable.bounds.lower;
  if (variable.kind == VariableKind::Function) {
    SmallVector<int64_t, 3> arguments;
    for (AffineExpr argument : variable.arguments)
      arguments.push_back(evaluate(argument));
    values[i] = apply(variable.function, arguments);
  }
  known.set(i);
  return values[i];
}

int64_t Point::evaluate(AffineExpr expression) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expression))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return (*this)[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expression);
  int64_t lhs = evaluate(binary.getLHS()), rhs = evaluate(binary.getRHS());
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    return int64_t(uint64_t(lhs) + uint64_t(rhs));
  case AffineExprKind::Mul:
    return int64_t(uint64_t(lhs) * uint64_t(rhs));
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return -llvm::divideFloorSigned(-lhs, rhs);
  case AffineExprKind::Mod:
    return lhs - llvm::divideFloorSigned(lhs, rhs) * rhs;
  default:
    HLOC_UNREACHABLE("not a binary expression");
  }
}

bool Point::holds(ArrayRef<Constraint> constraints) const {
  return llvm::all_of(constraints, [&](const Constraint &one) { return one.second.contains(evaluate(one.first)); });
}

unsigned Program::add(AffineExpr expression) {
  unsigned at = emit(expression);
  results.resize(steps.size());
  outputs.push_back(at);
  return unsigned(outputs.size() - 1);
}

unsigned Program::emit(AffineExpr expression) {
  auto found = known.find(expression);
  if (found != known.end())
    return found->second;
  Step step{StepKind::Constant, FunctionKind::Xor, 0};
  if (auto constant = dyn_cast<AffineConstantExpr>(expression)) {
    step.constant = constant.getValue();
  } else if (auto dim = dyn_cast<AffineDimExpr>(expression)) {
    const Variable &variable = variables[dim.getPosition()];
    step.kind = StepKind::Variable;
    step.lhs = dim.getPosition();
    if (variable.kind == VariableKind::Function) {
      step.kind = StepKind::Function;
      step.function = variable.function;
      unsigned *places[] = {&step.lhs, &step.rhs, &step.third};
      for (auto [place, argument] : llvm::zip(places, variable.arguments))
        *place = emit(argument);
    }
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expression);
    step.lhs = emit(binary.getLHS());
    step.rhs = emit(binary.getRHS());
    step.kind = expression.getKind() == AffineExprKind::Add        ? StepKind::Add
                : expression.getKind() == AffineExprKind::Mul      ? StepKind::Multiply
                : expression.getKind() == AffineExprKind::FloorDiv ? StepKind::FloorDiv
                : expression.getKind() == AffineExprKind::CeilDiv  ? StepKind::CeilDiv
                                                                   : StepKind::Mod;
  }
  step.result = unsigned(steps.size());
  steps.push_back(step);
  known[expression] = step.result;
  return step.result;
}

int64_t Program::evaluate(const Step &step, ArrayRef<int64_t> values) const {
  switch (step.kind) {
  case StepKind::Constant:
    return step.constant;
  case StepKind::Variable:
    return values[step.lhs];
  case StepKind::Add:
    return int64_t(uint64_t(results[step.lhs]) + uint64_t(results[step.rhs]));
  case StepKind::Multiply:
    return int64_t(uint64_t(results[step.lhs]) * uint64_t(results[step.rhs]));
  case StepKind::FloorDiv:
    return llvm::divideFloorSigned(results[step.lhs], results[step.rhs]);
  case StepKind::CeilDiv:
    return -llvm::divideFloorSigned(-results[step.lhs], results[step.rhs]);
  case StepKind::Mod:
    return results[step.lhs] - llvm::divideFloorSigned(results[step.lhs], results[step.rhs]) * results[step.rhs];
  case StepKind::Function:
    return apply(step.function, {results[step.lhs], results[step.rhs], results[step.third]});
  }
  HLOC_UNREACHABLE("unknown step");
}

} // namespace hloc::prove
