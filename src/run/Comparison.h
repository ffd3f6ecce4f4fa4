#pragma once
// What `hloc run` compares results with, and what it says when all runs agree.
//
// The reference is the interpreter. Results of the user (--expected) come beside it: every element of both has to be
// one that the program may give. With a tolerance given by hand the user's results are the reference, and nothing is
// interpreted.
//
// Where the reference does not know what is right, it says so: that is no agreement, and no mismatch either
// (UndecidedResult, decisions/0010). Of a program whose steps have been compared one by one, nothing needs to be known
// of its results that the steps do not tell.

#include "MemoryBudget.h"

#include "hloc/hlo/HloModule.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/run/RunObserver.h"
#include "hloc/run/RunOptions.h"

namespace hloc {

class Comparison {
public:
  Comparison(const RunOptions &options, const MemoryBudget &memory, CompileObserver &timing, RunProgress &progress,
             DiagnosticEngine &diagnostics)
      : options(options), memory(memory), timing(timing), progress(progress), diagnostics(diagnostics) {}

  /// What may be behind a difference, asked for where there is one: notes.
  void explainDifferences(std::function<std::vector<std::string>()> notes) { explain = std::move(notes); }

  /// Reads --expected, if there is one. False after a diagnostic.
  bool open(const HloModule &module);

  /// False, with a diagnostic, if they differ or cannot be compared. `schedule`: the one that gave `actual` if there
  /// was another before, with which all was well. `settling`: what the program's steps carry out, all of which were
  /// right; null if they have not been compared.
  bool compare(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &actual, Regime regime,
               const std::string &schedule = "", const HloModule *settling = nullptr);

  /// The same of step `number` of a program: a fusion as a module of its own, `step`, on what the device has computed
  /// before. `fusion` is where the step comes from.
  bool compareStep(const HloModule &step, llvm::ArrayRef<Literal> arguments, const Literal &actual, Regime regime,
                   const HloInstruction &fusion, size_t number);

  /// All comparisons have been made, and nothing differs. False, with a diagnostic, if that is no agreement, since
  /// something is not known.
  bool conclude();

  /// A line or two for all comparisons, all of which were successful. `watched`: what else was looked at.
  std::string agreement(const std::string &watched) const;

  /// What led to the first element that is wrong, if there is one and it was asked for.
  std::optional<ValueChain> takeChain() { return std::exchange(chain, std::nullopt); }

  /// Of all comparisons so far.
  const ComparisonTotals &totals() const { return sums; }

private:
  /// What has been compared, for messages.
  struct Subject {
    std::string what;  ///< "differ from the interpreter's"
    std::string where; ///< " in the regime `special`"; empty of given arguments
    bool mayBeOpen;
    const HloInstruction *step = nullptr;
  };

  void trace(const HloModule &module, llvm::ArrayRef<Literal> arguments, const CompareResult &result,
             const std::string &step);
  bool judge(const CompareResult &result, const Subject &subject);
  bool settle(const HloModule &module, const HloModule &fused, llvm::ArrayRef<Literal> arguments,
              const Literal &expected, const std::string &where);
  llvm::FailureOr<CompareResult> compareWith(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                             const Literal &expected, const Literal &actual, WeakCheck check);
  void noteRegime(Regime regime);
  std::string regimesText() const;
  /// Is what --expected brought admissible, given the interpreter's result?
  bool compareUsers(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &expected,
                    const Literal &proven);
  /// The program's result by the interpreter, which may be what was executed.
  llvm::FailureOr<Literal> reference(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &actual);

  InterpreterOptions interpreterOptions() const {
    InterpreterOptions result;
    result.progress = progress.work();
    result.maxBytes = isRunning ? memory.forSteps() : memory.forReference();
    return result;
  }

  const RunOptions &options;
  const MemoryBudget &memory;
  CompileObserver &timing;
  RunProgress &progress;
  DiagnosticEngine &diagnostics;
  std::function<std::vector<std::string>()> explain;
  bool isRunning = false;       ///< a step of a program is compared, whose other steps follow
  std::optional<Literal> users; ///< --expected
  std::vector<Regime> regimes;  ///< in which results agree
  ComparisonTotals sums;
  std::optional<ValueChain> chain;
  bool isSettled = false;     ///< what is not known at the end the steps have told
  std::string usersAgreement; ///< of the user's results with the interpreter
  struct OpenResult {
    SourceRange range;
    std::string text;
  };
  std::optional<OpenResult> firstOpen; ///< the first result that the reference does not know
};

} // namespace hloc
