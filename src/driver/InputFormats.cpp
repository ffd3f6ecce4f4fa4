#include "InputFormats.h"

#include "Outputs.h"

#include "fmt/format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace hloc {

namespace {

const char *nameOf(IrKind kind) {
  switch (kind) {
  case IrKind::Hlo:
    return "HLO";
  case IrKind::Mlir:
    return "MLIR";
  case IrKind::Llvm:
    return "LLVM IR";
  case IrKind::Ptx:
    return "PTX";
  }
  return "";
}

/// What an input is at the end of: an output needs a later stage.
Stage stageOf(IrKind kind) {
  return kind == IrKind::Mlir ? Stage::Emit : kind == IrKind::Llvm ? Stage::Mlir : Stage::Ptx;
}

/// A dump of an earlier run, in the folder that this run empties before it begins.
bool wouldBeRemoved(llvm::StringRef input, const DumpOptions &dump) {
  llvm::StringRef folder = llvm::sys::path::parent_path(llvm::sys::path::parent_path(input));
  return dump.enabled && !dump.folder.empty() && llvm::sys::fs::equivalent(folder.empty() ? "." : folder, dump.folder);
}

} // namespace

IrKind formatOf(const CompileOptions &options, llvm::StringRef input) {
  if (options.inputFormat)
    return *options.inputFormat;
  return input.ends_with(".mlir")  ? IrKind::Mlir
         : input.ends_with(".ll")  ? IrKind::Llvm
         : input.ends_with(".ptx") ? IrKind::Ptx
                                   : IrKind::Hlo;
}

std::string formatRefusal(const CompileOptions &options, llvm::StringRef input, EmitKind kind, bool describes) {
  IrKind format = formatOf(options, input);
  if (!options.startAfter.empty() && format != IrKind::Mlir && format != IrKind::Llvm)
    return fmt::format("--start-after is about MLIR or LLVM IR, and `{}` is {}", input.str(), nameOf(format));
  if (!options.launchFile.empty() && format != IrKind::Ptx)
    return fmt::format("--launch is about PTX of another compiler, and `{}` is {}", input.str(), nameOf(format));
  if (format == IrKind::Hlo)
    return "";
  std::string what = fmt::format("`{}` is {}", input.str(), nameOf(format));
  if (options.estimate)
    return what + ", from which nothing is known of launches to estimate times by; `hloc run --ptx --estimate` counts";
  bool onlyLints = options.lint && options.output == "-" && !options.emit && !describes;
  if (format == IrKind::Ptx && kind == EmitKind::Ptx && !onlyLints)
    return what + " already; `-o FILE.cubin` or `-o FILE.fatbin` says what to make of it";
  if (kind == EmitKind::Manifest || describes)
    return what + ", from which nothing is known of buffers and shapes to describe kernels by";
  if (stageOf(kind) <= stageOf(format) && !onlyLints && kind != EmitKind::Cubin && kind != EmitKind::Fatbin)
    return what + ", a later stage than what --emit or -o ask for";
  if (options.stopAfter <= stageOf(format))
    return what + ", which is later than where --stop-after ends";
  if (!options.only.empty() || options.keepGoing)
    return what + ", and --only and --keep-going are about kernels of HLO";
  if (options.allowExternal)
    return what + ", and --allow-external is about steps of HLO";
  if (options.remarks)
    return what + ", and --remarks are about HLO";
  if (options.lineInfo && format != IrKind::Mlir)
    return what + ": whether it has line information was decided when it was made, not by --line-info";
  if (options.dump.enabled && format == IrKind::Ptx)
    return what + ", over which no passes run that could be dumped";
  if (wouldBeRemoved(input, options.dump))
    return fmt::format("the dumps of an earlier run are removed, and `{}` is one of them; name another folder",
                       input.str());
  return "";
}

} // namespace hloc
