#include "EveryFloat.h"

#include "fmt/format.h"

#include <bit>
#include <cmath>

namespace hloc::accuracy {

bool isOfEveryFloat(const Instruction &instruction, Effort effort) {
  return effort == Effort::All && instruction.arity == 1 && instruction.from == ElementType::F32 &&
         instruction.to == ElementType::F32 && instruction.opcode != Opcode::ReducePrecision;
}

namespace {

constexpr uint64_t biasOfDouble = 1023, exponentOfDouble = 0x7ff;

uint64_t exponentField(double x) { return std::bit_cast<uint64_t>(x) >> 52 & exponentOfDouble; }

/// Compares the results of one function with the exact values at the same operands.
class Comparison {
public:
  Comparison(Opcode opcode, Errors &errors) : opcode(opcode), errors(errors), judge(ElementType::F32) {}

  /// Of all that seem worse than what there was before, MPFR measures the worst: errors that grow with the operand
  /// would keep it busy.
  void add(llvm::ArrayRef<float> operands, llvm::ArrayRef<double> exact, llvm::ArrayRef<float> found) {
    size_t worst[2] = {operands.size(), operands.size()};
    double ulps[2] = {errors.normal.ulps, errors.subnormal.ulps};
    for (size_t i = 0; i < operands.size(); ++i) {
      uint64_t exponent = exponentField(exact[i]);
      bool isSubnormal = exponent < leastExponent;
      double error = errorOf(exact[i], exponent, found[i]);
      if (error <= ulps[isSubnormal])
        continue;
      if (error < HUGE_VAL) {
        ulps[isSubnormal] = error;
        worst[isSubnormal] = i;
      } else {
        measure(operands[i], found[i]);
      }
    }
    for (size_t i : worst)
      if (i < operands.size())
        measure(operands[i], found[i]);
  }

private:
  static constexpr uint64_t leastExponent = biasOfDouble - 126; ///< of normal numbers

  /// In units as Judge counts them; infinity where that is not so simple.
  static double errorOf(double exact, uint64_t exponent, float found) {
    bool isRight;
    if (exponent >= biasOfDouble + 128) // not below 2^128: infinity is right, or there is no number
      isRight = std::isnan(exact) ? std::isnan(found) : double(found) == std::copysign(HUGE_VAL, exact);
    else if (exact == 0)
      isRight = std::bit_cast<uint32_t>(found) == std::bit_cast<uint32_t>(float(exact));
    else if (std::isfinite(found))
      return std::fabs(double(found) - exact) *
             std::bit_cast<double>((2 * biasOfDouble + 23 - std::max(exponent, leastExponent)) << 52);
    else
      isRight = false;
    return isRight ? 0 : HUGE_VAL;
  }

  void measure(float operand, float found) {
    uint32_t pattern = std::bit_cast<uint32_t>(found);
    Verdict verdict = judge.judge(evaluate(opcode, Real(double(operand)), Real(0.0)), pattern);
    if (verdict.ulps > 0)
      errors.note(verdict, fmt::format("{:#x} ({:.9g}) -> {:#x}", std::bit_cast<uint32_t>(operand), operand, pattern));
  }

  Opcode opcode;
  Errors &errors;
  Judge judge;
};

} // namespace

bool measureEveryFloat(Opcode opcode, Kernel &kernel, size_t machines, llvm::ArrayRef<Errors *> errors) {
  std::vector<Comparison> comparisons;
  for (Errors *each : errors)
    comparisons.emplace_back(opcode, *each);
  std::vector<float> operands(chunk), found(chunk);
  std::vector<double> exact(chunk);
  for (uint64_t first = 0; first < uint64_t(1) << 32; first += chunk) {
    for (size_t i = 0; i < chunk; ++i) {
      operands[i] = std::bit_cast<float>(uint32_t(first + i));
      exact[i] = evaluate(opcode, double(operands[i]), 0.0);
    }
    for (size_t i = 0; i < errors.size(); ++i) {
      if (i < machines ? !kernel.run(i, operands, found) : !kernel.interpret(operands, found))
        return false;
      comparisons[i].add(operands, exact, found);
    }
  }
  return true;
}

} // namespace hloc::accuracy
