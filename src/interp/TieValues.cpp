#include "interp/TieValues.h"

#include "interp/ElementwiseRules.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace hloc::interp {

namespace {

TieRule tieRule(Opcode opcode) { return isElementwise(opcode) ? elementwiseRule(opcode).ties : TieRule::None; }

bool roundsHalves(const HloInstruction &instr) {
  const TieRule rule = tieRule(instr.opcode());
  return rule == TieRule::Halves ||
         (rule == TieRule::HalvesOfFloats && isFloat(instr.operand(0)->shape().elementType()) &&
          isInteger(instr.shape().elementType()));
}

bool choosesAmongEquals(const HloInstruction &instr) {
  return llvm::is_contained({Opcode::Sort, Opcode::TopK, Opcode::SelectAndScatter}, instr.opcode()) ||
         tieRule(instr.opcode()) == TieRule::Equals;
}

/// The scalar that all elements of a constant are, be it broadcast.
std::optional<double> constantValue(const HloInstruction *instr) {
  while (instr->opcode() == Opcode::Broadcast || instr->opcode() == Opcode::Reshape ||
         instr->opcode() == Opcode::Convert)
    instr = instr->operand(0);
  if (instr->opcode() != Opcode::Constant || !instr->shape().isScalar() || !isFloat(instr->shape().elementType()))
    return std::nullopt;
  return instr->literal().getDouble(0);
}

/// Calls `visit` for the instructions of all computations.
void forEachInstruction(const HloModule &module, llvm::function_ref<void(const HloInstruction &)> visit) {
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions())
      visit(*instr);
}

/// Calls `visit` for what is rounded, before shifts and limits: what a quantisation scales.
void forEachRounded(const HloInstruction &instr, llvm::function_ref<void(const HloInstruction &)> visit,
                    unsigned depth = 0) {
  constexpr unsigned mostOps = 4;
  constexpr Opcode shiftsAndLimits[] = {Opcode::Add,     Opcode::Subtract, Opcode::Clamp,
                                        Opcode::Minimum, Opcode::Maximum,  Opcode::Reshape};
  for (const HloInstruction *operand : instr.operands()) {
    visit(*operand);
    if (depth < mostOps && llvm::is_contained(shiftsAndLimits, operand->opcode()))
      forEachRounded(*operand, visit, depth + 1);
  }
}

} // namespace

bool TieValues::matterTo(const HloModule &module) {
  bool matter = false;
  forEachInstruction(module,
                     [&](const HloInstruction &instr) { matter |= roundsHalves(instr) || choosesAmongEquals(instr); });
  return matter;
}

TieValues::TieValues(const HloModule &module) {
  constexpr size_t most = 8;
  bool anyLoops = false;
  forEachInstruction(module, [&](const HloInstruction &instr) { anyLoops |= instr.opcode() == Opcode::While; });
  // Series and searches take as many steps as their arguments are large: a tolerance is no scale for these.
  const double largest = anyLoops ? 0x1p8 : 0x1p40;
  auto addScales = [&](const HloInstruction &instr) {
    const bool divides = instr.opcode() == Opcode::Divide;
    if (!divides && instr.opcode() != Opcode::Multiply)
      return;
    for (unsigned i = divides ? 1 : 0; i < 2; ++i) {
      std::optional<double> value = constantValue(instr.operand(i));
      if (!value || !std::isnormal(*value))
        continue;
      const double scale = std::fabs(divides ? *value : 1 / *value);
      if (scale > largest || scale < 0x1p-40)
        continue;
      if (scales.size() < most && !llvm::is_contained(scales, scale))
        scales.push_back(scale);
    }
  };
  forEachInstruction(module, [&](const HloInstruction &instr) {
    if (roundsHalves(instr))
      forEachRounded(instr, addScales);
  });
}

double TieValues::pick(bool nonNegative, ValueStream &stream) const {
  constexpr int64_t numHalves = 5; // 0 to 2
  const double value = 0.5 * double(stream.below(numHalves)) * scales[size_t(stream.below(int64_t(scales.size())))];
  return nonNegative || stream.oneIn(2) ? value : -value;
}

void TieValues::set(Literal &literal, int64_t element, bool nonNegative, ValueStream &stream) const {
  const ElementType type = literal.shape().elementType();
  if (isInteger(type)) {
    const int64_t value = stream.below(3);
    literal.setInt(element, isSigned(type) && bitWidth(type) > 1 && stream.oneIn(2) ? -value : value);
    return;
  }
  double real = type == ElementType::F8E8M0FNU ? double(1 + stream.below(2)) : pick(nonNegative, stream);
  if (isComplex(type))
    literal.setComplex(element, {real, pick(nonNegative, stream)});
  else
    literal.setDouble(element, real);
}

} // namespace hloc::interp
