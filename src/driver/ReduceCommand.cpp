// `hloc reduce`: candidates are run as children, and the best so far is on disk at any time.

#include "ReduceCommand.h"

#include "Compile.h"
#include "Interrupt.h"
#include "Timeout.h"
#include "While.h"

#include "hloc/reduce/Reduce.h"
#include "hloc/support/Files.h"
#include "hloc/support/Parallel.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

/// How long the input itself may take, and, of one that takes for ever, a candidate.
constexpr double secondsOfInput = 600, secondsOfHang = 15;

std::string sizeText(const ReducedSize &size) {
  return fmt::format("{} instructions ({} parameters), {} bytes", size.instructions, size.parameters, size.bytes);
}

/// Runs candidates, several at a time.
class CandidateJudge : public ReduceJudge {
public:
  CandidateJudge(const ReduceOptions &options, const TemporaryFolder &folder)
      : options(options), folder(folder), numAtOnce(numWorkers(options.jobs)) {
    for (const std::string &text : options.conditions)
      conditions.push_back(WhileCondition::parse(text));
    if (options.timeLimit > 0)
      deadline = steadySeconds() + options.timeLimit;
  }

  /// What candidates have to do, if nobody has said so: what the input does. False after a message if that is nothing.
  bool begin(const std::string &text, std::string &refusal) {
    bool hangs = llvm::any_of(conditions, isTimeLimit);
    limit = options.timeout > 0 ? options.timeout : hangs ? secondsOfHang : secondsOfInput;
    if (conditions.empty()) {
      Ending ending = runProgram(write(text, 0), limit);
      if (ending.exited(0) || ending.kind == Ending::Kind::NotStarted) {
        refusal = "nothing is wrong with the input: `hloc run` of it " + ending.describe();
        return false;
      }
      conditions.push_back(WhileCondition::of(ending));
      hangs = ending.kind == Ending::Kind::TimeLimit;
      tighten(ending);
    }
    if (hangs)
      bytesOfInput = text.size();
    return true;
  }

  /// Why not even the input does it.
  std::string refusal(const std::string &text) {
    return "the input does not do it (" + description() + "): `hloc run` of it " +
           runProgram(write(text, 0), secondsOfInput).describe();
  }

  size_t width() const override { return numAtOnce; }
  bool isOver() const override { return wasInterrupted() || (deadline > 0 && steadySeconds() > deadline); }

  std::optional<size_t> firstOf(llvm::ArrayRef<std::string> texts) override {
    std::vector<char> does(texts.size(), false);
    std::vector<Ending> endings(texts.size());
    runInParallel(texts.size(), numAtOnce, [&](size_t i) {
      const std::string file = write(texts[i], i);
      if (needsProgram())
        endings[i] = runProgram(file, limitFor(texts[i]));
      does[i] = holds(endings[i], file);
    });
    auto first = llvm::find(does, true);
    // What was killed with us has not done it by itself.
    if (first == does.end() || wasInterrupted())
      return std::nullopt;
    tighten(endings[size_t(first - does.begin())]);
    return size_t(first - does.begin());
  }

  /// Of a module that takes for ever: does it, given as much time as the input was?
  bool stillHangs(const std::string &text) {
    return !bytesOfInput || wasInterrupted() || holds(runProgram(write(text, 0), limit), write(text, 0));
  }
  /// From now on every candidate is given that.
  void beSlow() { bytesOfInput = 0; }

  std::string description() const {
    std::string all;
    for (const WhileCondition &condition : conditions)
      all += (all.empty() ? "" : ", ") + condition.text();
    return all;
  }

private:
  static bool isTimeLimit(const WhileCondition &condition) {
    return condition.kind() == WhileCondition::Kind::TimeLimit;
  }
  /// Smaller ones take less. One that does not is no better than one that does something else.
  void tighten(const Ending &ending) {
    if (options.timeout <= 0 && !bytesOfInput && ending.kind != Ending::Kind::TimeLimit &&
        ending.kind != Ending::Kind::NotStarted)
      limit = std::min(limit, 10 + 5 * ending.seconds);
  }

  bool needsProgram() const {
    return llvm::any_of(
        conditions, [](const WhileCondition &condition) { return condition.kind() != WhileCondition::Kind::Command; });
  }

  /// Most of the time that a hang is waited for is lost: a module of few instructions is soon known to hang.
  double limitFor(const std::string &text) const {
    constexpr double least = 2;
    if (!bytesOfInput || limit < least)
      return limit;
    return least + (limit - least) * std::min(1.0, double(text.size()) / double(bytesOfInput));
  }

  std::string write(const std::string &text, size_t number) const {
    std::string error, file = folder.file(fmt::format("candidate-{}{}", number, options.isPtx ? ".ptx" : ".hlo"));
    (void)writeFile(file, text, error); // one that is not there does nothing
    return file;
  }

  Ending runProgram(const std::string &file, double seconds) const {
    std::vector<std::string> arguments = {"run"};
    if (options.isPtx)
      arguments.insert(arguments.end(), {options.input, "--ptx=" + file});
    else
      arguments.push_back(file);
    if (numAtOnce > 1 && llvm::none_of(options.arguments, [](llvm::StringRef one) {
          return one.starts_with("-j") || one.starts_with("--jobs");
        }))
      arguments.push_back("-j1");
    llvm::append_range(arguments, options.arguments);
    return children.run(arguments, seconds);
  }

  bool holds(const Ending &ending, const std::string &file) const {
    return llvm::all_of(conditions, [&](const WhileCondition &condition) {
      if (condition.kind() != WhileCondition::Kind::Command)
        return condition.holds(ending);
      return Children::runCommand(condition.commandFor(file), limit).exited(0);
    });
  }

  const ReduceOptions &options;
  const TemporaryFolder &folder;
  const unsigned numAtOnce;
  Children children;
  std::vector<WhileCondition> conditions;
  double limit = secondsOfInput, deadline = 0;
  size_t bytesOfInput = 0; ///< of one that takes for ever; 0: all candidates have the same time
};

class ReduceCommand : ReduceObserver {
public:
  explicit ReduceCommand(const ReduceOptions &options) : options(options), progress(options.progress) {}

  int run() {
    const int code = reduce();
    progress.stop();
    diagnostics.print(llvm::errs(), useColour(options.colour));
    return code ? code : static_cast<int>(diagnostics.exitCode());
  }

private:
  int reduce() {
    std::string error;
    std::optional<TemporaryFolder> folder = TemporaryFolder::create("hloc-reduce", error);
    CompileObserver nobody;
    std::shared_ptr<const SourceFile> file = readSource(reducedFile(), nobody, diagnostics);
    if (!file || !folder) {
      if (!folder)
        diagnostics.report(DiagnosticKind::UnwritableFile, "no temporary folder: " + error);
      return 0;
    }
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
    diagnostics.report(DiagnosticKind::NothingToReduce, judge.refusal(text));
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
    return reduceHlo(text, judge, *this);
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
