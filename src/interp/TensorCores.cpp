#include "interp/TensorCores.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

namespace hloc::interp {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr unsigned bitsOfSingle = 24, bitsOfByteSums = 14;
/// Integers of as many bits as bf16 has are multiplied as floats of 16 bits, where the result is one.
constexpr unsigned bitsOfBrain = 8, leastOfFloats = 16;
constexpr double leastBlock = 4;

/// Is it a product of f32 by way of narrower ones?
bool namesNarrowFactors(const HloInstruction &instr) {
  const auto algorithm = instr.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset);
  return algorithm != DotAlgorithm::Unset && algorithm != DotAlgorithm::F32F32F32 &&
         algorithm != DotAlgorithm::F64F64F64;
}

/// Of the values that a factor has: what is widened has the narrower type's, which is what may be multiplied.
ElementType typeOfValues(const HloInstruction &factor) {
  const ElementType type = factor.shape().elementType();
  if (factor.opcode() != Opcode::Convert)
    return type;
  const ElementType from = factor.operand(0)->shape().elementType();
  const bool isNarrower =
      isFloat(from) ? bitWidth(from) < bitWidth(type) : isInteger(from) && bitWidth(from) <= bitsOfBrain;
  return isNarrower ? from : type;
}

bool isNarrow(ElementType type) { return isFloat(type) || (isInteger(type) && bitWidth(type) <= bitsOfBrain); }

/// Of an f32 by what a bf16 has all values of: may three of these be multiplied instead, that have all bits of the f32?
bool mayBeInPieces(const HloInstruction &instr) {
  auto isBrain = [](ElementType type) {
    return type == ElementType::BF16 || (isNarrow(type) && bitWidth(type) <= bitsOfBrain);
  };
  const ElementType left = typeOfValues(*instr.operand(0)), right = typeOfValues(*instr.operand(1));
  return instr.shape().isArray() && instr.shape().elementType() == ElementType::F32 &&
         instr.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset) == DotAlgorithm::Unset &&
         ((left == ElementType::F32 && isBrain(right)) || (right == ElementType::F32 && isBrain(left)));
}

/// 0: tensor cores do not multiply these types.
unsigned bitsOf(const HloInstruction &instr) {
  if (instr.shape().isArray() &&
      (instr.shape().elementType() == ElementType::F64 || !isFloat(instr.shape().elementType())))
    return 0;
  unsigned widest = 0;
  bool areConverted = false;
  for (unsigned i = 0; i < 2; ++i) {
    const ElementType type = typeOfValues(*instr.operand(i));
    areConverted |= type != instr.operand(i)->shape().elementType();
    if (!isNarrow(type))
      return 0;
    widest = std::max(widest, isFloat(type) ? bitWidth(type) : leastOfFloats);
  }
  if (widest > 16)
    return namesNarrowFactors(instr) || mayBeInPieces(instr) ? bitsOfSingle : 0;
  return widest > 8 || areConverted ? bitsOfSingle : bitsOfByteSums;
}

/// How narrower factors are made of an f32, by an algorithm or because the other one is.
struct Narrowing {
  int bits;      ///< of a factor
  int exponents; ///< the least of a factor's last bit
  double rest;   ///< of its magnitude, what products of several lack; 0: it is one, which is rounded
};

std::optional<Narrowing> narrowingOf(const HloInstruction &instr) {
  constexpr int brain = 8, word = 11, single = 24, ofBrain = -133, ofWord = -136;
  if (!instr.shape().isArray() || instr.shape().elementType() != ElementType::F32)
    return std::nullopt;
  if (mayBeInPieces(instr)) // as of x9, but only of what has bits below the least bf16's
    return Narrowing{single, ofBrain, 0x1p-25};
  switch (instr.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset)) {
  case DotAlgorithm::BF16BF16F32:
    return Narrowing{brain, ofBrain, 0};
  case DotAlgorithm::BF16BF16F32X3: // that of two rests of 2^-7, and one that is rounded to 8 bits
    return Narrowing{brain, ofBrain, 0x1p-14};
  case DotAlgorithm::BF16BF16F32X6: // a rest of 2^-7 by one of 2^-14, twice
    return Narrowing{brain, ofBrain, 0x1p-21};
  case DotAlgorithm::BF16BF16F32X9: // 24 bits
    return Narrowing{brain, ofBrain, 0x1p-25};
  case DotAlgorithm::TF32TF32F32:
    return Narrowing{word, ofWord, 0};
  case DotAlgorithm::TF32TF32F32X3: // that of two rests of 2^-10
    return Narrowing{word, ofWord, 0x1p-20};
  default:
    return std::nullopt;
  }
}

/// The least and the greatest that is as good as x; what is a factor as it is, is only itself.
std::pair<double, double> narrowed(double x, const Narrowing &by) {
  constexpr int leastOfNormal = -126, leastOfInfinity = 128;
  if (!std::isfinite(x) || x == 0)
    return {x, x};
  const double last = std::ldexp(1, std::max(std::max(std::ilogb(x), leastOfNormal) - by.bits + 1, by.exponents));
  const double rounded = std::nearbyint(x / last) * last;
  if (rounded == x)
    return {x, x};
  if (by.rest == 0 && std::fabs(rounded) >= std::ldexp(1, leastOfInfinity))
    return x > 0 ? std::pair(x, double(INFINITY)) : std::pair(-double(INFINITY), x);
  const double off = by.rest == 0 ? std::fabs(x - rounded) : by.rest * std::fabs(x) + std::ldexp(1, by.exponents);
  return {x - off, x + off};
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

double TensorCores::narrowing(const HloInstruction &instr) {
  std::optional<Narrowing> by = narrowingOf(instr);
  if (mayBeInPieces(instr))
    return infinity; // what is off are the smallest of numbers
  return !by ? 0 : by->rest == 0 ? std::ldexp(1, -by->bits) : by->rest;
}

BoundsPtr TensorCores::asFactor(const HloInstruction &instr, const BoundsPtr &bounds) {
  std::optional<Narrowing> by = narrowingOf(instr);
  if (!by)
    return bounds;
  auto isItself = [&](double x) { return std::isnan(x) || narrowed(x, *by) == std::pair(x, x); };
  if (llvm::all_of(bounds->low.data<double>(), isItself) && llvm::all_of(bounds->high.data<double>(), isItself))
    return bounds;
  auto made = std::make_shared<Bounds>(*bounds);
  auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
  for (size_t i = 0; i < low.size(); ++i) {
    low[i] = narrowed(low[i], *by).first;
    high[i] = narrowed(high[i], *by).second;
  }
  return made;
}

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
