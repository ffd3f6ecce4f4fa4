// One idea: of a loop, only the instructions that its exit's comparison depends on are executed, in the order of the
// text, until it is left. Counts of many rounds go on in equal steps, so these are not all executed.

#include "lint/TripCounts.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace hloc::lint {

namespace {

/// Rounds that are executed; then what is compared has to have come closer by the same amount in each.
constexpr unsigned mostRounds = 64;
/// A comparison that depends on more is no counter.
constexpr size_t mostInstrs = 64;

struct Exit {
  uint32_t compare = none; ///< number of the `setp`, or of what else makes the predicate
  uint32_t branch = none;
  bool leavesIfTaken = false, leavesIfTrue = false;
  bool isAtTop = false; ///< tested before the first round
};

class Rounds {
public:
  Rounds(const KernelCode &code, uint32_t loop, LaneValues values)
      : code(code), loop(loop), before(std::move(values)) {}

  std::optional<double> run() {
    std::optional<double> least;
    for (uint32_t number : code.loops[loop].blocks)
      if (std::optional<Exit> exit = exitAt(number))
        if (std::optional<double> rounds = until(*exit); rounds && (!least || *rounds < *least))
          least = rounds;
    return least;
  }

  /// Rounds before the first in which the branch is taken.
  std::optional<double> beforeTaken(uint32_t number) const {
    const CodeBlock &block = code.blocks[number];
    if (block.loop != loop || block.begin == block.end || block.successors.size() != 2)
      return std::nullopt;
    const CodeInstr &last = code.instrs[block.end - 1];
    if (last.name() != "bra" || last.text->guard.empty() || !isInside(block.successors[0]) ||
        !isInside(block.successors[1]))
      return std::nullopt;
    std::optional<Exit> branch = comparedFor(block);
    if (!branch)
      return std::nullopt;
    branch->leavesIfTaken = true;
    branch->leavesIfTrue = !last.text->guardNegated;
    branch->isAtTop = true;
    return until(*branch);
  }

private:
  bool isInside(uint32_t to) const { return llvm::is_contained(code.loops[loop].blocks, to); }

  /// What makes the predicate of the branch at a block's end, if that is one instruction of the loop.
  std::optional<Exit> comparedFor(const CodeBlock &block) const {
    Exit exit;
    for (uint32_t writer : code.writers[code.instrs[block.end - 1].reads.front()]) {
      if (exit.compare != none || !code.isIn(writer, loop))
        return std::nullopt;
      exit.compare = writer;
    }
    if (exit.compare == none || code.loopOf(exit.compare) != loop)
      return std::nullopt;
    exit.branch = block.end - 1;
    return exit;
  }

  /// The branch at the end of a block that every round comes through, if it may leave the loop.
  std::optional<Exit> exitAt(uint32_t number) const {
    const CodeBlock &block = code.blocks[number];
    if (block.loop != loop || block.begin == block.end || block.successors.size() != 2)
      return std::nullopt;
    const CodeInstr &last = code.instrs[block.end - 1];
    const bool takenStays = isInside(block.successors[0]);
    if (last.name() != "bra" || last.text->guard.empty() || takenStays == isInside(block.successors[1]))
      return std::nullopt;
    std::optional<Exit> found = comparedFor(block);
    if (!found)
      return std::nullopt;
    Exit &exit = *found;
    exit.leavesIfTaken = !takenStays;
    exit.leavesIfTrue = takenStays == last.text->guardNegated;
    exit.isAtTop = number == code.loops[loop].header && code.loops[loop].blocks.size() > 1;
    return found;
  }

  /// What has to be executed in each round to know the comparison, itself included, in the order of the text; nothing
  /// if that is in inner loops, or too much.
  std::optional<std::vector<uint32_t>> sliceOf(uint32_t compare) const {
    llvm::DenseSet<uint32_t> found = {compare};
    std::vector<uint32_t> open = {compare};
    while (!open.empty()) {
      const uint32_t instr = open.back();
      open.pop_back();
      for (uint32_t read : code.instrs[instr].reads)
        for (uint32_t writer : code.writers[read]) {
          if (!code.isIn(writer, loop) || !found.insert(writer).second)
            continue;
          if (code.loopOf(writer) != loop || found.size() > mostInstrs)
            return std::nullopt;
          open.push_back(writer);
        }
    }
    std::vector<uint32_t> slice(found.begin(), found.end());
    llvm::sort(slice);
    return slice;
  }

  struct Compared {
    bool holds;
    double difference; ///< of the two numbers
  };
  static std::optional<Compared> compare(const CodeInstr &setp, Relation relation, const LaneValues &values) {
    const LaneValue left = values.valueOf(setp.text->operands[1]), right = values.valueOf(setp.text->operands[2]);
    if (!left.isKnown || !right.isKnown || left.isAssumed || right.isAssumed)
      return std::nullopt;
    const unsigned lane = values.firstActive();
    const double a = numberOf(setp, left.lanes[lane]), b = numberOf(setp, right.lanes[lane]);
    return Compared{holds(relation, a, b), a - b};
  }

  /// By a predicate that no comparison makes, as of a loop of two rounds: true in the first, false in the second.
  std::optional<double> untilBranch(const Exit &exit, llvm::ArrayRef<uint32_t> slice) const {
    LaneValues values = before;
    for (unsigned round = 1; round <= mostRounds; ++round) {
      for (uint32_t instr : slice)
        values.execute(code.instrs[instr]);
      const std::optional<LaneMask> taken = values.guarded(code.instrs[exit.branch]);
      if (!taken)
        return std::nullopt;
      if ((*taken != 0) == exit.leavesIfTaken)
        return double(round - (exit.isAtTop ? 1 : 0));
    }
    return std::nullopt;
  }

  std::optional<double> until(const Exit &exit) const {
    const CodeInstr &setp = code.instrs[exit.compare];
    const std::optional<std::vector<uint32_t>> slice = sliceOf(exit.compare);
    if (!slice)
      return std::nullopt;
    if (setp.name() != "setp" || setp.text->operands.size() != 3)
      return untilBranch(exit, *slice);
    const std::optional<Relation> relation = relationOf(setp);
    if (!relation)
      return std::nullopt;
    LaneValues values = before;
    std::optional<double> last, step;
    for (unsigned round = 1; round <= mostRounds; ++round) {
      std::optional<Compared> compared;
      for (uint32_t instr : *slice)
        if (instr == exit.compare)
          compared = compare(setp, *relation, values);
        else
          values.execute(code.instrs[instr]);
      if (!compared)
        return std::nullopt;
      if (compared->holds == exit.leavesIfTrue)
        return double(round - (exit.isAtTop ? 1 : 0));
      if (last && step && compared->difference - *last != *step)
        return std::nullopt;
      if (last)
        step = compared->difference - *last;
      last = compared->difference;
    }
    // Straight on to where both are equal.
    if (!step || *step == 0 || (*last > 0) == (*step > 0))
      return std::nullopt;
    return mostRounds + std::ceil(std::fabs(*last / *step));
  }

  const KernelCode &code;
  const uint32_t loop;
  const LaneValues before;
};

} // namespace

std::optional<double> roundsOf(const KernelCode &code, uint32_t loop, LaneValues values) {
  return Rounds(code, loop, std::move(values)).run();
}

std::optional<double> roundsBeforeTaken(const KernelCode &code, uint32_t loop, uint32_t block, LaneValues values) {
  return Rounds(code, loop, std::move(values)).beforeTaken(block);
}

} // namespace hloc::lint
