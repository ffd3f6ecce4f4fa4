#include "ExactScale.h"
#include "LeafWalk.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

namespace hloc::interp {

namespace {

/// The numbers an array may hold: multiples of 2^grain. Nothing is known of the others.
struct Range {
  bool isKnown = false;
  double largest = 0, average = 0; ///< magnitudes; the average is an estimate from above
  int grain = 0;
};

unsigned precisionOf(ElementType type) {
  if (isComplex(type))
    type = componentType(type);
  return isFloat(type) ? floatFormat(type).mantissaBits + 1u : 64u;
}

class Estimate : LeafWalk<Estimate, Range> {
public:
  explicit Estimate(const ExactScale &scale) : scale(scale) {}

  /// Weighted count of the ops that may round.
  double penaltyOf(const HloModule &module) {
    std::vector<Leaves> arguments;
    for (const HloInstruction *parameter : module.entry()->parameters()) {
      Leaves leaves;
      for (const Shape::Leaf &leaf : parameter->shape().leaves()) {
        Range range;
        range.isKnown = leaf.shape.isArray();
        range.largest = double(scale.magnitude);
        range.average = (double(scale.magnitude) + 1) / 2 / double(scale.spacing);
        leaves.push_back(range);
      }
      arguments.push_back(std::move(leaves));
    }
    run(*module.entry(), arguments);
    return penalty;
  }

private:
  friend LeafWalk;

  Leaves follow(const HloInstruction &instr, Operands operands) {
    if (instr.opcode() == Opcode::Map)
      return call(instr, operands);
    if (instr.opcode() == Opcode::Reduce || instr.opcode() == Opcode::ReduceWindow)
      return reduced(instr, operands);
    return {array(instr, operands)};
  }

  Range array(const HloInstruction &instr, Operands operands) {
    auto in = [&](unsigned i) -> const Range & { return (*operands[i])[0]; };
    switch (instr.opcode()) {
    case Opcode::Constant:
      return ofLiteral(instr);
    case Opcode::Iota: {
      double last = double(instr.shape().dim(unsigned(instr.intOr(AttributeKey::IotaDimension, 0))));
      return {true, last, last / 2, 0};
    }
    case Opcode::Add:
    case Opcode::Subtract:
      return rounded(instr, sum(in(0), in(1)));
    case Opcode::Multiply:
      return rounded(instr, product(in(0), in(1)));
    case Opcode::Dot: {
      Range terms = product(in(0), in(1));
      double count = 1;
      for (int64_t dim : instr.ints(AttributeKey::LhsContractingDims))
        count *= double(instr.operand(0)->shape().dim(unsigned(dim)));
      return rounded(instr, sumOf(terms, count), areBytes(instr) ? bitsOfByteSums : HUGE_VAL);
    }
    case Opcode::Convert:
      return rounded(instr, in(0));
    case Opcode::Negate:
    case Opcode::Abs:
    case Opcode::Copy:
    case Opcode::OptimizationBarrier:
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
    case Opcode::Real:
    case Opcode::Imag:
      return in(0);
    case Opcode::Select:
      return either(in(1), in(2));
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Complex:
    case Opcode::Pad:
    case Opcode::DynamicUpdateSlice:
      return either(in(0), in(1));
    case Opcode::Clamp:
      return either(in(1), either(in(0), in(2)));
    case Opcode::Concatenate: {
      Range all = in(0);
      for (unsigned i = 1; i < operands.size(); ++i)
        all = either(all, in(i));
      return all;
    }
    default:
      return {};
    }
  }

  Leaves reduced(const HloInstruction &instr, Operands operands) {
    const HloInstruction &root = *instr.computation(AttributeKey::ToApply)->root();
    const Range &in = (*operands[0])[0];
    if (instr.numOperands() != 2)
      return {};
    if (root.opcode() == Opcode::Maximum || root.opcode() == Opcode::Minimum)
      return {in};
    if (root.opcode() != Opcode::Add)
      return {};
    double count = 1;
    if (instr.opcode() == Opcode::Reduce) {
      for (int64_t dim : instr.ints(AttributeKey::Dimensions))
        count *= double(instr.operand(0)->shape().dim(unsigned(dim)));
    } else {
      for (const WindowDim &dim : instr.windowOr(instr.shape().rank()).dims)
        count *= double(dim.size);
    }
    return {rounded(instr, sumOf(in, count))};
  }

