// The engine: candidates by moves, larger steps before smaller ones, until nothing helps any more.

#include "hloc/reduce/Reduce.h"

#include "Moves.h"

#include "hloc/hlo/Printer.h"
#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/transforms/ShrinkModule.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/xxhash.h"

namespace hloc {

namespace reduction {

ModulePointer parse(llvm::StringRef text) {
  DiagnosticEngine unheard;
  return parseHloModule(std::make_shared<const SourceFile>("candidate.hlo", text.str()), unheard);
}

std::optional<std::string> printed(const HloModule &module) {
  DiagnosticEngine unheard;
  if (!verify(module, unheard))
    return std::nullopt;
  std::string text = hloText(module);
  return text;
}

} // namespace reduction

using namespace reduction;

namespace {

ReducedSize sizeOf(llvm::StringRef text) {
  ReducedSize size{0, 0, text.size()};
  if (ModulePointer module = parse(text))
    for (const HloComputation *computation : reachableComputations(*module)) {
      size.instructions += computation->instructions().size();
      if (computation == module->entry())
        size.parameters = computation->numParameters();
    }
  return size;
}

class Reducer {
public:
  Reducer(ReduceJudge &judge, ReduceObserver &observer) : judge(judge), observer(observer) {}

  std::optional<Reduction> run(llvm::StringRef text) {
    if (!begin(text))
      return std::nullopt;
    constexpr unsigned maxRounds = 20;
    for (unsigned round = 0; round < maxRounds && !judge.isOver(); ++round) {
      const std::string before = best;
      for (const Move &move : moves())
        carryOut(move);
      if (best == before && !judge.isOver()) {
        result.isSettled = true;
        break;
      }
    }
    result.text = best;
    result.after = sizeOf(best);
    return result;
  }

private:
  /// The module without what nothing reads, and without control predecessors: the order of the instructions is theirs.
  bool begin(llvm::StringRef text) {
    ModulePointer module = parse(text);
    if (!module)
      return false;
    result.before = sizeOf(text);
    best = text.str();
    ModulePointer swept = cloneModule(*module);
    sweep(*swept);
    // Small sizes first: to judge the module as it is may take minutes.
    DiagnosticEngine unheard;
    ModulePointer shrunk = shrinkModule(*swept, /*target=*/2, unheard).module;
    for (const HloModule *one : {shrunk.get(), swept.get()})
      if (std::optional<std::string> candidate = one ? printed(*one) : std::nullopt)
        if (doesByItself(*candidate))
          return true;
    return false;
  }

  /// Of a large module a part that does it says as much as all of it, in less time.
  bool doesByItself(const std::string &text) {
    best = text;
    const Move &cuts = *llvm::find_if(moves(), [](const Move &move) { return move.leavesParts; });
    if (const size_t count = countPlaces(cuts); count > large) {
      leaveParts(cuts, count, {8, 2});
      if (best != text)
        return true;
    }
    if (!ask({text}))
      return false;
    take(text);
    return true;
  }

  size_t countPlaces(const Move &move) const {
    ModulePointer module = parse(best);
    return module ? move.count(*module) : 0;
  }

  void carryOut(const Move &move) {
    observer.trying(move.name);
    size_t count = countPlaces(move);
    if (move.leavesParts)
      count = count > large ? leaveParts(move, count, {8, 2, 4, 16}) : leaveParts(move, count, {2, 4, 8, 16});
    for (size_t chunk = move.isOnce ? 1 : count; chunk && count && !judge.isOver(); chunk /= 2) {
      chunk = std::min(chunk, count);
      removeChunks(move, count, chunk);
    }
  }

