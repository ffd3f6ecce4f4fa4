#include "compiler/KernelStage.h"

#include "compiler/KernelCache.h"
#include "hloc/codegen/Ptx.h"
#include "hloc/compiler/StageLine.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/fusion/Recomputation.h"
#include "hloc/fusion/TensorCoreUse.h"
#include "hloc/passes/Passes.h"
#include "hloc/prove/Prove.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

/// Values are named after the HLO instructions they stem from, `%mul.7`.
std::string printModule(mlir::ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, mlir::OpPrintingFlags().printNameLocAsPrefix().enableDebugInfo(locations, /*prettyForm=*/false));
  os << "\n";
  return text;
}

std::string genericText(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, mlir::OpPrintingFlags().printGenericOpForm());
  return text;
}

/// The HLO line behind an MLIR location, if it has one.
SourceRange rangeOf(mlir::Location location, const SourceFile *file) {
  SourceRange range;
  location->walk([&](mlir::Location part) {
    auto place = llvm::dyn_cast<mlir::FileLineColLoc>(part);
    if (!place || !file || place.getFilename() != file->name())
      return mlir::WalkResult::advance();
    uint32_t offset = file->offsetOf({place.getLine(), place.getColumn()});
    range = {offset, offset + 1};
    return mlir::WalkResult::interrupt();
  });
  return range;
}

/// Positions of a kernel's outputs in whose memory an earlier step of the fusion has left something to be kept.
llvm::SmallVector<unsigned> filledBefore(const PlannedKernel &planned) {
  llvm::SmallVector<unsigned> filled;
  auto writes = [](const FusionStep &step, const PlanBuffer &buffer) {
    if (const auto *copy = std::get_if<CopyPlan>(&step))
      return copy->to == buffer;
    if (const auto *fill = std::get_if<FillPlan>(&step))
      return fill->to == buffer;
    const auto &kernel = std::get<KernelPlan>(step);
    return llvm::any_of(kernel.buffers, [&](const KernelBuffer &own) {
      return own.buffer == buffer && own.written && kernel.makes && kernel.makes->output == buffer.index;
    });
  };
  for (auto [i, own] : llvm::enumerate(planned.plan().buffers))
    if (own.written && llvm::any_of(llvm::ArrayRef(planned.planned->plan.steps).take_front(planned.step),
                                    [&](const FusionStep &step) { return writes(step, own.buffer); }))
      filled.push_back(unsigned(i));
  return filled;
}

} // namespace

bool mergeKernels(CompiledModule &compiled, DiagnosticEngine &diagnostics) {
  std::vector<std::string> texts;
  for (const CompiledKernel &kernel : compiled.kernels)
    texts.push_back(kernel.ptx);
  llvm::FailureOr<std::string> merged = mergePtx(texts, diagnostics);
  if (failed(merged))
    return false;
  compiled.ptx = std::move(*merged);
  return true;
}

std::unique_ptr<mlir::MLIRContext> makeKernelContext() {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

bool KernelStage::run(const PlannedKernel &planned, llvm::StringRef name, llvm::StringRef track, Stage stage,
                      bool keepTexts, CompiledKernel &kernel) {
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &message) { return forward(message); });
  auto begin = CompileObserver::Clock::now();
  kernel.spec = describeKernel(planned.planned->graph, planned.planned->plan, planned.plan(), name);
  const FusionGraph graph = planned.plan().graphOf(planned.planned->graph);
  kernel.spec.remarks = remarksOn(graph, planned.plan(), &context);
  llvm::append_range(kernel.spec.remarks, remarksOnTensorCores(graph, planned.planned->plan, planned.plan(), target));
  describeOrigin(*planned.fusion, diagnostics.file().get(), kernel.spec);
  llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitted =
      emitKernel(graph, planned.plan(), name, context, diagnostics);
  observer.timed("emit", track, begin, CompileObserver::Clock::now(), 0);
  if (failed(emitted))
    return false;
  mlir::ModuleOp module = **emitted;
  auto text = [&] { return printModule(module, options.locations); };
  std::string line = stageLine("emit", "//");
  observer.produced({IrKind::Mlir, "emit", track, millisecondsSince(begin), true, text, line});
  if (keepTexts)
    kernel.mlir = line + text();
  if (options.prove) {
    TimedScope scope(observer, "prove", track);
    KernelProof proof = proveKernel(module, kernel.spec, filledBefore(planned));
    kernel.spec.proofs.assign(proof.properties.begin(), proof.properties.end());
    untouched = std::move(proof.untouched);
  }
  return stage == Stage::Emit || lowerEmitted(module, name, track, stage, keepTexts, kernel);
}

