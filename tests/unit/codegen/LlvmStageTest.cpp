#include "hloc/codegen/LlvmStage.h"
#include "KernelTexts.h"
#include "hloc/codegen/Ptx.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include "unit/SystemToolchain.h"

#include <catch2/catch.hpp>

#include <thread>

using namespace hloc;
using namespace hloc::tests;

namespace {

struct Outcome {
  bool succeeded = false;
  std::string ptx;
  DiagnosticEngine diagnostics;

  std::string messages() const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    diagnostics.print(stream, false);
    return text;
  }
};

/// `place`, if given, is the HLO line that every op was emitted for.
Outcome compile(const std::string &text, const char *target, LlvmOptions options = {}, unsigned place = 0) {
  Outcome outcome;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects(); // xla_gpu.* launch attributes
  context.loadDialect<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  if (place)
    module->walk([&](mlir::Operation *op) {
      op->setLoc(mlir::FileLineColLoc::get(mlir::StringAttr::get(&context, "dir/gelu.hlo"), place, 3));
    });
  options.verify = true;
  llvm::FailureOr<std::string> ptx = compileToPtx(*module, *findTarget(target), options, outcome.diagnostics);
  outcome.succeeded = llvm::succeeded(ptx);
  if (outcome.succeeded)
    outcome.ptx = *ptx;
  return outcome;
}

std::string unary(const std::string &line) { return unaryHead + line + unaryTail; }

size_t count(llvm::StringRef text, llvm::StringRef part) { return text.count(part); }

} // namespace

TEST_CASE("gelu becomes one vector load and one vector store without local memory") {
  Toolchain toolchain = test::systemToolchain();
  if (!toolchain.has(Tool::Libdevice)) {
    WARN("no libdevice: test skipped");
    return;
  }
  LlvmOptions options;
  options.toolchain = &toolchain;
  for (const char *target : {"sm_80", "sm_90", "sm_100"}) {
    Outcome outcome = compile(geluMlir, target, options);
    INFO(outcome.messages() << outcome.ptx);
    REQUIRE(outcome.succeeded);
    CHECK(count(outcome.ptx, "ld.global.nc.v") == 1);
    CHECK(count(outcome.ptx, "st.global.v") == 1);
    CHECK(count(outcome.ptx, ".local") == 0);
    CHECK(count(outcome.ptx, ".reqntid 128") == 1);
    CHECK(count(outcome.ptx, "fma.rn.f32") >= 4); // contraction
    CHECK(count(outcome.ptx, "call") == 0);
    CHECK(count(outcome.ptx, "gelu_param_0[]") + count(outcome.ptx, "gelu_param_0") >= 2);
    CHECK(ptxEntries(outcome.ptx) == std::vector<std::string>{"gelu"});
  }
}

TEST_CASE("the target decides the PTX version, and an option overrides it") {
  std::string text = unary("%r = llvm.fadd %x, %x : f32");
  CHECK(ptxVersionOf(compile(text, "sm_80").ptx) == 70);
  CHECK(ptxVersionOf(compile(text, "sm_90").ptx) == 80);
  CHECK(ptxVersionOf(compile(text, "sm_100").ptx) == 88);
  LlvmOptions options;
  options.ptxVersion = 85;
  CHECK(ptxVersionOf(compile(text, "sm_90", options).ptx) == 85);
}

TEST_CASE("every target compiles") {
  std::string text = unary("%r = llvm.fmul %x, %x : f32");
  for (const TargetInfo &target : allTargets()) {
    Outcome outcome = compile(text, target.name.c_str());
    INFO(target.name << outcome.messages());
    REQUIRE(outcome.succeeded);
    CHECK(count(outcome.ptx, ".target " + target.name + "\n") == 1);
  }
}

TEST_CASE("ids with one possible value are constants") {
  Outcome outcome = compile(unary("%r = llvm.fadd %x, %x : f32"), "sm_90");
  INFO(outcome.messages() << outcome.ptx);
  CHECK(count(outcome.ptx, "%tid.x") == 1);
  CHECK(count(outcome.ptx, "%tid.y") == 0);
}

