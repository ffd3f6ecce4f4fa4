#include "Comparison.h"

#include "NumpyFiles.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

bool Comparison::isAsked(const RunOptions &options) {
  return !options.expectedFile.empty() ||
         (options.reference == Reference::Interpreter && options.platform != Platform::Interpreter);
}

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

bool Comparison::judge(const CompareResult &result, const std::string &what, const std::string &where, bool mayBeOpen,
                       const HloInstruction *step) {
  const SourceRange range = step ? step->range() : SourceRange();
  if (!result.equal()) {
    Diagnostic &report = diagnostics.report(DiagnosticKind::ResultMismatch, range,
                                            fmt::format("{} of {} elements {}{}\n{}", result.numMismatches,
                                                        result.numElements, what, where, result.report));
    if (step)
      report.note(fmt::format("`--only={}` runs this step alone", step->name().str()));
    return false;
  }
  int64_t limit = std::max<int64_t>(8, result.numElements / 20);
  if (!mayBeOpen && result.numUndecided > limit) {
    std::string of = step ? fmt::format(" of step `{}`", step->name().str()) : "";
    diagnostics.report(DiagnosticKind::UndecidedResult, range,
                       fmt::format("the reference does not know {} of {} elements{}{}, more than the {} it may: {}",
                                   result.numUndecided, result.numElements, of, where, limit,
                                   describeAgreement(result)));
    return false;
  }
  return true;
}

llvm::FailureOr<CompareResult> Comparison::compareWith(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                       const Literal &expected, const Literal &actual) {
  TimedScope scope(timing, "compare");
  progress.beginStage("compare");
  if (!options.tolerance.empty())
    return compareLiterals(expected, actual, *parseTolerance(options.tolerance));
  Backend backend = options.launchFile.empty() ? Backend::Hloc : Backend::Other;
  return compareRun(module, arguments, expected, actual, backend, diagnostics, interpreterOptions());
}

static std::string inRegime(Regime regime) { return fmt::format(" in the regime `{}`", regimeName(regime).str()); }

bool Comparison::compareStep(const HloModule &step, llvm::ArrayRef<Literal> arguments, const Literal &actual,
                             Regime regime, const HloInstruction &fusion, size_t number) {
  llvm::FailureOr<Literal> expected = reference(step, arguments, actual);
  if (failed(expected))
    return false;
  llvm::FailureOr<CompareResult> compared = compareWith(step, arguments, *expected, actual);
  if (failed(compared))
    return false;
  const bool isGenerated = options.inputsFile.empty();
  std::string what = fmt::format("of step {}, `{}`, differ from the interpreter's", number, fusion.name().str());
  if (!judge(*compared, what, isGenerated ? inRegime(regime) : "", isGenerated && regime != Regime::Ordinary, &fusion))
    return false;
  if (isGenerated && !llvm::is_contained(regimes, regime))
    regimes.push_back(regime);
  const int64_t all = found.numElements + compared->numElements;
  found.absorb(*compared);
  found.numElements = all;
  return true;
}

bool Comparison::compare(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &actual,
                         Regime regime, const std::string &schedule) {
  const bool byHand = !options.tolerance.empty(), isGenerated = options.inputsFile.empty();
  llvm::FailureOr<Literal> expected = users && byHand ? *users : reference(module, arguments, actual);
  if (failed(expected))
    return false;
  llvm::FailureOr<CompareResult> compared = compareWith(module, arguments, *expected, actual);
  if (failed(compared))
    return false;
  if (!compared->equal() && !schedule.empty())
    diagnostics.report(DiagnosticKind::ResultMismatch,
                       fmt::format("with blocks and warps in the order `{}` results are others than in the order "
                                   "`ascending`, which agree; --schedule={} runs it alone",
                                   schedule, schedule));
  std::string what = users && byHand ? fmt::format("differ from those of `{}`", options.expectedFile)
                                     : "differ from the interpreter's";
  std::string where = isGenerated ? inRegime(regime) : "";
  // Where special values meet, or whole numbers go into an exponential, much is open; on ordinary arguments and given
  // ones a reference that knows little is no reference.
  if (!judge(*compared, what, where, isGenerated && regime != Regime::Ordinary))
    return false;
  if (isGenerated && !llvm::is_contained(regimes, regime))
    regimes.push_back(regime);
  found.absorb(*compared);
  return !users || byHand || !usersAgreement.empty() || compareUsers(module, arguments, *expected);
}

bool Comparison::compareUsers(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &expected) {
  llvm::FailureOr<CompareResult> compared =
      compareRun(module, arguments, expected, *users, Backend::Other, diagnostics, interpreterOptions());
  if (failed(compared))
    return false;
  std::string what = fmt::format("of `{}` are not what the program may give", options.expectedFile);
  if (!judge(*compared, what, "", /*mayBeOpen=*/true))
    return false;
  usersAgreement = describeAgreement(*compared);
  return true;
}

std::string Comparison::agreement(const std::string &watched) const {
  std::string names;
  for (Regime regime : regimes)
    names += (names.empty() ? "" : ", ") + regimeName(regime).str();
  if (!names.empty())
    names = fmt::format(" in {} regime{} ({})", regimes.size(), regimes.size() == 1 ? "" : "s", names);
  std::string reference =
      users && usersAgreement.empty() ? fmt::format("`{}`", options.expectedFile) : "the interpreter";
  std::string text = fmt::format("{} elements agree with {}{}: {}{}\n", found.numElements, reference, names,
                                 describeAgreement(found), watched);
  if (!usersAgreement.empty())
    text += fmt::format("so do those of `{}`: {}\n", options.expectedFile, usersAgreement);
  return text;
}

} // namespace hloc
