// `hloc` and `hloc compile`: stages in order, outputs as asked for.

#include "Compile.h"
#include "Dot.h"
#include "Golden.h"

#include "hloc/codegen/Assemble.h"
#include "hloc/codegen/CubinCache.h"
#include "hloc/hlo/Printer.h"
#include "hloc/support/Check.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <future>
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
  for (const SuffixRow &row : suffixes)
    if (row.kind == kind)
      return row.suffix;
  return ".hlo";
}

/// The stage after which an output of this kind can be written.
Stage stageOf(EmitKind kind) {
  switch (kind) {
  case EmitKind::Hlo:
  case EmitKind::Dot:
    return Stage::Parse;
  case EmitKind::HloFused:
    return Stage::Fuse;
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

class CompileCommand {
public:
  explicit CompileCommand(const CompileOptions &options)
      : options(options), timing(options.timing), toolchain(Toolchain::discover(options.toolchain)),
        compiler(options, toolchain, timing, diagnostics) {}

  int run() {
    if (checkDumpOptions(options.dump, diagnostics) && decideKind())
      runStages();
    compiler.finishDumps();
    if (options.timing)
      writeTiming();
    diagnostics.print(llvm::errs(), llvm::errs().has_colors());
    llvm::outs().flush();
    return static_cast<int>(diagnostics.exitCode());
  }

private:
  /// Whether an output was asked for, other than by saying nothing.
  bool asksForOutput() const { return options.output != "-" || options.emit; }

  /// Why options that are fine by themselves make no sense together; empty if they do.
  std::string contradiction(std::optional<EmitKind> suffixKind) const {
    bool bothHlo = kind == EmitKind::HloFused && suffixKind == EmitKind::Hlo;
    if (suffixKind && *suffixKind != kind && !bothHlo)
      return fmt::format("`-o {}` and --emit name different kinds of output", options.output);
    if (options.updateGolden && options.goldenFolder.empty())
      return "--update-golden needs --golden=DIR, the folder to write to";
    if (options.stopAfter == Stage::All)
      return "";
    if (asksForOutput() && stageOf(kind) > options.stopAfter)
      return "--stop-after ends before there is anything to write for -o or --emit";
    if ((!options.goldenFolder.empty() || !options.manifestFile.empty()) && options.stopAfter < Stage::Ptx)
      return "--stop-after ends before there are kernels for --golden or --manifest to describe";
    return "";
  }

  bool decideKind() {
    std::optional<EmitKind> suffixKind;
    for (const SuffixRow &row : suffixes)
      if (llvm::StringRef(options.output).ends_with(row.suffix))
        suffixKind = row.kind;
    kind = options.emit ? *options.emit : suffixKind.value_or(EmitKind::Ptx);
    if (std::string reason = contradiction(suffixKind); !reason.empty()) {
      diagnostics.report(DiagnosticKind::BadUsage, std::move(reason));
      return false;
    }
    bool oneFile =
        kind == EmitKind::Fatbin || kind == EmitKind::Hlo || kind == EmitKind::HloFused || kind == EmitKind::Dot;
    manyFiles = options.targets.size() > 1 && !oneFile;
    if (manyFiles && options.stopAfter == Stage::All && options.output != "-" &&
        llvm::sys::path::has_extension(options.output) && !llvm::sys::fs::is_directory(options.output)) {
      diagnostics.report(DiagnosticKind::BadUsage,
                         "several targets need `-o DIR/` or a .fatbin file, `" + options.output + "` is neither");
      return false;
    }
    if (manyFiles && options.output == "-" && kind != EmitKind::Ptx) {
      diagnostics.report(DiagnosticKind::BadUsage, "several targets need `-o DIR/` or a .fatbin file");
      return false;
    }
    if (options.output == "-" && (kind == EmitKind::Cubin || kind == EmitKind::Fatbin) && ::isatty(STDOUT_FILENO)) {
      diagnostics.report(DiagnosticKind::BadUsage, "machine code is not written to a terminal; use -o FILE");
      return false;
    }
    return true;
  }

  void runStages() {
    bool stopped = options.stopAfter != Stage::All;
    bool wantsHlo = kind == EmitKind::Hlo || kind == EmitKind::Dot;
    std::unique_ptr<HloModule> module = compiler.load(/*verify=*/options.stopAfter != Stage::Parse);
    if (!module)
      return;
    if (wantsHlo)
      return write(options.output, kind == EmitKind::Dot ? dotGraph(*module) : hloText(*module));
    if (options.stopAfter == Stage::Parse || options.stopAfter == Stage::Verify)
      return;
    std::unique_ptr<HloModule> fused = compiler.fuse(*module);
    if (!fused)
      return;
    if (kind == EmitKind::HloFused)
      return write(options.output, hloText(*fused));
    if (options.stopAfter == Stage::Fuse)
      return;
    if (options.stopAfter == Stage::Plan) {
      (void)planModule(*fused, diagnostics);
      return;
    }
    if (needsPtxas() && !stopped && toolchain.has(Tool::Ptxas))
      ptxasAsked = std::async(std::launch::async, [this] {
        CubinCache(CubinCache::defaultFolder()).ptxasVersion(toolchain.find(Tool::Ptxas).path);
      });
    std::vector<FatbinImage> images;
    for (const TargetInfo &target : options.targets)
      if (!compileFor(*fused, target, stopped, images))
        return;
    if (kind == EmitKind::Fatbin && !stopped)
      writeFatbin(images);
  }

  static std::string hloText(const HloModule &module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printHlo(module, os, PrintOptions());
    return text;
  }

  /// How far the asked-for output needs the compiler to go.
  Stage neededStage() const {
    if (options.stopAfter != Stage::All)
      return options.stopAfter;
    if (kind == EmitKind::Mlir && options.goldenFolder.empty())
      return Stage::Emit;
    return Stage::Ptx;
  }

  bool wantsCode() const { return kind == EmitKind::Cubin || kind == EmitKind::Fatbin; }
  /// Machine code, or the registers and spills that descriptions list where there is a ptxas.
  bool needsPtxas() const {
    return wantsCode() || !options.goldenFolder.empty() || !options.manifestFile.empty() || kind == EmitKind::Manifest;
  }

  bool compileFor(const HloModule &fused, const TargetInfo &target, bool stopped, std::vector<FatbinImage> &images) {
    bool keepTexts = kind == EmitKind::Mlir || kind == EmitKind::Llvm;
    std::optional<CompiledModule> compiled = compiler.compile(fused, target, neededStage(), keepTexts);
    if (!compiled)
      return false;
    if (stopped && !asksForOutput() && options.goldenFolder.empty() && options.manifestFile.empty())
      return true;
    if (kind == EmitKind::Ptx &&
        (!stopped || asksForOutput())) // before ptxas runs, so that there is something to look at if it refuses
      write(outputFor(target), compiled->ptx);
    std::string cubin;
    if (needsPtxas() && (wantsCode() || toolchain.has(Tool::Ptxas)) && !compiled->kernels.empty())
      if (!assembleInto(*compiled, target, cubin))
        return false;
    if (kind == EmitKind::Cubin)
      write(outputFor(target), cubin);
    if (kind == EmitKind::Fatbin)
      images.push_back({target, cubin, &target == &options.targets.back() ? compiled->ptx : std::string()});
    writeTexts(*compiled, target);
    return !diagnostics.hasErrors();
  }

  bool assembleInto(CompiledModule &compiled, const TargetInfo &target, std::string &cubin) {
    Timing::Scope scope(timing, "ptxas");
    if (ptxasAsked.valid())
      ptxasAsked.wait();
    AssembleOptions assembleOptions;
    assembleOptions.cacheFolder = CubinCache::defaultFolder();
    llvm::FailureOr<std::vector<Cubin>> cubins =
        assemble({compiled.ptx}, target, toolchain, assembleOptions, diagnostics);
    if (failed(cubins))
      return false;
    cubin = std::move(cubins->front().bytes);
    for (const auto &[entry, resources] : cubins->front().resources)
      for (KernelSpec &kernel : compiled.manifest.kernels)
        if (kernel.name == entry)
          kernel.resources = resources;
    compiled.manifest.toolVersions.push_back(
        {"ptxas", CubinCache(assembleOptions.cacheFolder).ptxasVersion(toolchain.find(Tool::Ptxas).path)});
    return true;
  }

  void writeTexts(const CompiledModule &compiled, const TargetInfo &target) {
    if (kind == EmitKind::Mlir || kind == EmitKind::Llvm) {
      std::string all;
      for (const CompiledKernel &kernel : compiled.kernels)
        all += kind == EmitKind::Mlir ? kernel.mlir : kernel.llvm;
      write(outputFor(target), all);
    }
    if (kind == EmitKind::Manifest)
      write(outputFor(target), printManifest(compiled.manifest));
    if (!options.manifestFile.empty())
      write(options.targets.size() > 1 ? options.manifestFile + "." + target.name : options.manifestFile,
            printManifest(compiled.manifest));
    if (!options.goldenFolder.empty()) {
      llvm::StringRef input = llvm::sys::path::filename(options.input);
      checkGolden(goldenPath(options.goldenFolder, input, target.name),
                  goldenText(input, compiled.manifest, compiled.ptx), options.updateGolden, diagnostics);
    }
  }

  void writeFatbin(llvm::ArrayRef<FatbinImage> images) {
    Timing::Scope scope(timing, "fatbinary");
    llvm::FailureOr<std::string> bytes = makeFatbin(images, toolchain, diagnostics);
    if (succeeded(bytes))
      write(options.output, *bytes);
  }

  std::string outputFor(const TargetInfo &target) const {
    if (options.output == "-")
      return "-";
    bool folder = manyFiles || llvm::StringRef(options.output).ends_with("/");
    if (!folder)
      return options.output;
    llvm::StringRef stem = options.input == "-" ? "stdin" : llvm::sys::path::stem(options.input);
    return (llvm::StringRef(options.output).rtrim('/') + "/" + stem + "." + target.name + suffixOf(kind)).str();
  }

  void write(const std::string &path, llvm::StringRef bytes) {
    Timing::Scope scope(timing, "write");
    // Golden checks compare instead of printing, unless an output was asked for as well.
    if (path == "-") {
      if (options.goldenFolder.empty() || options.emit)
        llvm::outs() << bytes;
      return;
    }
    std::string error;
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (manyFiles || llvm::StringRef(options.output).ends_with("/"))
      (void)createFolders(folder.str(), error);
    if (!writeFile(path, bytes, error))
      diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write `" + path + "`: " + error);
  }

  void writeTiming() {
    if (options.timingFile.empty()) {
      llvm::errs() << timing.table();
      return;
    }
    std::string error;
    if (!writeFile(options.timingFile, timing.chromeTrace(), error))
      diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write `" + options.timingFile + "`: " + error);
  }

  const CompileOptions &options;
  DiagnosticEngine diagnostics;
  Timing timing;
  Toolchain toolchain;
  Compiler compiler;
  EmitKind kind = EmitKind::Ptx;
  bool manyFiles = false;
  /// The cache's first question to a new ptxas is its version: 3 ms, asked while there is something else to do.
  std::future<void> ptxasAsked;
};

} // namespace

int runCompile(const CompileOptions &options) { return CompileCommand(options).run(); }

} // namespace hloc
