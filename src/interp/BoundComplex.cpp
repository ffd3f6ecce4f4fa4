// Elementwise ops on complex numbers. Bounds are rectangles; errors of functions and products count in units of the
// last place of the larger part, since parts of a result have no accuracy of their own where they cancel.

#include "interp/Accuracy.h"
#include "interp/BoundElementwise.h"
#include "interp/FloatGrid.h"
#include "interp/LaneOp.h"

#include "hloc/hlo/OpcodeTable.h"

namespace hloc::interp {

namespace {

using Number = std::complex<double>;

struct Rectangle {
  Number low, high;
  bool isPoint() const {
    auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    return same(low.real(), high.real()) && same(low.imag(), high.imag());
  }
  /// Zeros of both signs are two sides of a branch cut.
  bool isOneSided() const {
    auto same = [](double a, double b) { return std::signbit(a) == std::signbit(b); };
    return isPoint() && same(low.real(), high.real()) && same(low.imag(), high.imag());
  }
  bool isUnknown() const {
    return interp::isUnknown(low.real(), high.real()) || interp::isUnknown(low.imag(), high.imag());
  }
  /// Not if it is unknown.
  bool holds(Number z) const {
    return low.real() <= z.real() && z.real() <= high.real() && low.imag() <= z.imag() && z.imag() <= high.imag();
  }
  bool isFinite() const {
    return std::isfinite(low.real()) && std::isfinite(low.imag()) && std::isfinite(high.real()) &&
           std::isfinite(high.imag());
  }
};

Rectangle unknownRectangle() {
  double low, high;
  setUnknown(low, high);
  return {{low, low}, {high, high}};
}

/// Reads elements, real or complex, or bounds of them, as rectangles.
class RectangleReader {
public:
  explicit RectangleReader(const Bounded &operand)
      : low(operand.bounds ? operand.bounds->low : operand.array()),
        high(operand.bounds ? operand.bounds->high : operand.array()), complex(isComplex(low.shape().elementType())),
        repeat(low.numElements() == 1) {}
  Rectangle operator[](int64_t i) const {
    int64_t at = repeat ? 0 : i;
    if (complex)
      return {low.getComplex(at), high.getComplex(at)};
    return {Number(low.getDouble(at), 0), Number(high.getDouble(at), 0)};
  }

private:
  const Literal &low, &high;
  bool complex, repeat;
};

/// [low, high] of a product of two intervals.
std::pair<double, double> times(double a, double b, double c, double d) {
  auto [least, greatest] = std::minmax({a * c, a * d, b * c, b * d});
  return {least, greatest};
}

/// On which lines a function has poles, at odd multiples of pi/2.
enum class Poles : uint8_t { None, Real, Imaginary };
/// By what the error of a function is more than its budget, see Accuracy.def.
enum class ErrorFactor : uint8_t { One, OfPower, OfLogistic, OfAngle };

struct ComplexRule {
  bool isFunction; ///< bounds are made of its values at the corners; the others have a way of their own
  Poles poles = Poles::None;
  ErrorFactor error = ErrorFactor::One;
};

const ComplexRule &complexRule(Opcode opcode) {
  using enum Opcode;
  static constexpr OpcodeTable<ComplexRule> rules(
      [](Opcode each) { return isDefinedOn(each, TypeSet::Complex) || each == Complex || each == Convert; },
      {
          {{Add, Subtract, Multiply, Negate, Real, Imag, Complex, Maximum, Minimum, Convert}, {false}},
          {{Abs, Acos, Acosh, Asin, Asinh, Atanh, Cosine, Cosh, Exponential, ExponentialMinusOne, Log, LogPlusOne,
            Rsqrt, Sign, Sine, Sinh, Sqrt, Divide},
           {true}},
          {{Tan}, {true, Poles::Real}},
          {{Tanh}, {true, Poles::Imaginary}},
          {{Logistic}, {true, Poles::None, ErrorFactor::OfLogistic}},
          {{Power}, {true, Poles::None, ErrorFactor::OfPower}},
          {{Atan2}, {true, Poles::None, ErrorFactor::OfAngle}},
      });
  return rules[opcode];
}

class ComplexBounds {
public:
  explicit ComplexBounds(const BoundStep &step)
      : step(step), opcode(step.instr.opcode()), rule(complexRule(opcode)),
        resultIsComplex(isComplex(step.value.shape().elementType())),
        grid(componentType(step.value.shape().elementType())), ulps(permitted(step.instr, step.backend).ulps) {
    if (family(opcode) == OpcodeFamily::Unary)
      kernel = unaryKernel(opcode, ComputeType::ComplexDouble);
    else if (family(opcode) == OpcodeFamily::Binary)
      kernel = binaryKernel(opcode, ComputeType::ComplexDouble);
    for (const Bounded &operand : step.operands)
      readers.emplace_back(operand);
  }

