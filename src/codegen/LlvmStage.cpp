#include "hloc/codegen/LlvmStage.h"

#include "LlvmStageParts.h"

#include "fmt/format.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdio>

namespace hloc {

namespace {
/// The kernel this thread is compiling, for the fatal error report: LLVM gives the handler nothing but a reason.
thread_local const char *currentKernel = nullptr;
thread_local bool currentIsGiven = false;
} // namespace

CurrentKernelScope::CurrentKernelScope(const std::string &name, bool given) {
  currentKernel = name.c_str();
  currentIsGiven = given;
}
CurrentKernelScope::~CurrentKernelScope() { currentKernel = nullptr; }

namespace {

class CollectingHandler : public llvm::DiagnosticHandler {
public:
  explicit CollectingHandler(std::vector<std::string> &errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
      errors.push_back(text);
    }
    return true;
  }

private:
  std::vector<std::string> &errors;
};

/// Times the steps of one call and hands out the dumps.
class StageReporter {
public:
  explicit StageReporter(const LlvmOptions &options) : options(options), start(now()) {}

  void finish(llvm::StringRef stage) {
    if (options.timing)
      options.timing(stage, now() - start - told);
    told = {};
    start = now();
  }
  void finish(llvm::StringRef stage, const llvm::Module &module) {
    finish(stage);
    if (options.dump)
      options.dump(stage, [&] { return printLlvm(module); });
    start = now(); // dumping is not compiling
  }
  void finish(llvm::StringRef stage, const std::string &text) {
    finish(stage);
    if (options.dump)
      options.dump(stage, [&] { return text; });
  }

  /// The options with a callback for passes whose time is not counted.
  LlvmOptions passOptions() {
    LlvmOptions result = options;
    if (options.pass)
      result.pass = [this](const LlvmPassRun &run) {
        auto begin = now();
        options.pass(run);
        told += now() - begin;
      };
    return result;
  }

private:
  static std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }
  const LlvmOptions &options;
  std::chrono::nanoseconds told{}; ///< spent in the callback for passes since `start`
  std::chrono::steady_clock::time_point start;
};

bool verify(const llvm::Module &module, llvm::StringRef when, DiagnosticEngine &diagnostics) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (!llvm::verifyModule(module, &stream))
    return true;
  diagnostics.report(DiagnosticKind::Internal, fmt::format("invalid LLVM IR {}: {}", when.str(), text));
  return false;
}

llvm::FailureOr<std::string> compile(llvm::Module &module, const std::vector<KernelEntry> &kernels,
                                     const TargetInfo &target, StageReporter &reporter, DiagnosticEngine &diagnostics) {
  const LlvmOptions options = reporter.passOptions();
  LlvmDiagnosticScope scope(module.getContext());
  const std::string &name = kernels.front().name;
  CurrentKernelScope kernelScope(name, options.given);
  llvm::TargetMachine *machine = targetMachine(target, options, diagnostics);
  if (!machine)
    return llvm::failure();
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  // File names inside the IR would make the bytes depend on where the compiler ran.
  module.setModuleIdentifier(name);
  module.setSourceFileName(name);
  applyLaunch(module, kernels);
  if (options.verify && !verify(module, "before optimisation", diagnostics))
    return llvm::failure();
  if (options.startAfter.empty())
    reporter.finish("llvm-translated", module);

  if (needsLibdevice(module)) {
    if (!linkLibdevice(module, options.toolchain, diagnostics))
      return llvm::failure();
    reporter.finish("llvm-linked", module);
  }
  if (options.fastDivision && llvm::is_contained({"", "translated", "linked"}, options.startAfter))
    allowFastDivisions(module); // later texts have the marks
  optimize(module, *machine, target, options);
  if (options.optimizationLevel > 0) {
    switchOffVectorizerInCodeGeneration();
    runStep("merge-accesses", module, options, [&] { mergeAccesses(module, *machine, target); });
    runStep("widen-brains", module, options, [&] { widenBrains(module); });
  }
  if (options.fastDivision)
    runStep("lower-divisions", module, options, [&] { lowerDivisions(module); });
  if (!isDone("optimized", options)) {
    prefixLocalNames(module, name);
    limitRegisters(module);
  }
  if (!scope.flush(name, diagnostics) || (options.verify && !verify(module, "after optimisation", diagnostics)))
    return llvm::failure();
  reporter.finish("llvm-optimized", module);

  if (!auditModule(module, target, diagnostics))
    return llvm::failure();
  std::string ptx = printPtx(module, *machine);
  if (!scope.flush(name, diagnostics))
    return llvm::failure();
  reporter.finish("ptx", ptx);
  return ptx;
}

