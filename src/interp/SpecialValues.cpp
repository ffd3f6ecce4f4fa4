#include "SpecialValues.h"

#include "ElementGroups.h"
#include "ElementwiseRules.h"
#include "hloc/hlo/OpcodeTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <array>
#include <cmath>
#include <limits>

namespace hloc::interp {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What a group of elements holds. In the order of their worth: arrays that are one group have a round for each, as far
/// as their size allows.
enum class Kind {
  OneNan,
  AllLowest, ///< -infinity, the least integer: only the right init lets it through
  AllLow,    ///< a maximum from -1, -10 or -101 shows
  OneHighest,
  AllHighest,
  AllHigh,
  OneLowest,
  Both, ///< the highest and the lowest
  Tiny, ///< zeros of both signs and subnormals
  Mixed,
  Ordinary
};
constexpr unsigned numKinds = unsigned(Kind::Ordinary) + 1;

/// Writes special values of one type.
class Painter {
public:
  Painter(Literal &literal, ValueStream &stream, bool mayBeNan, bool mayOverflow)
      : literal(literal), stream(stream), type(literal.shape().elementType()), mayBeNan(mayBeNan),
        mayOverflow(mayOverflow), turn(stream.bits() % 1000) {}

  /// One element by itself.
  void setSpecial(int64_t i) {
    if (isInteger(type))
      return literal.setInt(i, anyInteger());
    if (!isComplex(type))
      return setFloat(i, anyPattern(floatFormat(type)));
    // Both parts large or small together: that is where naive formulas fail.
    const FloatFormat &format = floatFormat(componentType(type));
    std::array<double, 2> parts;
    bool together = stream.oneIn(2);
    int exponent = anyExponent(format);
    for (double &part : parts)
      part = together ? withExponent(exponent + int(stream.below(5)) - 2) : decodeFloat(format, anyPattern(format));
    literal.setComplex(i, {parts[0], parts[1]});
  }

  /// An element of a group, the `position`-th of `size`. `chosen` and `other`: positions of what there is one of.
  void setOfKind(int64_t i, Kind kind, bool isChosen, bool isOther) {
    switch (kind) {
    case Kind::OneNan:
      if (isChosen)
        setNan(i);
      return;
    case Kind::AllLowest:
      return setExtreme(i, false);
    case Kind::AllLow:
      return setFar(i, false);
    case Kind::OneHighest:
      if (isChosen)
        setExtreme(i, true);
      return;
    case Kind::AllHighest:
      return setExtreme(i, true);
    case Kind::AllHigh:
      return setFar(i, true);
    case Kind::OneLowest:
      if (isChosen)
        setExtreme(i, false);
      return;
    case Kind::Both:
      if (isChosen || isOther)
        setExtreme(i, isChosen);
      return;
    case Kind::Tiny:
      return setTiny(i);
    case Kind::Mixed:
      if (stream.oneIn(2))
        isInteger(type) ? literal.setInt(i, anyInteger()) : setTiny(i);
      return;
    case Kind::Ordinary:
      return;
    }
  }

private:
  /// All choices in turn, so that few elements see them all.
  unsigned nextOf(unsigned numChoices) {
    // By turns alone, two arrays would show the same few pairs of values all along.
    return stream.oneIn(2) ? unsigned(stream.below(numChoices)) : turn++ % numChoices;
  }

  unsigned bits() const { return bitWidth(type); }
  int64_t lowest() const { return isSigned(type) ? int64_t(~uint64_t(0) << (bits() - 1)) : 0; }
  int64_t highest() const { return int64_t(llvm::maskTrailingOnes<uint64_t>(isSigned(type) ? bits() - 1 : bits())); }

  int64_t anyInteger() {
    const int64_t extremes[] = {0,  -1, 1, lowest(), highest(), int64_t(uint64_t(1) << (bits() - 1)), lowest() + 1,
                                -2, 2}; // beside -1 and 1: guards of one value that take in another
    constexpr unsigned numExtremes = std::size(extremes);
    unsigned choice = nextOf(2 * numExtremes);
    return choice < numExtremes ? extremes[choice] : int64_t(stream.wideBits());
  }

  /// Of either sign, with any payload, quiet: what an operation does to a signalling one is another matter.
  uint64_t anyNan(const FloatFormat &format) {
    uint64_t nan = canonicalNan(format);
    if (!mayBeNan)
      return encodeFloat(format, 1);
    if (format.specials != FloatFormat::Specials::Ieee)
      return nan;
    uint64_t payload = stream.wideBits() & llvm::maskTrailingOnes<uint64_t>(format.mantissaBits - 1u);
    uint64_t sign = uint64_t(stream.below(2)) << (format.bits - 1);
    return (nan & llvm::maskTrailingOnes<uint64_t>(format.bits - 1u)) | (stream.oneIn(2) ? payload : 0) | sign;
  }