  BoundsPtr run() {
    Shape shape = boundsShape(step.value.shape());
    auto made = std::make_shared<Bounds>(Bounds{Literal(shape), Literal(shape)});
    for (int64_t i = 0; i < step.value.numElements(); ++i) {
      Rectangle result = evaluate(i);
      if (resultIsComplex) {
        made->low.setComplex(i, result.low);
        made->high.setComplex(i, result.high);
      } else {
        made->low.setDouble(i, result.low.real());
        made->high.setDouble(i, result.high.real());
      }
    }
    return nullIfExact(std::move(made));
  }

private:
  Number reference(int64_t i) const {
    return resultIsComplex ? step.value.getComplex(i) : Number(step.value.getDouble(i), 0);
  }

  Rectangle evaluate(int64_t i) const {
    Rectangle x = readers[0][i], y = readers.size() > 1 ? readers[1][i] : Rectangle{};
    Number wanted = reference(i);
    if (x.isUnknown() || y.isUnknown())
      return unknownRectangle();
    if (rule.isFunction)
      return function(x, y, wanted);
    switch (opcode) {
    case Opcode::Add:
      return rounded({x.low + y.low, x.high + y.high}, wanted);
    case Opcode::Subtract:
      return rounded({x.low - y.high, x.high - y.low}, wanted);
    case Opcode::Negate:
      return admitting({-x.high, -x.low}, wanted);
    case Opcode::Real:
      return admitting({x.low.real(), x.high.real()}, wanted);
    case Opcode::Imag:
      return admitting({x.low.imag(), x.high.imag()}, wanted);
    case Opcode::Complex:
      return admitting({{x.low.real(), y.low.real()}, {x.high.real(), y.high.real()}}, wanted);
    case Opcode::Convert:
      return rounded(x, wanted);
    case Opcode::Multiply:
      return product(x, y, wanted);
    case Opcode::Maximum:
      return chosen(x, y, x.low.real() >= y.high.real(), x.high.real() < y.low.real());
    case Opcode::Minimum:
      return chosen(x, y, x.high.real() <= y.low.real(), x.low.real() > y.high.real());
    default:
      HLOC_UNREACHABLE("an op on complex numbers whose bounds are not made");
    }
  }

  /// The first, the second, or what holds both. Of a NaN it is known that it is one.
  static Rectangle chosen(const Rectangle &x, const Rectangle &y, bool isFirst, bool isSecond) {
    auto isNan = [](Number z) { return std::isnan(z.real()) || std::isnan(z.imag()); };
    if (isFirst)
      return x;
    if (isSecond || std::isnan(x.low.real()) || std::isnan(y.low.real()))
      return y;
    if (isNan(x.low) || isNan(y.low))
      return unknownRectangle();
    auto least = [](double a, double b) { return a < b || (a == b && std::signbit(a)) ? a : b; };
    auto greatest = [](double a, double b) { return a > b || (a == b && !std::signbit(a)) ? a : b; };
    return {{least(x.low.real(), y.low.real()), least(x.low.imag(), y.low.imag())},
            {greatest(x.high.real(), y.high.real()), greatest(x.high.imag(), y.high.imag())}};
  }

  Rectangle rounded(const Rectangle &exact, Number wanted) const {
    auto nearest = [&](Number z) { return Number(grid.nearest(z.real()), grid.nearest(z.imag())); };
    return admitting({nearest(exact.low), nearest(exact.high)}, wanted);
  }

  /// A rectangle that holds what the reference gives as well; NaN parts are compared as such.
  static Rectangle admitting(Rectangle made, Number wanted) {
    auto part = [](double &low, double &high, double value) {
      if (isUnknown(low, high))
        return;
      if (std::isnan(value) != std::isnan(low)) {
        setUnknown(low, high);
        return;
      }
      low = value < low || (value == 0 && low == 0 && std::signbit(value)) ? value : low;
      high = value > high || (value == 0 && high == 0 && !std::signbit(value)) ? value : high;
    };
    double lowParts[2] = {made.low.real(), made.low.imag()}, highParts[2] = {made.high.real(), made.high.imag()};
    part(lowParts[0], highParts[0], wanted.real());
    part(lowParts[1], highParts[1], wanted.imag());
    return {{lowParts[0], lowParts[1]}, {highParts[0], highParts[1]}};
  }

