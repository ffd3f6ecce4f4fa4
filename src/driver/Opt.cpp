// `hloc opt`: mlir-opt for the kernel pipeline. Passes run in the order of the command line; an option of a pass is
// written as in a textual pipeline: --hloc-lower-tensors='max-vector-bytes=32'.

#include "CommandHelp.h"
#include "PassList.h"
#include "Subcommands.h"

#include "hloc/codegen/Pipeline.h"
#include "hloc/passes/Passes.h"
#include "hloc/support/ExitCode.h"
#include "hloc/support/Files.h"

#include "CLI/CLI.hpp"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

#include <map>

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

constexpr const char *passGroup = "Passes, in the order of the command line";
constexpr const char *noPassOptions = "-";

void addOptions(CLI::App &app, OptOptions &options) {
  app.description("Runs passes on MLIR text.");
  app.add_option("input", options.input, "MLIR text; - is stdin, the default")->type_name("INPUT.mlir");
  app.option_defaults()->group("Input and output");
  app.add_option("-o,--output", options.output, "file, or - (stdout, the default)")->type_name("FILE");
  app.add_flag("--print-after-all", options.printAfterAll, "the IR after each pass that changes it, to stderr");
  app.add_flag("--mlir-print-op-generic", options.generic, "ops in the form that all ops have");
  app.add_flag("--mlir-print-local-scope", options.localScope, "attributes in full instead of aliases");
  app.add_flag("--split-input-file", options.splitInput, "parts between lines `// -----` are modules of their own");
  app.add_flag("--verify-diagnostics", options.verifyDiagnostics, "the text says which diagnostics are expected where");
  app.option_defaults()->group("The whole pipeline");
  app.add_flag("--hloc-pipeline", options.wholePipeline, "the whole kernel pipeline, to LLVM dialect");
  app.add_option("--sm", options.pipeline.computeCapability, "of --hloc-pipeline: compute capability times ten")
      ->type_name("N");
  app.add_option("--max-vector-bytes", options.pipeline.maxVectorBytes, "of --hloc-pipeline: widest access of a thread")
      ->type_name("N");
  app.add_option("--max-unroll-factor", options.pipeline.maxUnrollFactor,
                 "of --hloc-pipeline: loops of up to this many iterations are unrolled completely")
      ->type_name("N");
  app.option_defaults()->group(passGroup);
  app.add_option("--pass-pipeline", "a textual pipeline, e.g. 'hloc-flatten-tensors,cse'")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  for (const PassRow &pass : optPasses())
    app.add_flag("--" + pass.name + "{" + noPassOptions + "}", pass.summary)->type_name("OPTIONS");
  app.set_help_flag("-h,--help", "this text, and the options of the passes: 'OPTION=VALUE ...'")->group("Information");
}

/// The elements of a textual pipeline, in the order of the command line.
std::vector<std::string> passesOf(const CLI::App &app) {
  std::vector<std::string> passes;
  std::map<const CLI::Option *, size_t> numSeen;
  for (const CLI::Option *option : app.parse_order()) {
    if (option->get_group() != passGroup)
      continue;
    const std::string &value = option->results().at(numSeen[option]++);
    const std::string &name = option->get_lnames().front();
    bool isPipeline = option->get_fnames().empty();
    passes.push_back(isPipeline ? value : value == noPassOptions ? name : name + "{" + value + "}");
  }
  return passes;
}

/// Nothing on success; otherwise the exit code, after help or an error was printed.
std::optional<ExitCode> parseArguments(int argc, char **argv, OptOptions &options) {
  CLI::App app("", "hloc opt");
  addOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    CommandHelp help = describeCommand("opt", app, {});
    llvm::erase_if(help.options, [](const OptionHelp &option) { return option.optionalValue; }); // the passes
    llvm::outs() << helpText(help) << '\n';
    printRegisteredPasses(); // to standard output, with the passes' own options
    return ExitCode::Success;
  } catch (const CLI::ParseError &error) {
    llvm::errs() << "hloc opt: error: " << usageError(app, error) << " [bad-usage]\n";
    return ExitCode::InvalidUsage;
  }
  options.passes = passesOf(app);
  return std::nullopt;
}

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

CommandHelp hloc::describeOpt() {
  CLI::App app;
  OptOptions options;
  addOptions(app, options);
  return describeCommand("opt", app, {});
}

int hloc::runOpt(int argc, char **argv) {
  registerKernelPasses();
  OptOptions options;
  if (std::optional<ExitCode> exitCode = parseArguments(argc, argv, options))
    return int(*exitCode);
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
