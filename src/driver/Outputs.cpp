#include "Outputs.h"

#include "hloc/support/Check.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

struct SuffixRow {
  llvm::StringLiteral suffix;
  EmitKind kind;
};
constexpr SuffixRow suffixes[] = {{".ptx", EmitKind::Ptx}, {".cubin", EmitKind::Cubin},  {".fatbin", EmitKind::Fatbin},
                                  {".hlo", EmitKind::Hlo}, {".dot", EmitKind::Dot},      {".mlir", EmitKind::Mlir},
                                  {".ll", EmitKind::Llvm}, {".json", EmitKind::Manifest}};

/// `FOLDER/<stem>.<target><suffix>`, without the target if it is for all.
std::string fileIn(llvm::StringRef folder, llvm::StringRef input, const TargetInfo *target, llvm::StringRef suffix) {
  return (folder.rtrim('/') + (folder.starts_with("/") && folder.rtrim('/').empty() ? "" : "/") + stemOf(input) +
          (target ? "." + target->name : std::string()) + suffix)
      .str();
}

} // namespace

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

std::optional<EmitKind> kindOfSuffix(llvm::StringRef output) {
  for (const SuffixRow &row : suffixes)
    if (output.ends_with(row.suffix) && !isFolder(output))
      return row.kind;
  return std::nullopt;
}

bool isFolder(llvm::StringRef path) { return path.ends_with("/") || llvm::sys::fs::is_directory(path); }

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

bool isForAllTargets(EmitKind kind) { return kind == EmitKind::Fatbin || stageOf(kind) <= Stage::Fuse; }

std::string outputFile(const CompileOptions &options, llvm::StringRef input, const TargetInfo &target) {
  return isFolder(options.output)
             ? fileIn(options.output, input, isForAllTargets(options.emit) ? nullptr : &target, suffixOf(options.emit))
             : options.output;
}

Stage Outputs::neededStage() const {
  if (options.stopAfter != Stage::All)
    return options.stopAfter;
  if (!options.needsKernels && !options.outputWanted && options.prove)
    return Stage::Emit;
  if (!options.needsKernels && stageOf(options.emit) <= Stage::Emit)
    return stageOf(options.emit);
  return Stage::Ptx;
}

bool Outputs::needsAssembler() const {
  return options.needsKernels || options.emit == EmitKind::Cubin || options.emit == EmitKind::Fatbin ||
         options.emit == EmitKind::Manifest;
}

void Outputs::write(llvm::StringRef input, const TargetInfo &target, llvm::StringRef bytes,
                    DiagnosticEngine &diagnostics) {
  TimedScope scope(timing, "write");
  if (options.output == "-")
    (llvm::outs() << bytes).flush();
  else
    writeTo(outputFile(options, input, target), bytes, diagnostics);
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