  /// Tries chunks of the places in order; after one that helps those behind it, which have moved up.
  void removeChunks(const Move &move, size_t &count, size_t chunk) {
    size_t start = 0;
    while (start < count && !judge.isOver()) {
      std::vector<llvm::BitVector> sets;
      for (size_t at = start; at < count && sets.size() < judge.width(); at += chunk)
        sets.push_back(chunkOf(count, at, std::min(at + chunk, count)));
      std::optional<size_t> first = firstOf(move, sets);
      if (!first) {
        start += chunk * sets.size();
        continue;
      }
      start += chunk * *first;
      const size_t before = count;
      count = countPlaces(move);
      if (count >= before) // the places are still there, or others are
        start += chunk;
    }
  }

  /// Of modules that do it by one spot all else goes at once: of large ones to all but an eighth with each step, as to
  /// judge eight small parts takes less than to judge two halves, and then two of these.
  size_t leaveParts(const Move &move, size_t count, llvm::ArrayRef<size_t> numbersOfParts) {
    for (size_t attempt = 0; attempt < numbersOfParts.size() && !judge.isOver();) {
      const size_t parts = numbersOfParts[attempt++];
      if (parts >= count)
        continue;
      std::vector<llvm::BitVector> sets;
      for (size_t part = 0; part < parts; ++part)
        sets.push_back(chunkOf(count, part * count / parts, (part + 1) * count / parts).flip());
      std::optional<size_t> first;
      for (size_t at = 0; at < parts && !first; at += judge.width())
        first = firstOf(move, llvm::ArrayRef(sets).slice(at, std::min(judge.width(), parts - at)));
      if (!first)
        continue;
      count = countPlaces(move);
      attempt = 0;
    }
    return count;
  }

  static llvm::BitVector chunkOf(size_t count, size_t begin, size_t end) {
    llvm::BitVector places(unsigned(count), false);
    places.set(unsigned(begin), unsigned(end));
    return places;
  }

  /// The first of the sets at which the move helps; it is carried out.
  std::optional<size_t> firstOf(const Move &move, llvm::ArrayRef<llvm::BitVector> sets) {
    std::vector<std::string> candidates;
    std::vector<size_t> setOf;
    for (auto [i, places] : llvm::enumerate(sets))
      if (std::optional<std::string> text = candidate(move, places)) {
        candidates.push_back(std::move(*text));
        setOf.push_back(i);
      }
    std::optional<size_t> first = ask(candidates);
    if (!first)
      return std::nullopt;
    take(candidates[*first]);
    return setOf[*first];
  }

  /// Nothing if it is none that the verifier takes, or has been judged.
  std::optional<std::string> candidate(const Move &move, const llvm::BitVector &places) {
    ModulePointer module = parse(best);
    if (!module || places.none())
      return std::nullopt;
    module = move.apply(std::move(module), places);
    if (!module)
      return std::nullopt;
    sweep(*module);
    std::optional<std::string> text = printed(*module);
    if (text && refused.contains(llvm::xxh3_64bits(*text)))
      return std::nullopt;
    return text;
  }

  std::optional<size_t> ask(llvm::ArrayRef<std::string> candidates) {
    if (candidates.empty() || judge.isOver())
      return std::nullopt;
    std::optional<size_t> first = judge.firstOf(candidates);
    const size_t numJudged = first ? *first + 1 : candidates.size();
    result.numTried += numJudged;
    // One that has done it is not to come again either: moves would undo each other.
    for (const std::string &text : candidates.take_front(numJudged))
      if (!judge.isOver())
        refused.insert(llvm::xxh3_64bits(text));
    return first;
  }

  void take(const std::string &text) {
    best = text;
    observer.improved(best, sizeOf(best));
  }

  static constexpr size_t large = 500; ///< places of which one is looked for in a hurry
  ReduceJudge &judge;
  ReduceObserver &observer;
  std::string best;
  llvm::DenseSet<uint64_t> refused; ///< hashes of texts
  Reduction result;
};

} // namespace

std::optional<Reduction> reduceHlo(llvm::StringRef text, ReduceJudge &judge, ReduceObserver &observer) {
  return Reducer(judge, observer).run(text);
}

} // namespace hloc
