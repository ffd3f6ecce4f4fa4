#include "Golden.h"

#include "Outputs.h"
#include "UnifiedDiff.h"

#include "hloc/codegen/Ptx.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <filesystem>

namespace hloc {

namespace {

llvm::SmallVector<llvm::StringRef> lines(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> split;
  text.split(split, '\n');
  if (!split.empty() && split.back().empty())
    split.pop_back();
  return split;
}

constexpr llvm::StringLiteral goldenPrefix = "// hloc golden 1: ";
constexpr llvm::StringLiteral resourcePrefix = "// ptxas ";
constexpr llvm::StringLiteral kernelPrefix = "// kernel ";
constexpr llvm::StringLiteral mapPrefix = "// tensor map ";

/// `// ptxas 13.0.88:` of a line with resources; empty for others.
llvm::StringRef assemblerOf(llvm::StringRef line) {
  return line.starts_with(resourcePrefix) ? line.take_front(line.find(':') + 1) : llvm::StringRef();
}

/// The kernel that a line of the header is about; empty for others.
llvm::StringRef kernelOf(llvm::StringRef line) {
  if (line.consume_front(kernelPrefix) || line.consume_front(mapPrefix))
    return line.take_front(line.find(':'));
  return line.consume_front(resourcePrefix) ? line.split(": ").second.split(':').first : llvm::StringRef();
}

llvm::SmallVector<llvm::StringRef> kernelsOf(llvm::StringRef golden) {
  llvm::SmallVector<llvm::StringRef> kernels;
  for (llvm::StringRef line : lines(golden))
    if (line.starts_with(kernelPrefix))
      kernels.push_back(kernelOf(line));
  return kernels;
}

/// The input that the first line names; empty if it is not that of a golden file.
llvm::StringRef inputOf(llvm::StringRef golden) {
  llvm::StringRef line = golden.split('\n').first;
  return line.consume_front(goldenPrefix) ? line.rsplit(" for ").first : llvm::StringRef();
}

/// The golden file at `path` is that of an input that is there and is not `input`.
bool isOfAnother(const std::string &path, llvm::StringRef golden, llvm::StringRef input) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(path).parent_path();
  fs::path theirs = folder / inputOf(golden).str(), ours = folder / input.str();
  std::error_code code;
  return !inputOf(golden).empty() && inputOf(golden) != input && fs::is_regular_file(theirs, code) &&
         !fs::equivalent(theirs, ours, code);
}

/// As `git apply` wants it: seen from the working folder, without `.` and `..` where that can be said without.
std::string pathInPatch(const std::string &path) {
  std::error_code code;
  std::string seen = std::filesystem::proximate(path, code).string();
  return code ? path : seen;
}

} // namespace

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

std::string inputSeenFrom(llvm::StringRef folder, llvm::StringRef input) {
  if (input == "-")
    return "stdin";
  std::error_code code;
  std::filesystem::path base = std::filesystem::absolute(folder.str(), code); // that of a folder yet to be made, too
  std::string seen = code ? "" : std::filesystem::proximate(input.str(), base, code).string();
  return code ? input.str() : seen;
}

std::string goldenText(llvm::StringRef input, const Manifest &manifest, llvm::StringRef ptx) {
  std::string out = fmt::format("{}{} for {}\n", goldenPrefix.str(), input.str(), manifest.target);
  std::string ptxas = "unknown"; // nvJitLink with the version of a ptxas makes the code of that
  for (const auto &[tool, version] : manifest.toolVersions)
    if (tool == "ptxas" || tool == "nvjitlink")
      ptxas = version;
  for (const KernelSpec &kernel : manifest.kernels) {
    out += fmt::format("{}{}: hero {}, grid {}x{}x{}, block {}x{}x{}, shared {}", kernelPrefix.str(), kernel.name,
                       kernel.hero, kernel.grid.x, kernel.grid.y, kernel.grid.z, kernel.block.x, kernel.block.y,
                       kernel.block.z, kernel.staticSharedBytes + kernel.dynamicSharedBytes);
    if (const auto &cluster = kernel.cluster)
      out += fmt::format(", clusters of {}x{}x{}", cluster->x, cluster->y, cluster->z);
    out += kernel.programmatic ? ", programmatic\n" : "\n";
    for (size_t i = 0; i < kernel.parameters.size(); ++i)
      if (const auto &map = kernel.parameters[i].tensorMap)
        out += fmt::format("{}{}: parameter {}: {}\n", mapPrefix.str(), kernel.name, i, describeTensorMap(*map));
    if (kernel.resources)
      out += fmt::format("{}{}: {}: {} registers, {} spill bytes, {} stack bytes\n", resourcePrefix.str(), ptxas,
                         kernel.name, kernel.resources->registers,
                         kernel.resources->spillStoreBytes + kernel.resources->spillLoadBytes,
                         kernel.resources->stackBytes);
  }
  return out + canonicalPtx(ptx);
}