void (*failureHandler)(const LlvmFailure &) = nullptr;

void handleFatalError(void *, const char *reason, bool) {
  failureHandler({currentKernel ? currentKernel : "?", reason, currentKernel && currentIsGiven});
}

} // namespace

/// hloc's own steps, in order; LLVM's passes are before the first.
static constexpr llvm::StringLiteral ownSteps[] = {"pack-pairs", "merge-accesses", "widen-brains", "lower-divisions",
                                                   "optimized"};

bool isDone(llvm::StringRef id, const LlvmOptions &options) {
  const auto *start = llvm::find(ownSteps, options.startAfter);
  return start != std::end(ownSteps) && llvm::find(ownSteps, id) <= start;
}

bool canStartAfter(const llvm::Module &module, llvm::StringRef id) {
  return id.empty() || id == "translated" || id == "linked" || llvm::is_contained(ownSteps, id) ||
         (isStraightLine(module) && llvm::is_contained(straightLinePasses, id));
}

LlvmDiagnosticScope::LlvmDiagnosticScope(llvm::LLVMContext &context)
    : context(context), previous(context.getDiagnosticHandler()) {
  context.setDiagnosticHandler(std::make_unique<CollectingHandler>(errors));
}

LlvmDiagnosticScope::~LlvmDiagnosticScope() { context.setDiagnosticHandler(std::move(previous)); }

bool LlvmDiagnosticScope::flush(llvm::StringRef kernel, DiagnosticEngine &diagnostics) {
  bool fine = errors.empty();
  for (const std::string &text : errors)
    diagnostics.report(DiagnosticKind::Internal, fmt::format("LLVM, kernel `{}`: {}", kernel.str(), text));
  errors.clear();
  return fine;
}

llvm::FailureOr<std::string> compileToPtx(mlir::ModuleOp module, const TargetInfo &target, const LlvmOptions &options,
                                          DiagnosticEngine &diagnostics) {
  StageReporter reporter(options);
  llvm::FailureOr<std::vector<KernelEntry>> kernels = findKernels(module, diagnostics);
  if (llvm::failed(kernels) || !auditIntrinsics(module, target, diagnostics))
    return llvm::failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated = translateToLlvm(module, context, options, diagnostics);
  if (!translated)
    return llvm::failure();
  return compile(*translated, *kernels, target, reporter, diagnostics);
}

llvm::FailureOr<std::string> compileToPtx(llvm::Module &module, const TargetInfo &target, const LlvmOptions &options,
                                          DiagnosticEngine &diagnostics) {
  StageReporter reporter(options);
  std::vector<KernelEntry> kernels;
  for (const llvm::Function &function : module)
    if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel && !function.isDeclaration())
      kernels.push_back({function.getName().str(), std::nullopt, std::nullopt});
  if (kernels.empty()) {
    diagnostics.report(options.given ? DiagnosticKind::BadModule : DiagnosticKind::Internal,
                       "LLVM IR without a kernel: no function with a body is a `ptx_kernel`");
    return llvm::failure();
  }
  return compile(module, kernels, target, reporter, diagnostics);
}

void installLlvmFailureHandler(void (*handler)(const LlvmFailure &)) {
  failureHandler = handler;
  llvm::install_fatal_error_handler(handleFatalError);
}

} // namespace hloc
