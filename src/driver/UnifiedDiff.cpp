#include "UnifiedDiff.h"

#include "fmt/format.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <vector>

namespace hloc {

namespace {

using Lines = llvm::SmallVector<llvm::StringRef>;

/// Lines with their ends: one without, which only the last can be, differs from the same with.
Lines linesOf(llvm::StringRef text) {
  Lines lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.push_back(text.take_front(end == llvm::StringRef::npos ? end : end + 1));
    text = text.drop_front(lines.back().size());
  }
  return lines;
}

/// One step of an edit script.
struct Edit {
  char kind; ///< ' ', '-', '+'
  llvm::StringRef line;
};

/// Shortest edit script by dynamic programming over the part between the common ends, which is small where goldens
/// differ; a part too large for that is shown as replaced whole.
std::vector<Edit> editScript(llvm::ArrayRef<llvm::StringRef> a, llvm::ArrayRef<llvm::StringRef> b) {
  std::vector<Edit> script;
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head])
    script.push_back({' ', a[head++]});
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  size_t n = a.size() - head - tail, m = b.size() - head - tail;
  constexpr size_t limit = 16'000'000;
  bool small = n * m <= limit;
  std::vector<uint32_t> common(small ? (n + 1) * (m + 1) : 0);
  auto at = [&](size_t i, size_t j) -> uint32_t & { return common[i * (m + 1) + j]; };
  if (small)
    for (size_t i = n; i-- > 0;)
      for (size_t j = m; j-- > 0;)
        at(i, j) = a[head + i] == b[head + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (small && i < n && j < m && a[head + i] == b[head + j]) {
      script.push_back({' ', a[head + i]});
      ++i, ++j;
    } else if (i < n && (j == m || !small || at(i + 1, j) >= at(i, j + 1))) {
      script.push_back({'-', a[head + i++]});
    } else {
      script.push_back({'+', b[head + j++]});
    }
  }
  for (size_t k = tail; k > 0; --k)
    script.push_back({' ', a[a.size() - k]});
  return script;
}

/// The script with the lines of `all` that it was made without, kept.
std::vector<Edit> withIgnored(const std::vector<Edit> &script, llvm::ArrayRef<llvm::StringRef> all,
                              llvm::function_ref<bool(llvm::StringRef)> ignored) {
  std::vector<Edit> result;
  size_t next = 0;
  auto keepIgnored = [&] {
    for (; next < all.size() && ignored(all[next]); ++next)
      result.push_back({' ', all[next]});
  };
  for (const Edit &edit : script) {
    if (edit.kind != '+') {
      keepIgnored();
      ++next;
    }
    result.push_back(edit);
  }
  keepIgnored();
  return result;
}

/// `12,3`: the first line and how many; before an empty range the line it follows.
std::string range(size_t first, size_t count) { return fmt::format("{},{}", count ? first : first - 1, count); }

} // namespace

std::string unifiedDiff(llvm::StringRef before, llvm::StringRef after, llvm::StringRef path,
                        llvm::function_ref<bool(llvm::StringRef)> ignored) {
  constexpr size_t context = 3;
  Lines a = linesOf(before), b = linesOf(after), compared;
  for (llvm::StringRef line : a)
    if (!ignored || !ignored(line))
      compared.push_back(line);
  std::vector<Edit> script = editScript(compared, b);
  if (ignored)
    script = withIgnored(script, a, ignored);
  std::vector<bool> shown(script.size());
  for (size_t i = 0; i < script.size(); ++i)
    if (script[i].kind != ' ')
      for (size_t k = i >= context ? i - context : 0; k < std::min(script.size(), i + context + 1); ++k)
        shown[k] = true;

  std::string hunks;
  size_t beforeLine = 1, afterLine = 1;
  for (size_t i = 0; i < script.size();) {
    std::string lines;
    size_t numBefore = 0, numAfter = 0;
    for (; i < script.size() && shown[i]; ++i) {
      numBefore += script[i].kind != '+';
      numAfter += script[i].kind != '-';
      lines += script[i].kind;
      lines += script[i].line;
      if (!script[i].line.ends_with("\n"))
        lines += "\n\\ No newline at end of file\n";
    }
    if (!lines.empty())
      hunks += fmt::format("@@ -{} +{} @@\n", range(beforeLine, numBefore), range(afterLine, numAfter)) + lines;
    beforeLine += numBefore;
    afterLine += numAfter;
    for (; i < script.size() && !shown[i]; ++i)
      ++beforeLine, ++afterLine;
  }
  if (hunks.empty())
    return "";
  // A tab ends a name with a space in it.
  std::string name = path.str() + (path.contains(' ') ? "\t" : "");
  return fmt::format("--- a/{0}\n+++ b/{0}\n", name) + hunks;
}

} // namespace hloc
