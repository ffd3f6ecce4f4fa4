#include "hloc/compiler/Continuation.h"

#include "compiler/KernelStage.h"
#include "hloc/codegen/LlvmText.h"
#include "hloc/codegen/Ptx.h"
#include "hloc/compiler/StageLine.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/parser/OtherInput.h"
#include "hloc/passes/Passes.h"
#include "hloc/prove/Prove.h"
#include "hloc/support/Names.h"
#include "hloc/support/Suggestion.h"

#include "fmt/format.h"
#include "mlir/Analysis/CallGraph.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CrashRecoveryContext.h"

namespace hloc {

namespace {

// Limits of ours, far above what hloc writes. The parsers of MLIR and LLVM recurse, on a stack of this size.
constexpr unsigned stackBytes = 512u << 20;
constexpr int maxNesting = 2000;
constexpr size_t maxTextBytes = size_t(1) << 30;
constexpr int64_t maxVectorElements = 4096; // passes take vectors apart

llvm::StringRef commentOf(IrKind kind) { return kind == IrKind::Llvm ? ";" : "//"; }

/// Where brackets, or signs before a number, are nested too deeply; nothing if nowhere. Strings count for nothing, and
/// nor does the rest of a line after `comment`.
std::optional<uint32_t> findTooDeep(llvm::StringRef text, llvm::StringRef comment) {
  int depth = 0, signs = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    signs = c == '-' ? signs + 1 : llvm::isSpace(c) ? signs : 0;
    if (signs > maxNesting)
      return i;
    if (c == '"')
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
    else if (text.substr(i).starts_with(comment))
      i = std::min(text.find('\n', i), text.size());
    else if (c == '>' && i > 0 && text[i - 1] == '-')
      continue; // an arrow
    else if (llvm::StringRef("([{<").contains(c) && ++depth > maxNesting)
      return i;
    else if (llvm::StringRef(")]}>").contains(c) && depth > 0)
      --depth;
  }
  return std::nullopt;
}

bool checkText(const WrittenIr &ir, DiagnosticEngine &diagnostics) {
  llvm::StringRef text = ir.file->text();
  if (text.size() > maxTextBytes) {
    diagnostics.report(DiagnosticKind::InputTooLarge, "IR of more than 1 GiB");
    return false;
  }
  if (text.trim().empty()) {
    diagnostics.report(DiagnosticKind::EmptyInput, "there is nothing in the file");
    return false;
  }
  if (std::optional<uint32_t> at = findTooDeep(text, commentOf(ir.kind))) {
    diagnostics.report(DiagnosticKind::TooDeep, {*at, *at + 1},
                       fmt::format("brackets or signs are nested more than {} deep", maxNesting));
    return false;
  }
  return true;
}

/// The functions that are launched.
std::vector<mlir::FunctionOpInterface> kernelsOf(mlir::ModuleOp module) {
  std::vector<mlir::FunctionOpInterface> kernels;
  for (auto function : module.getOps<mlir::FunctionOpInterface>())
    if (function->hasAttr(xla_gpu::attr::block) && function->hasAttr(xla_gpu::attr::grid) && !function.isExternal())
      kernels.push_back(function);
  return kernels;
}

/// Helpers are pasted into their callers: none may call itself.
bool checkCalls(mlir::ModuleOp module, DiagnosticEngine &diagnostics) {
  mlir::CallGraph calls(module);
  for (auto it = llvm::scc_begin(&std::as_const(calls)); !it.isAtEnd(); ++it)
    if (it.hasCycle()) {
      mlir::CallGraphNode *node = it->front();
      if (node->isExternal())
        continue;
      auto function = llvm::cast<mlir::SymbolOpInterface>(node->getCallableRegion()->getParentOp());
      diagnostics.report(DiagnosticKind::BadModule, fmt::format("`{}` calls itself", function.getName().str()));
      return false;
    }
  return true;
}

/// What the passes trust of what emission makes, beyond what MLIR's verifier knows.
bool checkModule(mlir::ModuleOp module, DiagnosticEngine &diagnostics) {
  std::vector<mlir::FunctionOpInterface> kernels = kernelsOf(module);
  if (kernels.size() != 1) {
    diagnostics.report(DiagnosticKind::BadModule,
                       fmt::format("a module has one function with a body, `xla_gpu.block` and `xla_gpu.grid`, which "
                                   "is the kernel; this one has {}",
                                   kernels.size()));
    return false;
  }
  if (std::string name = kernels.front().getName().str(); identifierOf(name) != name) {
    diagnostics.report(DiagnosticKind::BadName, fmt::format("a kernel cannot be called `{}` in PTX", name));
    return false;
  }
  auto isHuge = [](mlir::Type type) {
    auto vector = llvm::dyn_cast<mlir::VectorType>(type);
    return vector && (vector.isScalable() || vector.getNumElements() > maxVectorElements);
  };
  bool huge = module
                  ->walk([&](mlir::Operation *op) {
                    return llvm::any_of(op->getResultTypes(), isHuge) ? mlir::WalkResult::interrupt()
                                                                      : mlir::WalkResult::advance();
                  })
                  .wasInterrupted();
  if (huge)
    diagnostics.report(DiagnosticKind::UnsupportedFeature,
                       fmt::format("vectors of more than {} elements", maxVectorElements));
  return !huge && checkCalls(module, diagnostics);
}

/// What the function says of its launch and its arguments.
KernelSpec specOf(mlir::FunctionOpInterface function) {
  KernelSpec spec;
  spec.name = function.getName().str();
  auto dim = [&](llvm::StringRef name) -> Dim3 {
    auto sizes = function->getAttrOfType<mlir::DenseI32ArrayAttr>(name);
    if (!sizes || sizes.size() != 3)
      return {};
    return {uint32_t(sizes[0]), uint32_t(sizes[1]), uint32_t(sizes[2])};
  };
  spec.grid = dim(xla_gpu::attr::grid);
  spec.block = dim(xla_gpu::attr::block);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    KernelParameter &parameter = spec.parameters.emplace_back();
    parameter.written = !function.getArgAttr(i, xla_gpu::attr::invariant);
    parameter.role = parameter.written ? KernelParameter::Role::Output : KernelParameter::Role::Input;
  }
  return spec;
}

