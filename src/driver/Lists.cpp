#include "Lists.h"

#include "hloc/codegen/Pipeline.h"
#include "hloc/emitters/OpcodeSupport.h"
#include "hloc/hlo/Opcode.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

std::string listTargets() {
  std::string out =
      fmt::format("{:<10} {:>4} {:>8} {:>7} {:>7}  products\n", "target", "PTX", "threads", "SMs", "vector");
  for (const TargetInfo &target : allTargets()) {
    std::string products;
    for (const std::string &product : productNames(target))
      products += (products.empty() ? "" : ", ") + product;
    out += fmt::format("{:<10} {:>2}.{} {:>8} {:>7} {:>5} B  {}\n", target.name, target.ptxVersion / 10,
                       target.ptxVersion % 10, target.threadsPerMultiprocessor, target.multiprocessors,
                       target.maxVectorBytes, products);
  }
  return out;
}

std::string versionText() { return fmt::format("hloc {}\nLLVM {}\n", HLOC_VERSION, LLVM_VERSION_STRING); }

std::string listOps() {
  std::string out = fmt::format("{:<28} {:<8} {:<12} {}\n", "opcode", "kernels", "interpreter", "why not");
  for (unsigned i = 0; i < numOpcodes(); ++i) {
    auto opcode = static_cast<Opcode>(i);
    const char *kernel = kernelRefusal(opcode);
    const char *interpreter = interpreterRefusal(opcode);
    std::string why = kernel ? kernel : "";
    if (interpreter)
      why += (why.empty() ? "" : "; ") + std::string(interpreter);
    out += fmt::format("{:<28} {:<8} {:<12} {}", text(opcode).str(), kernel ? "no" : "yes", interpreter ? "no" : "yes",
                       why);
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

namespace {

void listNested(mlir::OpPassManager &manager, std::string indent, std::string &out) {
  for (mlir::Pass &pass : manager.getPasses()) {
    llvm::StringRef argument = pass.getArgument();
    argument.consume_front("hloc-");
    if (!argument.empty())
      out += fmt::format("  mlir  {}{}\n", indent, argument.str());
  }
}

} // namespace

std::string listPasses() {
  std::string out;
  for (const HloPass &pass : hloPipeline())
    out += fmt::format("  hlo   {}\n", pass.name.str());
  out += "  mlir  emit\n";
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::PassManager manager(&context);
  buildKernelPipeline(manager, PipelineOptions());
  listNested(manager, "", out);
  for (const char *stage : {"translated", "linked", "optimized"})
    out += fmt::format("  llvm  {}\n", stage);
  out += "  ptx   ptx\n";
  return out;
}

} // namespace hloc
