#include "Golden.h"

#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/Support/Path.h"

namespace hloc {

namespace {

llvm::SmallVector<llvm::StringRef> lines(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> split;
  text.split(split, '\n');
  if (!split.empty() && split.back().empty())
    split.pop_back();
  return split;
}

constexpr llvm::StringLiteral resourcePrefix = "// ptxas ";

/// The golden text without resource lines of a ptxas that `other` does not mention.
std::string comparable(llvm::StringRef text, llvm::StringRef other) {
  std::string kept;
  for (llvm::StringRef line : lines(text)) {
    if (line.starts_with(resourcePrefix)) {
      llvm::StringRef version = line.take_front(line.find(':') + 1);
      if (!other.contains(version))
        continue;
    }
    kept += line;
    kept += '\n';
  }
  return kept;
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

} // namespace

std::string unifiedDiff(llvm::StringRef before, llvm::StringRef after, llvm::StringRef beforeName,
                        llvm::StringRef afterName) {
  if (before == after)
    return "";
  std::vector<Edit> script = editScript(lines(before), lines(after));
  constexpr size_t context = 3;
  std::string out = fmt::format("--- {}\n+++ {}\n", beforeName.str(), afterName.str());
  size_t beforeLine = 1, afterLine = 1;
  size_t lastShown = 0; // script index after the last shown one
  for (size_t i = 0; i < script.size(); ++i) {
    bool near = false;
    for (size_t k = i >= context ? i - context : 0; k < std::min(script.size(), i + context + 1); ++k)
      near |= script[k].kind != ' ';
    if (near) {
      if (lastShown != i || i == 0)
        out += fmt::format("@@ -{} +{} @@\n", beforeLine, afterLine);
      out += script[i].kind;
      out += script[i].line;
      out += '\n';
      lastShown = i + 1;
    }
    beforeLine += script[i].kind != '+';
    afterLine += script[i].kind != '-';
  }
  return out;
}

std::string canonicalPtx(llvm::StringRef ptx) {
  std::string out;
  for (llvm::StringRef line : lines(ptx)) {
    line = line.take_front(line.find("//")).rtrim();
    llvm::StringRef word = line.ltrim();
    if (word.empty() || word.starts_with(".version") || word.starts_with(".file") || word.starts_with(".loc"))
      continue;
    out += line;
    out += '\n';
  }
  return out;
}

std::string goldenText(llvm::StringRef inputName, const Manifest &manifest, llvm::StringRef ptx) {
  std::string out = fmt::format("// hloc golden 1: {} for {}\n", inputName.str(), manifest.target);
  std::string ptxas = "unknown";
  for (const auto &[tool, version] : manifest.toolVersions)
    if (tool == "ptxas")
      ptxas = version;
  for (const KernelSpec &kernel : manifest.kernels) {
    out += fmt::format("// kernel {}: hero {}, grid {}x{}x{}, block {}x{}x{}, shared {}\n", kernel.name, kernel.hero,
                       kernel.grid.x, kernel.grid.y, kernel.grid.z, kernel.block.x, kernel.block.y, kernel.block.z,
                       kernel.staticSharedBytes + kernel.dynamicSharedBytes);
    if (kernel.resources)
      out += fmt::format("{}{}: {}: {} registers, {} spill bytes, {} stack bytes\n", resourcePrefix.str(), ptxas,
                         kernel.name, kernel.resources->registers,
                         kernel.resources->spillStoreBytes + kernel.resources->spillLoadBytes,
                         kernel.resources->stackBytes);
  }
  return out + canonicalPtx(ptx);
}

std::string goldenPath(llvm::StringRef folder, llvm::StringRef inputName, llvm::StringRef target) {
  return fmt::format("{}/{}.{}.golden", folder.str(), llvm::sys::path::stem(inputName).str(), target.str());
}

void checkGolden(const std::string &path, const std::string &text, bool update, DiagnosticEngine &diagnostics) {
  std::string error;
  if (update) {
    if (!createFolders(llvm::sys::path::parent_path(path).str(), error) || !writeFile(path, text, error))
      diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write golden file `" + path + "`: " + error);
    return;
  }
  std::optional<std::string> golden = readFile(path, error);
  if (!golden) {
    diagnostics.report(DiagnosticKind::GoldenMismatch, "cannot read golden file `" + path + "`: " + error)
        .note("--update-golden writes it");
    return;
  }
  std::string expected = comparable(*golden, text), actual = comparable(text, *golden);
  std::string diff = unifiedDiff(expected, actual, path, "this run");
  if (!diff.empty())
    diagnostics.report(DiagnosticKind::GoldenMismatch, "output differs from `" + path + "`\n" + diff)
        .note("--update-golden rewrites it if the change is meant");
}

} // namespace hloc
