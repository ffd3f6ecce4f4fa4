#include "DumpedPasses.h"

#include "PassList.h"

#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <set>

namespace hloc {

namespace {

/// Names in a folder, sorted.
std::set<std::string> namesIn(const std::string &folder) {
  std::set<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error))
    names.insert(llvm::sys::path::filename(it->path()).str());
  names.erase("index.txt");
  return names;
}

/// `023.hlo.choose-libraries.hlo`
StagedPass passOf(llvm::StringRef file) {
  auto [number, rest] = file.split('.');
  auto [stage, name] = rest.split('.');
  return {stage.str(), name.rsplit('.').first.str()};
}

/// The pass of hloPipeline() behind the last of these that is one: its parts are dumped, too.
StagedPass hloPassAfter(const std::set<std::string> &files) {
  llvm::ArrayRef<HloPass> passes = hloPipeline();
  size_t next = 0;
  for (const std::string &file : files) {
    const auto *found = llvm::find_if(passes, [&](const HloPass &pass) { return pass.name == passOf(file).name; });
    if (found != passes.end())
      next = std::max(next, size_t(found - passes.begin()) + 1);
  }
  return next < passes.size() ? StagedPass{"hlo", passes[next].name.str()} : StagedPass{"", "plan"};
}

/// Of passes that run several times as many are passed over as there are dumps.
StagedPass kernelPassAfter(const std::set<std::string> &files, unsigned optimizationLevel) {
  const StagedPass last = passOf(*files.rbegin());
  if (last.stage == "ptx")
    return {"", "execute"};
  std::vector<PassRow> rows = passesInOrder(optimizationLevel);
  llvm::erase_if(rows, [](const PassRow &row) { return row.stage == "hlo"; });
  size_t numSeen = 0;
  for (const std::string &file : files)
    numSeen += passOf(file).stage == last.stage && passOf(file).name == last.name;
  for (size_t i = 0; i + 1 < rows.size(); ++i)
    if (rows[i].stage == last.stage && rows[i].name == last.name && --numSeen == 0)
      return {rows[i + 1].stage, rows[i + 1].name};
  return {"llvm", ""}; // which of LLVM's is next depends on the kernel
}

} // namespace

StagedPass passAtWork(const std::string &folder, unsigned optimizationLevel) {
  const std::set<std::string> tracks = namesIn(folder);
  const std::set<std::string> ofModule = namesIn(folder + "/module");
  if (ofModule.empty())
    return {"", "parse"};
  StagedPass last = hloPassAfter(ofModule);
  if (!last.stage.empty())
    return last;
  bool hasKernels = false;
  for (const std::string &track : tracks)
    if (const std::set<std::string> files = namesIn(folder + "/" + track); track != "module" && !files.empty()) {
      hasKernels = true;
      if (StagedPass pass = kernelPassAfter(files, optimizationLevel); pass.name != "execute")
        return pass;
    }
  return {"", hasKernels ? "execute" : "plan"};
}

} // namespace hloc
