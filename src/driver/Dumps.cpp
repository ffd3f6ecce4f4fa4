#include "Dumps.h"

#include "UnifiedDiff.h"

#include "hloc/support/Files.h"
#include "hloc/support/Names.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

struct StageNames {
  llvm::StringRef name, extension, comment;
};

/// What a pass changed; the headers name passes instead of files.
std::string differenceOf(llvm::StringRef before, llvm::StringRef after, llvm::StringRef passBefore,
                         llvm::StringRef pass) {
  std::string patch = unifiedDiff(before, after, pass);
  llvm::StringRef hunks = llvm::StringRef(patch).split('\n').second.split('\n').second;
  return hunks.empty() ? "" : ("--- " + passBefore + "\n+++ " + pass + "\n" + hunks).str();
}

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

} // namespace

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
                      llvm::function_ref<std::string()> text, bool milestone, llvm::StringRef stageLine) {
  if (!options.enabled)
    return;
  bool shown = wanted(stage, pass, milestone);
  if (!shown && !options.changedOnly) {
    ++number;
    return;
  }
  std::string ir = text();
  bool changed = ir != previous;
  if (shown && (changed || !options.changedOnly)) {
    // Between stages everything is another text.
    bool asDiff = options.asDiff && previousStage == stage;
    show(stage, pass, asDiff ? "diff" : names(stage).extension, milliseconds, changed,
         asDiff ? differenceOf(previous, ir, previousPass, pass) : stageLine.str() + ir);
  }
  ++number;
  previous = std::move(ir);
  previousPass = pass.str();
  previousStage = stage;
}

void DumpTrack::show(DumpStage stage, llvm::StringRef pass, llvm::StringRef extension, double milliseconds,
                     bool changed, const std::string &text) {
  StageNames stageNames = names(stage);
  if (options.folder.empty()) {
    held += fmt::format("{} -----{} IR dump {:03} after {} ({}, {}){} ----- {}\n{}\n", stageNames.comment.str(),
                        stageNames.comment.str(), number, pass.str(), stageNames.name.str(), name,
                        changed ? "" : ", unchanged", stageNames.comment.str(), text);
    if (immediate) {
      llvm::errs() << held;
      held.clear();
    }
    return;
  }
  std::string folder = options.folder + "/" + fileNameOf(name);
  std::string file = fmt::format("{:03}.{}.{}.{}", number, stageNames.name.str(), fileNameOf(pass), extension.str());
  if (error.empty() && createFolders(folder, error))
    writeFile(folder + "/" + file, text, error);
  index += fmt::format("{:<48} {:>9.3f} ms  {}\n", file, milliseconds, changed ? "changed" : "unchanged");
}

void DumpTrack::finish(DiagnosticEngine &diagnostics) {
  llvm::errs() << held;
  held.clear();
  if (!index.empty() && error.empty())
    writeFile(options.folder + "/" + fileNameOf(name) + "/index.txt", index, error);
  if (!error.empty())
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write dumps to `" + options.folder + "`: " + error);
  error.clear();
  index.clear();
}

} // namespace hloc
