// Scatters other than sums of floats: several updates of one element come in any order.

#include "interp/BoundScatter.h"

#include "interp/BoundSums.h"
#include "interp/FloatGrid.h"
#include "interp/Ops.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::interp {

namespace {

/// Part `part` of each element of a literal that bounds are kept in, as f64.
Literal partOf(const Literal &bound, unsigned part, unsigned numParts) {
  Literal made(bound.shape().withElementType(ElementType::F64));
  auto from = bound.data<double>();
  auto to = made.mutableData<double>();
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = from[i * numParts + part];
  return made;
}

Literal mapped(Literal literal, llvm::function_ref<double(double)> function) {
  for (double &element : literal.mutableData<double>())
    element = function(element);
  return literal;
}

/// How far results of different orders may be apart.
class OrderErrors {
public:
  OrderErrors(const BoundStep &step, Opcode opcode)
      : step(step), opcode(opcode), grid(componentType(step.value.shape().elementType())),
        numParts(isComplex(step.value.shape().elementType()) ? 2 : 1), into(asBound(step.operands[0].array())),
        updates(asBound(step.operands[2].array())),
        hits(scattered(mapped(partOf(into, 0, numParts), [](double) { return 0.0; }),
                       mapped(partOf(updates, 0, numParts), [](double) { return 1.0; }), std::plus<double>())) {}

  /// Is an update one rounding of known numbers? Then the order of the text has one result.
  bool hasOneResultInOrder() const {
    bool isKnown = isKnownExactly() && !step.operands[2].unrounded;
    return isKnown && (adds() || multiplies());
  }

  /// Widens `ends`, which are right for elements that get one update. Those that get none stay what they are.
  void widen(Bounds &ends) const {
    BoundsPtr before = boundsOrPoint(step.operands[0]);
    auto count = hits.data<double>();
    for (unsigned part = 0; part < numParts; ++part) {
      std::vector<double> errors = errorsOf(part);
      auto low = ends.low.mutableData<double>(), high = ends.high.mutableData<double>();
      for (size_t i = 0; i < errors.size(); ++i) {
        double &least = low[i * numParts + part], &greatest = high[i * numParts + part];
        if (count[i] == 0) {
          least = before->low.data<double>()[i * numParts + part];
          greatest = before->high.data<double>()[i * numParts + part];
        } else if (std::isinf(errors[i])) {
          setUnknown(least, greatest);
        } else if (errors[i] > 0) {
          least = grid.nearest(least - errors[i]);
          greatest = grid.nearest(greatest + errors[i]);
          if (std::isnan(least) || std::isnan(greatest)) // a type without infinity
            setUnknown(least, greatest);
        }
      }
    }
  }

private:
  Literal scattered(Literal start, const Literal &terms, llvm::function_ref<double(double, double)> combine) const {
    return scatterNumbers(step.instr, std::move(start), step.operands[1].array(), terms, combine);
  }

  /// By element; infinite: anything may come out.
  std::vector<double> errorsOf(unsigned part) const {
    auto count = hits.data<double>();
    std::vector<double> errors(count.size(), 0);
    const bool sums = adds(), products = multiplies();
    if (!isKnownExactly() || (!sums && !products)) {
      for (size_t i = 0; i < errors.size(); ++i)
        errors[i] = count[i] < 2 ? 0 : std::numeric_limits<double>::infinity();
      return errors;
    }
    // What is not finite, or a factor of zero, decides in any order, as long as the others stay in range.
    auto magnitude = [&](double x) {
      bool decides = !std::isfinite(x) || (products && x == 0);
      return decides ? (sums ? 0.0 : 1.0) : std::fabs(x);
    };
    Literal first = mapped(partOf(into, part, numParts), magnitude);
    Literal terms = mapped(partOf(updates, part, numParts), magnitude);
    Literal values = partOf(asBound(step.value), part, numParts);
    // What partial results reach at most and, of products, at least.
    Literal most = sums ? scattered(first, terms, std::plus<double>())
                        : scattered(mapped(first, atLeastOne), mapped(terms, atLeastOne), std::multiplies<double>());
    Literal least =
        sums ? most : scattered(mapped(first, atMostOne), mapped(terms, atMostOne), std::multiplies<double>());
    for (size_t i = 0; i < errors.size(); ++i) {
      if (count[i] < 2)
        continue;
      double greatest = most.data<double>()[i];
      bool inRange =
          greatest < grid.largestNumber() / 2 && (sums || least.data<double>()[i] > 2 * grid.smallestNormalNumber());
      double value = values.data<double>()[i], size = sums ? greatest : std::fabs(value);
      if (inRange && !std::isfinite(value))
        continue;
      // The reference's own error and that of another order.
      double relative = std::expm1((count[i] + 1) * std::log1p(grid.unitRoundoff()));
      errors[i] = inRange ? 2 * relative * size : std::numeric_limits<double>::infinity();
    }
    return errors;
  }

  bool adds() const { return opcode == Opcode::Add || opcode == Opcode::Subtract; }
  bool multiplies() const { return opcode == Opcode::Multiply && numParts == 1; }
  bool isKnownExactly() const { return !step.operands[0].bounds && !step.operands[2].bounds; }

  static double atLeastOne(double x) { return x < 1 ? 1 : x; }
  static double atMostOne(double x) { return x > 1 ? 1 : x; }

  const BoundStep &step;
  Opcode opcode;
  FloatGrid grid;
  unsigned numParts;
  Literal into, updates, hits;
};

} // namespace

BoundsPtr boundOverwritten(const BoundStep &step) {
  BoundsPtr into = boundsOrPoint(step.operands[0]), updates = boundsOrPoint(step.operands[2]);
  const Literal &indices = step.operands[1].array();
  Bounds ends{endsOfOverwritten(step.instr, into->low, indices, updates->low, false),
              endsOfOverwritten(step.instr, into->high, indices, updates->high, true)};
  return nullIfExact(std::make_shared<Bounds>(std::move(ends)));
}

BoundsPtr boundAnyOrder(const BoundStep &step, const BoundsPtr &ends) {
  std::optional<Opcode> plain = plainOp(*step.instr.computation(AttributeKey::ToApply));
  if (plain == Opcode::Maximum || plain == Opcode::Minimum)
    return ends;
  OrderErrors errors(step, plain.value_or(Opcode::Call));
  auto made = std::make_shared<Bounds>(ends && !errors.hasOneResultInOrder() ? *ends : *pointBounds(step.value));
  errors.widen(*made);
  return nullIfExact(std::move(made));
}

} // namespace hloc::interp
