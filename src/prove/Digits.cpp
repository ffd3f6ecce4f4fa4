#include "prove/Digits.h"

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/MapVector.h"

#include "llvm/Support/MathExtras.h"

#include <map>
#include <numeric>
#include <set>

using namespace mlir;

namespace hloc::prove {

namespace {

/// A sum: factors of variables and divisions, and a constant.
struct Sum {
  llvm::MapVector<AffineExpr, int64_t> terms;
  int64_t constant = 0;

  void add(AffineExpr atom, int64_t factor) {
    int64_t &sum = terms[atom];
    sum += factor;
  }
  void add(const Sum &other, int64_t factor) {
    for (auto &[atom, times] : other.terms)
      add(atom, factor * times);
    constant += factor * other.constant;
  }
  void clean() {
    terms.remove_if([](auto &term) { return term.second == 0; });
  }
  AffineExpr expression(MLIRContext *context) const {
    AffineExpr result = getAffineConstantExpr(constant, context);
    for (auto &[atom, factor] : terms)
      result = result + atom * factor;
    return result;
  }
};

class Splitter {
public:
  Splitter(MLIRContext *context) : context(context) {}

  MLIRContext *context;
  std::vector<Interval> ranges; ///< of variables as they are now; those that were replaced are out of use
  std::vector<AffineExpr> results, inputs;
  std::vector<Constraint> constraints;
  bool isEmpty = false;
  std::string why;

  AffineExpr newVariable(int64_t count) {
    ranges.push_back({0, count - 1});
    return getAffineDimExpr(unsigned(ranges.size() - 1), context);
  }

  bool run() {
    constexpr unsigned mostSteps = 100;
    for (unsigned step = 0; step < mostSteps; ++step) {
      normalizeAll();
      if (isEmpty)
        return true;
      if (tighten())
        continue;
      std::map<unsigned, std::set<int64_t>> divisors;
      AffineExpr compound;
      for (AffineExpr result : results)
        findDivisions(result, divisors, compound);
      for (const Constraint &constraint : constraints)
        findDivisions(constraint.first, divisors, compound);
      if (!divisors.empty()) {
        for (auto &[variable, by] : divisors)
          if (!split(variable, by))
            return false;
      } else if (compound) {
        if (!fuse(compound))
          return false;
      } else {
        return true;
      }
    }
    why = "indices are not taken apart in bounded time";
    return false;
  }

  Interval range(AffineExpr expression) const {
    if (auto constant = dyn_cast<AffineConstantExpr>(expression))
      return {constant.getValue(), constant.getValue()};
    if (auto dim = dyn_cast<AffineDimExpr>(expression))
      return ranges[dim.getPosition()];
    auto binary = cast<AffineBinaryOpExpr>(expression);
    Interval lhs = range(binary.getLHS()), rhs = range(binary.getRHS());
    if (expression.getKind() == AffineExprKind::Add)
      return lhs + rhs;
    if (expression.getKind() == AffineExprKind::Mul)
      return lhs * rhs;
    int64_t by = rhs.lower, low = llvm::divideFloorSigned(lhs.lower, by), high = llvm::divideFloorSigned(lhs.upper, by);
    if (expression.getKind() == AffineExprKind::FloorDiv)
      return {low, high};
    return low == high ? Interval{lhs.lower - low * by, lhs.upper - low * by} : Interval{0, by - 1};
  }

  /// Factors of a sum without divisions; digits that are always 0 are left out.
  LinearForm linear(AffineExpr expression) {
    Sum sum = normalize(expression);
    LinearForm form;
    form.constant = sum.constant;
    for (auto &[atom, factor] : sum.terms)
      form.terms.push_back({cast<AffineDimExpr>(atom).getPosition(), factor});
    return form;
  }

private:
  Interval range(const Sum &sum) const {
    Interval result = {sum.constant, sum.constant};
    for (auto &[atom, factor] : sum.terms)
      result = result + range(atom) * Interval{factor, factor};
    return result;
  }

  // --- normal form: no division of a division, and no division of what is a multiple, or too small