/// The rest, unless its result is known.
bool KernelStage::lowerEmitted(mlir::ModuleOp module, llvm::StringRef name, llvm::StringRef track, Stage stage,
                               bool keepTexts, CompiledKernel &kernel) {
  const std::string text = isKnown || cache ? genericText(module) : "";
  if (isKnown && isKnown(module, text))
    return true;
  const std::string key = cache ? cache->keyOf(text) : "";
  if (std::optional<std::string> known = cache ? cache->load(key) : std::nullopt) {
    kernel.ptx = std::move(*known);
    return true;
  }
  if (!lower(module, 0, name, track, stage, keepTexts, kernel))
    return false;
  if (cache && diagnostics.diagnostics().empty()) // what was said has to be said again
    cache->store(key, kernel.ptx);
  return true;
}

/// What a pass reports of MLIR that is ours is our bug; of MLIR that was given, the user's news.
mlir::LogicalResult KernelStage::forward(mlir::Diagnostic &message) const {
  if (message.getSeverity() != mlir::DiagnosticSeverity::Error)
    return mlir::success();
  const DiagnosticKind kind = given ? DiagnosticKind::BadModule : DiagnosticKind::Internal;
  const SourceFile *file = diagnostics.file().get();
  Diagnostic &report = diagnostics.report(kind, rangeOf(message.getLocation(), file), message.str());
  for (mlir::Diagnostic &note : message.getNotes())
    report.note(rangeOf(note.getLocation(), file), note.str());
  return mlir::success();
}

std::string KernelStage::stageLine(llvm::StringRef pass, llvm::StringRef comment) const {
  return printStageLine({pass.str(), target.name}, comment);
}

mlir::PassManager &KernelPipelines::of(const PipelineOptions &options) {
  for (auto &[known, passes] : made)
    if (known == options)
      return *passes;
  auto &passes = made.emplace_back(options, std::make_unique<mlir::PassManager>(&context)).second;
#ifdef NDEBUG
  passes->enableVerifier(false);
#else
  addPhaseChecks(*passes);
#endif
  buildKernelPipeline(*passes, options);
  return *passes;
}

mlir::LogicalResult KernelStage::runPasses(mlir::ModuleOp module, PassRange range) {
  PipelineOptions pipelineOptions;
  pipelineOptions.computeCapability = target.major * 10 + target.minor;
  pipelineOptions.reducesFloats = target.name == "sm_100a" || target.name == "sm_103a"; // PTX ISA, redux.sync
  pipelineOptions.maxVectorBytes = target.maxVectorBytes;
  pipelineOptions.disabled = options.disabled;
  size_t errorsBefore = diagnostics.numErrors();
  if (pipelines && !given && range == PassRange())
    return mlir::success(succeeded(pipelines->of(pipelineOptions).run(module)) &&
                         diagnostics.numErrors() == errorsBefore);
  mlir::PassManager passes(&context);
  if (given)
    addPhaseChecks(passes, [&](llvm::StringRef what) {
      diagnostics.report(DiagnosticKind::BadModule, what.str() + "; has an earlier pass not run on this MLIR?");
    });
#ifdef NDEBUG
  passes.enableVerifier(given);
#else
  if (!given)
    addPhaseChecks(passes);
#endif
  buildKernelPipeline(passes, pipelineOptions, range);
  return mlir::success(succeeded(passes.run(module)) && diagnostics.numErrors() == errorsBefore);
}

