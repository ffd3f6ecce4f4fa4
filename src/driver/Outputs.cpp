#include "Outputs.h"

#include "InputFormats.h"

#include "hloc/support/Check.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

namespace hloc {

namespace {

struct SuffixRow {
  llvm::StringLiteral suffix;
  EmitKind kind;
};
constexpr SuffixRow suffixes[] = {{".ptx", EmitKind::Ptx}, {".cubin", EmitKind::Cubin},  {".fatbin", EmitKind::Fatbin},
                                  {".hlo", EmitKind::Hlo}, {".dot", EmitKind::Dot},      {".mlir", EmitKind::Mlir},
                                  {".ll", EmitKind::Llvm}, {".json", EmitKind::Manifest}};

llvm::StringRef suffixOf(EmitKind kind) {
  if (kind == EmitKind::HloFused)
    kind = EmitKind::Hlo;
  else if (kind == EmitKind::PlanDot)
    kind = EmitKind::Dot;
  for (const SuffixRow &row : suffixes)
    if (row.kind == kind)
      return row.suffix;
  HLOC_UNREACHABLE("unknown kind of output");
}

bool isFolder(llvm::StringRef path) { return path.ends_with("/") || llvm::sys::fs::is_directory(path); }

/// `FOLDER/<stem>.<target><suffix>`, without the target if it is for all.
std::string fileIn(llvm::StringRef folder, llvm::StringRef input, const TargetInfo *target, llvm::StringRef suffix) {
  return (folder.rtrim('/') + (folder.starts_with("/") && folder.rtrim('/').empty() ? "" : "/") + stemOf(input) +
          (target ? "." + target->name : std::string()) + suffix)
      .str();
}

} // namespace

Stage stageOf(EmitKind kind) {
  switch (kind) {
  case EmitKind::Hlo:
  case EmitKind::Dot:
    return Stage::Parse;
  case EmitKind::HloFused:
    return Stage::Fuse;
  case EmitKind::PlanDot:
  case EmitKind::Mlir:
    return Stage::Emit;
  case EmitKind::Llvm:
    return Stage::Llvm;
  case EmitKind::Ptx:
  case EmitKind::Manifest:
    return Stage::Ptx;
  case EmitKind::Cubin:
  case EmitKind::Fatbin:
    return Stage::All;
  }
  HLOC_UNREACHABLE("unknown kind of output");
}

std::string stemOf(llvm::StringRef input) { return input == "-" ? "stdin" : llvm::sys::path::stem(input).str(); }

bool Outputs::oneForAllTargets() const { return emitKind == EmitKind::Fatbin || stageOf(emitKind) <= Stage::Fuse; }

Stage Outputs::neededStage() const {
  if (options.stopAfter != Stage::All)
    return options.stopAfter;
  if (!needsKernels() && stageOf(emitKind) <= Stage::Emit)
    return stageOf(emitKind);
  return Stage::Ptx;
}

bool Outputs::needsAssembler() const {
  return needsKernels() || emitKind == EmitKind::Cubin || emitKind == EmitKind::Fatbin ||
         emitKind == EmitKind::Manifest;
}

bool Outputs::prepare(DiagnosticEngine &diagnostics) {
  std::string reason = refusal();
  if (reason.empty())
    reason = severalRefusal();
  if (reason.empty())
    reason = twiceRefusal();
  if (reason.empty())
    reason = inputRefusal();
  for (const std::string &input : options.inputs)
    if (reason.empty())
      reason = formatRefusal(options, input, emitKind, describesKernels());
  if (!reason.empty())
    diagnostics.report(DiagnosticKind::BadUsage, std::move(reason));
  return !diagnostics.hasErrors();
}

/// Decides the kind. Why options that are fine by themselves make no sense together; empty if they do.
std::string Outputs::refusal() {
  std::optional<EmitKind> suffixKind;
  for (const SuffixRow &row : suffixes)
    if (llvm::StringRef(options.output).ends_with(row.suffix) && !isFolder(options.output))
      suffixKind = row.kind;
  llvm::StringRef suffix = llvm::sys::path::extension(options.output);
  if (!suffixKind && !options.emit && !suffix.empty() && !isFolder(options.output))
    return fmt::format("the suffix of `-o {}` names no kind of output; --emit=KIND does", options.output);
  emitKind = options.emit ? *options.emit : suffixKind.value_or(EmitKind::Ptx);
  if (suffixKind && suffixOf(*suffixKind) != suffixOf(emitKind))
    return fmt::format("`-o {}` and --emit name different kinds of output", options.output);
  if (options.updateGolden && options.goldenFolder.empty())
    return "--update-golden needs --golden=DIR, the folder to write to";
  if (options.explain && options.emit && options.output == "-")
    return "--explain and --emit both write to standard output; -o names a file";
  if (options.listKernels && options.emit && options.output == "-")
    return "--list-kernels and --emit both write to standard output; -o names a file";
  if (options.manifestFile == "-" && ((options.output == "-" && wanted()) || options.listKernels))
    return "--manifest=- is not alone on standard output; -o names a file, --emit=manifest writes nothing else";
  if (options.manifestFile == "-" && options.targets.size() > 1)
    return "several targets need `--manifest=DIR/` or a file, one manifest a target";
  if (options.lintAsJson && (options.listKernels || options.manifestFile == "-" || (asked() && options.output == "-")))
    return "--lint=json is not alone on standard output; -o names a file";
  if (options.lintAsJson && (options.inputs.size() > 1 || options.targets.size() > 1))
    return "--lint=json is about one input and one target";
  if (options.lint && stageOf(emitKind) < Stage::Ptx)
    return "--lint is about PTX, and the output is written before there is any";
  if (options.estimate && stageOf(emitKind) < Stage::Ptx)
    return "--estimate is about kernels, and the output is written before there are any";
  if (options.estimate && (options.lintAsJson || options.manifestFile == "-" || (asked() && options.output == "-")))
    return "--estimate is not alone on standard output; -o names a file";
  if (options.listKernels && stageOf(emitKind) < Stage::Ptx)
    return "--list-kernels is about kernels, and the output is written before there are any";
  if (options.output == "-" && (emitKind == EmitKind::Cubin || emitKind == EmitKind::Fatbin) && ::isatty(STDOUT_FILENO))
    return "machine code is not written to a terminal; use -o FILE";
  if (std::string reason = partRefusal(); !reason.empty())
    return reason;
  if (options.stopAfter == Stage::All)
    return "";
  if (asked() && stageOf(emitKind) > options.stopAfter)
    return "--stop-after ends before there is anything to write for -o or --emit";
  if (options.estimate && options.stopAfter < Stage::Ptx)
    return "--stop-after ends before there are kernels for --estimate";
  if (options.lint && options.stopAfter < Stage::Ptx)
    return "--stop-after ends before there is PTX for --lint";
  if (describesKernels() && options.stopAfter < Stage::Ptx)
    return "--stop-after ends before there are kernels for --golden, --manifest or --list-kernels to describe";
  return "";
}

/// Options that choose among kernels need some.
std::string Outputs::partRefusal() const {
  if (!options.only.empty() && options.stopAfter < Stage::Fuse)
    return "--only chooses among kernels, and --stop-after ends before there are any";
  if (!options.only.empty() && options.inputs.size() > 1)
    return "--only chooses among the kernels of one input";
  if (!options.only.empty() && options.updateGolden)
    return "--update-golden writes the golden of a whole module, of which --only leaves most out";
  if (options.allowExternal && (stageOf(emitKind) <= Stage::Fuse || options.stopAfter < Stage::Plan))
    return "--allow-external is about steps, and hloc ends before there are any";
  if (!options.keepGoing)
    return "";
  if (stageOf(emitKind) <= Stage::Fuse || options.stopAfter < Stage::Plan)
    return "--keep-going is about kernels, and hloc ends before there are any";
  if (!options.goldenFolder.empty())
    return "--golden compares whole modules; --keep-going leaves out what cannot be compiled";
  return "";
}

/// Several outputs go to a folder: one after the other they would be no PTX file, no LLVM module, no cubin.
std::string Outputs::severalRefusal() const {
  bool written = options.stopAfter == Stage::All ? wanted() : asked();
  auto refused = [&](const char *what, const char *other) -> std::string {
    if (written && !isFolder(options.output))
      return options.output == "-" ? fmt::format("several {} need `-o DIR/`{}", what, other)
                                   : fmt::format("several {} need `-o DIR/`{}, `{}` is {}", what, other, options.output,
                                                 *other ? "neither" : "none");
    return "";
  };
  if (options.targets.size() > 1 && !oneForAllTargets())
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
std::string Outputs::twiceRefusal() const {
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
std::string Outputs::inputRefusal() const {
  const TargetInfo *target = oneForAllTargets() ? nullptr : &options.targets.front();
  for (const std::string &input : options.inputs) {
    const std::string output =
        isFolder(options.output) ? fileIn(options.output, input, target, suffixOf(emitKind)) : options.output;
    for (auto [option, file] : {std::pair("-o", &output), std::pair("--manifest", &options.manifestFile),
                                std::pair("--timing", &options.timingFile)})
      if (!file->empty() && *file != "-" && input != "-" && llvm::sys::fs::is_regular_file(*file) &&
          llvm::sys::fs::equivalent(*file, input))
        return fmt::format("{} would write over the input `{}`", option, input);
  }
  return "";
}

void Outputs::write(llvm::StringRef input, const TargetInfo *target, llvm::StringRef bytes,
                    DiagnosticEngine &diagnostics) {
  TimedScope scope(timing, "write");
  if (options.output == "-")
    (llvm::outs() << bytes).flush();
  else if (isFolder(options.output))
    writeTo(fileIn(options.output, input, oneForAllTargets() ? nullptr : target, suffixOf(emitKind)), bytes,
            diagnostics);
  else
    writeTo(options.output, bytes, diagnostics);
}

void Outputs::writeManifest(llvm::StringRef input, const TargetInfo &target, llvm::StringRef text,
                            DiagnosticEngine &diagnostics) {
  TimedScope scope(timing, "write");
  if (options.manifestFile == "-")
    (llvm::outs() << text).flush();
  else if (isFolder(options.manifestFile))
    writeTo(fileIn(options.manifestFile, input, &target, ".json"), text, diagnostics);
  else
    writeTo(options.targets.size() > 1 ? options.manifestFile + "." + target.name : options.manifestFile, text,
            diagnostics);
}

/// Folders that were named as such are made.
void Outputs::writeTo(const std::string &path, llvm::StringRef bytes, DiagnosticEngine &diagnostics) {
  std::string error;
  std::string folder = llvm::sys::path::parent_path(path).str();
  bool isNamed = folder == llvm::StringRef(options.output).rtrim('/') ||
                 folder == llvm::StringRef(options.manifestFile).rtrim('/');
  bool ready = folder.empty() || !isNamed || createFolders(folder, error);
  if (!ready || !writeFile(path, bytes, error))
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write `" + path + "`: " + error);
}

} // namespace hloc
