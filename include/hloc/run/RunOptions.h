#pragma once
// What a run is to do, as data: what executes, on which arguments, and what its results are compared with.

#include "hloc/compiler/Compiler.h"
#include "hloc/emulator/Emulator.h"
#include "hloc/interp/Inputs.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/runtime/CudaDevice.h"

#include <optional>
#include <string>
#include <vector>

namespace hloc {

enum class Platform { Emulator, Cuda, Interpreter };
enum class Reference { Interpreter, None };
/// What of a program of several steps is compared: each step on what was computed before it, or the results. By default
/// steps; and results as far as the reference knows them.
/// What of a run on a GPU is done as one CUDA graph: nothing; the repetitions that are timed, also; what is compared,
/// too.
enum class GraphUse { Off, Timed, Always };

enum class CompareChoice { Default, End, Steps, Both };

struct RunOptions {
  CompilerOptions compiler;
  TargetInfo target; ///< of what is compiled
  /// Else the code is for the GPU that is there, where it runs on one.
  bool targetGiven = false;
  std::vector<std::string> only; ///< kernels that are the program; empty: all
  Platform platform = Platform::Emulator;
  CudaOptions cuda; ///< where a GPU's driver and libraries are
  Reference reference = Reference::Interpreter;
  std::string inputsFile, outputsFile, expectedFile; ///< numpy's .npz; empty: none
  uint64_t seed = 0;
  std::vector<Regime> regimes; ///< of generated inputs; empty: all that apply
  std::string ptxFile, manifestFile, launchFile;
  std::vector<std::string> checks; ///< bounds, races, uninit, divergence; `none`
  std::string approximations;      ///< `exact`, `largest`, `smallest` or a seed; empty: `seed`
  bool countsEvents = false;       ///< of the first run, as the other two
  bool tracesFailures = false;     ///< finds what led to the first element that is wrong (RunReport::chain)
  bool estimates = false;
  unsigned repeat = 0;
  GraphUse graph = GraphUse::Timed;
  bool verifyEachPass = false;
  unsigned shrink = 0; ///< the size that dimensions should not exceed; 0: as they are
  CompareChoice compare = CompareChoice::Default;
  std::string tolerance;                      ///< empty: by the policy of hloc/compare
  std::optional<emulator::Schedule> schedule; ///< unset: all that may matter
  uint64_t memoryBytes = 0;                   ///< that the run may take; 0: what the machine has
  double deadline = 0;                        ///< of kernels, in seconds of the steady clock; 0: none

  /// Is there anything to compare with?
  bool compares() const {
    return !expectedFile.empty() || (reference == Reference::Interpreter && platform != Platform::Interpreter);
  }
};

/// "ascending", "reversed", "shuffled", "shuffled:SEED"; nothing if it is none of these.
std::optional<emulator::Schedule> parseSchedule(llvm::StringRef text);

} // namespace hloc
