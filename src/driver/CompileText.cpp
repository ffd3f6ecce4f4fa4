#include "hloc/driver/CompileText.h"

#include "Compile.h"
#include "LlvmFailures.h"
#include "Options.h"
#include "SystemEnvironment.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

namespace {

constexpr llvm::StringLiteral takenOptions[] = {
    "--target",         "--emit",  "--jobs",      "--optimization-level", "--line-info", "--keep-going",
    "--allow-external", "--only",  "--prove",     "--fast-math",          "--fusion",    "--f32-dots",
    "--softmax",        "--dots",  "--tile",      "--convolutions",       "--force",     "--disable-pass",
    "--cuda-path",      "--ptxas", "--libdevice", "--assembler"};

/// `--jobs` of `-j4`; empty for a word that is no option.
std::string longNameOf(llvm::StringRef word) {
  if (word.starts_with("-j"))
    return "--jobs";
  if (word.starts_with("-O"))
    return "--optimization-level";
  return word.starts_with("--") ? word.split('=').first.str() : "";
}

/// False after an error.
bool readOptions(llvm::ArrayRef<std::string> options, Command &command, DiagnosticEngine &diagnostics) {
  for (const std::string &word : options)
    if (const std::string name = longNameOf(word); !llvm::is_contained(takenOptions, name))
      diagnostics.report(DiagnosticKind::BadUsage,
                         fmt::format("`{}` is no option of the library, which takes {}", word,
                                     llvm::join(std::begin(takenOptions), std::end(takenOptions), ", ")));
  if (diagnostics.hasErrors())
    return false;
  // Neither is this input read nor anything written to this folder, which may have files of several targets.
  std::vector<const char *> arguments = {"hloc", "compile", "text.hlo", "--output=texts/"};
  for (const std::string &word : options)
    arguments.push_back(word.c_str());
  if (llvm::none_of(options, [](const std::string &word) { return longNameOf(word) == "--emit"; }))
    arguments.push_back("--emit=ptx");
  if (!parseCommandLine(arguments, command, diagnostics))
    return false;
  const EmitKind emit = command.compile.emit;
  if (emit == EmitKind::Ptx || emit == EmitKind::Cubin)
    return true;
  diagnostics.report(DiagnosticKind::BadUsage, "--emit is ptx or cubin here");
  return false;
}

/// Nothing after an error, or if all is cancelled.
std::optional<CompiledTarget> compileFor(Compiler &compiler, const HloModule &fused, const TargetInfo &target,
                                         const CompileOptions &options, const CompileObserver &observer) {
  std::optional<CompiledModule> compiled = compiler.compile(fused, target, Stage::Ptx);
  if (!compiled || observer.isCancelled())
    return std::nullopt;
  CompiledTarget result{target.name, compiled->ptx, "", ""};
  if (options.emit == EmitKind::Cubin && !compiled->kernels.empty()) {
    llvm::FailureOr<std::string> cubin = compiler.assemble(*compiled, target, assembleOptions(options));
    if (failed(cubin))
      return std::nullopt;
    result.cubin = std::move(*cubin);
  }
  result.manifest = printManifest(compiled->manifest);
  return result;
}

} // namespace

llvm::ArrayRef<llvm::StringLiteral> optionsOfTexts() { return takenOptions; }

void hearLlvmFailures() { installLlvmFailureHandler(endOnLlvmFailure); }

std::vector<CompiledTarget> compileText(std::shared_ptr<const SourceFile> source, llvm::ArrayRef<std::string> options,
                                        CompileObserver &observer, DiagnosticEngine &diagnostics) {
  std::vector<CompiledTarget> results;
  Command command;
  if (!readOptions(options, command, diagnostics))
    return results;
  const CompileOptions &given = command.compile;
  const Toolchain toolchain = Toolchain::discover(given.toolchain);
  Compiler compiler(compilerOptions(given), toolchain, observer, diagnostics);
  const std::unique_ptr<HloModule> module = compiler.parse(std::move(source));
  if (!module || observer.isCancelled())
    return results;
  std::unique_ptr<HloModule> fused = compiler.fuse(*module, given.targets.front());
  if (fused && !given.only.empty() && !observer.isCancelled())
    fused = compiler.only(*fused, given.only, given.targets.front());
  if (!fused)
    return results;
  for (const TargetInfo &target : given.targets) {
    if (observer.isCancelled())
      break;
    std::optional<CompiledTarget> compiled = compileFor(compiler, *fused, target, given, observer);
    if (!compiled)
      break;
    results.push_back(std::move(*compiled));
  }
  return results;
}

} // namespace hloc
