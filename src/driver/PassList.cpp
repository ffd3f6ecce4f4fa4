#include "PassList.h"

#include "hloc/codegen/LlvmPasses.h"
#include "hloc/passes/Passes.h"
#include "hloc/transforms/Transforms.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include <mutex>

using namespace mlir;

namespace hloc {

void registerKernelPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerHlocPasses();
    registerPass([] { return createCanonicalizerPass(); });
    registerPass(createLoopInvariantCodeMotionPass);
    registerPass(createSymbolDCEPass);
    registerPass([] { return createSCFToControlFlowPass(); });
  });
}

std::vector<PassRow> optPasses() {
  registerKernelPasses();
  std::vector<PassRow> rows = {
      {"mlir", "symbol-dce",
       PassInfo::lookup("symbol-dce")->getPassDescription().str()}}; // drops what tests do not look at
  for (const PassName &pass : kernelPasses())
    rows.push_back({"mlir", pass.argument, pass.summary});
  auto byName = [](const PassRow &a, const PassRow &b) { return a.name < b.name; };
  std::stable_sort(rows.begin(), rows.end(), byName);
  auto sameName = [](const PassRow &a, const PassRow &b) { return a.name == b.name; };
  rows.erase(std::unique(rows.begin(), rows.end(), sameName), rows.end());
  return rows;
}

std::vector<PassRow> passesInOrder(unsigned optimizationLevel) {
  std::vector<PassRow> rows = {{"hlo", "parse", "Reads the text; not a pass, but dumped as one"}};
  for (const HloPass &pass : hloPipeline()) {
    rows.push_back({"hlo", pass.name.str(), pass.summary.str()});
    if (pass.run == simplify)
      for (const HloPass &part : simplificationPasses())
        rows.push_back({"hlo", part.name.str(), part.summary.str()});
  }
  rows.push_back({"hlo", "only", "Makes a module of the kernels that --only names; not a pass, but dumped as one"});

  rows.push_back({"mlir", "emit", "Writes a kernel of the plan as MLIR"});
  for (const PassName &pass : kernelPasses())
    rows.push_back({"mlir", pass.name, pass.summary});

  rows.push_back({"llvm", "translated", "LLVM IR of the LLVM dialect"});
  rows.push_back({"llvm", "linked", "The functions of libdevice that the kernel calls are added, if it calls any"});
  for (const PassName &pass : llvmPasses(optimizationLevel))
    rows.push_back({"llvm", pass.name, pass.summary});
  if (optimizationLevel > 0) {
    rows.push_back(
        {"llvm", "pack-pairs",
         "Neighbouring lanes are computed two at a time, where PTX can, as are bytes that become floats; truth values "
         "in bytes four at a time"});
    rows.push_back({"llvm", "merge-accesses", "Neighbouring loads and stores become vectors"});
    rows.push_back({"llvm", "widen-brains", "bf16 that are loaded as words become f32 as halves of these"});
  }
  rows.push_back({"llvm", "lower-divisions", "Divisions of f32 become div.full"});
  rows.push_back({"llvm", "optimized", "The LLVM IR that instructions are selected for"});
  rows.push_back({"ptx", "ptx", "PTX of the LLVM IR"});
  return rows;
}

} // namespace hloc