  Sum normalize(AffineExpr expression) {
    Sum sum;
    if (auto constant = dyn_cast<AffineConstantExpr>(expression)) {
      sum.constant = constant.getValue();
      return sum;
    }
    if (auto dim = dyn_cast<AffineDimExpr>(expression)) {
      const Interval &bounds = ranges[dim.getPosition()];
      if (bounds.isPoint())
        sum.constant = bounds.lower;
      else
        sum.add(expression, 1);
      return sum;
    }
    auto binary = cast<AffineBinaryOpExpr>(expression);
    if (expression.getKind() == AffineExprKind::Add) {
      sum = normalize(binary.getLHS());
      sum.add(normalize(binary.getRHS()), 1);
      return recombine(sum);
    }
    int64_t by = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    if (expression.getKind() == AffineExprKind::Mul) {
      sum.add(normalize(binary.getLHS()), by);
      sum.clean();
      return sum;
    }
    return divide(normalize(binary.getLHS()), by, expression.getKind() == AffineExprKind::Mod);
  }

  /// n (x floordiv n) + x mod n is x.
  Sum recombine(Sum &sum) {
    sum.clean();
    for (auto &[atom, factor] : sum.terms) {
      auto remainder = dyn_cast<AffineBinaryOpExpr>(atom);
      if (!remainder || atom.getKind() != AffineExprKind::Mod)
        continue;
      AffineExpr quotient = getAffineBinaryOpExpr(AffineExprKind::FloorDiv, remainder.getLHS(), remainder.getRHS());
      const int64_t by = cast<AffineConstantExpr>(remainder.getRHS()).getValue();
      if (sum.terms.lookup(quotient) != factor * by)
        continue;
      Sum result = sum;
      result.terms.erase(atom);
      result.terms.erase(quotient);
      result.add(normalize(remainder.getLHS()), factor);
      return recombine(result);
    }
    return sum;
  }

  /// x + (y floordiv p) is (p x + y) floordiv p: one quotient of one sum.
  bool isOneQuotient(const Sum &dividend, AffineExpr &quotient) const {
    unsigned numQuotients = 0;
    for (auto &[atom, factor] : dividend.terms) {
      if (isa<AffineDimExpr>(atom))
        continue;
      ++numQuotients;
      quotient = atom;
      if (atom.getKind() != AffineExprKind::FloorDiv || factor != 1)
        return false;
    }
    return numQuotients == 1 && dividend.terms.size() > 1;
  }

  Sum divide(const Sum &dividend, int64_t by, bool isMod) {
    if (AffineExpr quotient; isOneQuotient(dividend, quotient)) {
      int64_t innerBy = cast<AffineConstantExpr>(cast<AffineBinaryOpExpr>(quotient).getRHS()).getValue();
      Sum whole = dividend, all;
      whole.terms.erase(quotient);
      all.add(whole, innerBy);
      all.add(normalize(cast<AffineBinaryOpExpr>(quotient).getLHS()), 1);
      all.clean();
      Sum scaled = divide(all, innerBy * by, false);
      if (!isMod)
        return scaled;
      // y mod b is y - b (y floordiv b); of a quotient alone there is a shorter form.
      Sum inner;
      inner.add(divisionOf(all, innerBy, false), 1);
      if (inner.terms.size() == 1 && isa<AffineBinaryOpExpr>(inner.terms.front().first)) {
        Sum result;
        result.add(getAffineBinaryOpExpr(AffineExprKind::Mod, inner.terms.front().first, constant(by)), 1);
        return result;
      }
    }
    return divideSum(dividend, by, isMod);
  }

