#include "ValueRules.h"

#include "InputFormats.h"
#include "Outputs.h"

#include "fmt/format.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <unistd.h>

namespace hloc {

namespace {

bool isPresent(const std::string &file) { return !file.empty() && llvm::sys::fs::is_regular_file(file); }

//===--- compile ------------------------------------------------------------------------------------------------===//

Stage reachedByCompiling(const CompileOptions &options) {
  const Stage ofOutput = stageOf(options.emit), end = options.stopAfter;
  if (ofOutput <= Stage::Fuse) // HLO is written, and that is all
    return std::min(end, ofOutput == Stage::Fuse || !options.only.empty() ? Stage::Fuse : Stage::Verify);
  // Descriptions of kernels have registers and spills.
  const bool assembles = options.needsKernels || options.emit == EmitKind::Manifest || ofOutput == Stage::All;
  if (end != Stage::All)
    return end == Stage::Ptx && assembles ? Stage::All : end;
  return assembles ? Stage::All : ofOutput == Stage::Emit ? Stage::Emit : Stage::Ptx;
}

/// The kind of output by -o and --emit, and what is to be there by --stop-after.
std::string kindRefusal(const CompileOptions &options) {
  std::optional<EmitKind> suffixKind = kindOfSuffix(options.output);
  if (!suffixKind && !llvm::sys::path::extension(options.output).empty() && !isFolder(options.output) &&
      !options.kindGiven)
    return fmt::format("the suffix of `-o {}` names no kind of output; --emit=KIND does", options.output);
  if (suffixKind && suffixOf(*suffixKind) != suffixOf(options.emit))
    return fmt::format("`-o {}` and --emit name different kinds of output", options.output);
  if (options.output == "-" && options.outputWanted && stageOf(options.emit) == Stage::All && ::isatty(STDOUT_FILENO))
    return "machine code is not written to a terminal; use -o FILE";
  if (options.outputAsked && stageOf(options.emit) > options.stopAfter)
    return "--stop-after ends before there is anything to write for -o or --emit";
  if (options.stopAfter != Stage::All && options.stopAfter > reachedByCompiling(options))
    return fmt::format("--stop-after has no effect: hloc ends after `{}`, with the output",
                       nameOf(reachedByCompiling(options)));
  return "";
}

/// Several outputs go to a folder: one after the other they would be no PTX file, no LLVM module, no cubin.
std::string severalRefusal(const CompileOptions &options) {
  const bool written = options.stopAfter == Stage::All ? options.outputWanted : options.outputAsked;
  auto refused = [&](const char *what, const char *other) -> std::string {
    if (written && !isFolder(options.output))
      return options.output == "-" ? fmt::format("several {} need `-o DIR/`{}", what, other)
                                   : fmt::format("several {} need `-o DIR/`{}, `{}` is {}", what, other, options.output,
                                                 *other ? "neither" : "none");
    return "";
  };
  if (options.targets.size() > 1 && !isForAllTargets(options.emit))
    if (std::string reason = refused("targets", " or a .fatbin file"); !reason.empty())
      return reason;
  if (options.inputs.size() < 2)
    return "";
  if (std::string reason = refused("inputs", ""); !reason.empty())
    return reason;
  if (!options.manifestFile.empty() && !isFolder(options.manifestFile))
    return fmt::format("several inputs need `--manifest=DIR/`, `{}` is no folder", options.manifestFile);
  llvm::StringMap<std::string> byStem;
  for (const std::string &input : options.inputs)
    if (auto [place, isNew] = byStem.try_emplace(stemOf(input), input); !isNew)
      return fmt::format("`{}` and `{}` have one name, and so would what is made of them", place->second, input);
  return "";
}

/// Two outputs in one file: the second would replace the first.
std::string twiceRefusal(const CompileOptions &options) {
  auto differ = [](const std::string &one, const std::string &other) {
    return one.empty() || one != other || one == "-" || one == "/dev/null" || isFolder(one);
  };
  if (!differ(options.manifestFile, options.output))
    return fmt::format("-o and --manifest both write `{}`", options.output);
  if (!differ(options.timingFile, options.output) || !differ(options.timingFile, options.manifestFile))
    return fmt::format("--timing and another option both write `{}`", options.timingFile);
  return "";
}

/// Reading what is being written, or writing over what was read, is never meant.
std::string inputRefusal(const CompileOptions &options) {
  for (const std::string &input : options.inputs) {
    const std::string output = outputFile(options, input, options.targets.front());
    for (auto [option, file] : {std::pair("-o", &output), std::pair("--manifest", &options.manifestFile),
                                std::pair("--timing", &options.timingFile)})
      if (isPresent(*file) && *file != "-" && input != "-" && llvm::sys::fs::equivalent(*file, input))
        return fmt::format("{} would write over the input `{}`", option, input);
  }
  return "";
}

/// A dump of an earlier run, in the folder that this run empties before it begins.
bool wouldBeRemoved(llvm::StringRef input, const DumpOptions &dump) {
  llvm::StringRef folder = llvm::sys::path::parent_path(llvm::sys::path::parent_path(input));
  return dump.enabled && !dump.folder.empty() && llvm::sys::fs::equivalent(folder.empty() ? "." : folder, dump.folder);
}

/// Compiling goes on from IR of an earlier run: to what, and how far?
std::string formatRefusal(const CompileOptions &options, const std::string &input) {
  const IrKind format = formatOf(options, input);
  if (format == IrKind::Hlo)
    return "";
  const std::string what = fmt::format("`{}` is {}", input, nameOf(format));
  if (options.estimate && options.launchFile.empty())
    return "--estimate needs --launch=FILE.json: " + what + ", and how its kernels are launched is not known";
  const bool onlyReads = (options.lint || options.estimate) && !options.outputAsked;
  const bool isCode = stageOf(options.emit) == Stage::All;
  if (format == IrKind::Ptx && options.emit == EmitKind::Ptx && !onlyReads)
    return what + " already; `-o FILE.cubin` or `-o FILE.fatbin` says what to make of it";
  if (options.emit == EmitKind::Manifest)
    return what + ", from which nothing is known of buffers and shapes to describe kernels by";
  if (stageOf(options.emit) <= stageOf(format) && !onlyReads && !isCode)
    return what + ", a later stage than what --emit or -o ask for";
  if (options.stopAfter <= stageOf(format))
    return what + ", which is later than where --stop-after ends";
  if (wouldBeRemoved(input, options.dump))
    return fmt::format("the dumps of an earlier run are removed, and `{}` is one of them; name another folder", input);
  return "";
}

std::string compileRefusal(const CompileOptions &options) {
  for (auto refusal : {kindRefusal, severalRefusal, twiceRefusal, inputRefusal})
    if (std::string reason = refusal(options); !reason.empty())
      return reason;
  for (const std::string &input : options.inputs)
    if (std::string reason = formatRefusal(options, input); !reason.empty())
      return reason;
  return "";
}

//===--- run ----------------------------------------------------------------------------------------------------===//

/// Whether a file that a run writes is one that it reads.
bool overwritesInput(const CompileOptions &options, const RunCommandOptions &run) {
  for (const std::string *written : {&run.outputsFile, &options.timingFile})
    for (const std::string *read :
         {&options.inputs.front(), &run.inputsFile, &run.ptxFile, &run.manifestFile, &run.launchFile})
      if (isPresent(*written) && !read->empty() && llvm::sys::fs::equivalent(*written, *read))
        return true;
  return false;
}

std::string runRefusal(const CompileOptions &options, const RunCommandOptions &run) {
  if (options.targets.size() > 1)
    return "--target names several GPUs, a run is for one";
  if (formatOf(options, options.inputs.front()) != IrKind::Hlo)
    return "a run compares kernels with what HLO means, and the input is none; --ptx=FILE executes PTX for it";
  if (overwritesInput(options, run))
    return "--outputs or --timing would write over a file that the run reads";
  if (!run.expectedFile.empty() && run.regimes.size() > 1)
    return "--expected brings results of one run, --regimes names several";
  return "";
}

/// What a target is needed for besides compiling: an estimate is for a device.
bool usesTarget(const Command &command) {
  const RunCommandOptions &run = command.run;
  const bool compiles = command.subcommand == compileCommand || run.ptxFile.empty() || !command.compile.only.empty() ||
                        run.verifyEachPass;
  return (compiles && reachedStage(command) >= Stage::Fuse) || command.compile.estimate;
}

} // namespace

std::string searchContradiction(const Command &command) {
  const ReduceOptions &options = command.reduce;
  for (const std::string &input : {options.input, options.ptx})
    if (isPresent(options.output) && isPresent(input) && llvm::sys::fs::equivalent(options.output, input))
      return fmt::format("-o would write over the input `{}`", input);
  return "";
}

Stage reachedStage(const Command &command) {
  const RunCommandOptions &run = command.run;
  if (command.subcommand == compileCommand)
    return reachedByCompiling(command.compile);
  if (run.platform != Platform::Interpreter && run.ptxFile.empty())
    return Stage::Ptx;
  // To compare the steps of a manifest, the module is planned.
  const bool fuses = !command.compile.only.empty() || run.verifyEachPass || !run.manifestFile.empty();
  return fuses ? Stage::Fuse : Stage::Verify;
}

std::string valueContradiction(const Command &command, const GivenOptions &given) {
  if (given.has("--target") && !usesTarget(command))
    return "--target has no effect: nothing is compiled for it";
  return command.subcommand == runCommand ? runRefusal(command.compile, command.run) : compileRefusal(command.compile);
}

} // namespace hloc
