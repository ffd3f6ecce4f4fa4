#include "Measure.h"

#include "EveryFloat.h"

#include "fmt/format.h"

#include <bit>
#include <cmath>
#include <set>

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

  /// Judges the elements before `used` of several results, each for its errors.
  void add(const std::vector<Patterns> &results, size_t used, llvm::ArrayRef<Errors *> errors) {
    for (size_t i = 0; i < used; ++i)
      if (isComplex(instruction.from))
        addComplex(i, results, errors);
      else if (isInteger(instruction.to) || instruction.opcode == Opcode::ReducePrecision)
        forEach(i, results, errors, [&](uint64_t pattern) { return judgeExactly(i, pattern); });
      else if (isSlow())
        addSlow(i, results, errors);
      else
        addQuick(i, results, errors);
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

  /// Results are often the same bits.
  template <typename Judging>
  void forEach(size_t i, const std::vector<Patterns> &results, llvm::ArrayRef<Errors *> errors, Judging judging) {
    Verdict verdict;
    for (size_t k = 0; k < results.size(); ++k) {
      if (k == 0 || results[k][i] != results[k - 1][i])
        verdict = judging(results[k][i]);
      note(verdict, i, results[k][i], *errors[k]);
    }
  }

  void addSlow(size_t i, const std::vector<Patterns> &results, llvm::ArrayRef<Errors *> errors) {
    Real exact = exactOf(i);
    forEach(i, results, errors, [&](uint64_t pattern) { return to.judge(exact, pattern); });
  }

  void addQuick(size_t i, const std::vector<Patterns> &results, llvm::ArrayRef<Errors *> errors) {
    double exact = evaluate(instruction.opcode, operand(0, i), operand(1, i));
    for (size_t k = 0; k < results.size(); ++k) {
      uint64_t pattern = results[k][i];
      Verdict verdict = to.judge(exact, pattern);
      bool isSubnormal = verdict.kind == Verdict::Kind::Subnormal;
      // The C library is trusted to find the worst, not to measure it.
      if (verdict.ulps > (isSubnormal ? errors[k]->subnormal : errors[k]->normal).ulps ||
          (verdict.ulps > 0 && verdict.kind == Verdict::Kind::Special))
        note(to.judge(exactOf(i), pattern), i, pattern, *errors[k]);
      else if (verdict.kind == Verdict::Kind::ZeroSign)
        note(verdict, i, pattern, *errors[k]);
    }
  }

  void addComplex(size_t i, const std::vector<Patterns> &results, llvm::ArrayRef<Errors *> errors) {
    auto number = [&](unsigned n) {
      if (n >= instruction.arity)
        return ComplexReal{0.0, 0.0};
      return ComplexReal{from.decode(operands[n][2 * i]), from.decode(operands[n][2 * i + 1])};
    };
    ComplexReal exact = evaluate(instruction.opcode, number(0), number(1));
    if (!isComplex(instruction.to))
      return forEach(i, results, errors, [&](uint64_t pattern) { return to.judge(exact.re, pattern); });
    double scale = condition(instruction.opcode, number(0), number(1), exact);
    const double sureOf = std::ldexp(1.0, instruction.from == ElementType::C128 ? 52 : 23);
    if (!(scale < sureOf)) // a rounding of the operands decides on all of the result
      return;
    for (size_t k = 0; k < results.size(); ++k) {
      ComplexReal nearest = exact;
      if (instruction.opcode == Opcode::Atan2) { // across the branch cut
        double turns = std::nearbyint((to.decode(results[k][2 * i]) - exact.re.toDouble()) / 6.283185307179586);
        if (std::isfinite(turns))
          nearest.re = exact.re + Real(2 * turns) * Real::pi();
      }
      Verdict verdict = to.judge(nearest, results[k][2 * i], results[k][2 * i + 1]);
      verdict.ulps /= scale;
      note(verdict, i, results[k][2 * i], *errors[k]);
    }
  }

  Verdict judgeExactly(size_t i, uint64_t pattern) const {
    bool isRight;
    if (isInteger(instruction.to)) {
      isRight = pattern == truncated(operand(0, i), instruction.to);
    } else {
      const FloatFormat &source =
          floatFormat(instruction.from == ElementType::F64 ? ElementType::F64 : ElementType::F32);
      double wanted = reduced(operand(0, i), instruction.exponentBits, instruction.mantissaBits, source);
      double found = to.decode(pattern);
      isRight = std::isnan(wanted) ? std::isnan(found) : found == wanted && std::signbit(found) == std::signbit(wanted);
      if (!isRight && !std::isnan(wanted)) // types with fewer special values
        isRight = pattern == encodeFloat(floatFormat(instruction.to), wanted);
    }
    return {Verdict::Kind::Special, isRight ? 0.0 : 1.0};
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
    bool isOrdinary = verdict.kind == Verdict::Kind::Normal || verdict.kind == Verdict::Kind::Subnormal;
    const Worst &worst = verdict.kind == Verdict::Kind::Normal ? errors.normal : errors.subnormal;
    if (verdict.ulps > (isOrdinary ? worst.ulps : 0)) // what it is called takes time
      errors.note(verdict, describe(i, pattern));
  }

  const Instruction &instruction;
  const std::vector<Patterns> &operands;
  Judge from, to;
};

} // namespace

