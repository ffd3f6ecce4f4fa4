#pragma once
// What a run has found, as data. What is wrong with the input, the kernels or the results is in the DiagnosticEngine.

#include "hloc/compare/Compare.h"
#include "hloc/emulator/Emulator.h"
#include "hloc/interp/Inputs.h"
#include "hloc/run/EstimatedModule.h"
#include "hloc/run/ValueChain.h"
#include "hloc/runtime/Measure.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// What launches took on a GPU.
struct MeasuredRun {
  std::string device, target;
  Measurement measurement;
};

/// The program on one set of arguments.
struct ProgramRun {
  std::optional<Regime> regime;  ///< unset: the arguments were given
  std::optional<Literal> result; ///< where nothing is compared and no file asked for
  std::optional<emulator::Counters> counters;
  std::vector<emulator::LineCounters> lineCounters; ///< with them: by line of RunReport::ptx
  std::optional<EstimatedModule> estimate;
  std::optional<MeasuredRun> measured;
};

/// What has been compared, and what is known of it: of all sets of arguments together.
struct ComparisonTotals {
  CompareResult atEnd;   ///< results
  CompareResult inSteps; ///< results of steps
  size_t numSteps = 0;   ///< the largest number of a step that was compared
};

enum class RunVerdict {
  NotRun,    ///< something is wrong with the input, or not supported
  Wrong,     ///< a check has found something, or results differ
  Executed,  ///< nothing was compared
  Undecided, ///< nothing differs, but the reference does not know enough of some results
  Agrees
};

struct RunReport {
  RunVerdict verdict = RunVerdict::NotRun;
  std::map<int64_t, int64_t> shrunkSizes; ///< old and new
  size_t numVerifiedSets = 0;             ///< sets of arguments on which every HLO pass keeps the results
  std::vector<ProgramRun> runs;           ///< those that ended, in order
  std::vector<std::string> notes;         ///< what is strange in kernels and harms nobody
  ComparisonTotals compared;
  std::optional<ValueChain> chain; ///< to the first element that is wrong, if it was asked for
  std::string ptx;                 ///< what was executed, where events were counted
  std::string agreement;           ///< what agrees with what, and what was watched; empty where nothing was compared
};

} // namespace hloc
