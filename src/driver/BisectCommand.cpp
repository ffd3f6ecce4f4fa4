// `hloc bisect`: a run that goes wrong is made small first (`hloc reduce`); then what can be left out is left out,
// until it goes right. HLO passes are judged by the interpreter; of the others only the whole can be judged, by the
// emulator. If that names no pass, the same values are computed by other routes (BisectRoutes.h).

#include "BisectCommand.h"

#include "BisectRoutes.h"
#include "CandidateJudge.h"
#include "Compile.h"
#include "DiagnosticForm.h"
#include "DumpedPasses.h"
#include "Interrupt.h"
#include "PassList.h"

#include "hloc/reduce/Suspects.h"
#include "hloc/support/Parallel.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

using Names = std::vector<std::string>;

/// The text between the first two backquotes behind `intro`; empty if there are none.
std::string quotedAfter(llvm::StringRef text, llvm::StringRef intro) {
  const size_t at = text.find(intro);
  return at == llvm::StringRef::npos
             ? ""
             : text.drop_front(at + intro.size()).take_until([](char c) { return c == '`'; }).str();
}

/// Of `12 of 32 elements of step 2, `fusion.1`, differ from the interpreter's`; empty: it is not about steps.
std::string stepOf(llvm::StringRef errors) {
  const size_t at = errors.find(" of step ");
  return at == llvm::StringRef::npos ? "" : quotedAfter(errors.drop_front(at), ", `");
}

/// Those that can be given once take the place of their like: `--fusion=none` that of `--fusion=redo`.
Names withOptions(Names arguments, const Names &more) {
  for (llvm::StringRef option : more) {
    const llvm::StringRef name = option.take_front(option.find('=') + 1);
    if (!name.empty() && name != "--disable-pass=" && name != "--force=")
      llvm::erase_if(arguments, [&](llvm::StringRef one) { return one.starts_with(name); });
  }
  llvm::append_range(arguments, more);
  return arguments;
}

/// What ran, and how it ended, of one line for people.
std::string firstError(llvm::StringRef text) {
  for (llvm::StringRef line : llvm::split(text, '\n'))
    if (line.contains("error:"))
      return line.str();
  return "";
}

class BisectCommand : ReduceObserver {
public:
  explicit BisectCommand(const ReduceOptions &options) : options(options), progress(options.progress) {}

  int run() {
    const int code = bisect();
    progress.stop();
    llvm::outs() << answer;
    printDiagnostics(diagnostics, useColour(options.colour));
    return code ? code : static_cast<int>(diagnostics.exitCode());
  }

private:
  int bisect() {
    CompileObserver nobody;
    std::shared_ptr<const SourceFile> file = readSource(options.input, nobody, diagnostics);
    std::optional<TemporaryFolder> temporary = temporaryFolder("hloc-bisect", diagnostics);
    if (!temporary || !file)
      return 0;
    folder = &*temporary;
    InterruptScope interrupts;
    progress.beginStage("run the input");
    const Ending ending = runOf(write("input.hlo", file->text().str()), {}, secondsOfInput());
    const bool goesWrong = ending.crashed() || ending.exited(4) || ending.kind == Ending::Kind::TimeLimit;
    if (!goesWrong)
      return nothingFound(ending);
    say(fmt::format("`hloc run` of {} {}\n", options.input, ending.describe()));
    if (std::string line = firstError(ending.errors); !line.empty())
      say("  " + line + "\n");
    const std::string small = reduced(file->text().str(), ending);
    sayKernel(small, ending);
    blame(small, runOf(small, {}, limit));
    if (ending.kind == Ending::Kind::Exit)
      return ending.number;
    return static_cast<int>(ending.crashed() ? ExitCode::InternalError : ExitCode::Mismatch);
  }

  double secondsOfInput() const { return options.timeout > 0 ? options.timeout : 600; }

  int nothingFound(const Ending &ending) {
    if (!ending.exited(0)) {
      llvm::errs() << ending.errors;
      return ending.number;
    }
    say(fmt::format("nothing is wrong: `hloc run` of {} ends with 0, so no pass and no step is to blame\n",
                    options.input));
    return 0;
  }