  Sum divideSum(const Sum &dividend, int64_t by, bool isMod) {
    Sum whole, rest; // dividend = by * whole + rest
    for (auto &[atom, factor] : dividend.terms)
      (factor % by == 0 ? whole : rest).add(atom, factor % by == 0 ? factor / by : factor);
    whole.constant = llvm::divideFloorSigned(dividend.constant, by);
    rest.constant = dividend.constant - whole.constant * by;
    Interval bounds = range(rest);
    int64_t low = llvm::divideFloorSigned(bounds.lower, by), high = llvm::divideFloorSigned(bounds.upper, by);
    if (low == high) {
      if (!isMod) {
        whole.constant += low;
        return whole;
      }
      rest.constant -= low * by;
      return rest;
    }
    Sum result = divideRest(rest, by, isMod);
    if (!isMod)
      result.add(whole, 1);
    result.clean();
    return result;
  }

  /// The small terms of a sum, below what all others and the divisor are multiples of, take no part.
  Sum divideRest(const Sum &rest, int64_t by, bool isMod) {
    SmallVector<std::pair<AffineExpr, int64_t>> terms(rest.terms.begin(), rest.terms.end());
    llvm::stable_sort(terms, [](auto &a, auto &b) { return std::abs(a.second) > std::abs(b.second); });
    int64_t divisor = by;
    for (size_t numHigh = 0; numHigh <= terms.size(); ++numHigh) {
      if (numHigh > 0)
        divisor = std::gcd(divisor, std::abs(terms[numHigh - 1].second));
      if (numHigh == 0 || divisor == 1)
        continue;
      Sum high, low;
      high.constant = llvm::divideFloorSigned(rest.constant, divisor);
      low.constant = rest.constant - high.constant * divisor;
      for (auto [i, term] : llvm::enumerate(terms)) {
        if (i < numHigh)
          high.add(term.first, term.second / divisor);
        else
          low.add(term.first, term.second);
      }
      Interval bounds = range(low);
      if (bounds.lower < 0 || bounds.upper >= divisor)
        continue;
      Sum result;
      result.add(divide(high, by / divisor, isMod), isMod ? divisor : 1);
      if (isMod)
        result.add(low, 1);
      return result;
    }
    Sum result;
    result.add(divisionOf(rest, by, isMod), 1);
    return result;
  }

  AffineExpr divisionOf(const Sum &sum, int64_t by, bool isMod) {
    // Of one division alone: (x floordiv a) floordiv b is x floordiv a b, (x mod a b) mod b is x mod b.
    if (sum.terms.size() == 1 && sum.constant == 0 && sum.terms.front().second == 1) {
      AffineExpr atom = sum.terms.front().first;
      if (auto inner = dyn_cast<AffineBinaryOpExpr>(atom)) {
        int64_t innerBy = cast<AffineConstantExpr>(inner.getRHS()).getValue();
        if (atom.getKind() == AffineExprKind::FloorDiv && !isMod)
          return getAffineBinaryOpExpr(AffineExprKind::FloorDiv, inner.getLHS(), constant(innerBy * by));
        if (atom.getKind() == AffineExprKind::Mod && innerBy % by == 0) {
          if (isMod)
            return getAffineBinaryOpExpr(AffineExprKind::Mod, inner.getLHS(), constant(by));
          AffineExpr quotient = getAffineBinaryOpExpr(AffineExprKind::FloorDiv, inner.getLHS(), constant(by));
          return getAffineBinaryOpExpr(AffineExprKind::Mod, quotient, constant(innerBy / by));
        }
      }
    }
    return getAffineBinaryOpExpr(isMod ? AffineExprKind::Mod : AffineExprKind::FloorDiv, sum.expression(context),
                                 constant(by));
  }
  AffineExpr constant(int64_t value) const { return getAffineConstantExpr(value, context); }

