#include "AlgebraicRules.h"
#include "Matching.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

HloInstruction *sameOperands(HloInstruction &instr, HloRewriter &) {
  return instr.operand(0) == instr.operand(1) ? instr.operand(0) : nullptr;
}

/// The other operand of one that changes nothing.
template <bool (*isNeutral)(const HloInstruction *)>
HloInstruction *otherThanNeutral(HloInstruction &instr, HloRewriter &) {
  for (unsigned i : {0u, 1u})
    if (isNeutral(instr.operand(i)))
      return instr.operand(1 - i);
  return nullptr;
}

/// An operand that decides.
template <bool (*decides)(const HloInstruction *)>
HloInstruction *decidingOperand(HloInstruction &instr, HloRewriter &) {
  auto found = llvm::find_if(instr.operands(), decides);
  return found == instr.operands().end() ? nullptr : *found;
}

bool isZero(const HloInstruction *value) { return isSplat(value, 0); }

HloInstruction *xorSelf(HloInstruction &instr, HloRewriter &r) {
  return instr.operand(0) == instr.operand(1) ? makeSplat(r, instr.shape(), 0) : nullptr;
}

HloInstruction *notNot(HloInstruction &instr, HloRewriter &) {
  return is(instr.operand(0), Opcode::Not) ? instr.operand(0)->operand(0) : nullptr;
}

HloInstruction *shiftByZero(HloInstruction &shift, HloRewriter &) {
  return isZero(shift.operand(1)) ? shift.operand(0) : nullptr;
}

ComparisonDirection directionOf(const HloInstruction &compare) {
  return compare.enumOr(AttributeKey::Direction, ComparisonDirection::Eq);
}

ComparisonDirection inverse(ComparisonDirection direction) {
  switch (direction) {
  case ComparisonDirection::Eq:
    return ComparisonDirection::Ne;
  case ComparisonDirection::Ne:
    return ComparisonDirection::Eq;
  case ComparisonDirection::Ge:
    return ComparisonDirection::Lt;
  case ComparisonDirection::Lt:
    return ComparisonDirection::Ge;
  case ComparisonDirection::Gt:
    return ComparisonDirection::Le;
  case ComparisonDirection::Le:
    return ComparisonDirection::Gt;
  }
  return direction;
}

bool holdsForEqual(ComparisonDirection direction) {
  return direction == ComparisonDirection::Eq || direction == ComparisonDirection::Ge ||
         direction == ComparisonDirection::Le;
}

HloInstruction *compareSelf(HloInstruction &compare, HloRewriter &r) {
  bool same = compare.operand(0) == compare.operand(1) && isDiscrete(compare.operand(0));
  return same ? makeSplat(r, compare.shape(), holdsForEqual(directionOf(compare))) : nullptr;
}

/// Nothing unsigned is less than 0.
HloInstruction *compareWithLeast(HloInstruction &compare, HloRewriter &r) {
  if (compare.comparisonType() != ComparisonType::Unsigned)
    return nullptr;
  ComparisonDirection direction = directionOf(compare);
  if (isZero(compare.operand(1))) {
    if (direction == ComparisonDirection::Lt || direction == ComparisonDirection::Ge)
      return makeSplat(r, compare.shape(), direction == ComparisonDirection::Ge);
  } else if (isZero(compare.operand(0))) {
    if (direction == ComparisonDirection::Gt || direction == ComparisonDirection::Le)
      return makeSplat(r, compare.shape(), direction == ComparisonDirection::Le);
  }
  return nullptr;
}

HloInstruction *compareWithTruth(HloInstruction &compare, HloRewriter &r) {
  ComparisonDirection direction = directionOf(compare);
  bool equal = direction == ComparisonDirection::Eq;
  if (!isPred(typeOf(compare.operand(0))) || (!equal && direction != ComparisonDirection::Ne))
    return nullptr;
  for (unsigned i : {0u, 1u}) {
    HloInstruction *other = compare.operand(1 - i);
    bool isTrue = isAllOnes(compare.operand(i));
    if (!isTrue && !isZero(compare.operand(i)))
      continue;
    return isTrue == equal ? other : make(r, Opcode::Not, compare, {other});
  }
  return nullptr;
}

/// Of floats a comparison and its inverse are both false for NaN.
HloInstruction *notOfCompare(HloInstruction &negation, HloRewriter &r) {
  HloInstruction *compare = negation.operand(0);
  if (!is(compare, Opcode::Compare) || !isDiscrete(compare->operand(0)) || !r.hasOneUser(compare))
    return nullptr;
  llvm::SmallVector<Attribute, 4> attributes = ownAttributes(*compare);
  for (Attribute &attribute : attributes)
    if (attribute.key == AttributeKey::Direction)
      attribute.value = static_cast<int64_t>(inverse(directionOf(*compare)));
  return r.builder().add(Opcode::Compare, negation.shape(), compare->operands(), attributes);
}

