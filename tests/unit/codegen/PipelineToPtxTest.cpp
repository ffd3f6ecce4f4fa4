// Kernels as emitted, through all passes and the LLVM stage to PTX, and to machine code where there is a ptxas.

#include "unit/SystemToolchain.h"
#include "unit/codegen/CompileKernel.h"

#include "hloc/codegen/Assemble.h"
#include "hloc/support/Files.h"

using namespace hloc;

TEST_CASE("an emitted gelu is one 16-byte load and store a thread, without local memory or division") {
  std::string error;
  std::optional<std::string> text = readFile(HLOC_SOURCE_DIR "/tests/lit/passes/gelu.mlir", error);
  REQUIRE(text);
  Toolchain toolchain = test::systemToolchain();
  for (const char *name : {"sm_80", "sm_90", "sm_100"}) {
    TargetInfo target = *findTarget(name);
    std::string ptx = tests::compileKernel(*text, target, toolchain);
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