  static Range ofLiteral(const HloInstruction &instr) {
    constexpr int64_t limit = 4096; // longer ones are rare and not worth the time
    const Literal &literal = instr.literal();
    ElementType type = instr.shape().isArray() ? instr.shape().elementType() : ElementType::Token;
    if (!isArrayType(type) || isPred(type) || isComplex(type) || literal.isElided() || literal.numElements() > limit)
      return {};
    Range range{true, 0, 0, 0};
    for (int64_t i = 0; i < literal.numElements(); ++i) {
      double value = std::fabs(literal.getDouble(i));
      if (!std::isfinite(value)) // the init of a maximum
        continue;
      range.largest = std::max(range.largest, value);
      while (value && std::ldexp(value, -range.grain) != std::floor(std::ldexp(value, -range.grain)))
        --range.grain;
    }
    range.average = range.largest;
    return range;
  }

  static Range either(const Range &a, const Range &b) {
    return {a.isKnown && b.isKnown, std::max(a.largest, b.largest), std::max(a.average, b.average),
            std::min(a.grain, b.grain)};
  }
  static Range sum(const Range &a, const Range &b) {
    return {a.isKnown && b.isKnown, a.largest + b.largest, a.average + b.average, std::min(a.grain, b.grain)};
  }
  static Range product(const Range &a, const Range &b) {
    return {a.isKnown && b.isKnown, a.largest * b.largest, a.average * b.average, a.grain + b.grain};
  }
  /// Of many terms, not all are the largest.
  static Range sumOf(const Range &terms, double count) {
    double expected = count * terms.average, spread = 4 * std::sqrt(count * terms.average * terms.largest);
    double largest = std::min(count * terms.largest, expected + spread);
    return {terms.isKnown, largest, largest, terms.grain};
  }

  /// What tensor cores keep of sums of products of f8.
  static constexpr double bitsOfByteSums = 14;
  static bool areBytes(const HloInstruction &dot) {
    return llvm::all_of(dot.operands(), [](const HloInstruction *factor) {
      const ElementType type = factor->shape().elementType();
      return isFloat(type) && bitWidth(type) == 8;
    });
  }

  /// The value as the instruction's type holds it, if that takes no rounding and the way there none of `mostBits`.
  Range rounded(const HloInstruction &instr, Range value, double mostBits = HUGE_VAL) {
    if (!value.isKnown)
      return {};
    ElementType type = instr.shape().elementType();
    if (!isFloat(type) && !isComplex(type))
      return {true, std::floor(value.largest), value.average, std::max(value.grain, 0)};
    double bits = value.largest > 0 ? std::ceil(std::log2(value.largest + 1e-9)) - value.grain : 0;
    unsigned precision = precisionOf(type), wide = std::max(precision, 24u);
    if (bits > std::min(double(wide), mostBits))
      penalty += 100;
    if (bits <= precision)
      return value;
    penalty += 1;
    return {};
  }

  ExactScale scale;
  double penalty = 0;
};

} // namespace

ExactScale exactScaleFor(const HloModule &module) {
  // From the most telling on: large numbers everywhere, ones, few ones.
  constexpr ExactScale scales[] = {{64, 1}, {32, 1}, {16, 1}, {8, 1},  {4, 1},  {2, 1},   {1, 1},  {1, 2},
                                   {1, 4},  {1, 8},  {1, 16}, {1, 32}, {1, 64}, {1, 128}, {1, 256}};
  ExactScale best;
  double least = HUGE_VAL;
  for (const ExactScale &scale : scales) {
    double penalty = Estimate(scale).penaltyOf(module);
    if (penalty < least) {
      least = penalty;
      best = scale;
    }
    if (!penalty)
      break;
  }
  return best;
}

} // namespace hloc::interp
