#pragma once
// What `hloc run` compares results with, and what it says when all runs agree.
//
// The reference is the interpreter. Results of the user (--expected) come beside it: every element of both has to be
// one that the program may give. With a tolerance given by hand the user's results are the reference, and nothing is
// interpreted.

#include "Options.h"
#include "Progress.h"
#include "Timing.h"

#include "hloc/compare/Compare.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/interp/Interpreter.h"

namespace hloc {

class Comparison {
public:
  Comparison(const RunOptions &options, Timing &timing, Progress &progress, DiagnosticEngine &diagnostics)
      : options(options), timing(timing), progress(progress), diagnostics(diagnostics) {}

  /// Is there anything to compare with?
  static bool isAsked(const RunOptions &options);

  /// Reads --expected, if there is one. False after a diagnostic.
  bool open(const HloModule &module);

  /// False, with a diagnostic, if they differ or cannot be compared. `schedule`: the one that gave `actual` if there
  /// was another before, with which all was well.
  bool compare(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &actual, Regime regime,
               const std::string &schedule = "");

  /// The same of step `number` of a program: a fusion as a module of its own, `step`, on what the device has computed
  /// before. `fusion` is where the step comes from.
  bool compareStep(const HloModule &step, llvm::ArrayRef<Literal> arguments, const Literal &actual, Regime regime,
                   const HloInstruction &fusion, size_t number);

  /// One line for all comparisons, all of which were successful. `watched`: what else was looked at.
  std::string agreement(const std::string &watched) const;

private:
  bool judge(const CompareResult &result, const std::string &what, const std::string &where, bool mayBeOpen,
             const HloInstruction *step = nullptr);
  llvm::FailureOr<CompareResult> compareWith(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                             const Literal &expected, const Literal &actual);
  /// Is what --expected brought admissible, given the interpreter's result?
  bool compareUsers(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &expected);
  /// The program's result by the interpreter, which may be what was executed.
  llvm::FailureOr<Literal> reference(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &actual);

  InterpreterOptions interpreterOptions() const {
    InterpreterOptions result;
    result.progress = progress.work();
    return result;
  }

  const RunOptions &options;
  Timing &timing;
  Progress &progress;
  DiagnosticEngine &diagnostics;
  std::optional<Literal> users; ///< --expected
  std::vector<Regime> regimes;  ///< in which results agree
  CompareResult found;          ///< of all comparisons
  std::string usersAgreement;   ///< of the user's results with the interpreter
};

} // namespace hloc