  int anyExponent(const FloatFormat &format) {
    int limit = mayOverflow ? format.bias - 2 : format.bias / 4;
    return int(stream.below(2 * limit + 1)) - limit;
  }
  double withExponent(int exponent) { return std::ldexp((1 + stream.unit()) * (stream.oneIn(2) ? -1 : 1), exponent); }

  /// Where e^x leaves the format, ln(2) (bias + 1): how functions made of it scale their argument is seen there alone.
  static double endOfExponential(const FloatFormat &format) { return (format.bias + 1) * std::log(2.0); }

  /// Close to that end, or within one halving or doubling: sinh and cosh still have a value where e^x has none.
  double nearEndOfExponential(const FloatFormat &format) {
    double end = endOfExponential(format);
    return stream.oneIn(2) ? end * (0.94 + 0.07 * stream.unit()) : end + std::log(2.0) * (2 * stream.unit() - 1);
  }

  /// 1, or beside it by any power of two: where logarithms, roots of differences and inverse functions lose digits.
  double nearOne(const FloatFormat &format) {
    if (stream.oneIn(2))
      return 1;
    double distance = std::ldexp(1 + stream.unit(), -1 - int(stream.below(format.mantissaBits + 1)));
    return stream.oneIn(2) ? 1 + distance : 1 - distance;
  }

  uint64_t anyPattern(const FloatFormat &format) {
    uint64_t mantissa = llvm::maskTrailingOnes<uint64_t>(format.mantissaBits);
    uint64_t sign = uint64_t(stream.below(2)) << (format.bits - 1);
    if (format.specials == FloatFormat::Specials::PowerOfTwo)
      return uint64_t(stream.below(256));
    switch (nextOf(11)) {
    case 0:
      return anyNan(format);
    case 1:
      return encodeFloat(format, extremeOf(format)) | sign;
    case 2: // zero, though some formats have their NaN for -0
      return format.specials == FloatFormat::Specials::NanNegativeZero ? 0 : sign;
    case 3:
      return 1 | sign; // the smallest subnormal
    case 4:
      return mantissa | sign; // the largest
    case 5:
      return (mantissa + 1) | sign; // the smallest normal number
    case 6:
      return encodeFloat(format, mayOverflow ? largestFinite(format) : std::min(1024.0, largestFinite(format))) | sign;
    case 7:
      return encodeFloat(format, nearOne(format)) | sign;
    case 8:
      return encodeFloat(format, nearEndOfExponential(format)) | sign;
    default:
      return encodeFloat(format, withExponent(anyExponent(format)));
    }
  }

  void setFloat(int64_t i, uint64_t pattern) { literal.setBits(i, pattern); }
  void setParts(int64_t i, double real, double imag) {
    if (isComplex(type))
      literal.setComplex(i, {real, imag});
    else
      literal.setDouble(i, real);
  }

  void setNan(int64_t i) {
    if (isInteger(type)) // those with the sign bit: a comparison of the wrong signedness shows
      return literal.setInt(i, int64_t((uint64_t(1) << (bits() - 1)) | stream.wideBits()));
    if (!isComplex(type))
      return setFloat(i, anyNan(floatFormat(type)));
    double nan = mayBeNan ? std::copysign(std::nan(""), stream.oneIn(2) ? -1.0 : 1.0) : 1.0;
    bool inReal = stream.oneIn(2);
    literal.setComplex(i, {inReal ? nan : 1.0, inReal ? 1.0 : nan});
  }

  void setExtreme(int64_t i, bool high) {
    if (isInteger(type))
      return literal.setInt(i, high ? highest() : lowest());
    double value = extremeOf(floatFormat(componentType(type)));
    setParts(i, high ? value : -value, stream.oneIn(2) ? 1.0 : -value);
  }
  double extremeOf(const FloatFormat &format) const {
    if (!mayBeNan)
      return std::min(200.0, largestFinite(format));
    return format.hasInfinity() ? infinity : largestFinite(format);
  }

  void setFar(int64_t i, bool high) {
    if (isInteger(type)) {
      // Beyond 101 where the type reaches so far, and now and then anywhere.
      int64_t room = bits() > 8 ? 1000 : int64_t(1) << (bits() - 3);
      int64_t distance = (bits() > 7 ? 102 : 1) + stream.below(std::min<int64_t>(room, bits() == 8 ? 26 : room));
      if (isUnsigned(type))
        return literal.setInt(i, high ? highest() - stream.below(room) : stream.below(2));
      return literal.setInt(i, high ? distance : -distance);
    }
    double reach = std::min(200.0, largestFinite(floatFormat(componentType(type))));
    double value = reach * (0.06 + 0.94 * stream.unit());
    setParts(i, high ? value : -value, value);
  }

