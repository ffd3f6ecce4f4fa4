#include "CodeOrder.h"

#include "Liveness.h"

#include <algorithm>

namespace hloc::emulator {

namespace {

/// Each move costs the length of the code.
constexpr size_t mostMoves = 1000, longestCode = 200'000;

/// Instructions [begin, end), which move to in front of `to`.
struct Move {
  uint32_t to = 0, begin = 0, end = 0;
};

class CodeOrder {
public:
  explicit CodeOrder(std::vector<Decoded> &code) : code(code) {}

  /// The first code that is laid out behind what follows it.
  std::optional<Move> find(uint32_t from) {
    collectBranches();
    for (uint32_t begin = std::max(from, 1u); begin < code.size(); ++begin)
      if (transfers(code[begin - 1]) && !sources[begin].empty())
        if (std::optional<Move> move = moveOf(begin))
          return move;
    return std::nullopt;
  }

  void apply(const Move &move) {
    auto at = [&](uint32_t i) { return code.begin() + i; };
    std::rotate(at(move.to), at(move.begin), at(move.end));
    uint32_t length = move.end - move.begin, over = move.begin - move.to;
    for (Decoded &d : code) {
      if (d.opcode != Opcode::Bra)
        continue;
      if (d.target >= move.begin && d.target < move.end)
        d.target -= over;
      else if (d.target >= move.to && d.target < move.begin)
        d.target += length;
    }
  }

private:
  /// Nothing falls through it.
  static bool transfers(const Decoded &d) { return endsBlock(d) && d.guard.kind == Source::Kind::None; }

  void collectBranches() {
    sources.assign(code.size() + 1, {});
    for (uint32_t i = 0; i < code.size(); ++i)
      if (code[i].opcode == Opcode::Bra)
        sources[code[i].target].push_back(i);
  }

  /// What begins at `begin`, up to the first end of a block behind which none of its branches goes, if it is entered
  /// there alone, from code before that to which it goes back. That code may go on to it again if it is entered from it
  /// alone: the two are a loop that begins in its middle.
  std::optional<Move> moveOf(uint32_t begin) const {
    uint32_t end = begin, last = 0, back = begin;
    for (bool closed = false; !closed; ++end) {
      if (end == code.size())
        return std::nullopt;
      const Decoded &d = code[end];
      if (d.opcode == Opcode::Bra && d.target < begin)
        back = std::min(back, d.target);
      if (d.opcode == Opcode::Bra && d.target > begin)
        last = std::max(last, d.target);
      closed = transfers(d) && last <= end;
    }
    std::optional<uint32_t> entered;
    bool isLoop = false;
    for (uint32_t i = begin; i < end; ++i)
      for (uint32_t source : sources[i]) {
        if (source >= begin && source < end)
          continue;
        if (i != begin || source >= end)
          return std::nullopt; // entered elsewhere, or a loop that begins here
        if (source >= back)
          isLoop = true;
        else
          entered = std::max(entered.value_or(0), source);
      }
    if (back == begin || !entered)
      return std::nullopt;
    // Where nothing falls into it.
    uint32_t to = back;
    while (to > *entered + 1 && !transfers(code[to - 1]))
      --to;
    if (to <= *entered || !transfers(code[to - 1]) || (isLoop && isEnteredFromOutside(to, begin, end)))
      return std::nullopt;
    return Move{to, begin, end};
  }

  /// Does anything but instructions [begin, end) branch to one of [begin, middle)?
  bool isEnteredFromOutside(uint32_t begin, uint32_t middle, uint32_t end) const {
    for (uint32_t i = begin; i < middle; ++i)
      if (llvm::any_of(sources[i], [&](uint32_t source) { return source < begin || source >= end; }))
        return true;
    return false;
  }

  std::vector<Decoded> &code;
  std::vector<llvm::SmallVector<uint32_t, 1>> sources; ///< branches, by their target
};

} // namespace

void restoreCodeOrder(Kernel &kernel) {
  if (kernel.code.size() > longestCode)
    return;
  CodeOrder order(kernel.code);
  uint32_t from = 0;
  for (size_t moves = 0; moves < mostMoves; ++moves) {
    std::optional<Move> move = order.find(from);
    if (!move)
      return;
    order.apply(*move);
    from = move->to;
  }
}

} // namespace hloc::emulator