TEST_CASE("variables carry the kernel's name") {
  Outcome outcome = compile(unary("%r = llvm.fadd %x, %x : f32"), "sm_90");
  INFO(outcome.ptx);
  CHECK(count(outcome.ptx, "unary__table_0[") == 1);
  std::string renamed = renamePtxEntry(outcome.ptx, "unary", "k");
  CHECK(count(renamed, "unary") == 0);
  CHECK(count(renamed, "k__table_0[") == 1);
  CHECK(ptxEntries(renamed) == std::vector<std::string>{"k"});
  // The cubin cache relies on it: kernels that differ in their name differ in nothing else.
  std::string text = unary("%r = llvm.fadd %x, %x : f32");
  text.replace(text.find("@unary"), 6, "@a_longer_name_than_before");
  CHECK(compile(text, "sm_90").ptx == renamePtxEntry(outcome.ptx, "unary", "a_longer_name_than_before"));
}

TEST_CASE("f32 division is the fast form unless the exact one is asked for") {
  std::string text = unary("%one = llvm.mlir.constant(1.0 : f32) : f32\n %q = llvm.fdiv %one, %x : f32\n"
                           "%p = llvm.fdiv %t, %y : f32\n %r = llvm.fadd %p, %q : f32");
  Outcome fast = compile(text, "sm_90");
  INFO(fast.ptx);
  CHECK(count(fast.ptx, "div.full.f32") == 1);
  CHECK(count(fast.ptx, "rcp.approx.f32") == 1);
  CHECK(count(fast.ptx, "div.rn") + count(fast.ptx, "rcp.rn") == 0);
  LlvmOptions exact;
  exact.fastDivision = false;
  Outcome slow = compile(text, "sm_90", exact);
  CHECK(count(slow.ptx, "div.rn.f32") == 1);
  CHECK(count(slow.ptx, "rcp.rn.f32") == 1);
}

TEST_CASE("contraction can be turned off") {
  std::string text = unary("%p = llvm.fmul %x, %x : f32\n %r = llvm.fadd %p, %y : f32");
  CHECK(count(compile(text, "sm_90").ptx, "fma.rn.f32") == 1);
  LlvmOptions options;
  options.contract = false;
  CHECK(count(compile(text, "sm_90", options).ptx, "fma.rn.f32") == 0);
}

TEST_CASE("intrinsics without an instruction are reported with the HLO name, not by LLVM") {
  Outcome outcome =
      compile(unary("%r = llvm.intr.exp(%x) : (f32) -> f32 loc(\"exponential.7\"(\"gelu.hlo\":12:3))"), "sm_90");
  CHECK_FALSE(outcome.succeeded);
  INFO(outcome.messages());
  CHECK(outcome.diagnostics.exitCode() == ExitCode::InternalError);
  CHECK(llvm::StringRef(outcome.messages()).contains("`llvm.exp`"));
  CHECK(llvm::StringRef(outcome.messages()).contains("exponential.7"));
  CHECK(llvm::StringRef(outcome.messages()).contains("gelu.hlo:12"));
}

TEST_CASE("approximate intrinsics pass the audit where they exist") {
  std::string tanh = unary("%r = llvm.intr.tanh(%x) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32");
  Outcome outcome = compile(tanh, "sm_75");
  INFO(outcome.messages());
  CHECK(count(outcome.ptx, "tanh.approx.f32") == 1);
  CHECK_FALSE(compile(tanh, "sm_70").succeeded);
  CHECK_FALSE(compile(unary("%r = llvm.intr.tanh(%x) : (f32) -> f32"), "sm_90").succeeded);
  CHECK(compile(unary("%r = llvm.intr.exp2(%x) : (f32) -> f32"), "sm_90").succeeded);
}

