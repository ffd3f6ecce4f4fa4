#include "hloc/interp/Inputs.h"

#include "interp/Demands.h"
#include "interp/RandomBits.h"
#include "interp/Strided.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hloc {

namespace {

using interp::Demand;

/// A stream of random numbers for each leaf, so that adding a parameter changes no other's values.
class Stream {
public:
  Stream(uint64_t seed, uint32_t leaf) : seed(seed), leaf(leaf) {}
  uint32_t bits() {
    std::array<uint32_t, 2> words = interp::threefry({leaf, next++}, {uint32_t(seed), uint32_t(seed >> 32)});
    return words[0];
  }
  double unit() { return bits() * 0x1p-32; } ///< [0, 1)
  int64_t below(int64_t limit) {
    return int64_t((uint64_t(bits()) << 32 | bits()) % uint64_t(std::max<int64_t>(limit, 1)));
  }

private:
  uint64_t seed;
  uint32_t leaf, next = 0;
};

/// Nothing but elementwise ops and data movement: special values stay where they are put.
bool isElementwiseOnly(const HloModule &module) {
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions())
      switch (family(instr->opcode())) {
      case OpcodeFamily::Structured:
      case OpcodeFamily::Random:
      case OpcodeFamily::Host:
      case OpcodeFamily::Collective:
      case OpcodeFamily::Async:
        return false;
      default:
        if (instr->opcode() == Opcode::While || instr->opcode() == Opcode::CustomCall)
          return false;
      }
  return true;
}

/// Special values that an input may hold.
enum class Specials { None, AllButLargest, All };

/// A sum of products may be computed with one rounding instead of two. What that does to products that overflow shows
/// in every bit: infinity minus infinity, or infinity.
bool mayContract(const HloModule &module) {
  bool multiplies = false, adds = false;
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions()) {
      multiplies |= instr->opcode() == Opcode::Multiply;
      adds |= instr->opcode() == Opcode::Add || instr->opcode() == Opcode::Subtract;
    }
  return multiplies && adds;
}

Specials specialsFor(const HloModule &module) {
  if (!isElementwiseOnly(module))
    return Specials::None;
  return mayContract(module) ? Specials::AllButLargest : Specials::All;
}

class Generator {
public:
  Generator(Literal &literal, const Demand &demand, Stream stream, Specials specials)
      : literal(literal), demand(demand), stream(stream), special(specials != Specials::None),
        largestToo(specials == Specials::All), type(literal.shape().elementType()) {}

  void run() {
    if (demand.identityOf && literal.shape().isScalar())
      return fillIdentity();
    if (demand.sumAtMost)
      return fillGroupSizes();
    if (demand.below && isInteger(type))
      return fillIndices();
    for (int64_t i = 0; i < literal.numElements(); ++i)
      setValue(i);
    if (demand.positiveDefinite || demand.triangular)
      dominateDiagonal();
  }

private:
  void setValue(int64_t i) {
    if (isPred(type))
      literal.setInt(i, stream.bits() & 1);
    else if (isInteger(type))
      literal.setInt(i, integer());
    else if (isComplex(type)) {
      double real = moderate(); // one after the other: the order of arguments is not fixed
      literal.setComplex(i, {real, moderate()});
    } else
      setFloat(i);
  }

  /// Small numbers: they may be counts of steps. Extremes only where that cannot be.
  int64_t integer() {
    unsigned bits = bitWidth(type);
    if (special && stream.below(8) == 0) {
      const int64_t extremes[] = {0, -1, 1, int64_t(uint64_t(1) << (bits - 1)),
                                  int64_t((uint64_t(1) << (bits - 1)) - 1)};
      return extremes[stream.below(5)];
    }
    if (literal.shape().isScalar())
      return stream.below(8);
    return isSigned(type) ? stream.below(201) - 100 : stream.below(201);
  }

  double moderate() { return demand.nonNegative ? 2 * stream.unit() : 4 * stream.unit() - 2; }

  void setFloat(int64_t i) {
    if (!special || stream.below(16) != 0)
      return literal.setDouble(i, moderate());
    const FloatFormat &format = floatFormat(type);
    double infinity = std::numeric_limits<double>::infinity();
    double largest = largestToo ? largestFinite(format) : 1024;
    double smallest = std::ldexp(1.0, 1 - format.bias - format.mantissaBits);
    const double values[] = {0.0,          -0.0,    1,        -1,       infinity, -infinity,
                             std::nan(""), largest, -largest, smallest, -smallest};
    literal.setDouble(i, values[stream.below(11)]);
  }

