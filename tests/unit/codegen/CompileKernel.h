#pragma once
// A kernel as the emitters leave it, through all passes and the LLVM stage to PTX.

#include "hloc/codegen/LlvmStage.h"
#include "hloc/codegen/Pipeline.h"
#include "hloc/codegen/Ptx.h"
#include "hloc/codegen/Toolchain.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/passes/Passes.h"
#include "hloc/support/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

namespace hloc::tests {

inline std::string compileKernel(const std::string &text, const TargetInfo &target, const Toolchain &toolchain) {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  mlir::PassManager passes(&context);
  buildKernelPipeline(passes, {int64_t(target.major * 10 + target.minor), int64_t(target.maxVectorBytes), 8});
  addPhaseChecks(passes, [](llvm::StringRef what) { FAIL_CHECK(what.str()); });
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

/// PTX of LLVM IR, in text.
inline std::string compileLlvm(const std::string &text, const char *target) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
  INFO(text << problem.getMessage().str());
  REQUIRE(module);
  LlvmOptions options;
  options.verify = true; // also that every operand stands before its user
  DiagnosticEngine diagnostics;
  llvm::FailureOr<std::string> ptx = compileToPtx(*module, *findTarget(target), options, diagnostics);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  diagnostics.print(stream, false);
  INFO(messages);
  REQUIRE(llvm::succeeded(ptx));
  return *ptx;
}

} // namespace hloc::tests
