#include "../../../src/emulator/Program.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <catch2/catch.hpp>
#include <cstdlib>

using namespace hloc;
using namespace hloc::emulator;

namespace {

std::unique_ptr<Program> resolveText(std::string text, DiagnosticEngine &diagnostics) {
  diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", std::move(text)));
  auto module = ptx::parse(diagnostics);
  return module ? resolve(*module, diagnostics) : nullptr;
}

std::string kernelOf(const std::string &body) {
  return ".version 8.0\n.entry f(.param .u64 p, .param .u32 n) {\n.reg .pred %p<2>;\n.reg .b32 %r<9>;\n" + body +
         "\n}\n";
}

} // namespace

TEST_CASE("resolve: registers, parameters and branch targets") {
  DiagnosticEngine diagnostics;
  auto program =
      resolveText(kernelOf("ld.param.u32 %r1, [n];\n@!%p1 bra L;\nadd.s32 %r2, %r1, 5;\nL: ret;"), diagnostics);
  REQUIRE(program);
  const Kernel &kernel = program->kernels.find("f")->second;
  REQUIRE(kernel.code.size() == 4);
  CHECK(kernel.paramOffsets == std::vector<uint64_t>{0, 8});
  CHECK(kernel.code[0].operands[1].value == 8);
  CHECK(kernel.code[1].target == 3);
  CHECK(kernel.code[1].guard.negated);
  CHECK(kernel.code[2].operands[2].value == 5);
}

TEST_CASE("resolve: what is not known is refused by name") {
  for (const char *body :
       {"tcgen05.fence.sync.aligned;",
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r1}, %d1, %d1, %r1, 0, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r1}, %d1, %d1, 1;",
        "wgmma.mma_async.sync.aligned.m64n16k16.f16.bf16.bf16 {%r1}, %d1, %d1, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.f16 {%r1}, %d1, %d1, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.xor.popc {%r1}, %d1, %d1, 1;", "add.s32.frob %r1, %r2, %r3;",
        "bar.frob 3;", "ld.global.b8x16 %r1, [%r2];",
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 %r1, %r2, %r3, %r4;"}) {
    DiagnosticEngine diagnostics;
    INFO(body);
    CHECK(!resolveText(kernelOf(body), diagnostics));
    REQUIRE(diagnostics.numErrors() >= 1);
    const Diagnostic &report = diagnostics.diagnostics()[0];
    CHECK(report.kind == DiagnosticKind::UnsupportedFeature);
    CHECK(report.range.isValid());
    CHECK(report.message.find(std::string(body).substr(0, 3)) != std::string::npos);
  }
}

TEST_CASE("resolve: undefined names are errors") {
  for (const char *body : {"add.s32 %r1, %r2, %q;", "bra nowhere;"}) {
    DiagnosticEngine diagnostics;
    CHECK(!resolveText(kernelOf(body), diagnostics));
    CHECK(diagnostics.diagnostics()[0].kind == DiagnosticKind::UndefinedName);
  }
}

TEST_CASE("resolve: every corpus file") {
  const char *corpus = std::getenv("HLOC_CORPUS");
  if (!corpus)
    return;
  std::error_code ec;
  size_t files = 0;
  for (const char *folder : {"/xla-ptx", "/triton-ptx"})
    for (llvm::sys::fs::recursive_directory_iterator it(std::string(corpus) + folder, ec), end; it != end && !ec;
         it.increment(ec)) {
      if (!llvm::StringRef(it->path()).ends_with(".ptx"))
        continue;
      auto text = llvm::MemoryBuffer::getFile(it->path());
      REQUIRE(text);
      DiagnosticEngine diagnostics;
      auto program = resolveText((*text)->getBuffer().str(), diagnostics);
      INFO(it->path() << ": " << (diagnostics.hasErrors() ? diagnostics.diagnostics()[0].message : ""));
      CHECK(program);
      ++files;
    }
  CHECK(files > 0);
}