HloInstruction *selectOfSame(HloInstruction &select, HloRewriter &) {
  return select.operand(1) == select.operand(2) ? select.operand(1) : nullptr;
}

HloInstruction *selectByConstant(HloInstruction &select, HloRewriter &) {
  HloInstruction *predicate = select.operand(0);
  if (isAllOnes(predicate))
    return select.operand(1);
  return isZero(predicate) ? select.operand(2) : nullptr;
}

HloInstruction *selectByNot(HloInstruction &select, HloRewriter &r) {
  HloInstruction *predicate = select.operand(0);
  return is(predicate, Opcode::Not)
             ? make(r, Opcode::Select, select, {predicate->operand(0), select.operand(2), select.operand(1)})
             : nullptr;
}

HloInstruction *selectTruths(HloInstruction &select, HloRewriter &r) {
  HloInstruction *predicate = select.operand(0), *yes = select.operand(1), *no = select.operand(2);
  if (!isPred(typeOf(&select)) || !(predicate->shape() == select.shape()))
    return nullptr;
  if (isAllOnes(yes) && isZero(no))
    return predicate;
  return isZero(yes) && isAllOnes(no) ? make(r, Opcode::Not, select, {predicate}) : nullptr;
}

HloInstruction *selectOfSelect(HloInstruction &select, HloRewriter &r) {
  HloInstruction *predicate = select.operand(0), *yes = select.operand(1), *no = select.operand(2);
  auto decidedBefore = [&](HloInstruction *arm) { return is(arm, Opcode::Select) && arm->operand(0) == predicate; };
  if (decidedBefore(yes))
    return make(r, Opcode::Select, select, {predicate, yes->operand(1), no});
  return decidedBefore(no) ? make(r, Opcode::Select, select, {predicate, yes, no->operand(2)}) : nullptr;
}

constexpr RewriteRule rules[] = {
    {"and-same", Opcode::And, sameOperands, "x & x -> x"},
    {"and-ones", Opcode::And, otherThanNeutral<isAllOnes>, "x & all ones -> x"},
    {"and-zero", Opcode::And, decidingOperand<isZero>, "x & 0 -> 0"},
    {"or-same", Opcode::Or, sameOperands, "x | x -> x"},
    {"or-zero", Opcode::Or, otherThanNeutral<isZero>, "x | 0 -> x"},
    {"or-ones", Opcode::Or, decidingOperand<isAllOnes>, "x | all ones -> all ones"},
    {"xor-zero", Opcode::Xor, otherThanNeutral<isZero>, "x ^ 0 -> x"},
    {"xor-same", Opcode::Xor, xorSelf, "x ^ x -> 0"},
    {"not-not", Opcode::Not, notNot, "not not x -> x"},
    {"not-of-compare", Opcode::Not, notOfCompare, "not (x < y) -> x >= y of integers"},
    {"shift-left-by-zero", Opcode::ShiftLeft, shiftByZero, "x << 0 -> x"},
    {"shift-right-by-zero", Opcode::ShiftRightLogical, shiftByZero, "x >> 0 -> x, logical"},
    {"shift-right-arithmetic-by-zero", Opcode::ShiftRightArithmetic, shiftByZero, "x >> 0 -> x, arithmetic"},
    {"compare-same", Opcode::Compare, compareSelf, "x == x -> true, x < x -> false of integers"},
    {"compare-with-least", Opcode::Compare, compareWithLeast, "x < 0 -> false, x >= 0 -> true of unsigned integers"},
    {"compare-with-truth", Opcode::Compare, compareWithTruth, "p == true -> p, p == false -> not p"},
    {"select-of-same", Opcode::Select, selectOfSame, "select(p, x, x) -> x"},
    {"select-by-constant", Opcode::Select, selectByConstant, "select(true, x, y) -> x"},
    {"select-by-not", Opcode::Select, selectByNot, "select(not p, x, y) -> select(p, y, x)"},
    {"select-truths", Opcode::Select, selectTruths, "select(p, true, false) -> p, select(p, false, true) -> not p"},
    {"select-of-select", Opcode::Select, selectOfSelect, "select(p, select(p, x, y), z) -> select(p, x, z)"},
};

} // namespace

llvm::ArrayRef<RewriteRule> logicRules() { return rules; }

} // namespace hloc
