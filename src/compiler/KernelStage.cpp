#include "compiler/KernelStage.h"

#include "hloc/codegen/LlvmStage.h"
#include "hloc/codegen/Pipeline.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/fusion/Recomputation.h"
#include "hloc/passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

std::string printModule(mlir::Operation *op) {
  while (op->getParentOp())
    op = op->getParentOp();
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os, mlir::OpPrintingFlags().useLocalScope(false));
  os << "\n";
  return text;
}

/// Tells the observer of each MLIR pass. Adaptors that only nest other passes are left out.
class PassEvents : public mlir::PassInstrumentation {
public:
  PassEvents(CompileObserver &observer, std::string track) : observer(observer), track(std::move(track)) {}

  void runBeforePass(mlir::Pass *pass, mlir::Operation *) override { begins.push_back(CompileObserver::Clock::now()); }

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    CompileObserver::Clock::time_point begin = begins.back();
    begins.pop_back();
    llvm::StringRef name = pass->getArgument();
    if (name.empty())
      return;
    name.consume_front("hloc-"); // dumps carry the names of the published description
    observer.timed(name, track, begin, CompileObserver::Clock::now(), 1);
    auto text = [&] { return printModule(op); };
    observer.produced({IrKind::Mlir, name, track, millisecondsSince(begin), false, text});
  }

  void runAfterPassFailed(mlir::Pass *, mlir::Operation *) override { begins.pop_back(); }

private:
  CompileObserver &observer;
  std::string track;
  std::vector<CompileObserver::Clock::time_point> begins;
};

/// The HLO line behind an MLIR location, if it has one.
SourceRange rangeOf(mlir::Location location, const SourceFile *file) {
  SourceRange range;
  location->walk([&](mlir::Location part) {
    auto place = llvm::dyn_cast<mlir::FileLineColLoc>(part);
    if (!place || !file)
      return mlir::WalkResult::advance();
    uint32_t offset = file->offsetOf({place.getLine(), place.getColumn()});
    range = {offset, offset + 1};
    return mlir::WalkResult::interrupt();
  });
  return range;
}

/// What passes say about what they cannot lower. `unsupported: ` at the start makes it the user's news (exit 3),
/// anything else is our bug.
mlir::LogicalResult forward(mlir::Diagnostic &message, DiagnosticEngine &diagnostics) {
  if (message.getSeverity() != mlir::DiagnosticSeverity::Error)
    return mlir::success();
  std::string text = message.str();
  llvm::StringRef rest = text;
  bool unsupported = rest.consume_front("unsupported: ");
  SourceRange range = rangeOf(message.getLocation(), diagnostics.file().get());
  Diagnostic &report = diagnostics.report(unsupported ? DiagnosticKind::UnsupportedFeature : DiagnosticKind::Internal,
                                          range, rest.str());
  for (mlir::Diagnostic &note : message.getNotes())
    report.note(rangeOf(note.getLocation(), diagnostics.file().get()), note.str());
  return mlir::success();
}

} // namespace

std::unique_ptr<mlir::MLIRContext> makeKernelContext() {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

bool KernelStage::run(const PlannedKernel &planned, llvm::StringRef name, llvm::StringRef track, Stage stage,
                      bool keepTexts, CompiledKernel &kernel) {
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [&](mlir::Diagnostic &message) { return forward(message, diagnostics); });
  auto begin = CompileObserver::Clock::now();
  const FusionGraph &graph = planned.planned->graph;
  kernel.spec = describeKernel(graph, planned.planned->plan, planned.plan(), name);
  kernel.spec.remarks = remarksOn(graph, planned.plan(), &context);
  describeOrigin(*planned.fusion, diagnostics.file().get(), kernel.spec);
  llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitted =
      emitKernel(graph, planned.plan(), name, context, diagnostics);
  observer.timed("emit", track, begin, CompileObserver::Clock::now(), 0);
  if (failed(emitted))
    return false;
  mlir::ModuleOp module = **emitted;
  auto text = [&] { return printModule(module); };
  observer.produced({IrKind::Mlir, "emit", track, millisecondsSince(begin), true, text});
  if (keepTexts)
    kernel.mlir = printModule(module);
  if (stage == Stage::Emit)
    return true;

  {
    TimedScope scope(observer, "mlir passes", track);
    mlir::PassManager passes(&context);
#ifdef NDEBUG
    passes.enableVerifier(false);
#else
    addPhaseChecks(passes);
#endif
    PipelineOptions pipelineOptions;
    pipelineOptions.computeCapability = target.major * 10 + target.minor;
    pipelineOptions.maxVectorBytes = target.maxVectorBytes;
    buildKernelPipeline(passes, pipelineOptions);
    if (observer.wantsPasses())
      passes.addInstrumentation(std::make_unique<PassEvents>(observer, track.str()));
    size_t errorsBefore = diagnostics.numErrors();
    if (mlir::failed(passes.run(module))) {
      if (diagnostics.numErrors() == errorsBefore)
        diagnostics.report(DiagnosticKind::Internal, graph.computation().root()->range(),
                           "pass failed on kernel `" + name.str() + "` without a message");
      return false;
    }
  }
  if (stage == Stage::Mlir)
    return true;

  TimedScope scope(observer, "llvm", track);
  LlvmOptions llvmOptions;
  llvmOptions.toolchain = &toolchain;
  llvmOptions.optimizationLevel = options.optimizationLevel;
  llvmOptions.lineInfo = options.lineInfo;
  auto last = CompileObserver::Clock::now();
  llvmOptions.dump = [&](llvm::StringRef step, llvm::function_ref<std::string()> text) {
    bool isPtx = step == "ptx";
    if (keepTexts && step == "llvm-optimized")
      kernel.llvm = text();
    llvm::StringRef pass = step;
    pass.consume_front("llvm-");
    observer.produced({isPtx ? IrKind::Ptx : IrKind::Llvm, pass, track, millisecondsSince(last), true, text});
    last = CompileObserver::Clock::now();
  };
  llvmOptions.timing = [&](llvm::StringRef step, std::chrono::nanoseconds elapsed) {
    auto end = CompileObserver::Clock::now();
    observer.timed(step, track, end - elapsed, end, 1);
  };
  llvm::FailureOr<std::string> ptx = compileToPtx(module, target, llvmOptions, diagnostics);
  if (failed(ptx))
    return false;
  kernel.ptx = std::move(*ptx);
  return true;
}

} // namespace hloc