  double tiny(const FloatFormat &format) {
    uint64_t mantissa = llvm::maskTrailingOnes<uint64_t>(format.mantissaBits);
    if (format.specials == FloatFormat::Specials::PowerOfTwo)
      return decodeFloat(format, uint64_t(stream.below(4)));
    double value = stream.oneIn(2) ? 0.0 : decodeFloat(format, stream.wideBits() & mantissa);
    bool hasNegativeZero = format.specials != FloatFormat::Specials::NanNegativeZero;
    return stream.oneIn(2) && (value != 0 || hasNegativeZero) ? -value : value;
  }
  void setTiny(int64_t i) {
    if (isInteger(type))
      return literal.setInt(i, int64_t(stream.wideBits()));
    const FloatFormat &format = floatFormat(componentType(type));
    double real = tiny(format);
    setParts(i, real, tiny(format));
  }

  Literal &literal;
  ValueStream &stream;
  ElementType type;
  bool mayBeNan, mayOverflow;
  unsigned turn;
};

/// Have special values a settled meaning for the op (unlike an order of NaN, a matrix without inverse), and does it not
/// take them for a count of steps?
bool admitsSpecials(Opcode opcode) {
  using enum Opcode;
  static constexpr OpcodeTable<bool> ofLargeOps(
      [](Opcode each) { return family(each) == OpcodeFamily::Structured || family(each) == OpcodeFamily::Control; },
      {
          {{Scatter, Reduce, ReduceWindow, Map, Dot, Call, Fusion}, true},
          {{Sort, TopK, Scan, SelectAndScatter, BatchNormTraining, BatchNormInference, BatchNormGrad, Fft, Cholesky,
            TriangularSolve, RaggedDot, ScaledDot, Convolution, While, Conditional, CustomCall},
           false},
      });
  switch (family(opcode)) {
  case OpcodeFamily::Unary:
  case OpcodeFamily::Binary:
  case OpcodeFamily::Ternary:
  case OpcodeFamily::Compare:
  case OpcodeFamily::Convert:
  case OpcodeFamily::Identity:
  case OpcodeFamily::Source:
  case OpcodeFamily::Movement:
  case OpcodeFamily::Structure:
    return true;
  case OpcodeFamily::Structured:
  case OpcodeFamily::Control:
    return ofLargeOps[opcode];
  case OpcodeFamily::Random:
  case OpcodeFamily::Host:
  case OpcodeFamily::Collective:
  case OpcodeFamily::Async:
    return false;
  }
  HLOC_UNREACHABLE("an opcode of no family");
}
bool admitsSpecials(const HloModule &module) {
  return llvm::all_of(module.computations(), [](const auto &computation) {
    return llvm::all_of(computation->instructions(),
                        [](const HloInstruction *instr) { return admitsSpecials(instr->opcode()); });
  });
}

/// A sum of products may be computed with one rounding instead of two, and in any order. What that does to products
/// that overflow shows in every bit: infinity minus infinity, or infinity.
bool addsProducts(const HloModule &module) {
  bool multiplies = false, adds = false;
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions()) {
      if (instr->opcode() == Opcode::Multiply && instr->shape().isArray() && isComplex(instr->shape().elementType()))
        return true;
      multiplies |= instr->opcode() == Opcode::Multiply || instr->opcode() == Opcode::Dot;
      adds |= instr->opcode() == Opcode::Add || instr->opcode() == Opcode::Subtract || instr->opcode() == Opcode::Dot;
      if (instr->opcode() == Opcode::Reduce || instr->opcode() == Opcode::ReduceWindow)
        adds |= instr->computation(AttributeKey::ToApply)->root()->opcode() == Opcode::Add;
    }
  return multiplies && adds;
}

/// Whether the bits of a NaN show that src/hlo/SEMANTICS.md leaves open.
bool showsOpenNan(const HloModule &module) {
  auto bitsOf = [](const HloInstruction *instr) {
    bool isReal = instr->shape().isArray() && isFloat(instr->shape().elementType());
    return isReal ? bitWidth(instr->shape().elementType()) : 0;
  };
  bool isLookedAt = false, isOpen = false;
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions())
      if (const Opcode opcode = instr->opcode(); opcode == Opcode::BitcastConvert)
        isLookedAt |= bitsOf(instr->operand(0)) != bitsOf(instr);
      else if (opcode == Opcode::Compare)
        isLookedAt |= instr->comparisonType() == ComparisonType::TotalOrder;
      else if (opcode == Opcode::Convert) // some targets widen by a shift
        isOpen |= bitsOf(instr->operand(0)) && bitsOf(instr->operand(0)) < bitsOf(instr);
      else if (isElementwise(opcode))
        isOpen |= bitsOf(instr) && elementwiseRule(opcode).nan == NanRule::Open;
  return isLookedAt && isOpen;
}

