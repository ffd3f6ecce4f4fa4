#include "Samples.h"

#include "Real.h"

#include "llvm/ADT/STLExtras.h"

#include <bit>
#include <cmath>

namespace hloc::accuracy {

namespace {

uint64_t lowMask(unsigned bits) { return bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }

/// A stream of random numbers for one element, whatever chunk it is in (splitmix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t limit) { return next() % limit; }
  /// In [0, 1).
  double unit() { return double(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }
  bool flip() { return next() >> 63 != 0; }
  /// Of any sign, with an exponent in [low, high].
  double ofExponent(int low, int high) {
    double value = std::ldexp(1 + unit(), low + int(below(uint64_t(high - low + 1))));
    return flip() ? -value : value;
  }

private:
  uint64_t state;
};

/// Where functions have zeros, poles, bends, or leave the range of some type.
constexpr double specials[] = {0,
                               0x1p-1074,
                               0x1p-1022,
                               0x1p-149,
                               0x1p-126,
                               0x1p-24,
                               0x1p-14,
                               0x1p-12,
                               0.0004,
                               0.001,
                               0.01,
                               0.1,
                               0.25,
                               0.34657359027997264,
                               0.5,
                               0.6744897501960817,
                               0.6931471805599453,
                               0.7071067811865476,
                               0.7853981633974483,
                               1,
                               1.4142135623730951,
                               1.5,
                               1.5707963267948966,
                               2,
                               2.356194490192345,
                               3,
                               3.141592653589793,
                               3.7439211627767994,
                               4.71238898038469,
                               6.283185307179586,
                               7.99881172180175781,
                               9.010913,
                               10,
                               11.09035488895912,
                               15.942385152878742,
                               16.635532333438686,
                               17.32867951399863,
                               87.33654475055310,
                               88.72283905206835,
                               89.41598629223294,
                               103.97207708399179,
                               104,
                               65504,
                               105615,
                               708.3964185322641,
                               709.782712893384,
                               710.4758600739439,
                               745.1332191019412,
                               4294967296.0,
                               1e15,
                               6381956970095103.0 * 0x1p797,
                               3.4028234663852886e+38,
                               1.7976931348623157e+308,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
constexpr size_t numSpecials = std::size(specials);

/// The double nearest to a multiple of pi/2.
double nearMultiple(uint64_t count) { return (Real::ofUnsigned(count) * Real::pi() * Real(0.5)).toDouble(); }

/// Complex numbers by what makes functions of them hard: parts of like and of unlike sizes, over all exponents; moduli
/// near 1, of the number itself and one more; multiples of pi/2 beside what sinh and cosh are made of, poles of tan and
/// tanh among them; both sides of the axes, which are branch cuts of log and sqrt.
class ComplexSamples {
public:
  /// Without extremes: of ops whose usual formulas overflow on the way, products and what is made of them.
  ComplexSamples(const FloatFormat &format, uint64_t i, bool withExtremes)
      : random(i), kind(i % (withExtremes ? numKinds : numModerateKinds)), mantissaBits(int(format.mantissaBits)),
        least(1 - format.bias), most(format.bias), limit(format.bits == 64 ? 709 : 88), isDouble(format.bits == 64) {}
  static constexpr unsigned numModerateKinds = 13, numKinds = 16;
  using Number = std::pair<double, double>;

  Number next() {
    switch (kind) {
    case 0:
      return {random.ofExponent(-3, 3), random.ofExponent(-3, 3)};
    case 1:
      return {random.ofExponent(-12, 12), random.ofExponent(-12, 12)};
    case 2:
      return swapped(random.ofExponent(-12, 12), random.ofExponent(-3, 3));
    case 3: // near the unit circle
      return onCircle(1 + random.ofExponent(-mantissaBits, -3));
    case 4: { // near an axis, or on one
      double large = random.ofExponent(-6, 6), small = random.flip() ? 0 : random.ofExponent(-30, -8);
      return swapped(large, small);
    }
    case 5:
      return {random.between(-limit, limit), random.between(-limit, limit)};
    case 6:
      return {random.ofExponent(-30, -8), random.ofExponent(-30, -8)};
    case 7:
      return swapped(nearTurn(), random.ofExponent(-20, 2));
    case 8: // near underflow
      return {random.ofExponent(least - mantissaBits, least + 3), random.ofExponent(least - mantissaBits, least + 30)};
    case 9: // as close to a pole or a zero of a trigonometric function as numbers come, and from afar
      return swapped(moved(nearTurn()), random.ofExponent(-mantissaBits - 4, 1));
    case 10: { // on the circle about -1
      auto [re, im] = onCircle(1);
      return {moved(rounded(re) - 1), moved(im)};
    }
    case 11: { // about the points where functions bend or vanish
      constexpr double points[][2] = {{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}, {-2, 0}, {-0.5, 0}, {0.5, 0.5}};
      const double *point = points[random.below(std::size(points))];
      return {point[0] + random.ofExponent(-mantissaBits - 3, -1), point[1] + random.ofExponent(-mantissaBits - 3, -1)};
    }
    case 12: // large exponentials of angles near the axes, those that overflow without their sine among them
      return swapped(random.between(-limit - 20, limit + 20), random.flip() ? moved(nearTurn()) : nearTurn() / 2);
    case 13: // anything
      return {random.ofExponent(least - mantissaBits, most), random.ofExponent(least - mantissaBits, most)};
    case 14: { // beside an axis, over all exponents
      double large = random.ofExponent(least, most);
      return swapped(large, large * random.ofExponent(-mantissaBits * 2, -1));
    }
    default: // near overflow
      return {random.ofExponent(most - 3, most), random.ofExponent(most - 3 - int(random.below(40)), most)};
    }
  }

  /// A second operand, half of the time near one that is a simple multiple of the first.
  Number second(const Number &first) {
    if (random.flip())
      return next();
    double scale = std::ldexp(1.0, -int(random.below(4)));
    auto [re, im] = random.flip() ? first : Number(-first.second, first.first);
    return {moved(scale * re), moved(scale * im)};
  }

private:
  double rounded(double x) const { return isDouble ? x : double(float(x)); }
  Number swapped(double a, double b) { return random.flip() ? Number(a, b) : Number(b, a); }
  Number onCircle(double size) {
    double angle = random.between(-3.2, 3.2);
    return {size * std::cos(angle), size * std::sin(angle)};
  }
  double nearTurn() {
    double turn = nearMultiple(random.below(random.flip() ? 4 : 1000));
    return random.flip() ? turn : -turn;
  }
  /// A few numbers of the type away.
  double moved(double x) {
    return rounded(x) * (1 + double(int64_t(random.below(9)) - 4) * std::ldexp(1.0, -mantissaBits));
  }

  Random random;
  uint64_t kind;
  int mantissaBits, least, most;
  double limit;
  bool isDouble;
};

} // namespace

Samples::Samples(const Instruction &instruction, Effort effort) : instruction(instruction), effort(effort) {
  ElementType type = instruction.from;
  bits = bitWidth(isComplex(type) ? componentType(type) : type);
  bool dense = effort != Effort::Quick;
  if (isComplex(type) || isFloat(type))
    format = floatFormat(componentType(type));
  if (isComplex(type)) {
    usedOfChunk = dense ? chunk : 1024;
    chunks = dense ? 4 : 1;
  } else if (bits * instruction.arity <= 16) {
    usedOfChunk = size_t(1) << (bits * instruction.arity);
  } else if (bits == 64) { // the reference is slow
    usedOfChunk = dense ? chunk : 1024;
    chunks = !dense ? 1 : instruction.arity == 1 ? 4 : 2;
  } else if (instruction.arity == 2) {
    chunks = dense ? 32 : 1;
  } else {
    specialChunks = 2;
    chunks = specialChunks + (effort == Effort::All ? (uint64_t(1) << 32) / chunk : dense ? 64 : 1);
  }
}

std::string Samples::describe() const {
  uint64_t judged = chunks * usedOfChunk;
  bool all = !isComplex(instruction.from) && bits * instruction.arity <= 16;
  return all || effort == Effort::All ? "all" : std::to_string(judged);
}

uint64_t Samples::encode(double value) const {
  return format.bits == 32 ? std::bit_cast<uint32_t>(float(value)) : encodeFloat(format, value);
}

uint64_t Samples::nearSpecial(uint64_t i) const {
  Random random(i);
  int64_t spread = int64_t(2 * chunk / (2 * numSpecials));
  uint64_t center = encode(specials[i % numSpecials]);
  int64_t offset = int64_t(i / numSpecials % uint64_t(spread)) - spread / 2;
  uint64_t sign = random.flip() ? uint64_t(1) << (bits - 1) : 0;
  return (center + uint64_t(offset) + sign) & lowMask(bits);
}

uint64_t Samples::unaryDouble(uint64_t i) const {
  Random random(i);
  switch (i % 8) {
  case 0:
    return random.next();
  case 1:
    return nearSpecial(i / 8);
  case 2: {
    uint64_t count = random.next() >> random.below(64);
    uint64_t offset = random.below(4) ? 0 : random.below(64) - 32;
    return encode(random.flip() ? nearMultiple(count) : -nearMultiple(count)) + offset;
  }
  case 3:
    return encode(random.between(-10, 10));
  case 4:
    return encode(random.between(-750, 750));
  case 5:
    return encode(1 + random.ofExponent(-50, -1));
  default:
    return encode(random.ofExponent(-40, 12));
  }
}

/// Powers of two and their neighbours, and numbers of all lengths.
uint64_t Samples::integer(uint64_t i) const {
  Random random(i);
  if (bits <= 16)
    return i & lowMask(bits);
  uint64_t value =
      i % 2 ? (uint64_t(1) << random.below(bits)) + random.below(5) - 2 : random.next() >> random.below(bits);
  if (i % 4 == 2) // a tie of some width, or beside one
    value = ((value | 1) << random.below(bits)) + random.below(3) - 1;
  return (random.flip() ? value : 0 - value) & lowMask(bits);
}

/// Halfway between two numbers of the result's type, or as close to that as can be.
uint64_t Samples::nearTie(uint64_t i) const {
  Random random(i);
  const FloatFormat &to = floatFormat(instruction.to);
  double value = decodeFloat(to, random.next() & lowMask(to.bits));
  if (!std::isfinite(value) || value == 0)
    value = largestFinite(to);
  int exponent = std::max(std::ilogb(value), 1 - to.bias);
  value += std::ldexp(0.5, exponent - to.mantissaBits);
  return encode(value) + random.below(3) - 1;
}

uint64_t Samples::unary(uint64_t i) const {
  if (!isFloat(instruction.from))
    return integer(i);
  if (bits <= 16)
    return i & lowMask(bits);
  bool narrows = instruction.opcode == Opcode::Convert && isFloat(instruction.to) && bitWidth(instruction.to) < bits;
  if (narrows && i % 2)
    return nearTie(i) & lowMask(bits);
  if (bits == 64)
    return unaryDouble(i);
  if (i < specialChunks * chunk)
    return nearSpecial(i);
  i -= specialChunks * chunk;
  uint64_t step = (uint64_t(1) << 32) / ((chunks - specialChunks) * chunk);
  return i * step + (step > 1 ? Random(i).below(step) : 0);
}

void Samples::binary(uint64_t i, uint64_t &x, uint64_t &y) const {
  if (bits <= 8) {
    x = i & lowMask(bits);
    y = i >> bits & lowMask(bits);
    return;
  }
  Random random(i);
  int least = 1 - format.bias, most = format.bias;
  switch (i % 8) {
  case 0:
    x = random.next() & lowMask(bits);
    y = random.next() & lowMask(bits);
    return;
  case 1: {
    auto special = [&] {
      uint64_t pattern = encode(specials[random.below(numSpecials)]) + (random.flip() ? 0 : random.below(5) - 2);
      return (pattern ^ (random.flip() ? 0 : uint64_t(1) << (bits - 1))) & lowMask(bits);
    };
    x = special();
    y = special();
    return;
  }
  case 2: { // of like size
    double a = random.ofExponent(std::max(least, -20), std::min(most, 20));
    x = encode(a);
    y = encode(a * random.ofExponent(-8, 8));
    return;
  }
  case 3: // nearly equal, or nearly opposite
    x = encode(random.ofExponent(std::max(least, -20), std::min(most, 20)));
    y = (x + random.below(17) - 8) ^ (random.flip() ? 0 : uint64_t(1) << (bits - 1));
    return;
  case 4:
  case 5:
    x = encode(random.ofExponent(-3, 3));
    y = encode(random.ofExponent(-3, 3));
    return;
  default:
    break;
  }
  double a = random.ofExponent(least / 2, most / 2);
  if (instruction.opcode == Opcode::Divide && i % 32 == 7) { // halfway between two subnormal numbers
    uint64_t odd = 2 * random.below(uint64_t(1) << random.below(format.mantissaBits)) + 1;
    double divisor = double(1 + random.below(8)) * std::ldexp(1.0, int(random.below(uint64_t(most))));
    x = encode(std::ldexp(double(odd), least - int(format.mantissaBits) - 1) * divisor);
    y = encode(divisor);
    return;
  }
  switch (instruction.opcode) {
  case Opcode::Power: {
    a = i % 16 == 6 ? 1 + random.ofExponent(-int(format.mantissaBits), -1) : std::fabs(a);
    x = encode(a);
    y = encode(random.between(least - format.mantissaBits - 2, most + 2) / std::log2(a));
    return;
  }
  case Opcode::Multiply: // to where the range ends, on either side
  case Opcode::Divide: {
    int exponent = i % 16 == 6 ? least - int(random.below(format.mantissaBits + 2u)) : most - int(random.below(2));
    double result = random.ofExponent(exponent, exponent);
    bool isProduct = instruction.opcode == Opcode::Multiply;
    x = encode(isProduct ? a : result * a);
    y = encode(isProduct ? result / a : a);
    return;
  }
  default: // sizes far apart
    x = encode(a);
    y = encode(random.ofExponent(least / 2, most / 2));
    return;
  }
}

void Samples::complexPair(uint64_t i, Patterns &x, Patterns &y) const {
  const double largest = largestFinite(format);
  bool isProduct = llvm::is_contained({Opcode::Multiply, Opcode::Power, Opcode::Atan2}, instruction.opcode);
  ComplexSamples samples(format, i, !isProduct);
  auto push = [&](Patterns &to, const ComplexSamples::Number &number) {
    to.push_back(encode(std::clamp(number.first, -largest, largest)));
    to.push_back(encode(std::clamp(number.second, -largest, largest)));
  };
  ComplexSamples::Number first = samples.next();
  push(x, first);
  push(y, samples.second(first));
}

std::vector<Patterns> Samples::operands(uint64_t index) const {
  std::vector<Patterns> result(instruction.arity);
  Patterns unused;
  for (uint64_t i = index * chunk; i < (index + 1) * chunk; ++i)
    if (isComplex(instruction.from)) {
      complexPair(i, result[0], instruction.arity == 2 ? result[1] : unused);
    } else if (instruction.arity == 2) {
      uint64_t x, y;
      binary(i, x, y);
      result[0].push_back(x);
      result[1].push_back(y);
    } else {
      result[0].push_back(unary(i));
    }
  return result;
}

} // namespace hloc::accuracy
