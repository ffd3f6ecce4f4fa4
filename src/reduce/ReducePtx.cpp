// The same over lines of PTX: any set of the lines of kernels' bodies. What does not assemble without a line does not
// do it, so that nothing has to be known of PTX here but where bodies are.

#include "hloc/reduce/Reduce.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

namespace {

using Lines = std::vector<std::string>;

class PtxReducer {
public:
  PtxReducer(llvm::StringRef text, ReduceJudge &judge, ReduceObserver &observer) : judge(judge), observer(observer) {
    llvm::SmallVector<llvm::StringRef> parts;
    text.split(parts, '\n');
    best.assign(parts.begin(), parts.end());
    result.before = sizeOf(best);
  }

  std::optional<Reduction> run() {
    if (!take(best))
      return std::nullopt;
    size_t before = 0;
    observer.trying("statements");
    do {
      before = best.size();
      for (size_t chunk = placesOf(best).size(); chunk && !judge.isOver(); chunk /= 2)
        removeChunks(chunk);
    } while (best.size() < before && !judge.isOver());
    result.isSettled = !judge.isOver();
    result.text = llvm::join(best, "\n");
    result.after = sizeOf(best);
    return result;
  }

private:
  /// Lines between the braces of bodies, but for braces.
  static std::vector<size_t> placesOf(const Lines &lines) {
    std::vector<size_t> places;
    int depth = 0;
    for (auto [i, line] : llvm::enumerate(lines)) {
      const llvm::StringRef text = llvm::StringRef(line).trim();
      const bool hasBrace = text == "{" || text == "}";
      if (depth > 0 && !hasBrace)
        places.push_back(i);
      depth += (text == "{") - (text == "}");
    }
    return places;
  }

  static ReducedSize sizeOf(const Lines &lines) {
    ReducedSize size;
    for (size_t place : placesOf(lines))
      size.instructions += llvm::StringRef(lines[place]).trim().ends_with(";");
    for (const std::string &line : lines)
      size.bytes += line.size() + 1;
    return size;
  }

  void removeChunks(size_t chunk) {
    for (size_t start = 0; !judge.isOver();) {
      const std::vector<size_t> places = placesOf(best);
      if (start >= places.size())
        return;
      std::vector<Lines> candidates;
      for (size_t at = start; at < places.size() && candidates.size() < judge.width(); at += chunk)
        candidates.push_back(without(llvm::ArrayRef(places).slice(at, std::min(chunk, places.size() - at))));
      if (std::optional<size_t> first = firstOf(candidates))
        start += chunk * *first;
      else
        start += chunk * candidates.size();
    }
  }

  Lines without(llvm::ArrayRef<size_t> dropped) const {
    Lines lines;
    for (auto [i, line] : llvm::enumerate(best))
      if (dropped.empty() || i != dropped.front())
        lines.push_back(line);
      else
        dropped = dropped.drop_front();
    return lines;
  }

  bool take(const Lines &lines) { return firstOf({lines}).has_value(); }

  std::optional<size_t> firstOf(std::vector<Lines> candidates) {
    std::vector<std::string> texts;
    for (const Lines &lines : candidates)
      texts.push_back(llvm::join(lines, "\n"));
    std::optional<size_t> first = judge.firstOf(texts);
    result.numTried += first ? *first + 1 : texts.size();
    if (first) {
      best = std::move(candidates[*first]);
      observer.improved(texts[*first], sizeOf(best));
    }
    return first;
  }

  ReduceJudge &judge;
  ReduceObserver &observer;
  Lines best;
  Reduction result;
};

} // namespace

std::optional<Reduction> reducePtx(llvm::StringRef text, ReduceJudge &judge, ReduceObserver &observer) {
  return PtxReducer(text, judge, observer).run();
}

} // namespace hloc
