// A pass that leaves what it should have lowered is noticed.

#include "hloc/codegen/Pipeline.h"
#include "hloc/passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// What is reported when only `pass` runs over `text`.
std::vector<std::string> reportsAfter(std::unique_ptr<mlir::Pass> pass, const char *text) {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  mlir::PassManager passes(&context, mlir::ModuleOp::getOperationName(), mlir::PassManager::Nesting::Implicit);
  std::vector<std::string> reports;
  addPhaseChecks(passes, [&](llvm::StringRef what) { reports.push_back(what.str()); });
  passes.addPass(std::move(pass));
  REQUIRE(mlir::succeeded(passes.run(*module)));
  return reports;
}

constexpr const char *twoLevels = R"(
func.func @f(%a: f32) -> f32 {
  %r = xla_gpu.pure_call @g(%a) : (f32) -> f32
  return %r : f32
}
func.func private @g(f32) -> f32
)";

} // namespace

TEST_CASE("ops that a pass should have lowered are reported") {
  CHECK(reportsAfter(createLowerIndex(), twoLevels) ==
        std::vector<std::string>{"pass `hloc-lower-index` left `xla_gpu.pure_call`"});
}

TEST_CASE("ops of later passes may be left") {
  CHECK(reportsAfter(createLowerXlaGpuToScf(), twoLevels).empty());
  CHECK(reportsAfter(createConvertPureCall(), twoLevels).empty());
}
