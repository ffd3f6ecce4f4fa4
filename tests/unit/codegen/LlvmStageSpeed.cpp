// Where the time of the LLVM stage goes, on gelu. Hidden: `unit-codegen [speed]` prints the table.

#include "KernelTexts.h"
#include "hloc/codegen/Assemble.h"
#include "hloc/codegen/LlvmStage.h"

#include "hloc/support/Files.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "unit/SystemToolchain.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>

using namespace hloc;

TEST_CASE("time of each step from LLVM dialect to cubin", "[.][speed]") {
  Toolchain toolchain = test::systemToolchain();
  REQUIRE(toolchain.has(Tool::Libdevice));
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  context.loadDialect<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(tests::geluMlir, &context);
  REQUIRE(module);
  std::vector<std::pair<std::string, std::vector<double>>> times;
  auto record = [&](llvm::StringRef stage, std::chrono::nanoseconds elapsed) {
    auto it = std::find_if(times.begin(), times.end(), [&](const auto &row) { return row.first == stage; });
    if (it == times.end())
      it = times.insert(times.end(), {stage.str(), {}});
    it->second.push_back(std::chrono::duration<double, std::milli>(elapsed).count());
  };
  LlvmOptions options;
  options.toolchain = &toolchain;
  options.timing = record;
  std::string error;
  auto folder = TemporaryFolder::create("hloc-test", error);
  AssembleOptions cached, uncached;
  cached.cache.folder = folder->path();
  TargetInfo target = *findTarget("sm_90");
  for (int i = 0; i < 21; ++i) {
    DiagnosticEngine diagnostics;
    auto start = std::chrono::steady_clock::now();
    auto lap = [&](llvm::StringRef what) {
      auto end = std::chrono::steady_clock::now();
      record(what, end - start);
      start = end;
    };
    auto ptx = compileToPtx(*module, target, options, diagnostics);
    lap("total to PTX");
    REQUIRE(llvm::succeeded(ptx));
    REQUIRE(llvm::succeeded(assemble(*ptx, target, toolchain, uncached, diagnostics)));
    lap("cubin, no cache");
    REQUIRE(llvm::succeeded(assemble(*ptx, target, toolchain, cached, diagnostics)));
    lap("cubin, cached");
  }
  for (auto &[stage, samples] : times) {
    double first = samples.front();
    std::sort(samples.begin(), samples.end());
    std::printf("%-16s first %6.2f ms, median %6.2f ms\n", stage.c_str(), first, samples[samples.size() / 2]);
  }
}