  void fillIdentity() {
    bool isReal = isFloat(type);
    double infinity = std::numeric_limits<double>::infinity();
    switch (*demand.identityOf) {
    case Opcode::Multiply:
      return isPred(type) || isInteger(type) ? literal.setInt(0, 1) : setNumber(0, 1);
    case Opcode::And:
      return literal.setInt(0, -1);
    case Opcode::Maximum:
      return isReal ? literal.setDouble(0, -infinity)
                    : literal.setInt(0, isSigned(type) ? int64_t(~uint64_t(0) << (bitWidth(type) - 1)) : 0);
    case Opcode::Minimum:
      return isReal ? literal.setDouble(0, infinity)
                    : literal.setInt(0, isSigned(type) ? int64_t((uint64_t(1) << (bitWidth(type) - 1)) - 1) : -1);
    default: // add, or, xor and what has no identity: zero, as it is
      return;
    }
  }

  /// Random sizes whose sum may be the whole or less.
  void fillGroupSizes() {
    int64_t left = *demand.sumAtMost;
    for (int64_t i = 0; i < literal.numElements(); ++i) {
      int64_t size = stream.below(std::min<int64_t>(left, 2 * *demand.sumAtMost / literal.numElements()) + 1);
      literal.setInt(i, size);
      left -= size;
    }
  }

  /// Distinct starts are taken from a shuffled range; one too small for that is left with repetitions.
  void fillIndices() {
    int64_t count = literal.numElements(), limit = indexLimit();
    std::vector<int64_t> values(size_t(count), 0);
    if (demand.unique && count <= limit && limit <= maxShuffled) {
      std::vector<int64_t> pool(size_t(limit), 0);
      for (int64_t i = 0; i < limit; ++i)
        pool[size_t(i)] = i;
      for (int64_t i = 0; i < count; ++i)
        std::swap(pool[size_t(i)], pool[size_t(i + stream.below(limit - i))]);
      std::copy_n(pool.begin(), count, values.begin());
    } else {
      for (int64_t &value : values)
        value = stream.below(limit);
    }
    if (demand.sorted)
      std::sort(values.begin(), values.end());
    for (int64_t i = 0; i < count; ++i)
      literal.setInt(i, values[size_t(i)]);
  }
  static constexpr int64_t maxShuffled = int64_t(1) << 26;
  /// No larger than the type holds.
  int64_t indexLimit() const {
    unsigned magnitudeBits = bitWidth(type) - (isSigned(type) ? 1 : 0);
    return magnitudeBits >= 62 ? *demand.below : std::min(*demand.below, int64_t(1) << magnitudeBits);
  }

  /// Symmetric with a diagonal larger than its row's sum: positive definite, and easy to solve with.
  void dominateDiagonal() {
    unsigned rank = literal.shape().rank();
    if (rank < 2)
      return;
    int64_t n = literal.shape().dim(rank - 1), stride = n * literal.shape().dim(rank - 2);
    for (int64_t start = 0; stride != 0 && start < literal.numElements(); start += stride)
      for (int64_t i = 0; i < std::min(n, literal.shape().dim(rank - 2)); ++i) {
        for (int64_t j = 0; demand.positiveDefinite && j < i; ++j)
          setNumber(start + j * n + i, std::conj(literal.getComplex(start + i * n + j)));
        setNumber(start + i * n + i, double(3 * n) + 1);
      }
  }

  void setNumber(int64_t i, std::complex<double> value) {
    if (isComplex(type))
      literal.setComplex(i, value);
    else
      literal.setDouble(i, value.real());
  }

  Literal &literal;
  const Demand &demand;
  Stream stream;
  bool special, largestToo;
  ElementType type;
};

void generate(Literal &literal, llvm::ArrayRef<Demand> demands, uint64_t seed, Specials special, uint32_t &leaf) {
  if (literal.isTuple()) {
    for (Literal &element : literal.mutableElements())
      generate(element, demands, seed, special, leaf);
    return;
  }
  if (literal.shape().isArray())
    Generator(literal, demands[leaf], Stream(seed, leaf), special).run();
  ++leaf;
}

} // namespace

llvm::FailureOr<std::vector<Literal>> makeArguments(const HloModule &module, DiagnosticEngine &diagnostics,
                                                    uint64_t seed, uint64_t maxBytes) {
  std::vector<Demand> demands = interp::demandsOf(module);
  Specials special = specialsFor(module);
  std::vector<Literal> arguments;
  uint32_t leaf = 0;
  for (const HloInstruction *parameter : module.entry()->parameters()) {
    uint64_t bytes = 0;
    for (const Shape::Leaf &part : parameter->shape().leaves())
      if (part.shape.isArray())
        bytes =
            llvm::SaturatingMultiplyAdd<uint64_t>(part.shape.numElements(), hostBytes(part.shape.elementType()), bytes);
    if (parameter->shape().hasDynamicDims() || bytes > maxBytes) {
      diagnostics.report(DiagnosticKind::UnsupportedFeature, parameter->range(),
                         "cannot make a value for " + describe(*parameter) +
                             (bytes > maxBytes ? ": it is too large" : ": its shape is dynamic"));
      return llvm::failure();
    }
    maxBytes -= bytes;
    arguments.emplace_back(parameter->shape());
    generate(arguments.back(), demands, seed, special, leaf);
  }
  return arguments;
}

} // namespace hloc