  /// (ac - bd, ad + bc): each part has two products, of which one may be contracted, and a sum.
  Rectangle product(const Rectangle &x, const Rectangle &y, Number wanted) const {
    if (!x.isFinite() || !y.isFinite())
      return x.isPoint() && y.isPoint() ? Rectangle{wanted, wanted} : unknownRectangle();
    if (!std::isfinite(wanted.real()) ||
        !std::isfinite(wanted.imag())) // a product that is contracted does not overflow
      return unknownRectangle();
    auto combined = [&](std::pair<double, double> p, std::pair<double, double> q, double sign) {
      auto [qLow, qHigh] = sign > 0 ? q : std::pair(-q.second, -q.first);
      double low = p.first + qLow, high = p.second + qHigh;
      auto isNumber = [&](double value) { return grid.nearest(value) == value; };
      if (grid.type() != ElementType::F64 && x.isPoint() && y.isPoint() && isNumber(p.first) && isNumber(qLow) &&
          isNumber(low))
        return std::pair(low, high);
      double magnitude =
          std::max(std::fabs(p.first), std::fabs(p.second)) + std::max(std::fabs(qLow), std::fabs(qHigh));
      double error = 2 * grid.unitRoundoff() * magnitude + grid.ulp(0);
      return std::pair(grid.nearest(low - error), grid.nearest(high + error));
    };
    const Number &a = x.low, &b = x.high, &c = y.low, &d = y.high;
    auto re =
        combined(times(a.real(), b.real(), c.real(), d.real()), times(a.imag(), b.imag(), c.imag(), d.imag()), -1);
    auto im = combined(times(a.real(), b.real(), c.imag(), d.imag()), times(a.imag(), b.imag(), c.real(), d.real()), 1);
    return admitting({{re.first, im.first}, {re.second, im.second}}, wanted);
  }

  Number apply(Number x, Number y) const {
    Number both[2] = {x, y}, made = 0;
    Lanes lanes;
    lanes.operands[0] = &both[0];
    lanes.operands[1] = &both[1];
    lanes.result = &made;
    lanes.count = 1;
    lanes.bits = 64;
    kernel(lanes); // real results take the place of the real part
    return made;
  }

  /// Any other function: its values at the corners and a quarter more, widened by its budget.
  Rectangle function(const Rectangle &x, const Rectangle &y, Number wanted) const {
    if (!kernel)
      return unknownRectangle();
    if (x.isOneSided() && y.isOneSided()) {
      Number exact = apply(x.low, y.low);
      if (opcode == Opcode::Abs && std::isinf(wanted.real())) { // a rounding like any other, in f64 too
        double largest = grid.largestNumber();
        if (std::isfinite(exact.real()))
          return {grid.nearest(exact.real() - ulps * grid.ulp(exact.real())), wanted};
        long double modulus = std::hypot((long double)x.low.real(), (long double)x.low.imag());
        if (std::isfinite(x.low.real()) && std::isfinite(x.low.imag()) && modulus - largest <= ulps * grid.ulp(largest))
          return {largest, wanted};
      }
      if (!std::isfinite(wanted.real()) || !std::isfinite(wanted.imag()))
        return notFinite(wanted);
      return widened({exact, exact}, x, y, wanted);
    }
    if (isNearPole(x))
      return unknownRectangle();
    Rectangle made{{HUGE_VAL, HUGE_VAL}, {-HUGE_VAL, -HUGE_VAL}};
    constexpr unsigned numCorners = 16;
    Number mean = 0;
    for (unsigned corner = 0; corner < numCorners; ++corner) {
      auto pick = [&](const Rectangle &z, unsigned bits) {
        return Number(bits & 1 ? z.high.real() : z.low.real(), bits & 2 ? z.high.imag() : z.low.imag());
      };
      Number z = apply(pick(x, corner), pick(y, corner >> 2));
      if (!std::isfinite(grid.nearest(z.real())) || !std::isfinite(grid.nearest(z.imag())))
        return unknownRectangle();
      made.low = {std::min(made.low.real(), z.real()), std::min(made.low.imag(), z.imag())};
      made.high = {std::max(made.high.real(), z.real()), std::max(made.high.imag(), z.imag())};
      mean += z / double(numCorners);
    }
    // The corners do not tell the extremes of what turns, or has a pole, between them. Where they are few numbers
    // apart, the middle is one of them.
    Number size = made.high - made.low, middle = apply((x.low + x.high) * 0.5, (y.low + y.high) * 0.5);
    if (!widened({mean - size * 0.5, mean + size * 0.5}, x, y, mean).holds(middle))
      return unknownRectangle();
    return widened({made.low - size * 0.25, made.high + size * 0.25}, x, y, wanted);
  }

