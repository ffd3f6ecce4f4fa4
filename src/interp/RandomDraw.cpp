#include "interp/RandomDraw.h"

#include "interp/Accuracy.h"
#include "interp/FloatGrid.h"

namespace hloc::interp {

RandomDraw::RandomDraw(Disturbance disturbance, Backend backend)
    : disturbance(disturbance), backend(backend), state(disturbance.seed * 0x9E3779B97F4A7C15 + 1) {}

double RandomDraw::next() { // splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)
  uint64_t x = state += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return double((x ^ x >> 31) >> 11) * 0x1p-53;
}

/// Functions of complex numbers cancel near their zeros and jump at their cuts: off by some roundings of what is
/// about 1.
double RandomDraw::nearby(double value) {
  if (!std::isfinite(value))
    return value;
  constexpr double roundings = 16;
  const FloatGrid grid(componentType(instruction->shape().elementType()));
  const double most = roundings * grid.unitRoundoff() * std::max(1.0, std::fabs(value)) * disturbance.strength;
  return value + most * (2 * (bias ? *bias : next()) - 1);
}

double RandomDraw::pick(double value, double low, double high) {
  if (isUnknown(low, high)) {
    metUnknown = true;
    return isElementwise(instruction->opcode()) ? nearby(value) : std::numeric_limits<double>::quiet_NaN();
  }
  if (low == high || std::isnan(low) || std::isnan(high) || disturbance.strength == 0)
    return value;
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(value))
    return (bias ? *bias : next()) < 0.5 ? low : high;
  const double least = value + (low - value) * disturbance.strength;
  const double greatest = value + (high - value) * disturbance.strength;
  const double part = bias ? *bias : next();
  return least + (greatest - least) * (disturbance.isExtreme ? double(part >= 0.5) : part);
}

/// Bounds need not be numbers of the type: what was rounded to one outside of them, or to a NaN, stays what it was.
static void keepInside(Literal &drawn, const Literal &reference, const Bounds &bounds) {
  Literal rounded = asBound(drawn);
  const size_t parts = isComplex(reference.shape().elementType()) ? 2 : 1;
  const size_t width = hostBytes(reference.shape().elementType()) / parts;
  auto low = bounds.low.data<double>(), high = bounds.high.data<double>(), values = rounded.data<double>();
  for (size_t i = 0; i < values.size(); ++i)
    if (low[i] <= high[i] && !(values[i] >= low[i] && values[i] <= high[i]))
      std::copy_n(reference.bytes().begin() + i * width, width, drawn.mutableBytes().begin() + i * width);
}

void RandomDraw::replace(Bounded &array) {
  const Literal &reference = array.array();
  const ElementType type = reference.shape().elementType();
  if (!isFloat(type) && !isComplex(type)) {
    metUnknown = true; // of known operands they are known
    array.bounds = nullptr;
    return;
  }
  Literal drawn = asBound(reference);
  auto low = array.bounds->low.data<double>(), high = array.bounds->high.data<double>();
  auto values = drawn.mutableData<double>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = pick(values[i], low[i], high[i]);
  Literal made = asValue(drawn, reference.shape());
  if (disturbance.strength <= 1)
    keepInside(made, reference, *array.bounds);
  array = Bounded(Value(std::move(made)), nullptr, array.unrounded);
}

/// Other compilers leave intermediate values of few bits unrounded: half a unit more or less.
void RandomDraw::unround(Bounded &array) {
  const Literal &reference = array.array();
  const FloatGrid grid(reference.shape().elementType());
  Literal drawn = asBound(reference);
  for (double &x : drawn.mutableData<double>())
    if (std::isfinite(x))
      x += grid.ulp(x) * (2 * (bias ? *bias : next()) - 1) / 2;
  array = Bounded(Value(asValue(drawn, reference.shape())), nullptr, array.unrounded);
}

void RandomDraw::applyTo(Bounded &value) {
  if (!value.value.isTuple()) {
    if (value.bounds)
      replace(value);
    return;
  }
  for (Bounded &element : value.elements)
    applyTo(element);
  value = Bounded::tuple(std::move(value.elements));
}

void RandomDraw::apply(const HloInstruction &instr, Bounded &value) {
  const bool isNarrow = backend == Backend::Other && instr.shape().isArray() && isFloat(instr.shape().elementType()) &&
                        bitWidth(instr.shape().elementType()) <= 16 && rounds(instr.opcode());
  if (!value.isBounded() && !isNarrow)
    return;
  instruction = &instr;
  double fixed = 0;
  if (disturbance.isBiased) {
    auto [place, isNew] = biases.try_emplace(&instr);
    if (isNew)
      place->second = next() < 0.5 ? 0 : 1;
    fixed = place->second;
  }
  bias = disturbance.isBiased ? &fixed : nullptr;
  applyTo(value);
  if (isNarrow)
    unround(value);
  bias = nullptr;
}

} // namespace hloc::interp