std::string goldenPart(llvm::StringRef golden, llvm::ArrayRef<llvm::StringRef> kernels) {
  std::string out, chunk, entry; // the chunk begins after the last entry; `entry` is the one that ends it
  for (llvm::StringRef line : lines(golden)) {
    llvm::StringRef about = kernelOf(line), word = line.ltrim();
    if (!about.empty() && !llvm::is_contained(kernels, about))
      continue;
    bool isHeader = line.starts_with("//") || word.starts_with(".target") || word.starts_with(".address_size");
    (isHeader ? out : chunk) += (line + "\n").str();
    if (std::vector<std::string> found = ptxEntries(line); !isHeader && !found.empty())
      entry = found.front();
    if (line != "}" || entry.empty())
      continue;
    if (llvm::is_contained(kernels, entry))
      out += chunk;
    chunk.clear();
    entry.clear();
  }
  return out + chunk;
}

std::string goldenPath(llvm::StringRef folder, llvm::StringRef input, llvm::StringRef target) {
  return fmt::format("{}/{}.{}.golden", folder.rtrim('/').str(), stemOf(input), target.str());
}

void checkGolden(const std::string &path, const std::string &text, GoldenUse use, DiagnosticEngine &diagnostics) {
  std::string error;
  std::optional<std::string> golden = readFile(path, error);
  if (golden && isOfAnother(path, *golden, inputOf(text))) {
    diagnostics
        .report(DiagnosticKind::BadUsage, fmt::format("golden file `{}` is that of another input of this name, `{}`",
                                                      path, inputOf(*golden).str()))
        .note("inputs of one name need a --golden=DIR each");
    return;
  }
  if (use == GoldenUse::Update) {
    if (!createFolders(llvm::sys::path::parent_path(path).str(), error) || !writeFile(path, text, error))
      diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write golden file `" + path + "`: " + error);
    return;
  }
  if (!golden) {
    diagnostics.report(DiagnosticKind::GoldenMismatch, "cannot read golden file `" + path + "`: " + error)
        .note("--update-golden writes it");
    return;
  }
  const bool isPart = use == GoldenUse::ComparePart;
  if (isPart)
    golden = goldenPart(*golden, kernelsOf(text));
  std::string actual;
  for (llvm::StringRef line : lines(text))
    if (llvm::StringRef assembler = assemblerOf(line); assembler.empty() || golden->find(assembler) != golden->npos)
      actual += (line + "\n").str();
  // An input that was moved has the same golden file.
  if (size_t at = actual.find(inputOf(text).str()); !inputOf(*golden).empty() && at != std::string::npos)
    actual.replace(at, inputOf(text).size(), inputOf(*golden).str());
  std::string diff = unifiedDiff(*golden, actual, pathInPatch(path), [&](llvm::StringRef line) {
    llvm::StringRef assembler = assemblerOf(line);
    return !assembler.empty() && !llvm::StringRef(text).contains(assembler);
  });
  if (diff.empty())
    return;
  std::string shown = llvm::StringRef(diff).rtrim('\n').str();
  if (isPart)
    diagnostics.report(DiagnosticKind::GoldenMismatch, "output differs from what `" + path + "` has of these kernels")
        .note("line numbers are those of this part:\n" + shown);
  else
    diagnostics.report(DiagnosticKind::GoldenMismatch, "output differs from `" + path + "`")
        .note("if the change is meant, --update-golden rewrites the file, and `git apply` takes the difference:\n" +
              shown);
}

void reportStaleGoldens(const std::string &folder, const std::set<std::string> &checked,
                        DiagnosticEngine &diagnostics) {
  std::set<std::string> found; // folders are listed in any order
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    if (llvm::StringRef(it->path()).ends_with(".golden"))
      found.insert(it->path());
  for (const std::string &path : found) {
    std::string error;
    std::optional<std::string> golden = readFile(path, error);
    llvm::StringRef input = golden ? inputOf(*golden) : "";
    std::string file = folder + "/" + llvm::sys::path::filename(path).str();
    if (!input.empty() && input != "stdin" && !checked.count(file) && !llvm::sys::fs::exists(folder + "/" + input))
      diagnostics.report(DiagnosticKind::IgnoredInput,
                         fmt::format("golden file `{}` is that of `{}`, which is not there", file, input.str()));
  }
}

} // namespace hloc
