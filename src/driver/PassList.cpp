#include "PassList.h"

#include "hloc/codegen/Pipeline.h"
#include "hloc/passes/Passes.h"
#include "hloc/transforms/Transforms.h"

#include "mlir/Conversion/ComplexToStandard/ComplexToStandard.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace mlir;

namespace hloc {

void registerKernelPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerHlocPasses();
    registerPass(createCSEPass);
    registerPass([] { return createCanonicalizerPass(); });
    registerPass(createLoopInvariantCodeMotionPass);
    registerPass(createSymbolDCEPass);
    registerPass([] { return createSCFToControlFlowPass(); });
    registerPass([] { return createConvertComplexToStandardPass(); });
  });
}

namespace {

/// The passes in a textual pipeline, `builtin.module(a,func.func(b{option=1}))`, without their options and without the
/// operations they run on. MLIR gives no other access to passes that are nested in others.
std::vector<StringRef> passesIn(StringRef pipeline) {
  std::vector<StringRef> names;
  while (!pipeline.empty()) {
    StringRef word = pipeline.take_until([](char c) { return StringRef("(),{").contains(c); });
    pipeline = pipeline.drop_front(word.size());
    bool isAnchor = pipeline.starts_with("(");
    if (!word.empty() && !isAnchor)
      names.push_back(word);
    pipeline = pipeline.starts_with("{") ? pipeline.split('}').second : pipeline.drop_front(!pipeline.empty());
  }
  return names;
}

/// As the textual pipeline has them, in the order in which they run.
std::vector<std::string> kernelPipelineArguments() {
  registerKernelPasses();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  PassManager manager(&context);
  buildKernelPipeline(manager, PipelineOptions());
  std::string pipeline;
  llvm::raw_string_ostream os(pipeline);
  manager.printAsTextualPipeline(os);
  std::vector<std::string> arguments;
  for (StringRef argument : passesIn(pipeline))
    arguments.push_back(argument.str());
  return arguments;
}

PassRow mlirPass(StringRef argument, StringRef name) {
  const PassInfo *info = PassInfo::lookup(argument);
  return {"mlir", name.str(), info ? info->getPassDescription().str() : ""};
}

} // namespace

std::vector<PassRow> optPasses() {
  std::vector<std::string> arguments = kernelPipelineArguments();
  arguments.push_back("symbol-dce"); // for tests, which drop what they do not look at
  std::sort(arguments.begin(), arguments.end());
  arguments.erase(std::unique(arguments.begin(), arguments.end()), arguments.end());
  std::vector<PassRow> rows;
  for (const std::string &argument : arguments)
    rows.push_back(mlirPass(argument, argument));
  return rows;
}

std::vector<PassRow> passesInOrder() {
  std::vector<PassRow> rows = {{"hlo", "parse", "Reads the text; not a pass, but dumped as one"}};
  for (const HloPass &pass : hloPipeline())
    rows.push_back({"hlo", pass.name.str(), pass.summary.str()});
  rows.push_back({"hlo", "only", "Makes a module of the kernels that --only names; not a pass, but dumped as one"});

  rows.push_back({"mlir", "emit", "Writes a kernel of the plan as MLIR"});
  for (const std::string &argument : kernelPipelineArguments()) {
    StringRef name = argument;
    name.consume_front("hloc-");
    rows.push_back(mlirPass(argument, name));
  }

  rows.push_back({"llvm", "translated", "LLVM IR of the LLVM dialect"});
  rows.push_back({"llvm", "linked", "The functions of libdevice that the kernel calls are added, if it calls any"});
  rows.push_back({"llvm", "optimized", "LLVM's own pipeline of the level -O, wide accesses, divisions"});
  rows.push_back({"ptx", "ptx", "PTX of the LLVM IR"});
  return rows;
}

} // namespace hloc
