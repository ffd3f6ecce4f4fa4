#include "prove/Decide.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"

#include <limits>
#include <random>

using namespace mlir;

namespace hloc::prove {

namespace {

/// Larger systems are not solved.
constexpr unsigned mostColumns = 60;
constexpr int64_t mostPoints = 1 << 16;

/// Linear constraints over variables and quotients.
class LinearSystem {
public:
  LinearSystem(const Variables &variables, ArrayRef<Constraint> constraints) {
    for (const Constraint &constraint : constraints)
      findColumns(constraint.first);
    for (const Constraint &constraint : constraints)
      require(constraint.first, constraint.second);
    for (auto &[expression, column] : quotients) {
      auto division = cast<AffineBinaryOpExpr>(expression);
      int64_t by = cast<AffineConstantExpr>(division.getRHS()).getValue();
      // 0 <= dividend - by * quotient <= by - 1
      Row row = rowOf(division.getLHS());
      row[column] -= by;
      require(row, {0, by - 1});
      Row quotient(numColumns + 1, 0); // rational ones would be anything between
      quotient[column] = 1;
      require(quotient, variables.range(expression, constraints));
    }
    for (auto &[variable, column] : columns) {
      Row row(numColumns + 1, 0);
      row[column] = 1;
      require(row, variables[variable].bounds);
    }
  }

  bool isEmpty() const {
    if (tooLarge || numColumns > mostColumns)
      return false;
    presburger::IntegerPolyhedron set(presburger::PresburgerSpace::getSetSpace(numColumns));
    for (const Row &row : rows)
      set.addInequality(ArrayRef<int64_t>(row));
    return presburger::Simplex(set).isEmpty();
  }

private:
  using Row = SmallVector<int64_t>;
  static constexpr int64_t largest = int64_t(1) << 52;

  void findColumns(AffineExpr expression) {
    expression.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part)) {
        if (columns.try_emplace(dim.getPosition(), numColumns).second)
          ++numColumns;
      } else if (part.getKind() == AffineExprKind::FloorDiv || part.getKind() == AffineExprKind::Mod) {
        auto division = cast<AffineBinaryOpExpr>(part);
        tooLarge |= !isa<AffineConstantExpr>(division.getRHS());
        if (!tooLarge && quotients.try_emplace(division.getLHS().floorDiv(division.getRHS()), numColumns).second)
          ++numColumns;
      } else if (part.getKind() == AffineExprKind::CeilDiv) {
        tooLarge = true;
      }
    });
  }

  Row rowOf(AffineExpr expression) {
    Row row(numColumns + 1, 0);
    add(expression, 1, row);
    return row;
  }
  void add(AffineExpr expression, int64_t factor, Row &row) {
    if (tooLarge)
      return;
    switch (expression.getKind()) {
    case AffineExprKind::Constant:
      row[numColumns] += factor * cast<AffineConstantExpr>(expression).getValue();
      return;
    case AffineExprKind::DimId:
      row[columns.lookup(cast<AffineDimExpr>(expression).getPosition())] += factor;
      return;
    case AffineExprKind::Add:
      add(cast<AffineBinaryOpExpr>(expression).getLHS(), factor, row);
      return add(cast<AffineBinaryOpExpr>(expression).getRHS(), factor, row);
    case AffineExprKind::Mul: {
      auto product = cast<AffineBinaryOpExpr>(expression);
      auto by = dyn_cast<AffineConstantExpr>(product.getRHS());
      if (!by || std::abs(by.getValue()) > largest ||
          std::abs(factor) > largest / std::max<int64_t>(1, std::abs(by.getValue())))
        tooLarge = true;
      else
        add(product.getLHS(), factor * by.getValue(), row);
      return;
    }
    case AffineExprKind::FloorDiv:
    case AffineExprKind::Mod: {
      auto division = cast<AffineBinaryOpExpr>(expression);
      auto by = cast<AffineConstantExpr>(division.getRHS());
      auto found = quotients.find(division.getLHS().floorDiv(by));
      if (found == quotients.end() || std::abs(factor) > largest / by.getValue()) {
        tooLarge = true;
      } else if (expression.getKind() == AffineExprKind::FloorDiv) {
        row[found->second] += factor;
      } else {
        add(division.getLHS(), factor, row);
        row[found->second] -= factor * by.getValue();
      }
      return;
    }
    default:
      tooLarge = true;
    }
  }

  void require(AffineExpr expression, Interval interval) { require(rowOf(expression), interval); }
  void require(const Row &row, Interval interval) {
    if (interval.lower > -largest) {
      rows.push_back(row);
      rows.back()[numColumns] -= interval.lower;
    }
    if (interval.upper < largest) {
      rows.push_back(row);
      for (int64_t &value : rows.back())
        value = -value;
      rows.back()[numColumns] += interval.upper;
    }
  }

  llvm::MapVector<unsigned, unsigned> columns;
  llvm::MapVector<AffineExpr, unsigned> quotients;
  unsigned numColumns = 0;
  std::vector<Row> rows;
  bool tooLarge = false;
};

