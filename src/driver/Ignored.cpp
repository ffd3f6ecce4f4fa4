#include "Ignored.h"

#include "PassList.h"

#include "hloc/support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

#include <set>
#include <unistd.h>

namespace hloc {

void warnOfIdleFilters(const DumpOptions &options, unsigned optimizationLevel, DiagnosticEngine &diagnostics) {
  struct Row {
    const char *option;
    const std::string &expression;
    std::vector<llvm::StringRef> stages;
  };
  const Row rows[] = {{"--dump-filter", options.filter, {"hlo", "mlir", "llvm", "ptx"}},
                      {"--xla_dump_hlo_pass_re", options.hloFilter, {"hlo"}},
                      {"--xla_dump_emitter_re", options.emitterFilter, {"mlir", "llvm", "ptx"}}};
  if (!options.enabled || llvm::all_of(rows, [](const Row &row) { return row.expression.empty(); }))
    return;
  std::vector<PassRow> passes = passesInOrder(optimizationLevel);
  for (const Row &row : rows) {
    auto matches = [&](const PassRow &pass) {
      return llvm::is_contained(row.stages, pass.stage) && llvm::Regex(row.expression).match(pass.name);
    };
    if (!row.expression.empty() && llvm::none_of(passes, matches))
      diagnostics
          .report(DiagnosticKind::IgnoredInput,
                  std::string("no pass has a name that ") + row.option + "=" + row.expression + " matches")
          .note("`hloc --list-passes` names them");
  }
}

void removeEarlierDumps(const DumpOptions &options, DiagnosticEngine &diagnostics) {
  if (!options.enabled || options.folder.empty())
    return;
  std::set<std::string> folders; // before anything in them is removed
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(options.folder, code), end; it != end && !code; it.increment(code))
    if (llvm::sys::fs::is_regular_file(it->path() + "/index.txt"))
      folders.insert(it->path());
  for (const std::string &folder : folders) {
    std::string error;
    std::optional<std::string> index = readFile(folder + "/index.txt", error);
    llvm::SmallVector<llvm::StringRef> lines;
    const std::string text = index.value_or("");
    llvm::StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
    std::vector<std::string> files = {"index.txt"};
    for (llvm::StringRef line : lines)
      if (llvm::StringRef file = line.split(' ').first; llvm::sys::path::filename(file) == file)
        files.push_back(file.str());
    for (const std::string &file : files)
      if (std::error_code failed = llvm::sys::fs::remove(folder + "/" + file))
        return void(diagnostics.report(DiagnosticKind::UnwritableFile, "cannot remove the dump of an earlier run `" +
                                                                           folder + "/" + file +
                                                                           "`: " + failed.message()));
    ::rmdir(folder.c_str()); // stays if there are other files in it
  }
}

} // namespace hloc