bool isLlvmDialect(mlir::ModuleOp module) {
  return llvm::all_of(module.getOps(), [](mlir::Operation &op) {
    return op.getName().getDialectNamespace() == mlir::LLVM::LLVMDialect::getDialectNamespace();
  });
}

/// The compilation of one file for one target.
class Continued {
public:
  Continued(const WrittenIr &ir, const CompilerOptions &options, const Toolchain &toolchain, const TargetInfo &target,
            CompileObserver &observer, DiagnosticEngine &diagnostics)
      : ir(ir), options(options), toolchain(toolchain), target(target), observer(observer), diagnostics(diagnostics) {}

  bool run(Stage stage, bool keepTexts, llvm::StringRef trackSuffix, CompiledModule &compiled) {
    this->stage = stage;
    this->keepTexts = keepTexts;
    this->trackSuffix = trackSuffix;
    if (ir.kind == IrKind::Mlir)
      return runMlir(compiled);
    return ir.kind == IrKind::Llvm ? runLlvm(compiled) : takePtx(compiled);
  }

private:
  bool runMlir(CompiledModule &compiled) {
    llvm::StringRef rest = ir.file->text();
    bool several = rest.contains("\n// -----\n");
    size_t line = 0;
    while (!rest.empty()) {
      auto [part, after] = rest.split("\n// -----\n");
      compiled.kernels.emplace_back();
      if (!runMlirModule(part, line, !several, compiled.kernels.back()))
        return false;
      line += part.count('\n') + 2;
      rest = after;
    }
    return stage < Stage::Ptx || mergeKernels(compiled, diagnostics);
  }

