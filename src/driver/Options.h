#pragma once
// The command line as data: what its options ask for.

#include "Colour.h"
#include "DiagnosticForm.h"
#include "Dumps.h"
#include "Progress.h"

#include "hloc/codegen/Assemble.h"
#include "hloc/codegen/Pipeline.h"
#include "hloc/codegen/Toolchain.h"
#include "hloc/compiler/Compiler.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/run/RunOptions.h"

#include <optional>
#include <string>
#include <vector>

namespace hloc {

class DiagnosticEngine;

enum Subcommand : unsigned {
  compileCommand = 1,
  runCommand = 2,
  optCommand = 4,
  reduceCommand = 8,
  bisectCommand = 16,
  replayCommand = 32,
  comparisonCommand = 64,
  lspCommand = 128
};
inline constexpr Subcommand subcommands[] = {compileCommand, runCommand,    optCommand,        reduceCommand,
                                             bisectCommand,  replayCommand, comparisonCommand, lspCommand};
const char *nameOf(Subcommand command);
/// `hloc run`; of compile, which is the default, `hloc`.
std::string calledAs(Subcommand command);

enum class EmitKind { Hlo, HloFused, Dot, PlanDot, Mlir, Llvm, Ptx, Cubin, Fatbin, Manifest };

struct CompileOptions {
  std::vector<std::string> inputs;   ///< of the command line
  std::string input;                 ///< the one that is compiled or run
  std::optional<IrKind> inputFormat; ///< unset: by the suffix of each input
  std::string startAfter;            ///< of IR: id of the pass that has left it; empty: as its first line says
  std::string output = "-";
  EmitKind emit = EmitKind::Ptx; ///< as given, or by the suffix of `output`
  bool kindGiven = false;        ///< by --emit
  bool outputAsked = false;      ///< by -o or --emit
  bool outputWanted = true;      ///< not if it was not asked for and something else is printed or checked instead
  bool needsKernels = false;     ///< kernels are described or judged, apart from what is written
  std::vector<TargetInfo> targets;
  bool targetGiven = false; ///< else `targets` holds the default
  Stage stopAfter = Stage::All;
  DumpOptions dump;
  std::optional<std::string> remarks; ///< regular expression over their kinds; unset: none are printed
  std::string manifestFile;
  CacheSettings cache; ///< of the environment
  std::string goldenFolder;
  bool updateGolden = false;
  bool listKernels = false;
  std::string reportFile;        ///< of HTML; empty: none
  std::string reportBefore;      ///< that it is compared with; empty: it is a page of its own
  std::vector<std::string> only; ///< kernels to compile or run; empty: all
  bool keepGoing = false;
  bool allowExternal = false;
  bool prove = false;
  bool lint = false;
  bool lintAsJson = false;
  std::vector<std::string> lintRules;    ///< those to check; empty: all
  std::vector<std::string> lintDisabled; ///< those not to
  std::string launchFile;                ///< how PTX of another compiler is launched
  bool estimate = false;
  bool estimateAsJson = false;
  std::string device; ///< that times are estimated for; empty: the target's
  ProgressChoice progress = ProgressChoice::Auto;
  bool timing = false;
  std::string timingFile;
  ToolchainOptions toolchain;
  AssemblerChoice assembler = AssemblerChoice::Auto;
  unsigned jobs = 0; ///< 0: as many as there are cores
  bool lineInfo = false;
  bool dumpLocations = false;
  ColourChoice colour = ColourChoice::Auto;
  DiagnosticForm diagnosticForm = DiagnosticForm::Text;
  unsigned optimizationLevel = 3;
  FusionMode fusion = FusionMode::Keep;
  F32Dots f32Dots = F32Dots::F32;
  SoftmaxChoice softmax = SoftmaxChoice::Strict;
  Multiplier dots = Multiplier::Own, convolutions = Multiplier::Own;
  ForcedChoices forced;               ///< that are made for it
  std::vector<std::string> whatIfs;   ///< what estimates are compared with, as given
  std::optional<TileSizes> tile;      ///< that contractions are to have
  std::optional<std::string> explain; ///< an instruction, or `.` for all; unset: nothing is explained
  bool explainAsJson = false;
  std::vector<std::string> disabledPasses;
  std::string reproducerFolder;      ///< where what goes wrong is kept; empty: nowhere
  std::vector<std::string> fastMath; ///< rules that change floats and are to be applied
};

/// Of `hloc run`. What the compiler's options say of the run as well is filled in when it starts.
struct RunCommandOptions : RunOptions {
  CompileOptions compile;
  std::string counters;      ///< empty: off; `table` or `json`
  std::string verdictFile;   ///< of JSON; `-`: standard output; empty: none
  double timeoutSeconds = 0; ///< of the whole run; 0: none
};

/// Of `hloc opt`.
struct OptOptions {
  std::string input, output;
  std::vector<std::string> passes; ///< elements of a textual pipeline, in order
  PipelineOptions pipeline;
  bool wholePipeline = false;
  bool verifyDiagnostics = false;
  bool splitInput = false;
  bool printAfterAll = false;
  bool generic = false;
  bool localScope = false;
};

/// Of `hloc reduce`, `hloc bisect` and `hloc replay`, whose input is a folder.
struct ReduceOptions {
  std::string input, output = "-";
  std::vector<std::string> conditions; ///< of --while; none: that it ends as the input does
  double timeout = 0, timeLimit = 0;   ///< seconds of a candidate, and of all; 0: by what the input takes, and none
  unsigned jobs = 0;
  bool isPtx = false; ///< lines of `ptx` go, which is run for the module
  std::string ptx;
  std::vector<std::string> arguments; ///< of `hloc run`: what stands behind `--`
  ColourChoice colour = ColourChoice::Auto;
  ProgressChoice progress = ProgressChoice::Auto;
};

/// Of `hloc compare`.
struct CompareOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> peers;     ///< of --with; none: the PTX beside each input
  std::vector<std::string> arguments; ///< of `hloc run`: what stands behind `--`
  bool asJson = false;
  ColourChoice colour = ColourChoice::Auto;
};

/// Of `hloc lsp`, beside the target and the device of CompileOptions.
struct LspOptions {
  bool standardStreams = false; ///< asked for; they are what it uses
  double timeLimit = 20;        ///< seconds of a compilation for hovers; 0: there is none
};

/// What the command line asks for: to compile, to run, to run passes, or an answer about hloc.
struct Command {
  Subcommand subcommand = compileCommand;
  CompileOptions compile;
  RunCommandOptions run;
  OptOptions opt;
  CompareOptions compare;
  ReduceOptions reduce;
  LspOptions lsp;
  std::string shell;                                ///< of --completion
  bool help = false;                                ///< of the subcommand is printed instead of anything else
  bool helpAll = false;                             ///< with all options
  std::string (*answer)(const Command &) = nullptr; ///< what is printed instead of anything else
};

/// False after errors were reported; what could be read of the options is in `command` all the same. `arguments` begin
/// with the name of the program.
bool parseCommandLine(llvm::ArrayRef<const char *> arguments, Command &command, DiagnosticEngine &diagnostics);

} // namespace hloc
