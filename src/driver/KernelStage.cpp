#include "KernelStage.h"

#include "hloc/codegen/LlvmStage.h"
#include "hloc/codegen/Pipeline.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

double millisecondsSince(Timing::Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Timing::Clock::now() - begin).count();
}

std::string printModule(mlir::Operation *op) {
  while (op->getParentOp())
    op = op->getParentOp();
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os, mlir::OpPrintingFlags().useLocalScope(false));
  os << "\n";
  return text;
}

/// Feeds dumps and timing from MLIR's pass manager. Adaptors that only nest other passes are left out.
class PassObserver : public mlir::PassInstrumentation {
public:
  PassObserver(DumpTrack &dumps, Timing &timing, std::string track)
      : dumps(dumps), timing(timing), track(std::move(track)) {}

  void runBeforePass(mlir::Pass *pass, mlir::Operation *) override { begins.push_back(Timing::Clock::now()); }

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    Timing::Clock::time_point begin = begins.back();
    begins.pop_back();
    llvm::StringRef name = pass->getArgument();
    if (name.empty())
      return;
    name.consume_front("hloc-"); // dumps carry the names of the published description
    timing.add(name, track, begin, Timing::Clock::now(), 1);
    dumps.after(DumpStage::Mlir, name, millisecondsSince(begin), [&] { return printModule(op); });
  }

  void runAfterPassFailed(mlir::Pass *, mlir::Operation *) override { begins.pop_back(); }

private:
  DumpTrack &dumps;
  Timing &timing;
  std::string track;
  std::vector<Timing::Clock::time_point> begins;
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

bool KernelStage::run(const HloComputation &body, llvm::StringRef name, Stage stage, bool keepTexts,
                      CompiledKernel &kernel) {
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [&](mlir::Diagnostic &message) { return forward(message, diagnostics); });
  auto begin = Timing::Clock::now();
  llvm::FailureOr<EmittedKernel> emitted = emitKernel(body, name, target, context, diagnostics);
  timing.add("emit", name, begin, Timing::Clock::now(), 0);
  if (failed(emitted))
    return false;
  mlir::ModuleOp module = *emitted->module;
  kernel.spec = std::move(emitted->spec);
  dumps.after(DumpStage::Mlir, "emit", millisecondsSince(begin), [&] { return printModule(module); }, true);
  if (keepTexts)
    kernel.mlir = printModule(module);
  if (stage == Stage::Emit)
    return true;

  {
    Timing::Scope scope(timing, "mlir passes", name);
    mlir::PassManager passes(&context);
#ifdef NDEBUG
    passes.enableVerifier(false);
#endif
    PipelineOptions pipelineOptions;
    pipelineOptions.computeCapability = target.major * 10 + target.minor;
    pipelineOptions.maxVectorBytes = target.maxVectorBytes;
    buildKernelPipeline(passes, pipelineOptions);
    if (dumps.enabled() || timing.enabled())
      passes.addInstrumentation(std::make_unique<PassObserver>(dumps, timing, name.str()));
    size_t errorsBefore = diagnostics.numErrors();
    if (mlir::failed(passes.run(module))) {
      if (diagnostics.numErrors() == errorsBefore)
        diagnostics.report(DiagnosticKind::Internal, body.root()->range(),
                           "pass failed on kernel `" + name.str() + "` without a message");
      return false;
    }
  }
  if (stage == Stage::Mlir)
    return true;

  Timing::Scope scope(timing, "llvm", name);
  LlvmOptions llvmOptions;
  llvmOptions.toolchain = &toolchain;
  llvmOptions.optimizationLevel = options.optimizationLevel;
  llvmOptions.lineInfo = options.lineInfo;
  auto last = Timing::Clock::now();
  llvmOptions.dump = [&](llvm::StringRef step, llvm::function_ref<std::string()> text) {
    bool isPtx = step == "ptx";
    if (keepTexts && step == "llvm-optimized")
      kernel.llvm = text();
    llvm::StringRef pass = step;
    pass.consume_front("llvm-");
    dumps.after(isPtx ? DumpStage::Ptx : DumpStage::Llvm, pass, millisecondsSince(last), text, true);
    last = Timing::Clock::now();
  };
  llvmOptions.timing = [&](llvm::StringRef step, std::chrono::nanoseconds elapsed) {
    auto end = Timing::Clock::now();
    timing.add(step, name, end - elapsed, end, 1);
  };
  llvm::FailureOr<std::string> ptx = compileToPtx(module, target, llvmOptions, diagnostics);
  if (failed(ptx))
    return false;
  kernel.ptx = std::move(*ptx);
  return true;
}

} // namespace hloc
