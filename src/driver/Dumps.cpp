#include "Dumps.h"

#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

struct StageNames {
  llvm::StringRef name, extension, comment;
};

StageNames names(DumpStage stage) {
  switch (stage) {
  case DumpStage::Hlo:
    return {"hlo", "hlo", "//"};
  case DumpStage::Mlir:
    return {"mlir", "mlir", "//"};
  case DumpStage::Llvm:
    return {"llvm", "ll", ";"};
  case DumpStage::Ptx:
    return {"ptx", "ptx", "//"};
  }
  return {};
}

bool matches(const std::string &expression, llvm::StringRef text) { return llvm::Regex(expression).match(text); }

/// Kernel names come from the input; only these characters reach the file system.
std::string fileNameOf(llvm::StringRef name) {
  std::string safe;
  for (char c : name)
    safe += llvm::isAlnum(c) || c == '_' || c == '-' || c == '.' ? c : '_';
  return safe.empty() || safe[0] == '.' ? "_" + safe : safe;
}

} // namespace

bool checkDumpOptions(const DumpOptions &options, DiagnosticEngine &diagnostics) {
  for (const std::string *expression : {&options.filter, &options.hloFilter, &options.emitterFilter}) {
    std::string error;
    if (!expression->empty() && !llvm::Regex(*expression).isValid(error)) {
      diagnostics.report(DiagnosticKind::BadUsage, "`" + *expression + "` is not a regular expression: " + error);
      return false;
    }
  }
  return true;
}

DumpTrack::DumpTrack(const DumpOptions &options, llvm::StringRef name, bool immediate)
    : options(options), name(name), immediate(immediate) {}

bool DumpTrack::wanted(DumpStage stage, llvm::StringRef pass, bool milestone) const {
  if (!options.filter.empty() && !matches(options.filter, pass))
    return false;
  if (!options.xlaStyle || milestone)
    return true;
  const std::string &expression = stage == DumpStage::Hlo ? options.hloFilter : options.emitterFilter;
  return !expression.empty() && matches(expression, pass);
}

void DumpTrack::after(DumpStage stage, llvm::StringRef pass, double milliseconds,
                      llvm::function_ref<std::string()> text, bool milestone) {
  if (!options.enabled)
    return;
  unsigned own = number++;
  bool shown = wanted(stage, pass, milestone);
  if (!shown && !options.changedOnly)
    return;
  std::string ir = text();
  bool changed = ir != previous;
  if (shown && (changed || !options.changedOnly)) {
    StageNames stageNames = names(stage);
    if (options.folder.empty()) {
      held += fmt::format("{} -----{} IR dump {:03} after {} ({}, {}){} ----- {}\n{}\n", stageNames.comment.str(),
                          stageNames.comment.str(), own, pass.str(), stageNames.name.str(), name,
                          changed ? "" : ", unchanged", stageNames.comment.str(), ir);
      if (immediate) {
        llvm::errs() << held;
        held.clear();
      }
    } else {
      std::string folder = options.folder + "/" + fileNameOf(name);
      std::string file =
          fmt::format("{:03}.{}.{}.{}", own, stageNames.name.str(), fileNameOf(pass), stageNames.extension.str());
      if (error.empty() && createFolders(folder, error))
        writeFile(folder + "/" + file, ir, error);
      index += fmt::format("{:<48} {:>9.3f} ms  {}\n", file, milliseconds, changed ? "changed" : "unchanged");
    }
  }
  previous = std::move(ir);
}

void DumpTrack::finish(DiagnosticEngine &diagnostics) {
  llvm::errs() << held;
  held.clear();
  if (!index.empty() && error.empty())
    writeFile(options.folder + "/" + fileNameOf(name) + "/index.txt", index, error);
  if (!error.empty())
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write dumps: " + error);
  error.clear();
  index.clear();
}

} // namespace hloc