void Errors::note(const Verdict &verdict, const std::string &at) {
  switch (verdict.kind) {
  case Verdict::Kind::Normal:
  case Verdict::Kind::Subnormal: {
    Worst &worst = verdict.kind == Verdict::Kind::Normal ? normal : subnormal;
    if (verdict.ulps > worst.ulps)
      worst = {verdict.ulps, at};
    return;
  }
  case Verdict::Kind::Special:
    if (++specials == 1)
      firstSpecial = at;
    return;
  case Verdict::Kind::ZeroSign:
    if (++zeroSigns == 1 && firstSpecial.empty())
      firstSpecial = at;
    return;
  }
}

/// What a kernel does, without what names its target.
static std::string bodyOf(const std::string &ptx) { return ptx.substr(std::min(ptx.find(".visible"), ptx.size())); }

Worst Measurement::normal() const {
  Worst worst;
  for (const Variant &variant : kernels)
    if (variant.errors.normal.ulps > worst.ulps)
      worst = variant.errors.normal;
  return worst;
}

Worst Measurement::subnormal() const {
  Worst worst;
  for (const Variant &variant : kernels)
    if (variant.errors.subnormal.ulps > worst.ulps)
      worst = variant.errors.subnormal;
  return worst;
}

using Seed = std::optional<uint64_t>;

/// None; if there is anything to approximate, seeds, and both ends of what is allowed. Of all operands of f32 one seed
/// sees as much as several of a sample.
static std::vector<std::pair<std::string, Seed>> approximations(unsigned numSeeds, bool isOfEveryFloat) {
  std::vector<std::pair<std::string, Seed>> all;
  if (!numSeeds || !isOfEveryFloat)
    all.emplace_back("", std::nullopt);
  for (unsigned seed = 1; seed <= (isOfEveryFloat ? std::min(numSeeds, 1u) : numSeeds); ++seed)
    all.emplace_back(fmt::format(" seed {}", seed), seed);
  if (numSeeds && !isOfEveryFloat) {
    all.emplace_back(" largest", emulator::EmulatorOptions::largestApproximations);
    all.emplace_back(" smallest", emulator::EmulatorOptions::smallestApproximations);
  }
  return all;
}

Measurement measure(const Instruction &instruction, const Choices &choices) {
  Measurement measurement;
  measurement.instruction = instruction;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::pair<Kernel *, size_t>> machines;
  std::set<std::string> seen;
  measurement.isOfEveryFloat = isOfEveryFloat(instruction, choices.effort);
  for (const TargetInfo &target : choices.targets) {
    std::unique_ptr<Kernel> kernel = Kernel::make(instruction, target, measurement.missing);
    if (!kernel)
      return measurement;
    std::string body = bodyOf(kernel->ptx());
    if (!seen.insert(body).second)
      continue;
    bool isApproximate = body.find(".approx") != std::string::npos || body.find(".full") != std::string::npos;
    for (const auto &[name, seed] : approximations(isApproximate ? choices.numSeeds : 0, measurement.isOfEveryFloat)) {
      machines.emplace_back(kernel.get(), kernel->numMachines());
      if (!kernel->addMachine(seed, measurement.missing))
        return measurement;
      measurement.kernels.push_back({target.name + name, {}});
    }
    kernels.push_back(std::move(kernel));
    if (measurement.isOfEveryFloat)
      break; // the others differ in how they load and store
  }
  std::vector<Errors *> errors;
  for (Measurement::Variant &variant : measurement.kernels)
    errors.push_back(&variant.errors);
  if (choices.withInterpreter)
    errors.push_back(&measurement.interpreter);
  if (measurement.isOfEveryFloat) {
    if (!measureEveryFloat(instruction.opcode, *kernels.front(), machines.size(), errors))
      measurement.missing = "cannot be run";
    return measurement;
  }
  Samples samples(instruction, choices.effort);
  std::vector<Patterns> operands, results(errors.size());
  Measuring measuring(instruction, operands);
  for (uint64_t index = 0; index < samples.numChunks(); ++index) {
    operands = samples.operands(index);
    for (size_t i = 0; i < errors.size(); ++i)
      if (i < machines.size() ? !machines[i].first->run(machines[i].second, operands, results[i])
                              : !kernels.front()->interpret(operands, results[i])) {
        measurement.missing = "cannot be run";
        return measurement;
      }
    measuring.add(results, samples.used(), errors);
  }
  return measurement;
}

} // namespace hloc::accuracy
