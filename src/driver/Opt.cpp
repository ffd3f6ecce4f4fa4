// `hloc opt`: mlir-opt for the kernel pipeline. Passes run in the order of the command line; an option of a pass is
// written as in a textual pipeline: --hloc-lower-tensors='max-vector-bytes=32'.
#include "hloc/driver/Subcommands.h"

#include "PassList.h"

#include "hloc/codegen/Pipeline.h"
#include "hloc/passes/Passes.h"
#include "hloc/support/ExitCode.h"
#include "hloc/support/Files.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace hloc;

namespace {

struct OptOptions {
  std::string input = "-", output = "-";
  std::vector<std::string> passes; ///< elements of a textual pipeline, in order
  PipelineOptions pipeline;
  bool wholePipeline = false;
  bool verifyDiagnostics = false;
  bool splitInput = false;
  bool printAfterAll = false;
  bool generic = false;
  bool localScope = false;
};

void printHelp() {
  llvm::outs() << "hloc opt [INPUT.mlir|-] [options]: runs passes on MLIR text\n"
                  "  --hloc-pipeline             the whole kernel pipeline, to LLVM dialect\n"
                  "  --PASS[='OPTION=VALUE ...'] a pass of the list below; in the order of the command line\n"
                  "  --pass-pipeline=TEXT        a textual pipeline, e.g. 'hloc-flatten-tensors,cse'\n"
                  "  --sm=N --max-vector-bytes=N --max-unroll-factor=N   options of --hloc-pipeline\n"
                  "  -o FILE --print-after-all --mlir-print-op-generic --mlir-print-local-scope\n"
                  "  --verify-diagnostics --split-input-file\n\n";
  printRegisteredPasses(); // to standard output
}

/// Nothing on success; otherwise what is wrong with the command line.
std::optional<std::string> parseArguments(int argc, char **argv, OptOptions &options) {
  bool haveInput = false;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    auto number = [&](StringRef name, int64_t &value) {
      return argument.consume_front(name) && !argument.getAsInteger(10, value);
    };
    if (argument == "-o" && i + 1 < argc) {
      options.output = argv[++i];
    } else if (argument == "-" || !argument.starts_with("-")) {
      if (haveInput)
        return "more than one input file";
      options.input = argument.str();
      haveInput = true;
    } else if (argument == "--hloc-pipeline") {
      options.wholePipeline = true;
    } else if (argument == "--verify-diagnostics") {
      options.verifyDiagnostics = true;
    } else if (argument == "--split-input-file") {
      options.splitInput = true;
    } else if (argument == "--print-after-all") {
      options.printAfterAll = true;
    } else if (argument == "--mlir-print-op-generic") {
      options.generic = true;
    } else if (argument == "--mlir-print-local-scope") {
      options.localScope = true;
    } else if (number("--sm=", options.pipeline.computeCapability) ||
               number("--max-vector-bytes=", options.pipeline.maxVectorBytes) ||
               number("--max-unroll-factor=", options.pipeline.maxUnrollFactor)) {
      continue;
    } else if (argument.consume_front("--pass-pipeline=")) {
      options.passes.push_back(argument.str());
    } else if (argument.consume_front("--")) {
      auto [name, value] = argument.split('=');
      if (!PassInfo::lookup(name))
        return ("unknown option or pass `--" + name + "`").str();
      options.passes.push_back(value.empty() ? name.str() : (name + "{" + value + "}").str());
    } else {
      return ("unknown option `" + argument + "`").str();
    }
  }
  return std::nullopt;
}

/// A pass that is no pass on modules is one on their functions.
LogicalResult buildPasses(PassManager &manager, const OptOptions &options) {
  for (const std::string &pass : options.passes)
    if (failed(parsePassPipeline(pass, manager, llvm::nulls())) &&
        failed(parsePassPipeline("func.func(" + pass + ")", manager, llvm::errs())))
      return failure();
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

int hloc::runOpt(int argc, char **argv) {
  registerKernelPasses();
  OptOptions options;
  for (int i = 1; i < argc; ++i)
    if (StringRef(argv[i]) == "--help")
      return printHelp(), int(ExitCode::Success);
  if (std::optional<std::string> error = parseArguments(argc, argv, options)) {
    llvm::errs() << "hloc opt: error: " << *error << " [bad-usage]\n";
    return int(ExitCode::InvalidUsage);
  }
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(options.input, &message);
  if (!buffer) {
    llvm::errs() << "hloc opt: error: " << message << " [unreadable-file]\n";
    return int(ExitCode::InvalidInput);
  }
  std::string text;
  llvm::raw_string_ostream output(text);
  DialectRegistry registry;
  registerKernelDialects(registry);
  registry.insert<NVVM::NVVMDialect>();
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
