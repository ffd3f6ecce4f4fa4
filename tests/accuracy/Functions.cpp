#include "Functions.h"

#include "hloc/support/Check.h"

namespace hloc::accuracy {

const std::vector<Function> &functions() {
  static const std::vector<Function> all = {
      {Opcode::Acos, 1, false},       {Opcode::Acosh, 1, false},     {Opcode::Asin, 1, false},
      {Opcode::Asinh, 1, false},      {Opcode::Atanh, 1, false},     {Opcode::Cbrt, 1, false},
      {Opcode::Cosine, 1, true},      {Opcode::Cosh, 1, true},       {Opcode::Erf, 1, false},
      {Opcode::Exponential, 1, true}, {Opcode::Log, 1, true},        {Opcode::ExponentialMinusOne, 1, true},
      {Opcode::Logistic, 1, true},    {Opcode::LogPlusOne, 1, true}, {Opcode::Rsqrt, 1, true},
      {Opcode::Sine, 1, true},        {Opcode::Sinh, 1, true},       {Opcode::Sqrt, 1, true},
      {Opcode::Tan, 1, true},         {Opcode::Tanh, 1, true},       {Opcode::Abs, 1, true},
      {Opcode::Sign, 1, true},        {Opcode::Add, 2, true},        {Opcode::Subtract, 2, true},
      {Opcode::Multiply, 2, true},    {Opcode::Divide, 2, true},     {Opcode::Remainder, 2, false},
      {Opcode::Power, 2, true},       {Opcode::Atan2, 2, true},
  };
  return all;
}

template <typename T> static T evaluateReal(Opcode opcode, const T &x, const T &y) {
  const T one(1.0);
  switch (opcode) {
  case Opcode::Abs:
    return fabs(x);
  case Opcode::Sign:
    return isNan(x) || x == T(0.0) ? x : x < T(0.0) ? -one : one;
  case Opcode::Acos:
    return acos(x);
  case Opcode::Acosh:
    return acosh(x);
  case Opcode::Asin:
    return asin(x);
  case Opcode::Asinh:
    return asinh(x);
  case Opcode::Atanh:
    return atanh(x);
  case Opcode::Cbrt:
    return cbrt(x);
  case Opcode::Cosine:
    return cos(x);
  case Opcode::Cosh:
    return cosh(x);
  case Opcode::Erf:
    return erf(x);
  case Opcode::Exponential:
    return exp(x);
  case Opcode::ExponentialMinusOne:
    return expm1(x);
  case Opcode::Log:
    return log(x);
  case Opcode::LogPlusOne:
    return log1p(x);
  case Opcode::Logistic:
    return one / (one + exp(-x));
  case Opcode::Rsqrt: // 1/sqrt(-0) is -infinity
    return one / sqrt(x);
  case Opcode::Sine:
    return sin(x);
  case Opcode::Sinh:
    return sinh(x);
  case Opcode::Sqrt:
    return sqrt(x);
  case Opcode::Tan:
    return tan(x);
  case Opcode::Tanh:
    return tanh(x);
  case Opcode::Convert:
    return x;
  case Opcode::Add:
    return x + y;
  case Opcode::Subtract:
    return x - y;
  case Opcode::Multiply:
    return x * y;
  case Opcode::Divide:
    return x / y;
  case Opcode::Remainder:
    return fmod(x, y);
  case Opcode::Power:
    return pow(x, y);
  case Opcode::Atan2:
    return atan2(x, y);
  default:
    HLOC_UNREACHABLE("a function without a reference");
  }
}

double evaluate(Opcode opcode, double x, double y) { return evaluateReal(opcode, x, y); }
Real evaluate(Opcode opcode, const Real &x, const Real &y) { return evaluateReal(opcode, x, y); }

// Complex: with 256 bits the textbook forms are accurate relative to the modulus wherever the operands are doubles.

using Complex = ComplexReal;

static Complex operator+(const Complex &x, const Complex &y) { return {x.re + y.re, x.im + y.im}; }
static Complex operator-(const Complex &x, const Complex &y) { return {x.re - y.re, x.im - y.im}; }
static Complex operator*(const Complex &x, const Complex &y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
static Complex operator/(const Complex &x, const Complex &y) {
  Real norm = y.re * y.re + y.im * y.im;
  return {(x.re * y.re + x.im * y.im) / norm, (x.im * y.re - x.re * y.im) / norm};
}

/// Beyond this all exponentials are out of every type's range, and products with them keep their signs.
static Real limited(const Real &x) {
  const Real limit(1e5);
  return limit < x ? limit : x < -limit ? -limit : x;
}

static Complex exponential(const Complex &z) {
  Real size = exp(limited(z.re));
  return {size * cos(z.im), z.im.isZero() ? z.im : size * sin(z.im)};
}
static Complex logarithm(const Complex &z) { return {log(hypot(z.re, z.im)), atan2(z.im, z.re)}; }

static Complex root(const Complex &z) {
  Real size = hypot(z.re, z.im), half(0.5);
  if (size.isZero())
    return {size, z.im};
  Real larger = sqrt((size + fabs(z.re)) * half);
  Real smaller = z.im / (larger + larger);
  if (!z.re.isNegative())
    return {larger, smaller};
  return {fabs(smaller), z.im.isNegative() ? -larger : larger};
}

static Complex hyperbolicTangent(const Complex &z) {
  Real x = limited(z.re), y = z.im + z.im;
  // cosh(x) + cos(y) without cancellation near the poles.
  Real a = sinh(x), b = cos(z.im);
  Real denominator = a * a + b * b;
  return {a * cosh(x) / denominator, z.im.isZero() ? z.im : sin(y) * Real(0.5) / denominator};
}

static Complex power(const Complex &x, const Complex &y) {
  if (y.re.isZero() && y.im.isZero())
    return {1.0, 0.0};
  if (x.re.isZero() && x.im.isZero())
    return {0.0, 0.0};
  return exponential(y * logarithm(x));
}

ComplexReal evaluate(Opcode opcode, const ComplexReal &x, const ComplexReal &y) {
  const Complex one = {1.0, 0.0};
  switch (opcode) {
  case Opcode::Convert:
    return x;
  case Opcode::Abs:
    return {hypot(x.re, x.im), 0.0};
  case Opcode::Sign: {
    Real size = hypot(x.re, x.im);
    return size.isZero() ? Complex{0.0, 0.0} : Complex{x.re / size, x.im / size};
  }
  case Opcode::Add:
    return x + y;
  case Opcode::Subtract:
    return x - y;
  case Opcode::Multiply:
    return x * y;
  case Opcode::Divide:
    return x / y;
  case Opcode::Power:
    return power(x, y);
  case Opcode::Atan2: { // -i log((y + i x) / sqrt(x^2 + y^2)) of x = operand 0, y = operand 1
    Complex log = logarithm(Complex{y.re - x.im, y.im + x.re} / root(x * x + y * y));
    return {log.im, -log.re};
  }
  case Opcode::Exponential:
    return exponential(x);
  case Opcode::ExponentialMinusOne: {
    Real sine = sin(x.im * Real(0.5)), a = limited(x.re);
    return {expm1(a) * cos(x.im) - Real(2.0) * sine * sine, x.im.isZero() ? x.im : exp(a) * sin(x.im)};
  }
  case Opcode::Log:
    return logarithm(x);
  case Opcode::LogPlusOne: {
    Real excess = x.re * (x.re + Real(2.0)) + x.im * x.im; // |1 + z|^2 - 1
    return {log1p(excess) * Real(0.5), atan2(x.im, x.re + Real(1.0))};
  }
  case Opcode::Logistic:
    return one / (one + exponential({-x.re, -x.im}));
  case Opcode::Rsqrt:
    return one / root(x);
  case Opcode::Sqrt:
    return root(x);
  case Opcode::Cosine:
    return {cos(x.re) * cosh(limited(x.im)), -(sin(x.re) * sinh(limited(x.im)))};
  case Opcode::Sine:
    return {sin(x.re) * cosh(limited(x.im)), cos(x.re) * sinh(limited(x.im))};
  case Opcode::Cosh:
    return {cosh(limited(x.re)) * cos(x.im), sinh(limited(x.re)) * sin(x.im)};
  case Opcode::Sinh:
    return {sinh(limited(x.re)) * cos(x.im), cosh(limited(x.re)) * sin(x.im)};
  case Opcode::Tanh:
    return hyperbolicTangent(x);
  case Opcode::Tan: {
    Complex rotated = hyperbolicTangent({-x.im, x.re});
    return {rotated.im, -rotated.re};
  }
  default:
    HLOC_UNREACHABLE("a function without a complex reference");
  }
}

double condition(Opcode opcode, const Complex &x, const Complex &y, const Complex &result) {
  switch (opcode) {
  case Opcode::Power: {
    Complex logarithmic = y * logarithm(x);
    double size = hypot(logarithmic.re, logarithmic.im).toDouble();
    return std::isfinite(size) ? 1 + size : 1;
  }
  case Opcode::Logistic:
    return std::max(1.0, hypot(result.re, result.im).toDouble());
  case Opcode::Atan2: {
    Complex sum = x * x + y * y;
    Real size = x.re * x.re + x.im * x.im + y.re * y.re + y.im * y.im;
    double cancelled = (size / hypot(sum.re, sum.im)).toDouble();
    return std::isfinite(cancelled) ? cancelled * std::max(1.0, 1 / hypot(result.re, result.im).toDouble()) : HUGE_VAL;
  }
  default:
    return 1;
  }
}

} // namespace hloc::accuracy
