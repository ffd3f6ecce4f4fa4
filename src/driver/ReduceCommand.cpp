// `hloc reduce`: candidates are run as children, and the best so far is on disk at any time.

#include "ReduceCommand.h"

#include "CandidateJudge.h"
#include "Compile.h"
#include "DiagnosticForm.h"
#include "Interrupt.h"

#include "hloc/reduce/Reduce.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

std::string sizeText(const ReducedSize &size) {
  return fmt::format("{} instructions ({} parameters), {} bytes", size.instructions, size.parameters, size.bytes);
}

class ReduceCommand : ReduceObserver {
public:
  explicit ReduceCommand(const ReduceOptions &options) : options(options), progress(options.progress) {}

  int run() {
    const int code = reduce();
    progress.stop();
    printDiagnostics(diagnostics, useColour(options.colour));
    return code ? code : static_cast<int>(diagnostics.exitCode());
  }

private:
  int reduce() {
    CompileObserver nobody;
    std::shared_ptr<const SourceFile> file = readSource(reducedFile(), nobody, diagnostics);
    std::optional<TemporaryFolder> folder = temporaryFolder("hloc-reduce", diagnostics);
    if (!file || !folder)
      return 0;
    if (!options.isPtx && !isModule(file))
      return 0;
    InterruptScope interrupts;
    CandidateJudge judge(options, *folder);
    const std::string text = file->text().str();
    progress.beginStage("run the input");
    if (std::string refusal; !judge.begin(text, refusal)) {
      diagnostics.report(DiagnosticKind::NothingToReduce, refusal);
      return 0;
    }
    while (std::optional<Reduction> reduction = reduceWith(judge, text)) {
      if (judge.stillHangs(reduction->text))
        return finish(judge, *reduction);
      judge.beSlow();
    }
    diagnostics.report(DiagnosticKind::NothingToReduce,
                       judge.isOver() ? "cut off before it was known whether the input does it" : judge.refusal(text));
    return 0;
  }

  const std::string &reducedFile() const { return options.isPtx ? options.ptx : options.input; }

  bool isModule(std::shared_ptr<const SourceFile> file) {
    CompileObserver nobody;
    const Toolchain noTools;
    Compiler compiler(CompilerOptions(), noTools, nobody, diagnostics);
    return compiler.parse(std::move(file)) != nullptr;
  }

  std::optional<Reduction> reduceWith(CandidateJudge &judge, const std::string &text) {
    return options.isPtx ? reducePtx(text, judge, *this) : reduceHlo(text, judge, *this);
  }

  int finish(const CandidateJudge &judge, const Reduction &reduction) {
    progress.stop();
    if (options.output == "-")
      llvm::outs() << reduction.text;
    llvm::errs() << fmt::format("{}: {} -> {}; {} candidates{}\n", judge.description(), sizeText(reduction.before),
                                sizeText(reduction.after), reduction.numTried,
                                reduction.isSettled ? "" : "; cut off, so that it may not be the smallest");
    return 0;
  }

  void trying(llvm::StringRef move) override {
    currentMove = move.str();
    show();
  }
  void improved(llvm::StringRef text, const ReducedSize &size) override {
    current = size;
    show();
    std::string error;
    if (options.output != "-" && !writeFileAtomically(options.output, text, error) && !diagnostics.hasErrors())
      diagnostics.report(DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", options.output, error));
  }
  void show() {
    progress.beginStage(
        fmt::format("reduce: {} instructions, {} bytes; fewer {}", current.instructions, current.bytes, currentMove));
  }

  const ReduceOptions &options;
  DiagnosticEngine diagnostics;
  Progress progress;
  ReducedSize current;
  std::string currentMove = "of all";
};

} // namespace

int runReduce(const ReduceOptions &options) { return ReduceCommand(options).run(); }

} // namespace hloc
