#include "Comparison.h"

#include "NumpyFiles.h"
#include "ValueChain.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

namespace hloc {

bool Comparison::open(const HloModule &module) {
  if (options.expectedFile.empty())
    return true;
  users = readResult(options.expectedFile, module, diagnostics);
  return users.has_value();
}

llvm::FailureOr<Literal> Comparison::reference(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                               const Literal &actual) {
  if (options.platform == Platform::Interpreter)
    return actual;
  TimedScope scope(timing, "interpret");
  progress.beginStage("interpret");
  return interpret(module, arguments, diagnostics, interpreterOptions());
}

bool Comparison::judge(const CompareResult &result, const Subject &subject) {
  const HloInstruction *step = subject.step;
  const SourceRange range = step ? step->range() : SourceRange();
  if (!result.equal()) {
    Diagnostic &report =
        diagnostics.report(DiagnosticKind::ResultMismatch, range,
                           fmt::format("{} of {} elements {}{}\n{}", result.numMismatches, result.numElements,
                                       subject.what, subject.where, result.report));
    if (step)
      report.note(fmt::format("`--only={}` runs this step alone", step->name().str()));
    if (explain)
      for (std::string &why : explain())
        report.note(std::move(why));
    return false;
  }
  if (result.numUnknown && !subject.mayBeOpen && !firstOpen)
    firstOpen = {range, fmt::format("the reference cannot tell of {} of {} elements{}{} whether they are right: {}",
                                    result.numUnknown, result.numElements,
                                    step ? fmt::format(" of step `{}`", step->name().str()) : "", subject.where,
                                    describeAgreement(result))};
  return true;
}

bool Comparison::conclude() {
  if (firstOpen)
    diagnostics.report(DiagnosticKind::UndecidedResult, firstOpen->range, firstOpen->text);
  return !firstOpen;
}

llvm::FailureOr<CompareResult> Comparison::compareWith(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                       const Literal &expected, const Literal &actual,
                                                       WeakCheck check) {
  TimedScope scope(timing, "compare");
  progress.beginStage("compare");
  if (!options.tolerance.empty())
    return compareLiterals(expected, actual, *parseTolerance(options.tolerance));
  Backend backend = options.launchFile.empty() ? Backend::Hloc : Backend::Other;
  return compareRun(module, arguments, expected, actual, backend, diagnostics, interpreterOptions(), check);
}

void Comparison::noteRegime(Regime regime) {
  if (options.inputsFile.empty() && !llvm::is_contained(regimes, regime))
    regimes.push_back(regime);
}

void Comparison::trace(const HloModule &module, llvm::ArrayRef<Literal> arguments, const CompareResult &result,
                       const std::string &step) {
  if (!options.tracesFailures || chain || result.equal())
    return;
  TimedScope scope(timing, "trace values");
  progress.beginStage("trace values");
  chain = chainOf(module, arguments, result.first, interpreterOptions());
  chain->step = step;
}

static std::string inRegime(Regime regime) { return fmt::format(" in the regime `{}`", regimeName(regime).str()); }

bool Comparison::compareStep(const HloModule &step, llvm::ArrayRef<Literal> arguments, const Literal &actual,
                             Regime regime, const HloInstruction &fusion, size_t number) {
  llvm::SaveAndRestore<bool> running(isRunning, true);
  llvm::FailureOr<Literal> expected = reference(step, arguments, actual);
  if (failed(expected))
    return false;
  const bool isGenerated = options.inputsFile.empty(), mayBeOpen = isGenerated && regime != Regime::Ordinary;
  llvm::FailureOr<CompareResult> compared =
      compareWith(step, arguments, *expected, actual, mayBeOpen ? WeakCheck::None : WeakCheck::Open);
  if (failed(compared))
    return false;
  trace(step, arguments, *compared, fusion.name().str());
  std::string what = fmt::format("of step {}, `{}`, differ from the interpreter's", number, fusion.name().str());
  if (!judge(*compared, {what, isGenerated ? inRegime(regime) : "", mayBeOpen, &fusion}))
    return false;
  noteRegime(regime);
  CompareResult &inSteps = sums.inSteps;
  const int64_t all = inSteps.numElements + compared->numElements;
  inSteps.absorb(*compared);
  inSteps.numElements = all;
  sums.numSteps = std::max(sums.numSteps, number);
  return true;
}

bool Comparison::compare(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &actual,
                         Regime regime, const std::string &schedule, const HloModule *settling) {
  const bool byHand = !options.tolerance.empty(), isGenerated = options.inputsFile.empty();
  llvm::FailureOr<Literal> expected = users && byHand ? *users : reference(module, arguments, actual);
  if (failed(expected))
    return false;
  // Where special values meet, or whole numbers go into an exponential, much is open; on ordinary arguments and given
  // ones a reference that knows little is no reference.
  const bool mayBeOpen = settling || (isGenerated && regime != Regime::Ordinary);
  // Bounds of one step are what a right kernel needs; those of many are wider than that.
  const WeakCheck weakCheck = settling                                    ? WeakCheck::None
                              : options.compare != CompareChoice::Default ? WeakCheck::OpenOrWide
                              : mayBeOpen                                 ? WeakCheck::OpenToReject
                                                                          : WeakCheck::Open;
  llvm::FailureOr<CompareResult> compared = compareWith(module, arguments, *expected, actual, weakCheck);
  if (failed(compared))
    return false;
  if (!(users && byHand)) // of somebody else's results the interpreter's values say nothing
    trace(module, arguments, *compared, "");
  if (!compared->equal() && !schedule.empty())
    diagnostics.report(DiagnosticKind::ResultMismatch,
                       fmt::format("with blocks and warps in the order `{}` results are others than in the order "
                                   "`ascending`, which agree; --schedule={} runs it alone",
                                   schedule, schedule));
  std::string what = users && byHand ? fmt::format("differ from those of `{}`", options.expectedFile)
                                     : "differ from the interpreter's";
  std::string where = isGenerated ? inRegime(regime) : "";
  if (!judge(*compared, {what, where, mayBeOpen}) ||
      (settling && compared->numUnknown && !settle(module, *settling, arguments, *expected, where)))
    return false;
  noteRegime(regime);
  sums.atEnd.absorb(*compared);
  isSettled |= settling != nullptr;
  return !users || byHand || !usersAgreement.empty() || compareUsers(module, arguments, *expected, actual);
}

/// That all steps of the fused module are right tells what its results are; are these what the module means? Where
/// passes have changed roundings, as far as that is known.
bool Comparison::settle(const HloModule &module, const HloModule &fused, llvm::ArrayRef<Literal> arguments,
                        const Literal &expected, const std::string &where) {
  llvm::FailureOr<Literal> value = interpret(fused, arguments, diagnostics, interpreterOptions());
  if (failed(value))
    return false;
  llvm::FailureOr<CompareResult> compared =
      compareRun(module, arguments, expected, *value, Backend::Hloc, diagnostics, interpreterOptions());
  return succeeded(compared) &&
         judge(*compared, {"are others after the HLO passes, by the interpreter", where, /*mayBeOpen=*/true});
}

bool Comparison::compareUsers(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &expected,
                              const Literal &proven) {
  llvm::FailureOr<CompareResult> compared = compareRun(module, arguments, expected, *users, Backend::Other, diagnostics,
                                                       interpreterOptions(), WeakCheck::OpenOrWide, &proven);
  if (failed(compared))
    return false;
  std::string what = fmt::format("of `{}` are not what the program may give", options.expectedFile);
  if (!judge(*compared, {what, "", /*mayBeOpen=*/false}))
    return false;
  usersAgreement = describeAgreement(*compared);
  return true;
}

std::string Comparison::regimesText() const {
  std::string names;
  for (Regime regime : regimes)
    names += (names.empty() ? "" : ", ") + regimeName(regime).str();
  return names.empty() ? names
                       : fmt::format(" in {} regime{} ({})", regimes.size(), regimes.size() == 1 ? "" : "s", names);
}

std::string Comparison::agreement(const std::string &watched) const {
  std::string reference =
      users && usersAgreement.empty() ? fmt::format("`{}`", options.expectedFile) : "the interpreter";
  std::string text;
  auto add = [&](const CompareResult &found, const std::string &of, llvm::StringRef unknown) {
    text += fmt::format("{} elements{} agree with {}{}: {}", found.numElements, of, reference, regimesText(),
                        describeAgreement(found, unknown));
  };
  const auto &[atEnd, inSteps, numSteps] = sums;
  constexpr const char *nothing = "of which nothing is known";
  if (numSteps)
    add(inSteps, fmt::format(" of {} step{}", numSteps, numSteps == 1 ? "" : "s"), nothing);
  if (numSteps && atEnd.numCompared)
    text += "\nof all steps together ";
  if (atEnd.numCompared || !numSteps)
    add(atEnd, "", isSettled ? "right as far as each step is" : nothing);
  text += watched + "\n";
  if (!usersAgreement.empty())
    text += fmt::format("so do those of `{}`: {}\n", options.expectedFile, usersAgreement);
  return text;
}

} // namespace hloc