TEST_CASE("missing libdevice is named together with the places looked at") {
  ToolchainOptions nowhere;
  nowhere.environment = [](const std::string &) { return std::nullopt; };
  nowhere.executable = "/nonexistent/bin/hloc";
  nowhere.usualFolders = std::vector<std::string>{"/nonexistent/cuda"};
  Toolchain toolchain = Toolchain::discover(nowhere);
  LlvmOptions options;
  options.toolchain = &toolchain;
  Outcome outcome = compile(geluMlir, "sm_90", options);
  CHECK_FALSE(outcome.succeeded);
  INFO(outcome.messages());
  CHECK(outcome.diagnostics.exitCode() == ExitCode::Unsupported);
  CHECK(llvm::StringRef(outcome.messages()).contains("__nv_tanhf"));
  CHECK(llvm::StringRef(outcome.messages()).contains("/nonexistent/cuda/nvvm/libdevice"));
  CHECK(llvm::StringRef(outcome.messages()).contains("CUDA_HOME"));
}

TEST_CASE("modules without a kernel or with a malformed launch are our bugs, reported") {
  CHECK_FALSE(compile("module {}", "sm_90").succeeded);
  Outcome outcome = compile("module { llvm.func @k() attributes {xla_gpu.block = array<i32: 0, 1, 1>, "
                            "xla_gpu.grid = array<i32: 1, 1, 1>} { llvm.return } }",
                            "sm_90");
  CHECK_FALSE(outcome.succeeded);
  CHECK(outcome.diagnostics.exitCode() == ExitCode::InternalError);
}

TEST_CASE("dumps come in stage order and the same input gives the same bytes") {
  std::vector<std::string> stages;
  std::string last;
  LlvmOptions options;
  options.dump = [&](llvm::StringRef stage, llvm::function_ref<std::string()> text) {
    stages.push_back(stage.str());
    last = text();
  };
  Outcome outcome = compile(unary("%r = llvm.fadd %x, %x : f32"), "sm_90", options);
  CHECK(stages == std::vector<std::string>{"llvm-translated", "llvm-optimized", "ptx"});
  CHECK(last == outcome.ptx);
  CHECK(compile(unary("%r = llvm.fadd %x, %x : f32"), "sm_90").ptx == outcome.ptx);
}

TEST_CASE("line information points into the HLO text and leaves the code as it is") {
  std::string text = unary("%r = llvm.fadd %x, %x : f32");
  LlvmOptions options;
  options.lineInfo = true;
  Outcome with = compile(text, "sm_90", options, 12), without = compile(text, "sm_90");
  INFO(with.messages() << with.ptx);
  REQUIRE(with.succeeded);
  CHECK(llvm::StringRef(with.ptx).contains("dir/gelu.hlo\""));
  CHECK(llvm::StringRef(with.ptx).contains(" 12 3"));
  CHECK(llvm::StringRef(with.ptx).contains(".target sm_90\n"));
  CHECK_FALSE(llvm::StringRef(with.ptx).contains(".section"));
  CHECK(count(without.ptx, ".loc") == 0);
  CHECK(count(with.ptx, "fma.rn") == count(without.ptx, "fma.rn"));
  CHECK(count(with.ptx, "ld.global") == count(without.ptx, "ld.global"));
}

TEST_CASE("kernels may be compiled on several threads, with the same bytes") {
  std::string text = unary("%r = llvm.fmul %x, %x : f32");
  auto ptxOf = [&](LlvmOptions options) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.allowUnregisteredDialects();
    context.loadDialect<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    DiagnosticEngine diagnostics;
    auto ptx = compileToPtx(*module, *findTarget("sm_90"), options, diagnostics);
    return llvm::succeeded(ptx) ? *ptx : std::string();
  };
  std::string expected = ptxOf({});
  REQUIRE_FALSE(expected.empty());
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (std::string &result : results)
    threads.emplace_back([&] { result = ptxOf({}); });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &result : results)
    CHECK(result == expected);
}