  /// A file of a small module that goes wrong in the same way. It is also written where -o says.
  std::string reduced(const std::string &text, const Ending &ending) {
    constexpr size_t smallBytes = 1000;
    const bool hangs = ending.kind == Ending::Kind::TimeLimit;
    limit = hangs ? std::min(secondsOfInput(), 15.0) : 10 + 5 * ending.seconds;
    std::string smallest = text;
    if (text.size() > smallBytes) {
      ReduceOptions own = options;
      own.conditions = {WhileCondition::of(ending).text()};
      if (hangs)
        own.timeout = limit;
      if (std::optional<Reduction> reduction = reductionOf(text, own)) {
        smallest = reduction->text;
        say(fmt::format("the same of {} instead of {} instructions\n", reduction->after.instructions,
                        reduction->before.instructions));
        limit = hangs ? std::min(limit, 5.0) : 10;
      }
    }
    std::string error;
    if (options.output != "-" && !writeFileAtomically(options.output, smallest, error))
      diagnostics.report(DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", options.output, error));
    return write("small.hlo", smallest);
  }

  std::optional<Reduction> reductionOf(const std::string &text, const ReduceOptions &own) {
    CandidateJudge judge(own, *folder);
    std::string refusal;
    return judge.begin(text, refusal) ? reduceHlo(text, judge, *this) : std::nullopt;
  }

  void trying(llvm::StringRef move) override {
    progress.beginStage(fmt::format("reduce: {} instructions; fewer {}", current.instructions, move.str()));
  }
  void improved(llvm::StringRef, const ReducedSize &size) override { current = size; }

  void sayKernel(const std::string &small, const Ending &ending) {
    if (std::string step = stepOf(ending.errors); ending.exited(4) && !step.empty())
      say(fmt::format("the first step that differs is that of `{}`\n", step));
    Names line = {"compile", small, "--list-kernels", "--stop-after=ptx"};
    Ending kernels = children.run(line, limit);
    if (kernels.exited(0))
      heroes = kernels.output;
  }

  //===--- what is to blame -------------------------------------------------------------------------------------===//

  void blame(const std::string &small, const Ending &ending) {
    progress.beginStage("look for what is to blame");
    if (ending.exited(4) ? blameHloPass(small) : blamePassAtWork(small))
      return;
    if (blameOptional(small, {"mlir", "llvm"}) || blameRoute(small, ending) || blameOptional(small, {"hlo"}))
      return;
    blameRest(small);
  }

  /// The interpreter after each HLO pass.
  bool blameHloPass(const std::string &small) {
    const Ending ending = runOf(small, {"--verify-each-pass", "--platform=interpreter"}, limit);
    const std::string pass = quotedAfter(ending.errors, "error: pass `");
    if (!ending.exited(4) || pass.empty())
      return false;
    say(fmt::format("to blame: hlo {}, which changes what the module computes\n", pass));
    if (pass == "simplify-algebra")
      blameRule(small);
    return true;
  }

  void blameRule(const std::string &small) {
    Names rules;
    for (const RewriteRow &row : rewriteRows())
      rules.push_back("hlo:" + row.name.str());
    const Blame found = findBlame(rules, [&](llvm::ArrayRef<Names> sets) { return areWell(small, sets); });
    if (!found.guilty.empty())
      say(fmt::format("  by its rule {}\n", namesOf(found.guilty)));
  }

  /// Of what did not come to its end: the pass that was at work then.
  bool blamePassAtWork(const std::string &small) {
    const std::string dumps = folder->file("dumps");
    (void)runOf(small, {"--dump-after-each-pass=" + dumps, "-j1"}, limit);
    const StagedPass pass = passAtWork(dumps, /*optimizationLevel=*/3);
    if (pass.stage == "llvm" || pass.name == "execute")
      return false;
    if (pass.name == "plan" || pass.name == "parse") {
      Names upToPlan = {"compile", small, "--stop-after=" + pass.name};
      const bool isEmitter = pass.name == "plan" && children.run(upToPlan, limit).exited(0);
      say(fmt::format("to blame: {}\n", isEmitter ? "emit, which writes kernels as MLIR" : pass.name));
      return true;
    }
    const bool isCertain = areWell(small, {{pass.spelling()}}).front();
    say(fmt::format("to blame: {} {}, which was at work{}\n", pass.stage, pass.name,
                    isCertain ? ", and without which all is well" : ""));
    return true;
  }

  /// What may be left out of a right compilation, in the order of running.
  bool blameOptional(const std::string &small, std::initializer_list<llvm::StringRef> stages) {
    Names suspects;
    for (const PassRow &row : passesInOrder(/*optimizationLevel=*/3))
      if (llvm::is_contained(stages, row.stage) && row.name != "parse" && row.name != "only" && row.name != "emit" &&
          !llvm::is_contained(suspects, row.stage + ":" + row.name))
        suspects.push_back(row.stage + ":" + row.name);
    const Blame found = findBlame(suspects, [&](llvm::ArrayRef<Names> sets) { return areWell(small, sets); });
    if (found.guilty.empty())
      return false;
    say(fmt::format("to blame: {}, without which all is well\n", namesOf(found.guilty)));
    if (!found.alsoHide.empty())
      say(fmt::format("  as it is without {}\n", namesOf(found.alsoHide)));
    return true;
  }

  /// Emitters, the reference, and what lies between them: by who agrees with whom.
  bool blameRoute(const std::string &small, const Ending &ending) {
    if (!ending.exited(4))
      return false;
    const RouteTools tools = routeTools();
    std::string error;
    RouteVerdict verdict = blameEmitter(small, stepOf(ending.errors), tools);
    if (verdict.blame.empty() && runOf(small, {"--fusion=none"}, limit).exited(4)) {
      const RouteVerdict shared = blameSharedPart(readFile(small, error).value_or(""), ending.errors, tools);
      verdict.blame = shared.blame;
      llvm::append_range(verdict.tried, shared.tried);
    }
    tried = verdict.tried;
    if (verdict.blame.empty())
      return false;
    say(fmt::format("to blame: {}\n", verdict.blame));
    sayTried();
    return true;
  }

  RouteTools routeTools() {
    RouteTools tools;
    tools.jobs = numWorkers(options.jobs);
    tools.run = [this](const std::string &file, const Names &more) { return runOf(file, more, limit); };
    tools.interpret = [this](const std::string &file, const Names &more) {
      Names line = {"run", file, "--platform=interpreter"};
      for (llvm::StringRef name : {"--seed=", "--inputs=", "--f32-dots=", "--softmax="})
        llvm::copy_if(options.arguments, std::back_inserter(line),
                      [&](llvm::StringRef one) { return one.starts_with(name); });
      llvm::append_range(line, more);
      return children.run(line, limit);
    };
    tools.compile = [this](const std::string &file, const Names &more) {
      Names line = {"compile", file};
      llvm::append_range(line, more);
      return children.run(line, limit);
    };
    tools.write = [this](const std::string &name, const std::string &text) { return write(name, text); };
    tools.reduced = [this](const std::string &text, const std::string &option) {
      ReduceOptions own = options;
      own.arguments = withOptions(options.arguments, {option});
      own.conditions = {"exit 4"};
      std::optional<Reduction> reduction = reductionOf(text, own);
      return reduction ? reduction->text : text;
    };
    return tools;
  }

  void blameRest(const std::string &small) {
    const bool isFusion = runOf(small, {"--fusion=none"}, limit).exited(0);
    say(isFusion ? "to blame: an emitter, of what is fused; with --fusion=none all is well\n"
                 : "to blame: an emitter, or one of the passes that no kernel can do without; or the reference\n");
    sayTried();
    for (llvm::StringRef line : llvm::split(heroes, '\n'))
      if (!line.empty())
        say("  " + line.str() + "\n");
  }

  void sayTried() {
    for (const std::string &line : tried)
      say("  " + line + "\n");
  }

  /// `llvm instcombine and mlir cse`
  static std::string namesOf(const Names &names) {
    std::string all = llvm::join(names, " and ");
    std::replace(all.begin(), all.end(), ':', ' ');
    return all;
  }

  std::vector<bool> areWell(const std::string &small, llvm::ArrayRef<Names> sets) const {
    std::vector<char> well(sets.size(), false);
    runInParallel(sets.size(), numWorkers(options.jobs), [&](size_t i) {
      well[i] =
          !wasInterrupted() && runOf(small, {"-j1", "--disable-pass=" + llvm::join(sets[i], ",")}, limit).exited(0);
    });
    return {well.begin(), well.end()};
  }

  Ending runOf(const std::string &file, const Names &more, double seconds) const {
    Names arguments = {"run", file};
    llvm::append_range(arguments, withOptions(options.arguments, more));
    return children.run(arguments, seconds);
  }

  std::string write(llvm::StringRef name, const std::string &text) {
    std::string error, file = folder->file(name);
    if (!writeFile(file, text, error))
      diagnostics.report(DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", file, error));
    return file;
  }

  void say(const std::string &text) { answer += text; }

  const ReduceOptions &options;
  DiagnosticEngine diagnostics;
  Progress progress;
  Children children;
  const TemporaryFolder *folder = nullptr;
  double limit = 600; ///< seconds of a run of the small module
  ReducedSize current;
  std::string answer, heroes;
  Names tried; ///< other routes, a line each
};

} // namespace

int runBisect(const ReduceOptions &options) { return BisectCommand(options).run(); }

} // namespace hloc