  bool runMlirModule(llvm::StringRef text, size_t firstLine, bool alone, CompiledKernel &kernel) {
    if (std::string other = otherMlir(text); !other.empty()) {
      const auto begin = uint32_t(text.data() - ir.file->text().data());
      diagnostics.report(DiagnosticKind::NotHloText, {begin, begin + 1}, other);
      return false;
    }
    std::unique_ptr<mlir::MLIRContext> context = makeKernelContext();
    mlir::DialectRegistry registry;
    registerNvvmDialect(registry);
    context->appendDialectRegistry(registry);
    context->loadAllAvailableDialects();
    KernelStage kernelStage{options, toolchain, target, observer, diagnostics, *context, /*given=*/true};
    mlir::ScopedDiagnosticHandler handler(context.get(),
                                          [&](mlir::Diagnostic &message) { return kernelStage.forward(message); });
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(
        std::string(firstLine, '\n') + text.str(), context.get(), ir.file->name());
    if (!module || !checkModule(*module, diagnostics))
      return false;
    std::optional<size_t> start = startOf(*module, text);
    if (!start)
      return false;
    kernel.spec = specOf(kernelsOf(*module).front());
    if (options.prove && !prove(*module, *start, kernel.spec))
      return false;
    std::string track = kernel.spec.name + trackSuffix.str();
    observer.beginTrack(track, alone);
    bool done = kernelStage.lower(*module, *start, kernel.spec.name, track, stage, keepTexts, kernel);
    observer.endTrack(track, diagnostics);
    return done;
  }

  /// False, with an error, of kernels that passes have changed.
  bool prove(mlir::ModuleOp module, size_t numPassesDone, KernelSpec &spec) {
    if (numPassesDone > 0) {
      diagnostics
          .report(DiagnosticKind::BadUsage, "--prove is about kernels as they are emitted, and passes have changed "
                                            "this one")
          .note("`--stop-after=emit` writes such MLIR");
      return false;
    }
    KernelProof proof = proveKernel(module, spec);
    spec.proofs.assign(proof.properties.begin(), proof.properties.end());
    return true;
  }

  /// How many passes of the pipeline the module has seen; nothing after an error.
  std::optional<size_t> startOf(mlir::ModuleOp module, llvm::StringRef text) {
    std::string id = startAfter(text);
    if (id.empty() && isLlvmDialect(module))
      return kernelPasses().size();
    if (id == "emit")
      return 0;
    std::vector<llvm::StringRef> ids = {"emit"};
    for (size_t i = 0; i < kernelPasses().size(); ++i) {
      if (kernelPasses()[i].id == id)
        return i + 1;
      ids.push_back(kernelPasses()[i].id);
    }
    if (id.empty())
      diagnostics
          .report(DiagnosticKind::BadUsage, "which pass has left this MLIR? Its first line does not say so, as that of "
                                            "a dump does; --start-after=PASS would")
          .note("`--start-after=emit` runs all of them; `hloc --list-passes` lists them");
    else if (llvm::any_of(kernelPasses(), [&](const PassName &pass) { return pass.name == id; }))
      diagnostics.report(DiagnosticKind::BadUsage,
                         fmt::format("`{0}` runs more than once: is this IR after `{0}#1` or `{0}#2`?", id));
    else
      diagnostics.report(kindOfWrongStart(),
                         fmt::format("no pass over MLIR is called `{}`{}", id, suggestion(nearestName(id, ids))));
    return std::nullopt;
  }

  bool runLlvm(CompiledModule &compiled) {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module = readLlvm(*ir.file, context, diagnostics);
    if (!module)
      return false;
    std::string id = startAfter(ir.file->text());
    if (!canStartAfter(*module, id)) {
      diagnostics
          .report(kindOfWrongStart(),
                  fmt::format("compiling on after `{}` would not be the same as not having stopped, or "
                              "it is no pass",
                              id))
          .note("`--start-after=translated` runs all of LLVM's passes, `--start-after=optimized` none");
      return false;
    }
    compiled.kernels.emplace_back();
    CompiledKernel &kernel = compiled.kernels.back();
    for (const llvm::Function &function : *module)
      if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel && kernel.spec.name.empty())
        kernel.spec.name = function.getName().str();
    std::unique_ptr<mlir::MLIRContext> unused = std::make_unique<mlir::MLIRContext>();
    KernelStage kernelStage{options, toolchain, target, observer, diagnostics, *unused, /*given=*/true};
    std::string track = kernel.spec.name + trackSuffix.str();
    observer.beginTrack(track, true);
    bool done = kernelStage.compileLlvm(*module, id, track, keepTexts, kernel);
    observer.endTrack(track, diagnostics);
    return done && (stage < Stage::Ptx || mergeKernels(compiled, diagnostics));
  }

  bool takePtx(CompiledModule &compiled) {
    if (ptxTargetOf(ir.file->text()).empty()) {
      diagnostics.report(DiagnosticKind::BadModule, "there is no `.target` in this PTX");
      return false;
    }
    compiled.kernels.emplace_back();
    compiled.kernels.back().ptx = ir.file->text().str();
    return mergeKernels(compiled, diagnostics);
  }

  std::string startAfter(llvm::StringRef text) const {
    if (!ir.startAfter.empty())
      return ir.startAfter;
    std::optional<StageLine> line = parseStageLine(text, commentOf(ir.kind));
    return line ? line->after : "";
  }

  /// The command line's fault, or the text's.
  DiagnosticKind kindOfWrongStart() const {
    return ir.startAfter.empty() ? DiagnosticKind::BadModule : DiagnosticKind::BadUsage;
  }

  const WrittenIr &ir;
  const CompilerOptions &options;
  const Toolchain &toolchain;
  const TargetInfo &target;
  CompileObserver &observer;
  DiagnosticEngine &diagnostics;
  Stage stage = Stage::Ptx;
  bool keepTexts = false;
  llvm::StringRef trackSuffix;
};