  void normalizeAll() {
    for (AffineExpr &result : results)
      result = normalize(result).expression(context);
    for (AffineExpr &input : inputs)
      input = normalize(input).expression(context);
    std::vector<Constraint> kept;
    for (const Constraint &constraint : constraints) {
      Sum sum = normalize(constraint.first);
      Interval interval = constraint.second + Interval{-sum.constant, -sum.constant};
      sum.constant = 0;
      // Of a quotient alone it is one of the dividend.
      while (sum.terms.size() == 1 && sum.terms.front().second == 1 && sum.constant == 0 &&
             sum.terms.front().first.getKind() == AffineExprKind::FloorDiv) {
        auto quotient = cast<AffineBinaryOpExpr>(sum.terms.front().first);
        int64_t by = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
        sum = normalize(quotient.getLHS());
        interval = {interval.lower * by - sum.constant, interval.upper * by + by - 1 - sum.constant};
        sum.constant = 0;
      }
      Interval bounds = range(sum);
      isEmpty |= bounds.intersect(interval).isEmpty();
      if (!interval.contains(bounds))
        kept.push_back({sum.expression(context), interval.intersect(bounds)});
    }
    constraints = std::move(kept);
  }

  /// A constraint on a variable becomes its range, which begins with 0.
  bool tighten() {
    for (auto [i, constraint] : llvm::enumerate(constraints)) {
      Sum sum = normalize(constraint.first);
      if (sum.terms.empty())
        continue;
      auto largest = llvm::max_element(sum.terms, [](auto &a, auto &b) { return a.second < b.second; });
      auto [atom, factor] = *largest;
      auto dim = dyn_cast<AffineDimExpr>(atom);
      if (!dim || factor <= 0 || keeps.contains(dim.getPosition()))
        continue;
      // What the others are in all is below one step of the largest, which then is the quotient.
      Sum others = sum;
      others.terms.erase(dim);
      others.constant = 0;
      Interval rest = range(others), interval = constraint.second + Interval{-sum.constant, -sum.constant};
      if (rest.lower < 0 || rest.upper >= factor)
        continue;
      Interval allowed = {llvm::divideFloorSigned(interval.lower, factor),
                          llvm::divideFloorSigned(interval.upper, factor)};
      if (others.terms.empty())
        allowed.lower = -llvm::divideFloorSigned(-interval.lower, factor);
      Interval own = ranges[dim.getPosition()], bounds = own.intersect(allowed);
      if (bounds.isEmpty()) {
        isEmpty = true;
        return true;
      }
      if (bounds == own && !others.terms.empty())
        continue;
      if (others.terms.empty())
        constraints.erase(constraints.begin() + i);
      replace(dim, newVariable(bounds.size()) + bounds.lower);
      return true;
    }
    return false;
  }

  llvm::DenseSet<unsigned> keeps; ///< variables whose ranges are not to be narrowed

  void replace(AffineExpr from, AffineExpr to) {
    for (AffineExpr &result : results)
      result = result.replace(from, to);
    for (AffineExpr &input : inputs)
      input = input.replace(from, to);
    for (Constraint &constraint : constraints)
      constraint.first = constraint.first.replace(from, to);
  }

  // --- taking variables apart

  void findDivisions(AffineExpr expression, std::map<unsigned, std::set<int64_t>> &divisors, AffineExpr &compound) {
    expression.walk([&](AffineExpr part) {
      if (part.getKind() != AffineExprKind::FloorDiv && part.getKind() != AffineExprKind::Mod)
        return;
      auto division = cast<AffineBinaryOpExpr>(part);
      int64_t by = cast<AffineConstantExpr>(division.getRHS()).getValue();
      if (auto dim = dyn_cast<AffineDimExpr>(division.getLHS())) {
        divisors[dim.getPosition()].insert(by);
      } else if (auto inner = dyn_cast<AffineBinaryOpExpr>(division.getLHS());
                 inner && inner.getKind() == AffineExprKind::FloorDiv && isa<AffineDimExpr>(inner.getLHS())) {
        divisors[cast<AffineDimExpr>(inner.getLHS()).getPosition()].insert(
            by * cast<AffineConstantExpr>(inner.getRHS()).getValue());
      } else {
        bool isSimple = true;
        division.getLHS().walk([&](AffineExpr inner) {
          isSimple &= inner.getKind() != AffineExprKind::FloorDiv && inner.getKind() != AffineExprKind::Mod;
        });
        // The smallest first: others are made of it.
        if (isSimple && (!compound || range(division.getLHS()).size() < range(compound).size()))
          compound = division.getLHS();
      }
    });
  }