int64_t totalElements(const HloModule &module) {
  int64_t total = 0;
  auto count = [&](const Shape &shape) {
    for (const Shape::Leaf &leaf : shape.leaves())
      if (leaf.shape.isArray())
        total = llvm::SaturatingAdd<uint64_t>(uint64_t(total), uint64_t(leaf.shape.numElements()));
  };
  for (const HloInstruction *parameter : module.entry()->parameters())
    count(parameter->shape());
  count(module.entry()->root()->shape());
  return total;
}

} // namespace

SpecialPlan::SpecialPlan(const HloModule &module, llvm::ArrayRef<Demand> demands) {
  if (!admitsSpecials(module))
    return;
  mayBeNan = !showsOpenNan(module);
  mayOverflow = mayBeNan && !addsProducts(module);
  constexpr int64_t affordable = int64_t(1) << 18; // elements in all rounds, but two rounds are always allowed
  unsigned maxRounds = unsigned(std::clamp<int64_t>(affordable / std::max<int64_t>(totalElements(module), 1), 2, 24));
  int64_t fewest = std::numeric_limits<int64_t>::max(); // groups, or elements that stand for themselves
  for (const HloInstruction *parameter : module.entry()->parameters())
    for (const Shape::Leaf &leaf : parameter->shape().leaves()) {
      const Demand &demand = demands[roles.size()];
      ElementType type = leaf.shape.isArray() ? leaf.shape.elementType() : ElementType::Token;
      bool isNumber = isFloat(type) || isComplex(type) || isInteger(type);
      bool isBound = demand.below || demand.identityOf || demand.sumAtMost || demand.nonNegative;
      Role role = Role::None;
      if (isNumber && !isBound && leaf.shape.numElements() > 0) {
        ElementGroups groups(leaf.shape, demand.reducedDims);
        role = groups.count > 1 ? Role::Local : Role::Spreading;
        if (leaf.shape.isScalar() && isInteger(type)) // it may count
          role = Role::None;
        if (role == Role::Local) {
          ++numLocal;
          fewest = std::min(fewest, groups.count);
        }
        if (role == Role::Spreading)
          spreading.push_back(unsigned(roles.size()));
      }
      roles.push_back(role);
    }
  constexpr int64_t enough = 64; // elements for a fair sample
  if (numLocal)
    localRounds = unsigned(std::min<int64_t>(maxRounds, llvm::divideCeil(enough, fewest)));
  spreadingRounds = unsigned(std::min<size_t>(maxRounds, spreading.size() * numKinds));
}

void SpecialPlan::fill(Literal &literal, unsigned leaf, const Demand &demand, ValueStream &stream, uint64_t seed,
                       unsigned round) const {
  if (leaf >= roles.size() || roles[leaf] == Role::None)
    return;
  bool isLocal = roles[leaf] == Role::Local;
  if (isLocal != (round < localRounds))
    return;
  Painter painter(literal, stream, mayBeNan, mayOverflow);
  unsigned firstKind = unsigned(seed) + round;
  if (!isLocal) {
    unsigned turn = round - localRounds;
    if (spreading[turn % spreading.size()] != leaf)
      return;
    firstKind = turn / unsigned(spreading.size());
    if (literal.shape().isScalar())
      return painter.setSpecial(0);
  }
  int64_t oneIn = numLocal <= 2 ? 3 : 2 * int64_t(numLocal);
  if (isLocal && !demand.reducedDims) {
    for (int64_t i = 0; i < literal.numElements(); ++i)
      if (stream.oneIn(oneIn))
        painter.setSpecial(i);
    return;
  }
  // One argument has all kinds side by side; of several, most groups of most stay ordinary.
  ElementGroups groups(literal.shape(), demand.reducedDims);
  struct State {
    Kind kind;
    int64_t chosen, other, next = 0;
  };
  std::vector<State> states;
  for (int64_t g = 0; g < groups.count; ++g) {
    Kind kind = Kind((uint64_t(g) + uint64_t(round) * uint64_t(groups.count) + firstKind) % numKinds);
    if (!isLocal)
      kind = Kind(firstKind % numKinds);
    else if (numLocal > 1 && !stream.oneIn(numLocal))
      kind = Kind::Ordinary;
    int64_t chosen = stream.below(groups.size), other = stream.below(std::max<int64_t>(groups.size - 1, 1));
    states.push_back({kind, chosen, other + (other >= chosen)});
  }
  for (int64_t i = 0; i < literal.numElements(); ++i) {
    State &state = states[size_t(groups.of(i))];
    painter.setOfKind(i, state.kind, state.next == state.chosen, state.next == state.other);
    ++state.next;
  }
}

} // namespace hloc::interp
