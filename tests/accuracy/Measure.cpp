#include "Measure.h"

#include "fmt/format.h"

#include <bit>
#include <cmath>

namespace hloc::accuracy {

namespace {

/// What the result must be, bit for bit, for instructions that round by definition: conversions to integers and
/// reduce-precision.
uint64_t truncated(double value, ElementType to) {
  unsigned width = bitWidth(to);
  uint64_t mask = width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
  uint64_t largest = isSigned(to) ? mask >> 1 : mask, smallest = isSigned(to) ? largest + 1 : 0;
  double limit = std::ldexp(1.0, int(width) - (isSigned(to) ? 1 : 0));
  if (std::isnan(value))
    return 0;
  if (value >= limit)
    return largest;
  if (isSigned(to) ? value <= -limit : value <= 0)
    return smallest & mask;
  return (value < 0 ? uint64_t(int64_t(value)) : uint64_t(value)) & mask;
}

/// Types narrower than f32 are values of f32 here: their subnormal numbers have full precision.
double reduced(double value, int exponentBits, int mantissaBits, const FloatFormat &source) {
  if (value == 0 || !std::isfinite(value))
    return std::isnan(value) && mantissaBits == 0 ? std::numeric_limits<double>::infinity() : value;
  bool fewerExponents = exponentBits < source.exponentBits;
  int exponent = std::max(std::ilogb(value), 1 - source.bias);
  double rounded = value;
  if (mantissaBits == 0) { // a tie goes to the even exponent, as it is stored
    double fraction = std::fabs(value) / std::ldexp(1.0, exponent);
    bool isOdd = ((exponent + source.bias) & 1) != 0;
    rounded = std::copysign(std::ldexp(1.0, exponent + (fraction > 1.5 || (fraction == 1.5 && isOdd))), value);
  } else if (mantissaBits < source.mantissaBits)
    rounded = std::ldexp(std::nearbyint(std::ldexp(value, mantissaBits - exponent)), exponent - mantissaBits);
  int bias = (1 << (exponentBits - 1)) - 1;
  double beyond = fewerExponents ? std::ldexp(1.0, bias + 1) : std::numeric_limits<double>::infinity();
  if (std::fabs(rounded) >= beyond || std::fabs(rounded) > largestFinite(source))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  if (fewerExponents && std::fabs(rounded) < std::ldexp(1.0, 1 - bias))
    return std::copysign(0.0, value);
  return rounded;
}

class Measuring {
public:
  Measuring(const Instruction &instruction, const std::vector<Patterns> &operands)
      : instruction(instruction), operands(operands), from(componentOf(instruction.from)),
        to(componentOf(isInteger(instruction.to) ? instruction.from : instruction.to)) {}

  /// Adds the elements before `used`.
  void add(const Patterns &result, size_t used, Errors &errors) {
    for (size_t i = 0; i < used; ++i)
      if (isComplex(instruction.from))
        addComplex(i, result, errors);
      else if (isInteger(instruction.to) || instruction.opcode == Opcode::ReducePrecision)
        addExact(i, result[i], errors);
      else if (isSlow())
        note(to.judge(exactOf(i), result[i]), i, result[i], errors);
      else
        addQuick(i, result[i], errors);
  }

private:
  static Judge componentOf(ElementType type) { return Judge(isInteger(type) ? ElementType::F64 : componentType(type)); }
  bool isSlow() const {
    return instruction.to == ElementType::F64 || instruction.from == ElementType::F64 ||
           (isInteger(instruction.from) && bitWidth(instruction.from) == 64);
  }
  double operand(unsigned n, size_t i) const {
    if (n >= instruction.arity)
      return 0;
    uint64_t pattern = operands[n][i];
    if (!isInteger(instruction.from))
      return from.decode(pattern);
    unsigned unused = 64 - bitWidth(instruction.from);
    return isSigned(instruction.from) ? double(int64_t(pattern << unused) >> unused)
                                      : double(pattern << unused >> unused);
  }
  Real exactOf(size_t i) const {
    if (isInteger(instruction.from))
      return isSigned(instruction.from) && bitWidth(instruction.from) == 64 ? Real::ofSigned(int64_t(operands[0][i]))
             : bitWidth(instruction.from) == 64                             ? Real::ofUnsigned(operands[0][i])
                                                                            : Real(operand(0, i));
    return evaluate(instruction.opcode, Real(operand(0, i)), Real(operand(1, i)));
  }