  bool split(unsigned variable, const std::set<int64_t> &divisors) {
    const int64_t count = ranges[variable].size();
    AffineExpr sum = constant(0);
    int64_t place = 1;
    for (int64_t divisor : divisors) {
      if (divisor >= count || divisor == place)
        continue;
      if (divisor % place != 0) {
        why = "one index is divided by " + std::to_string(place) + " and by " + std::to_string(divisor);
        return false;
      }
      sum = sum + newVariable(divisor / place) * place;
      place = divisor;
    }
    sum = sum + newVariable((count + place - 1) / place) * place;
    replace(getAffineDimExpr(variable, context), sum);
    if (count % place != 0)
      constraints.push_back({sum, {0, count - 1}});
    return true;
  }

  /// A variable that begins with `by` instead of 0.
  void shift(AffineExpr variable, int64_t by) {
    int64_t count = ranges[cast<AffineDimExpr>(variable).getPosition()].size();
    AffineExpr shifted = newVariable(count + by);
    keeps.insert(cast<AffineDimExpr>(shifted).getPosition());
    replace(variable, shifted - by);
    constraints.push_back({shifted, {by, count + by - 1}});
  }

  /// A sum of variables each of which counts what those before it have in all becomes a variable.
  bool fuse(AffineExpr compound) {
    Sum sum = normalize(compound);
    SmallVector<std::pair<AffineExpr, int64_t>> parts(sum.terms.begin(), sum.terms.end());
    llvm::stable_sort(parts, [](auto &a, auto &b) { return a.second < b.second; });
    if (parts.size() == 1 && parts[0].second == 1 && sum.constant > 0) {
      shift(parts[0].first, sum.constant);
      return true;
    }
    int64_t place = 1;
    for (auto &[variable, factor] : parts) {
      if (factor != place) {
        why = "a sum that is divided has gaps or overlaps";
        return false;
      }
      place *= ranges[cast<AffineDimExpr>(variable).getPosition()].size();
    }
    AffineExpr fused = newVariable(place);
    auto replaceAll = [&](AffineExpr &expression) { expression = fuseIn(expression, parts, fused); };
    llvm::for_each(results, replaceAll);
    llvm::for_each(inputs, replaceAll);
    for (Constraint &constraint : constraints)
      replaceAll(constraint.first);
    return true;
  }

