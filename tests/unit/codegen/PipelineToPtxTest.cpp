// Kernels as emitted, through all passes and the LLVM stage to PTX, and to machine code where there is a ptxas.

#include "hloc/codegen/Assemble.h"
#include "hloc/codegen/LlvmStage.h"
#include "hloc/codegen/Pipeline.h"
#include "hloc/codegen/Ptx.h"
#include "hloc/codegen/Toolchain.h"
#include "hloc/passes/Passes.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

std::string compileKernel(const std::string &text, const TargetInfo &target, const Toolchain &toolchain) {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  mlir::PassManager passes(&context);
  buildKernelPipeline(passes, {int64_t(target.major * 10 + target.minor), int64_t(target.maxVectorBytes), 8});
  REQUIRE(mlir::succeeded(passes.run(*module)));
  LlvmOptions options;
  options.toolchain = &toolchain;
  options.verify = true;
  DiagnosticEngine diagnostics;
  llvm::FailureOr<std::string> ptx = compileToPtx(*module, target, options, diagnostics);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  diagnostics.print(stream, false);
  INFO(messages);
  REQUIRE(llvm::succeeded(ptx));
  return *ptx;
}

} // namespace

TEST_CASE("an emitted gelu is one 16-byte load and store a thread, without local memory or division") {
  std::string error;
  std::optional<std::string> text = readFile(HLOC_SOURCE_DIR "/tests/lit/passes/gelu.mlir", error);
  REQUIRE(text);
  Toolchain toolchain = Toolchain::discover({});
  for (const char *name : {"sm_80", "sm_90", "sm_100"}) {
    TargetInfo target = *findTarget(name);
    std::string ptx = compileKernel(*text, target, toolchain);
    INFO(ptx);
    llvm::StringRef view(ptx);
    CHECK(view.count("ld.global") == 1);
    CHECK(view.count("ld.global.nc.v4.b32") == 1);
    CHECK(view.count("st.global") == 1);
    CHECK(view.count("st.global.v4.b32") == 1);
    CHECK(view.count(".local") == 0);
    CHECK(view.count("div.u") + view.count("rem.u") + view.count("div.s") + view.count("rem.s") == 0);
    CHECK(view.count(".reqntid 128, 1, 1") == 1);
    if (!toolchain.has(Tool::Ptxas))
      continue;
    DiagnosticEngine diagnostics;
    auto cubins = assemble(ptx, target, toolchain, {}, diagnostics);
    REQUIRE(llvm::succeeded(cubins));
    const KernelResources *resources = cubins->front().find("gelu");
    REQUIRE(resources);
    CHECK(resources->spillStoreBytes + resources->spillLoadBytes + resources->stackBytes == 0);
    CHECK(resources->registers < 64);
  }
}