/// What looks like a mistake of ours is one of the text's: MLIR that our passes would not leave, LLVM IR that is good
/// but not for PTX.
void appendAsGiven(const DiagnosticEngine &found, IrKind irKind, DiagnosticEngine &diagnostics) {
  DiagnosticKind given = irKind == IrKind::Llvm ? DiagnosticKind::UnsupportedFeature : DiagnosticKind::BadModule;
  for (const Diagnostic &one : found.diagnostics()) {
    DiagnosticKind kind = one.kind == DiagnosticKind::Internal ? given : one.kind;
    diagnostics.report(kind, one.range, one.message).notes = one.notes;
  }
}

} // namespace

std::optional<TargetInfo> Continuation::targetOf(const WrittenIr &ir, const TargetInfo &fallback) {
  llvm::StringRef text = ir.file->text();
  std::string name;
  if (ir.kind == IrKind::Ptx)
    name = ptxTargetOf(text).str();
  else if (std::optional<StageLine> line = parseStageLine(text, commentOf(ir.kind)))
    name = line->target;
  if (name.empty())
    return fallback;
  std::optional<TargetInfo> target = findTarget(name);
  if (!target)
    diagnostics.report(DiagnosticKind::UnsupportedTarget, fmt::format("the text is for an unknown target `{}`", name))
        .note("--target names another");
  return target;
}

std::optional<CompiledModule> Continuation::compile(const WrittenIr &ir, const TargetInfo &target, Stage stage,
                                                    bool keepTexts, llvm::StringRef trackSuffix) {
  diagnostics.setFile(ir.file);
  if (!checkText(ir, diagnostics))
    return std::nullopt;
  DiagnosticEngine found;
  found.setFile(ir.file);
  CompiledModule compiled;
  compiled.manifest.target = target.name;
  compiled.manifest.toolVersions = {{"hloc", HLOC_VERSION}, {"llvm", LLVM_VERSION_STRING}};
  bool done = false;
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext guard;
  bool survived = guard.RunSafelyOnThread(
      [&] {
        done = Continued(ir, options, toolchain, target, observer, found).run(stage, keepTexts, trackSuffix, compiled);
      },
      stackBytes);
  llvm::CrashRecoveryContext::Disable();
  appendAsGiven(found, ir.kind, diagnostics);
  if (!survived)
    diagnostics.report(DiagnosticKind::UnsupportedFeature,
                       "MLIR or LLVM cannot cope with this IR, which hloc would not write: they crash");
  if (!survived || !done || diagnostics.hasErrors())
    return std::nullopt;
  for (const CompiledKernel &kernel : compiled.kernels)
    if (ir.kind != IrKind::Ptx)
      compiled.manifest.kernels.push_back(kernel.spec);
  if (ir.kind == IrKind::Ptx)
    for (std::string &name : ptxEntries(compiled.ptx))
      compiled.manifest.kernels.emplace_back().name = std::move(name);
  return compiled;
}

} // namespace hloc
