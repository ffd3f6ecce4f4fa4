// Where the time of the LLVM stage goes, on gelu. Hidden: `unit-codegen [speed]` prints the table.

#include "KernelTexts.h"
#include "hloc/codegen/LlvmStage.h"
#include "hloc/codegen/Toolchain.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>

using namespace hloc;

TEST_CASE("time of each step of the LLVM stage", "[.][speed]") {
  Toolchain toolchain = Toolchain::discover({});
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
  for (int i = 0; i < 21; ++i) {
    DiagnosticEngine diagnostics;
    auto start = std::chrono::steady_clock::now();
    REQUIRE(llvm::succeeded(compileToPtx(*module, *findTarget("sm_90"), options, diagnostics)));
    record("total", std::chrono::steady_clock::now() - start);
  }
  for (auto &[stage, samples] : times) {
    double first = samples.front();
    std::sort(samples.begin(), samples.end());
    std::printf("%-16s first %6.2f ms, median %6.2f ms\n", stage.c_str(), first, samples[samples.size() / 2]);
  }
}
