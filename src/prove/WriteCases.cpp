#include "prove/WriteCases.h"

using namespace mlir;

namespace hloc::prove {

namespace {

class Cases {
public:
  Cases(const KernelAccesses &kernel, std::string &why) : variables(kernel.variables), why(why) {}

  std::vector<WriteCase> cases;

  bool add(const Access &access) {
    Access own = access;
    SmallVector<Constraint, 4> condition;
    llvm::erase_if(own.constraints, [&](const Constraint &one) {
      const bool isFixed = variables.isEverywhere(one.first);
      if (isFixed)
        condition.push_back(one);
      return isFixed;
    });
    SmallVector<AffineExpr, 4> shift;
    for (AffineExpr &index : own.indices)
      shift.push_back(takeFixed(index));
    if (!check(own))
      return false;
    auto found = llvm::find(conditions, condition);
    const size_t number = size_t(found - conditions.begin());
    if (found == conditions.end()) {
      conditions.push_back(condition);
      shifts.push_back(shift);
      cases.emplace_back();
    } else if (shifts[number] != shift) {
      return fail("writes are apart by what depends on data");
    }
    cases[number].isShifted = llvm::any_of(shift, [](AffineExpr part) { return !isZero(part); });
    cases[number].writes.push_back(std::move(own));
    return true;
  }

  /// Two cases never happen together.
  bool areApart() {
    for (size_t i = 0; i < conditions.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (!exclude(conditions[i], conditions[k]))
          return fail("whether it is written depends on data");
    return true;
  }

  /// One of them happens: there is one without a condition, or what is true or false is both.
  bool areAll() const {
    if (conditions.size() == 1)
      return conditions[0].empty();
    if (conditions.size() != 2 || conditions[0].size() != 1 || conditions[1].size() != 1)
      return false;
    const Constraint &first = conditions[0][0], &second = conditions[1][0];
    const Interval range = variables.range(first.first);
    auto contains = [&](int64_t value) { return first.second.contains(value) || second.second.contains(value); };
    return first.first == second.first && range.size() <= 2 && contains(range.lower) && contains(range.upper);
  }

private:
  bool fail(const char *reason) {
    why = reason;
    return false;
  }
  static bool isZero(AffineExpr expression) {
    auto constant = dyn_cast<AffineConstantExpr>(expression);
    return constant && constant.getValue() == 0;
  }

  /// The terms of a sum that are one value of data; they are taken out of it.
  AffineExpr takeFixed(AffineExpr &index) const {
    AffineExpr zero = variables.constant(0);
    if (auto sum = dyn_cast<AffineBinaryOpExpr>(index); sum && sum.getKind() == AffineExprKind::Add) {
      AffineExpr lhs = sum.getLHS(), rhs = sum.getRHS();
      AffineExpr fixed = takeFixed(lhs);
      fixed = fixed + takeFixed(rhs);
      index = lhs + rhs;
      return fixed;
    }
    if (isa<AffineConstantExpr>(index) || !variables.isEverywhere(index))
      return zero;
    return std::exchange(index, zero);
  }

  /// Nothing that is left depends on data.
  bool check(const Access &access) {
    llvm::BitVector used;
    auto dependsOn = [&](VariableKind kind) {
      return llvm::any_of(used.set_bits(), [&](unsigned i) { return variables[i].kind == kind; });
    };
    for (AffineExpr index : access.indices)
      variables.collect(index, used);
    if (dependsOn(VariableKind::Data))
      return fail("where it is written depends on data");
    for (const Constraint &constraint : access.constraints)
      variables.collect(constraint.first, used);
    if (dependsOn(VariableKind::Data))
      return fail("whether it is written depends on data");
    return !dependsOn(VariableKind::State) || fail("it is written in a loop with barriers");
  }

  static bool exclude(ArrayRef<Constraint> first, ArrayRef<Constraint> second) {
    return llvm::any_of(first, [&](const Constraint &a) {
      return llvm::any_of(
          second, [&](const Constraint &b) { return a.first == b.first && a.second.intersect(b.second).isEmpty(); });
    });
  }

  const Variables &variables;
  std::string &why;
  std::vector<SmallVector<Constraint, 4>> conditions; ///< by case
  std::vector<SmallVector<AffineExpr, 4>> shifts;
};

} // namespace

std::optional<std::vector<WriteCase>> writeCasesOf(const KernelAccesses &kernel, unsigned buffer, bool &areAll,
                                                   std::string &why) {
  Cases cases(kernel, why);
  for (const Access &access : kernel.accesses) {
    if (access.buffer != buffer || access.kind == AccessKind::Read)
      continue;
    if (access.kind == AccessKind::Atomic) {
      why = "updates by atomics, to places that depend on data";
      return std::nullopt;
    }
    if (!cases.add(access))
      return std::nullopt;
  }
  if (!cases.areApart())
    return std::nullopt;
  areAll = cases.areAll();
  return std::move(cases.cases);
}

} // namespace hloc::prove