/// Points where bounds are most easily left, and some others.
std::optional<Point> search(const Variables &variables, ArrayRef<unsigned> inputs, ArrayRef<Constraint> constraints,
                            AffineExpr expression, Interval interval) {
  std::minstd_rand random(1);
  constexpr unsigned numRandom = 300;
  for (unsigned trial = 0; trial < 2 + 2 * inputs.size() + numRandom; ++trial) {
    Point point(variables);
    for (auto [i, input] : llvm::enumerate(inputs)) {
      const Interval &bounds = variables[input].bounds;
      bool upper = trial == 1 || trial == 2 + 2 * i || (trial % 2 == 1 && trial != 3 + 2 * i);
      int64_t value = upper ? bounds.upper : bounds.lower;
      if (trial >= 2 + 2 * inputs.size()) {
        unsigned choice = unsigned(random() % 4);
        value = choice == 0   ? bounds.lower
                : choice == 1 ? bounds.upper
                              : bounds.lower + int64_t(random() % uint64_t(std::max<int64_t>(1, bounds.size())));
      }
      point.set(input, value);
    }
    if (point.holds(constraints) && !interval.contains(point.evaluate(expression)))
      return point;
  }
  return std::nullopt;
}

} // namespace

std::optional<SmallVector<unsigned>> inputsOf(const Variables &variables, ArrayRef<AffineExpr> expressions,
                                              ArrayRef<Constraint> constraints) {
  llvm::BitVector used;
  for (AffineExpr expression : expressions)
    variables.collect(expression, used);
  for (const Constraint &constraint : constraints)
    variables.collect(constraint.first, used);
  SmallVector<unsigned> result;
  for (unsigned i : used.set_bits()) {
    if (variables[i].kind == VariableKind::Data)
      return std::nullopt;
    if (variables[i].kind != VariableKind::Function)
      result.push_back(i);
  }
  return result;
}

bool forEachPoint(const Variables &variables, ArrayRef<unsigned> which, int64_t most,
                  llvm::function_ref<bool(MutableArrayRef<int64_t>)> visit) {
  int64_t count = 1;
  std::vector<int64_t> values(variables.size());
  for (unsigned i = 0; i < variables.size(); ++i)
    values[i] = variables[i].bounds.lower;
  for (unsigned i : which) {
    const Interval &bounds = variables[i].bounds;
    if (bounds.isEmpty())
      return true;
    if (bounds.size() > most / count)
      return false;
    count *= bounds.size();
  }
  while (true) {
    if (!visit(values))
      return true;
    size_t i = which.size();
    while (i-- > 0) {
      if (values[which[i]]++ < variables[which[i]].bounds.upper)
        break;
      values[which[i]] = variables[which[i]].bounds.lower;
    }
    if (i == size_t(-1))
      return true;
  }
}

bool mayHold(const Variables &variables, ArrayRef<Constraint> constraints) {
  for (const Constraint &constraint : constraints)
    if (constraint.second.isEmpty() || variables.range(constraint.first).intersect(constraint.second).isEmpty())
      return false;
  return !LinearSystem(variables, constraints).isEmpty();
}

Decision isWithin(const Variables &variables, AffineExpr expression, Interval interval, ArrayRef<Constraint> where) {
  Interval range = variables.range(expression, where);
  if (interval.contains(range))
    return {ProofVerdict::Proved, std::nullopt};
  auto excluded = [&](Interval outside) {
    if (range.intersect(outside).isEmpty())
      return true;
    SmallVector<Constraint, 8> all(where);
    all.push_back({expression, outside});
    return LinearSystem(variables, all).isEmpty();
  };
  constexpr int64_t most = std::numeric_limits<int64_t>::max() / 4;
  if (excluded({interval.upper + 1, most}) && excluded({-most, interval.lower - 1}))
    return {ProofVerdict::Proved, std::nullopt};
  std::optional<SmallVector<unsigned>> inputs = inputsOf(variables, expression, where);
  if (!inputs)
    return {};
  if (std::optional<Point> point = search(variables, *inputs, where, expression, interval))
    return {ProofVerdict::Refuted, std::move(point)};
  Program program(variables);
  for (const Constraint &constraint : where)
    program.add(constraint.first);
  const unsigned result = program.add(expression);
  std::optional<Point> outside;
  bool all = forEachPoint(variables, *inputs, mostPoints, [&](MutableArrayRef<int64_t> values) {
    program.run(values);
    for (auto [i, constraint] : llvm::enumerate(where))
      if (!constraint.second.contains(program.result(unsigned(i))))
        return true;
    if (interval.contains(program.result(result)))
      return true;
    outside.emplace(variables);
    for (unsigned input : *inputs)
      outside->set(input, values[input]);
    return false;
  });
  if (outside)
    return {ProofVerdict::Refuted, std::move(outside)};
  return {all ? ProofVerdict::Proved : ProofVerdict::Unknown, std::nullopt};
}

} // namespace hloc::prove