/// One by one, each pass over all functions before the next, where somebody wants to see what each does. Passes over
/// functions do not look at other functions, so that the order does not change the result.
mlir::LogicalResult KernelStage::runPassesOneByOne(mlir::ModuleOp module, size_t first, llvm::StringRef track) {
  for (size_t i = first; i < kernelPasses().size(); ++i) {
    const PassName &pass = kernelPasses()[i];
    auto begin = CompileObserver::Clock::now();
    if (failed(runPasses(module, {i, i + 1})))
      return mlir::failure();
    observer.timed(pass.name, track, begin, CompileObserver::Clock::now(), 1);
    auto text = [&] { return printModule(module, options.locations); };
    observer.produced(
        {IrKind::Mlir, pass.name, track, millisecondsSince(begin), false, text, stageLine(pass.id, "//")});
  }
  return mlir::success();
}

bool KernelStage::lower(mlir::ModuleOp module, size_t numPassesDone, llvm::StringRef name, llvm::StringRef track,
                        Stage stage, bool keepTexts, CompiledKernel &kernel) {
  {
    TimedScope scope(observer, "mlir passes", track);
    size_t errorsBefore = diagnostics.numErrors();
    if (failed(observer.wantsPasses() ? runPassesOneByOne(module, numPassesDone, track)
                                      : runPasses(module, {numPassesDone}))) {
      if (diagnostics.numErrors() == errorsBefore)
        diagnostics.report(DiagnosticKind::Internal, "pass failed on kernel `" + name.str() + "` without a message");
      return false;
    }
  }
  if (stage == Stage::Mlir)
    return true;

  TimedScope scope(observer, "llvm", track);
  llvm::FailureOr<std::string> ptx = compileToPtx(module, target, llvmOptions(track, keepTexts, kernel), diagnostics);
  if (failed(ptx))
    return false;
  kernel.ptx = std::move(*ptx);
  return true;
}

bool KernelStage::compileLlvm(llvm::Module &module, const std::string &startAfter, llvm::StringRef track,
                              bool keepTexts, CompiledKernel &kernel) {
  TimedScope scope(observer, "llvm", track);
  LlvmOptions llvmOptions = this->llvmOptions(track, keepTexts, kernel);
  llvmOptions.startAfter = startAfter;
  llvm::FailureOr<std::string> ptx = compileToPtx(module, target, llvmOptions, diagnostics);
  if (failed(ptx))
    return false;
  kernel.ptx = std::move(*ptx);
  return true;
}

LlvmOptions KernelStage::llvmOptions(llvm::StringRef track, bool keepTexts, CompiledKernel &kernel) const {
  LlvmOptions llvmOptions;
  llvmOptions.toolchain = &toolchain;
  llvmOptions.optimizationLevel = options.optimizationLevel;
  llvmOptions.lineInfo = options.lineInfo;
  llvmOptions.disabled = options.disabled;
  llvmOptions.given = given;
  llvmOptions.verify |= given;
  llvmOptions.nameValues = keepTexts || observer.wantsTexts();
  auto stepTook = std::make_shared<double>(0); // told before the text is
  llvmOptions.timing = [this, track, stepTook](llvm::StringRef step, std::chrono::nanoseconds elapsed) {
    auto end = CompileObserver::Clock::now();
    *stepTook = std::chrono::duration<double, std::milli>(elapsed).count();
    observer.timed(step, track, end - elapsed, end, 1);
  };
  llvmOptions.dump = [this, track, keepTexts, stepTook, &kernel](llvm::StringRef step,
                                                                 llvm::function_ref<std::string()> text) {
    bool isPtx = step == "ptx";
    if (keepTexts && step == "llvm-optimized")
      kernel.llvm = text();
    llvm::StringRef pass = step;
    pass.consume_front("llvm-");
    observer.produced(
        {isPtx ? IrKind::Ptx : IrKind::Llvm, pass, track, *stepTook, true, text, isPtx ? "" : stageLine(pass, ";")});
  };
  if (observer.wantsPasses())
    llvmOptions.pass = [this, track](const LlvmPassRun &run) {
      observer.timed(run.name, track, run.begin, run.end, 2);
      double took = std::chrono::duration<double, std::milli>(run.end - run.begin).count();
      observer.produced({IrKind::Llvm, run.name, track, took, false, run.text, stageLine(run.id, ";")});
    };
  return llvmOptions;
}

} // namespace hloc
