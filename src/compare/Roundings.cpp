#include "hloc/compare/Roundings.h"

#include "hloc/interp/Interpreter.h"

#include <cmath>
#include <limits>
#include <random>

namespace hloc {

namespace {

/// Moves every element up or down by the relative error; parts of a complex number by that of its magnitude.
void move(Literal &values, double error, std::mt19937_64 &random) {
  auto step = [&] { return random() >> 63 ? error : -error; };
  for (int64_t i = 0; i < values.numElements(); ++i)
    if (isComplex(values.shape().elementType())) {
      std::complex<double> value = values.getComplex(i);
      double magnitude = std::abs(value);
      if (std::isfinite(magnitude))
        values.setComplex(i, value + std::complex<double>(magnitude * step(), magnitude * step()));
    } else if (double value = values.getDouble(i); std::isfinite(value)) {
      values.setDouble(i, value + value * step());
    }
}

/// Operands of products may be narrower than the sum: the moves of its terms would be lost in them.
void widenOperand(const HloInstruction &instr, Literal &operand) {
  if (instr.opcode() != Opcode::Dot && instr.opcode() != Opcode::Convolution)
    return;
  ElementType from = operand.shape().elementType(), to = instr.shape().elementType();
  if (!isFloat(from) || !isFloat(to) || floatFormat(from).mantissaBits >= floatFormat(to).mantissaBits)
    return;
  Literal wide(operand.shape().withElementType(to));
  for (int64_t i = 0; i < operand.numElements(); ++i)
    wide.setDouble(i, operand.getDouble(i));
  operand = std::move(wide);
}

llvm::FailureOr<Literal> interpretMoved(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                        const llvm::DenseSet<const HloInstruction *> &roundings, uint64_t seed,
                                        DiagnosticEngine &diagnostics) {
  std::mt19937_64 random(seed);
  InterpreterOptions options;
  options.disturb = [&](const HloInstruction &instr, Literal &values) {
    double error = errorOf(instr);
    if (roundings.contains(&instr) && isFloat(values.shape().elementType()))
      error = std::ldexp(1.0, -int(floatFormat(values.shape().elementType()).mantissaBits));
    if (error == 0)
      return;
    widenOperand(instr, values);
    move(values, error, random);
  };
  return interpret(module, arguments, diagnostics, options);
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  double difference = std::fabs(a - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

double distance(const Literal &a, const Literal &b, int64_t i) {
  ElementType type = a.shape().elementType();
  if (isComplex(type)) {
    std::complex<double> x = a.getComplex(i), y = b.getComplex(i);
    return std::max(distance(x.real(), y.real()), distance(x.imag(), y.imag()));
  }
  return distance(a.getDouble(i), b.getDouble(i));
}

void arraysOf(const Literal &value, std::vector<const Literal *> &arrays) {
  if (!value.isTuple()) {
    if (value.shape().isArray())
      arrays.push_back(&value);
    return;
  }
  for (const Literal &element : value.elements())
    arraysOf(element, arrays);
}

} // namespace

llvm::FailureOr<CompareResult> compareRun(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                          const Literal &expected, const Literal &actual,
                                          llvm::ArrayRef<Tolerance> tolerances, DiagnosticEngine &diagnostics) {
  CompareResult result = compareLiterals(expected, actual, tolerances);
  if (result.equal() || !expected.shape().compatible(actual.shape()))
    return result;
  std::vector<const Literal *> wanted;
  arraysOf(expected, wanted);
  Allowances allowances;
  for (const Literal *array : wanted)
    allowances.emplace_back(size_t(array->numElements()), 0.0);
  // One run may move an element the other way, or by moves that cancel; what a backend really does is a fraction of
  // what the ops are allowed.
  constexpr unsigned minRuns = 8, maxRuns = 24;
  constexpr double factor = 4;
  const llvm::DenseSet<const HloInstruction *> roundings = inexactRoundings(module);
  for (unsigned run = 0; run < maxRuns && !result.equal(); ++run) {
    llvm::FailureOr<Literal> moved = interpretMoved(module, arguments, roundings, run, diagnostics);
    if (failed(moved))
      return llvm::failure();
    std::vector<const Literal *> got;
    arraysOf(*moved, got);
    for (size_t leaf = 0; leaf < wanted.size(); ++leaf)
      for (int64_t i = 0; i < wanted[leaf]->numElements(); ++i) {
        double &allowed = allowances[leaf][size_t(i)];
        allowed = std::max(allowed, factor * distance(*wanted[leaf], *got[leaf], i));
      }
    int64_t before = result.numMismatches;
    result = compareLiterals(expected, actual, tolerances, allowances);
    if (run + 1 >= minRuns && result.numMismatches == before)
      break;
  }
  return result;
}

} // namespace hloc