  /// Is a pole inside of x, or no farther away than x is large?
  bool isNearPole(const Rectangle &x) const {
    if (rule.poles == Poles::None)
      return false;
    auto turned = [&](Number z) { return rule.poles == Poles::Real ? z : Number(z.imag(), z.real()); };
    constexpr double pi = 3.141592653589793;
    Number middle = turned(x.low * 0.5 + x.high * 0.5), size = turned(x.high - x.low);
    double pole = (std::floor(middle.real() / pi) + 0.5) * pi;
    return std::abs(middle - pole) <= 2 * std::abs(size);
  }

  /// Infinities and NaNs of functions are the same for hloc's kernels and the reference; those of quotients are open,
  /// and so are all of other compilers (SEMANTICS.md). A number beside one that is none keeps a few digits less than
  /// alone, and the sign of a zero beside NaN is open.
  Rectangle notFinite(Number wanted) const {
    if (opcode == Opcode::Abs)
      return {wanted, wanted};
    if (step.backend == Backend::Other || opcode == Opcode::Divide || opcode == Opcode::Power ||
        opcode == Opcode::Atan2)
      return unknownRectangle();
    double low[2] = {wanted.real(), wanted.imag()}, high[2] = {low[0], low[1]};
    for (unsigned part = 0; part < 2; ++part)
      if (std::isfinite(low[part]) && low[part] != 0) {
        double error = 64 * ulps * grid.ulp(low[part]);
        low[part] -= error;
        high[part] += error;
      } else if (low[part] == 0 && std::isnan(low[1 - part])) {
        low[part] = -0.0;
        high[part] = 0.0;
      } else if (opcode == Opcode::Sqrt && std::isinf(low[part]) && std::isnan(low[1 - part])) {
        low[part] = -HUGE_VAL; // C leaves the sign open of the root of -infinity beside a NaN
        high[part] = HUGE_VAL;
      }
    return {{low[0], low[1]}, {high[0], high[1]}};
  }

  /// Functions whose error no formula in use bounds: its factor, see Accuracy.def.
  double factor(const Rectangle &x, const Rectangle &y, Number wanted) const {
    Number a = x.high, b = y.high;
    double result = std::abs(wanted);
    switch (rule.error) {
    case ErrorFactor::One:
      return 1;
    case ErrorFactor::OfPower:
      return 1 + std::abs(b * std::log(a));
    case ErrorFactor::OfLogistic:
      return std::max(1.0, result);
    case ErrorFactor::OfAngle:
      return std::max(1.0, 1 / result) * (std::norm(a) + std::norm(b)) / std::abs(a * a + b * b);
    }
    HLOC_UNREACHABLE("no factor of errors");
  }

  /// Whether a rounding of x^2 + y^2 may cross the branch cut of its root: that turns atan2 by pi.
  bool rootIsOpen(Number x, Number y) const {
    double size = std::max({std::fabs(x.real()), std::fabs(x.imag()), std::fabs(y.real()), std::fabs(y.imag())});
    x /= size;
    y /= size;
    Number sum = x * x + y * y;
    double error = 16 * grid.unitRoundoff() * (std::norm(x) + std::norm(y));
    return sum.real() < error && std::fabs(sum.imag()) <= error;
  }

  Rectangle widened(const Rectangle &exact, const Rectangle &x, const Rectangle &y, Number wanted) const {
    double largest = std::max({std::fabs(exact.low.real()), std::fabs(exact.low.imag()), std::fabs(exact.high.real()),
                               std::fabs(exact.high.imag()), std::fabs(wanted.real()), std::fabs(wanted.imag())});
    double scale = factor(x, y, wanted), error = ulps * scale * grid.ulp(largest);
    if (!std::isfinite(error) || !std::isfinite(grid.nearest(scale))) // y log(x) overflows before e^ of it vanishes
      return unknownRectangle();
    Number margin(error, resultIsComplex ? error : 0);
    auto nearest = [&](Number z) { return Number(grid.nearest(z.real()), grid.nearest(z.imag())); };
    Rectangle made = {nearest(exact.low - margin), nearest(exact.high + margin)};
    constexpr double pi = 3.141592653589793;
    bool crossesCut = std::max(-made.low.real(), made.high.real()) >= grid.nearest(pi) || rootIsOpen(x.high, y.high);
    if (opcode == Opcode::Atan2 && crossesCut) { // either end of the real part's range
      made.low = {-grid.nearest(pi + error), made.low.imag()};
      made.high = {grid.nearest(pi + error), made.high.imag()};
    }
    return admitting(made, wanted);
  }

  const BoundStep &step;
  Opcode opcode;
  ComplexRule rule;
  bool resultIsComplex;
  FloatGrid grid;
  double ulps;
  Kernel kernel = nullptr;
  llvm::SmallVector<RectangleReader, 2> readers;
};

} // namespace

BoundsPtr boundComplex(const BoundStep &step) { return ComplexBounds(step).run(); }

} // namespace hloc::interp
