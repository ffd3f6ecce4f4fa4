// How often a loop goes round, where a counter tells: a leaf of the state that begins with a constant, grows by a
// constant each round, and is compared with a number that stays the same. Written into the loop's `backend_config`, as
// XLA does, for whoever estimates or plans.

#include "LoopRounds.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

namespace hloc {

namespace {

/// Of a parameter that is a tuple: the element that `value` is of it.
std::optional<size_t> elementOf(const HloInstruction *value, const HloInstruction *parameter) {
  const bool isElement = value->opcode() == Opcode::GetTupleElement && value->operand(0) == parameter;
  return isElement ? std::optional(size_t(value->intOr(AttributeKey::Index, 0))) : std::nullopt;
}

std::optional<int64_t> constantOf(const HloInstruction *value) {
  if (value->opcode() != Opcode::Constant || value->shape().rank() != 0 || !isInteger(value->shape().elementType()))
    return std::nullopt;
  return value->literal().getInt(0);
}

/// A loop whose state is made as a tuple, in its body too.
class CountedLoop {
public:
  explicit CountedLoop(const HloInstruction &loop)
      : start(loop.operand(0)), condition(loop.computation(AttributeKey::Condition)),
        body(loop.computation(AttributeKey::Body)) {}

  std::optional<uint64_t> rounds() const {
    const HloInstruction *test = condition->root();
    if (start->opcode() != Opcode::Tuple || body->root()->opcode() != Opcode::Tuple ||
        test->opcode() != Opcode::Compare)
      return std::nullopt;
    const auto direction = test->enumOr(AttributeKey::Direction, ComparisonDirection::Eq);
    if (std::optional<uint64_t> count = roundsOf(test->operand(0), direction, test->operand(1)))
      return count;
    return roundsOf(test->operand(1), mirrored(direction), test->operand(0));
  }

private:
  static ComparisonDirection mirrored(ComparisonDirection direction) {
    switch (direction) {
    case ComparisonDirection::Eq:
    case ComparisonDirection::Ne:
      return direction;
    case ComparisonDirection::Lt:
      return ComparisonDirection::Gt;
    case ComparisonDirection::Le:
      return ComparisonDirection::Ge;
    case ComparisonDirection::Gt:
      return ComparisonDirection::Lt;
    case ComparisonDirection::Ge:
      return ComparisonDirection::Le;
    }
    return direction;
  }

  /// The number that a value of the condition is in each round.
  std::optional<int64_t> unchanging(const HloInstruction *value) const {
    std::optional<size_t> leaf = elementOf(value, condition->parameters().front());
    if (!leaf)
      return constantOf(value);
    const bool isHandedOn = elementOf(body->root()->operand(unsigned(*leaf)), body->parameters().front()) == leaf;
    return isHandedOn ? constantOf(start->operand(unsigned(*leaf))) : std::nullopt;
  }

  /// By how much a leaf grows each round.
  std::optional<int64_t> growthOf(size_t leaf) const {
    const HloInstruction *next = body->root()->operand(unsigned(leaf));
    auto isBefore = [&](unsigned operand) {
      return elementOf(next->operand(operand), body->parameters().front()) == leaf;
    };
    if (next->opcode() == Opcode::Add && isBefore(0))
      return constantOf(next->operand(1));
    if (next->opcode() == Opcode::Add && isBefore(1))
      return constantOf(next->operand(0));
    if (next->opcode() == Opcode::Subtract && isBefore(0))
      if (std::optional<int64_t> less = constantOf(next->operand(1)); less && *less != INT64_MIN)
        return -*less;
    return std::nullopt;
  }

  /// How often `counter direction limit` holds before it first does not. Nothing where the counter would leave its
  /// type.
  std::optional<uint64_t> roundsOf(const HloInstruction *counter, ComparisonDirection direction,
                                   const HloInstruction *limit) const {
    std::optional<size_t> leaf = elementOf(counter, condition->parameters().front());
    std::optional<int64_t> end = unchanging(limit);
    std::optional<int64_t> first = leaf ? constantOf(start->operand(unsigned(*leaf))) : std::nullopt;
    std::optional<int64_t> growth = leaf ? growthOf(*leaf) : std::nullopt;
    const ElementType type = counter->shape().elementType();
    if (!end || !first || !growth || *growth == 0 || type == ElementType::U64)
      return std::nullopt;
    __int128 distance = __int128(*end) - *first; // that the counter has to go
    if (direction == ComparisonDirection::Le)
      ++distance;
    else if (direction == ComparisonDirection::Ge)
      --distance;
    const bool grows = direction == ComparisonDirection::Lt || direction == ComparisonDirection::Le;
    const bool shrinks = direction == ComparisonDirection::Gt || direction == ComparisonDirection::Ge;
    if (grows ? distance <= 0 : shrinks ? distance >= 0 : direction == ComparisonDirection::Ne && distance == 0)
      return 0;
    const bool arrives = direction == ComparisonDirection::Ne ? distance % *growth == 0 : grows || shrinks;
    if (!arrives || (distance > 0) != (*growth > 0))
      return std::nullopt;
    const __int128 count = (distance + *growth + (*growth > 0 ? -1 : 1)) / *growth;
    const __int128 last = *first + count * *growth, half = __int128(1) << (bitWidth(type) - 1);
    const bool fits = isSigned(type) ? last >= -half && last < half : last >= 0 && last < 2 * half;
    return fits ? std::optional(uint64_t(count)) : std::nullopt;
  }

  const HloInstruction *start;
  const HloComputation *condition, *body;
};

} // namespace

std::optional<uint64_t> countRounds(const HloInstruction &loop) { return CountedLoop(loop).rounds(); }

PassResult countRounds(HloModule &module, HloPassContext &context) {
  size_t counted = 0;
  for (HloComputation *computation : controlComputations(module)) {
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr)) {
      if (instr->opcode() != Opcode::While || knownTripCount(*instr))
        continue;
      if (std::optional<uint64_t> rounds = countRounds(*instr)) {
        llvm::StringRef config = module.arena().save(withTripCount(*instr, *rounds));
        editor.setAttribute(instr, {AttributeKey::BackendConfig, config});
        ++counted;
      }
    }
  }
  context.statistics.add("count-rounds.loops", counted);
  return changedIf(counted > 0);
}

} // namespace hloc
