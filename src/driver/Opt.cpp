#include "Opt.h"

#include "PassList.h"

#include "hloc/passes/Passes.h"
#include "hloc/support/ExitCode.h"
#include "hloc/support/Files.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace hloc;

namespace {

/// A pass that is no pass on modules is one on their functions. Reports what of the command line is wrong with it.
LogicalResult buildPasses(PassManager &manager, const OptOptions &options) {
  for (const std::string &pass : options.passes) {
    std::string ofModules, ofFunctions;
    llvm::raw_string_ostream moduleErrors(ofModules), functionErrors(ofFunctions);
    if (succeeded(parsePassPipeline(pass, manager, moduleErrors)) ||
        succeeded(parsePassPipeline("func.func(" + pass + ")", manager, functionErrors)))
      continue;
    bool isOfModules = StringRef(ofFunctions).contains("restricted to 'builtin.module'");
    llvm::errs() << (isOfModules ? ofModules : ofFunctions) << "hloc opt: error: `" << pass
                 << "` cannot be run [bad-usage]\nhloc: note: `hloc opt --help` lists passes and their options\n";
    return failure();
  }
  if (options.wholePipeline)
    buildKernelPipeline(manager, options.pipeline);
  return success();
}

LogicalResult process(MLIRContext &context, llvm::SourceMgr &sources, const OptOptions &options, raw_ostream &os) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failure();
  PassManager manager(&context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
  if (failed(buildPasses(manager, options)))
    return failure();
#ifndef NDEBUG
  if (options.wholePipeline)
    addPhaseChecks(manager);
#endif
  if (options.printAfterAll)
    manager.enableIRPrinting([](Pass *, Operation *) { return false; }, [](Pass *, Operation *) { return true; },
                             /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/true);
  if (failed(manager.run(*module)))
    return failure();
  OpPrintingFlags flags;
  if (options.generic)
    flags.printGenericOpForm();
  if (options.localScope) // attributes in full instead of aliases
    flags.useLocalScope();
  module->print(os, flags);
  os << '\n';
  return success();
}

LogicalResult processBuffer(std::unique_ptr<llvm::MemoryBuffer> buffer, const DialectRegistry &registry,
                            const OptOptions &options, raw_ostream &os) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), SMLoc());
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  if (!options.verifyDiagnostics) {
    SourceMgrDiagnosticHandler handler(sources, &context);
    return process(context, sources, options, os);
  }
  context.printOpOnDiagnostic(false); // expected diagnostics are the messages, not the ops
  SourceMgrDiagnosticVerifierHandler handler(sources, &context);
  (void)process(context, sources, options, os);
  return handler.verify();
}

} // namespace

void hloc::printPasses() {
  registerKernelPasses();
  llvm::outs() << '\n';
  printRegisteredPasses(); // to standard output, with the passes' own options
}

int hloc::runOpt(const OptOptions &options) {
  registerKernelPasses();
  std::string message;
  {
    MLIRContext context(MLIRContext::Threading::DISABLED);
    PassManager manager(&context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
    if (failed(buildPasses(manager, options)))
      return int(ExitCode::InvalidUsage);
  }
  if (options.output != "-" && llvm::sys::fs::is_regular_file(options.output) &&
      llvm::sys::fs::equivalent(options.output, options.input)) {
    llvm::errs() << "hloc opt: error: -o would write over the input `" << options.input << "` [bad-usage]\n";
    return int(ExitCode::InvalidUsage);
  }
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(options.input, &message);
  if (!buffer) {
    llvm::errs() << "hloc opt: error: " << message << " [unreadable-file]\n";
    return int(ExitCode::InvalidInput);
  }
  std::string text;
  llvm::raw_string_ostream output(text);
  DialectRegistry registry;
  registerKernelDialects(registry);
  registerNvvmDialect(registry);
  LogicalResult result = success();
  if (options.splitInput) {
    SmallVector<StringRef> parts;
    buffer->getBuffer().split(parts, "// -----\n");
    for (StringRef part : parts) {
      if (!text.empty())
        output << "// -----\n";
      if (failed(processBuffer(llvm::MemoryBuffer::getMemBufferCopy(part, options.input), registry, options, output)))
        result = failure();
    }
  } else {
    result = processBuffer(std::move(buffer), registry, options, output);
  }
  if (options.output == "-") {
    llvm::outs() << text;
  } else if (succeeded(result) && !writeFile(options.output, text, message)) {
    llvm::errs() << "hloc opt: error: cannot write `" << options.output << "`: " << message << " [unwritable-file]\n";
    return int(ExitCode::InvalidUsage);
  }
  return int(succeeded(result) ? ExitCode::Success : ExitCode::InvalidInput);
}
