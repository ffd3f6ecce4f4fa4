// What the passes for kernels with branches, loops and helpers have to achieve.

#include "hloc/codegen/LlvmStage.h"

#include "fmt/format.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Support/SourceMgr.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// PTX of a kernel `k(ptr %in, ptr %out, i32 %count)` with this body, and of what it calls.
/// `optimized`, if given, becomes the LLVM IR before accesses are merged.
std::string compileKernel(const std::string &body, const std::string &helpers = "", unsigned level = 3,
                          std::string *optimized = nullptr) {
  std::string text = helpers +
                     "define ptx_kernel void @k(ptr noalias align 16 dereferenceable(4096) %in, "
                     "ptr noalias align 16 dereferenceable(4096) %out, i32 %count) {\n" +
                     body + "}\n";
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module = llvm::parseIR(llvm::MemoryBufferRef(text, "k"), error, context);
  INFO(text << error.getMessage().str());
  REQUIRE(module);
  LlvmOptions options;
  options.optimizationLevel = level;
  options.verify = true;
  if (optimized)
    options.pass = [&](const LlvmPassRun &run) {
      if (run.id == "pack-pairs")
        *optimized = run.text();
    };
  DiagnosticEngine diagnostics;
  llvm::FailureOr<std::string> ptx = compileToPtx(*module, *findTarget("sm_90"), options, diagnostics);
  REQUIRE(llvm::succeeded(ptx));
  return *ptx;
}

size_t count(llvm::StringRef text, llvm::StringRef part) { return text.count(part); }

} // namespace

TEST_CASE("a loop of known length becomes straight code with vector accesses") {
  std::string ptx = compileKernel("entry:\n"
                                  "  br label %loop\n"
                                  "loop:\n"
                                  "  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n"
                                  "  %from = getelementptr inbounds float, ptr %in, i32 %i\n"
                                  "  %x = load float, ptr %from, align 4\n"
                                  "  %y = fneg float %x\n"
                                  "  %to = getelementptr inbounds float, ptr %out, i32 %i\n"
                                  "  store float %y, ptr %to, align 4\n"
                                  "  %next = add i32 %i, 1\n"
                                  "  %more = icmp slt i32 %next, 4\n"
                                  "  br i1 %more, label %loop, label %done\n"
                                  "done:\n"
                                  "  ret void\n");
  INFO(ptx);
  CHECK(count(ptx, "bra") == 0);
  CHECK(count(ptx, "ld.global") == 1);
  CHECK(count(ptx, "st.global.v4") == 1);
}

TEST_CASE("what does not change in a loop is computed before it") {
  std::string ptx = compileKernel("entry:\n"
                                  "  %a = load float, ptr %in, align 4\n"
                                  "  br label %head\n"
                                  "head:\n"
                                  "  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n"
                                  "  %more = icmp slt i32 %i, %count\n"
                                  "  br i1 %more, label %loop, label %done\n"
                                  "loop:\n"
                                  "  %root = call float @llvm.sqrt.f32(float %a)\n"
                                  "  %to = getelementptr inbounds float, ptr %out, i32 %i\n"
                                  "  store float %root, ptr %to, align 4\n"
                                  "  %next = add nsw i32 %i, 1\n"
                                  "  br label %head\n"
                                  "done:\n"
                                  "  ret void\n",
                                  "declare float @llvm.sqrt.f32(float)\n");
  INFO(ptx);
  size_t root = ptx.find("sqrt"), label = ptx.find("\n$L__BB0_");
  REQUIRE(root != std::string::npos);
  REQUIRE(label != std::string::npos);
  CHECK(count(ptx, "sqrt") == 1);
  // The loop is the block that is jumped back to; everything before the first label runs once.
  size_t jump = ptx.rfind("bra");
  std::string back = ptx.substr(ptx.find("$L__BB", jump), ptx.find(';', jump) - ptx.find("$L__BB", jump));
  CHECK(root < ptx.find("\n" + back + ":"));
}

TEST_CASE("equal calls are inlined once, also many levels deep") {
  // Every level calls the one below twice with the same arguments: 2^24 evaluations, were they not seen to be equal.
  std::string helpers = "define internal float @f0(ptr noalias %p, i32 %i) {\n"
                        "  %from = getelementptr inbounds float, ptr %p, i32 %i\n"
                        "  %x = load float, ptr %from, align 4\n"
                        "  ret float %x\n}\n";
  for (int level = 1; level <= 24; ++level)
    helpers += fmt::format("define internal float @f{0}(ptr noalias %p, i32 %i) {{\n"
                           "  %a = call float @f{1}(ptr %p, i32 %i)\n"
                           "  %b = call float @f{1}(ptr %p, i32 %i)\n"
                           "  %c = fadd float %a, %b\n"
                           "  ret float %c\n}}\n",
                           level, level - 1);
  std::string ptx = compileKernel("  %x = call float @f24(ptr %in, i32 3)\n"
                                  "  store float %x, ptr %out, align 4\n"
                                  "  ret void\n",
                                  helpers);
  INFO(ptx);
  CHECK(count(ptx, "ld.global") == 1);
  CHECK(count(ptx, "add.f32") == 24);
  CHECK(count(ptx, ".func") == 0);
}

TEST_CASE("nothing is left of variables that are no longer read") {
  std::string ptx = compileKernel("  %x = call i32 @f(i32 %count)\n"
                                  "  store i32 %x, ptr %out, align 4\n"
                                  "  ret void\n",
                                  "@name = private constant [2 x i32] [i32 7, i32 7]\n"
                                  "define internal i32 @f(i32 %i) {\n"
                                  "  %x = load i32, ptr @name, align 4\n"
                                  "  %y = add i32 %x, %i\n"
                                  "  ret i32 %y\n}\n");
  INFO(ptx);
  CHECK(count(ptx, ".global .align") == 0);
  CHECK(count(ptx, ", 7;") == 1);
}

TEST_CASE("what two unrolled loops both load is loaded once") {
  std::string body = "entry:\n  br label %loop0\n";
  for (llvm::StringRef i : {"0", "1"}) {
    std::string loop = "loop{0}:\n"
                       "  %i{0} = phi i32 [ 0, %{1} ], [ %next{0}, %loop{0} ]\n"
                       "  %s{0} = phi float [ {2}, %{1} ], [ %sum{0}, %loop{0} ]\n"
                       "  %from{0} = getelementptr inbounds float, ptr %in, i32 %i{0}\n"
                       "  %x{0} = load float, ptr %from{0}, align 4\n"
                       "  %product{0} = fmul float %x{0}, {2}\n"
                       "  %sum{0} = fadd float %s{0}, %product{0}\n"
                       "  %next{0} = add nuw nsw i32 %i{0}, 1\n"
                       "  %more{0} = icmp ult i32 %next{0}, 16\n"
                       "  br i1 %more{0}, label %loop{0}, label %{3}\n";
    bool first = i == "0";
    body += fmt::format(fmt::runtime(loop), i.str(), first ? "entry" : "loop0", first ? "2.0" : "%sum0",
                        first ? "loop1" : "done");
  }
  std::string optimized;
  compileKernel(body + "done:\n  store float %sum1, ptr %out\n  ret void\n", "", 3, &optimized);
  INFO(optimized);
  CHECK(count(optimized, "load ") == 16);
  CHECK(count(optimized, "br ") == 0);
}