  void addQuick(size_t i, uint64_t pattern, Errors &errors) {
    Verdict verdict = to.judge(evaluate(instruction.opcode, operand(0, i), operand(1, i)), pattern);
    bool isWorse = verdict.ulps > (verdict.kind == Verdict::Kind::Subnormal ? errors.subnormal : errors.normal).ulps;
    // The C library is trusted to find the worst, not to measure it.
    if (verdict.ulps > 0 && (isWorse || verdict.kind == Verdict::Kind::Special))
      verdict = to.judge(exactOf(i), pattern);
    note(verdict, i, pattern, errors);
  }

  void addComplex(size_t i, const Patterns &result, Errors &errors) {
    auto number = [&](unsigned n) {
      if (n >= instruction.arity)
        return ComplexReal{0.0, 0.0};
      return ComplexReal{from.decode(operands[n][2 * i]), from.decode(operands[n][2 * i + 1])};
    };
    ComplexReal exact = evaluate(instruction.opcode, number(0), number(1));
    if (!isComplex(instruction.to)) {
      note(to.judge(exact.re, result[i]), i, result[i], errors);
      return;
    }
    Verdict verdict = to.judge(exact, result[2 * i], result[2 * i + 1]);
    verdict.ulps /= condition(instruction.opcode, number(0), number(1), exact);
    note(verdict, i, result[2 * i], errors);
  }

  void addExact(size_t i, uint64_t pattern, Errors &errors) {
    bool isRight;
    if (isInteger(instruction.to)) {
      isRight = pattern == truncated(operand(0, i), instruction.to);
    } else {
      double wanted = reduced(operand(0, i), instruction.exponentBits, instruction.mantissaBits,
                              floatFormat(instruction.from == ElementType::F64 ? ElementType::F64 : ElementType::F32));
      double found = to.decode(pattern);
      isRight = std::isnan(wanted) ? std::isnan(found) : found == wanted && std::signbit(found) == std::signbit(wanted);
      if (!isRight && !std::isnan(wanted)) // types with fewer special values
        isRight = pattern == encodeFloat(floatFormat(instruction.to), wanted);
    }
    note({Verdict::Kind::Special, isRight ? 0.0 : 1.0}, i, pattern, errors);
  }

  std::string describe(size_t i, uint64_t pattern) const {
    std::string text;
    size_t parts = isComplex(instruction.from) ? 2 : 1;
    for (unsigned n = 0; n < instruction.arity; ++n)
      for (size_t part = 0; part < parts; ++part)
        text += fmt::format(
            "{}{:#x}{}", text.empty() ? "" : " ", operands[n][parts * i + part],
            isInteger(instruction.from) ? "" : fmt::format(" ({:.9g})", from.decode(operands[n][parts * i + part])));
    return fmt::format("{} -> {:#x}", text, pattern);
  }

  void note(const Verdict &verdict, size_t i, uint64_t pattern, Errors &errors) {
    if (verdict.ulps == 0)
      return;
    switch (verdict.kind) {
    case Verdict::Kind::Normal:
    case Verdict::Kind::Subnormal: {
      Worst &worst = verdict.kind == Verdict::Kind::Normal ? errors.normal : errors.subnormal;
      if (verdict.ulps > worst.ulps)
        worst = {verdict.ulps, describe(i, pattern)};
      return;
    }
    case Verdict::Kind::Special:
      if (++errors.specials == 1)
        errors.firstSpecial = describe(i, pattern);
      return;
    case Verdict::Kind::ZeroSign:
      if (++errors.zeroSigns == 1 && errors.firstSpecial.empty())
        errors.firstSpecial = describe(i, pattern);
      return;
    }
  }

  const Instruction &instruction;
  const std::vector<Patterns> &operands;
  Judge from, to;
};

} // namespace

Measurement measure(const Instruction &instruction, const TargetInfo &target, Effort effort, unsigned seed,
                    bool withInterpreter) {
  Measurement measurement;
  measurement.instruction = instruction;
  measurement.target = target.name;
  std::unique_ptr<Kernel> kernel = Kernel::make(instruction, target, seed, measurement.missing);
  if (!kernel)
    return measurement;
  Samples samples(instruction, effort);
  measurement.sample = samples.describe();
  std::vector<Patterns> operands;
  Measuring measuring(instruction, operands);
  Patterns result;
  for (uint64_t index = 0; index < samples.numChunks(); ++index) {
    operands = samples.operands(index);
    if (!kernel->run(operands, result)) {
      measurement.missing = "failed";
      return measurement;
    }
    measuring.add(result, samples.used(), measurement.kernel);
    if (withInterpreter && kernel->interpret(operands, result))
      measuring.add(result, samples.used(), measurement.interpreter);
  }
  return measurement;
}

} // namespace hloc::accuracy