  AffineExpr fuseIn(AffineExpr expression, ArrayRef<std::pair<AffineExpr, int64_t>> parts, AffineExpr fused) {
    Sum sum = normalize(expression), result;
    result.constant = sum.constant;
    for (size_t i = 0; i < parts.size(); ++i) {
      int64_t factor = sum.terms.lookup(parts[i].first);
      if (factor == 0)
        continue;
      size_t end = i + 1; // of the parts that are here as they are in the fused sum
      while (end < parts.size() && sum.terms.lookup(parts[end].first) == factor * (parts[end].second / parts[i].second))
        ++end;
      AffineExpr digits = fused.floorDiv(parts[i].second);
      if (end < parts.size())
        digits = digits % (parts[end].second / parts[i].second);
      result.add(digits, factor);
      i = end - 1;
    }
    for (auto &[atom, factor] : sum.terms) {
      if (llvm::any_of(parts, [&, &atom = atom](auto &part) { return part.first == atom; }))
        continue;
      if (auto division = dyn_cast<AffineBinaryOpExpr>(atom))
        result.add(getAffineBinaryOpExpr(atom.getKind(), fuseIn(division.getLHS(), parts, fused), division.getRHS()),
                   factor);
      else
        result.add(atom, factor);
    }
    return result.expression(context);
  }
};

} // namespace

int64_t LinearForm::factorOf(unsigned digit) const {
  for (auto &[other, factor] : terms)
    if (other == digit)
      return factor;
  return 0;
}

std::optional<Digits> Digits::of(const Variables &variables, ArrayRef<unsigned> which, ArrayRef<AffineExpr> results,
                                 ArrayRef<Constraint> constraints, std::string &why) {
  Splitter splitter(variables.context);
  SmallVector<AffineExpr> own(variables.size());
  Digits digits;
  for (unsigned i : which) {
    const Interval &bounds = variables[i].bounds;
    if (bounds.isEmpty()) {
      digits.isEmpty = true;
      return digits;
    }
    own[i] = splitter.newVariable(bounds.size()) + bounds.lower;
  }
  bool known = true;
  auto translate = [&](AffineExpr expression) {
    expression.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part))
        known &= bool(own[dim.getPosition()]);
      known &= part.getKind() != AffineExprKind::CeilDiv;
    });
    return known ? expression.replaceDims(own) : expression;
  };
  for (AffineExpr result : results)
    splitter.results.push_back(translate(result));
  for (const Constraint &constraint : constraints)
    splitter.constraints.push_back({translate(constraint.first), constraint.second});
  for (unsigned i : which)
    splitter.inputs.push_back(own[i]);
  if (!known) {
    why = "an index is made by more than sums and divisions";
    return std::nullopt;
  }
  if (!splitter.run()) {
    why = splitter.why;
    return std::nullopt;
  }
  digits.isEmpty = splitter.isEmpty;
  if (digits.isEmpty)
    return digits;
  // Variables that are still in use are the digits; a variable that nothing is made of but the inputs, too.
  llvm::BitVector used(unsigned(splitter.ranges.size()));
  for (AffineExpr input : splitter.inputs)
    input.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part))
        used.set(dim.getPosition());
    });
  SmallVector<unsigned> position(splitter.ranges.size());
  SmallVector<AffineExpr> renamed(splitter.ranges.size(), getAffineConstantExpr(0, variables.context));
  for (unsigned i : used.set_bits()) {
    position[i] = unsigned(digits.counts.size());
    renamed[i] = getAffineDimExpr(position[i], variables.context);
    digits.counts.push_back(splitter.ranges[i].size());
  }
  auto formOf = [&](AffineExpr expression) {
    LinearForm form = splitter.linear(expression);
    for (auto &[digit, factor] : form.terms)
      digit = position[digit];
    return form;
  };
  for (AffineExpr result : splitter.results)
    digits.results.push_back(formOf(result));
  for (const Constraint &constraint : splitter.constraints)
    digits.constraints.push_back({formOf(constraint.first), constraint.second});
  for (AffineExpr input : splitter.inputs)
    digits.inputs.push_back(input.replaceDims(renamed));
  return digits;
}

Interval Digits::range(const LinearForm &form) const {
  Interval result = {form.constant, form.constant};
  for (auto &[digit, factor] : form.terms)
    result = result + Interval{0, counts[digit] - 1} * Interval{factor, factor};
  return result;
}

void Digits::flip(unsigned digit) {
  auto flipIn = [&](LinearForm &form) {
    for (auto &[other, factor] : form.terms)
      if (other == digit) {
        form.constant += factor * (counts[digit] - 1);
        factor = -factor;
      }
  };
  llvm::for_each(results, flipIn);
  for (auto &constraint : constraints)
    flipIn(constraint.first);
  if (inputs.empty())
    return;
  MLIRContext *context = inputs.front().getContext();
  AffineExpr own = getAffineDimExpr(digit, context);
  for (AffineExpr &input : inputs)
    input = input.replace(own, getAffineConstantExpr(counts[digit] - 1, context) - own);
}

SmallVector<int64_t> Digits::inputsAt(ArrayRef<int64_t> digits) const {
  SmallVector<int64_t> result;
  for (AffineExpr input : inputs) {
    AffineMap map = AffineMap::get(unsigned(digits.size()), 0, input);
    SmallVector<Attribute> operands;
    Builder builder(input.getContext());
    for (int64_t digit : digits)
      operands.push_back(builder.getIndexAttr(digit));
    SmallVector<Attribute> values;
    result.push_back(succeeded(map.constantFold(operands, values)) ? cast<IntegerAttr>(values.front()).getInt() : -1);
  }
  return result;
}

} // namespace hloc::prove
