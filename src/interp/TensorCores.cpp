#include "interp/TensorCores.h"

#include <cmath>
#include <numbers>

namespace hloc::interp {

namespace {

constexpr unsigned bitsOfSingle = 24, bitsOfByteSums = 14;
constexpr double leastBlock = 4;

/// Is it a product of f32 by way of narrower ones?
bool namesNarrowFactors(const HloInstruction &instr) {
  const auto algorithm = instr.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset);
  return algorithm != DotAlgorithm::Unset && algorithm != DotAlgorithm::F32F32F32 &&
         algorithm != DotAlgorithm::F64F64F64;
}

/// 0: tensor cores do not multiply these types.
unsigned bitsOf(const HloInstruction &instr) {
  if (instr.shape().isArray() && instr.shape().elementType() == ElementType::F64)
    return 0;
  unsigned widest = 0;
  bool areConverted = false;
  for (unsigned i = 0; i < 2; ++i) {
    const HloInstruction *factor = instr.operand(i);
    ElementType type = factor->shape().elementType();
    // What is widened has the narrower type's values, which is what may be multiplied.
    if (const HloInstruction *from = factor->opcode() == Opcode::Convert ? factor->operand(0) : nullptr;
        from && (!isFloat(from->shape().elementType()) || bitWidth(from->shape().elementType()) < bitWidth(type))) {
      type = from->shape().elementType();
      areConverted = true;
    }
    if (!isFloat(type))
      return 0;
    widest = std::max(widest, bitWidth(type));
  }
  if (widest > 16)
    return namesNarrowFactors(instr) ? bitsOfSingle : 0;
  return widest > 8 || areConverted ? bitsOfSingle : bitsOfByteSums;
}

double signOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double squareOf(double x) { return x * x; }

Literal mapped(const Literal &from, double (*function)(double)) {
  Literal made(from.shape());
  auto x = from.data<double>();
  auto to = made.mutableData<double>();
  for (size_t i = 0; i < x.size(); ++i)
    to[i] = function(x[i]);
  return made;
}

} // namespace

TensorCores::TensorCores(const HloInstruction &instr, double terms) : kept(bitsOf(instr)), terms(terms) {}

llvm::FailureOr<Literal> TensorCores::cut(const Literal &sums, const Literal &a, const Literal &b,
                                          const Literal &magnitude, Product product) const {
  const double half = std::ldexp(0.5, 1 - int(kept)); // of the last bit, of a partial sum near 1
  Literal made(sums.shape());
  auto to = made.mutableData<double>();
  auto sum = sums.data<double>(), most = magnitude.data<double>();
  if (kept == bitsOfSingle) {
    // Partial sums rise to the sum, but for what random signs make, which roundings allow for.
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = half * (terms + terms / leastBlock) * std::fabs(sum[i]);
    return made;
  }
  // With few bits it counts how many more terms have one sign than the other, and how large partial sums are: those of
  // random signs walk. Off partial sums little is cut, as all that is added are multiples of their last bit.
  llvm::FailureOr<Literal> signs = product(mapped(a, signOf), mapped(b, signOf)),
                           squares = product(mapped(a, squareOf), mapped(b, squareOf));
  if (failed(signs) || failed(squares))
    return llvm::failure();
  constexpr double walked = 2, deviations = 4, deviation = 1 / std::numbers::sqrt3; // of even errors, in halves
  auto surplus = signs->data<double>(), square = squares->data<double>();
  for (size_t i = 0; i < to.size(); ++i) {
    const double partial = std::min(most[i], std::fabs(sum[i]) + walked * std::sqrt(square[i]));
    const double units = std::fabs(surplus[i]) + deviations * deviation * std::sqrt(terms + terms / leastBlock);
    to[i] = half * std::min(units, 2 * (terms + terms / leastBlock)) * partial;
  }
  return made;
}

} // namespace hloc::interp
