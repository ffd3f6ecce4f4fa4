#include "hloc/fusion/FusionPlan.h"
#include "hloc/parser/Parser.h"

#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// Heroes that ask for maps: a loop that reads across memory, a contraction, a concatenate of operands made together.
const char *const fusions[] = {
    "x = f32[512,512] parameter(0) t = f32[512,512] transpose(x), dimensions={1,0} r = f32[512,512] reverse(t), "
    "dimensions={0} ROOT s = f32[512,512] add(x, r)",
    "a = f32[512,512] parameter(0) b = f32[512,512] parameter(1) ROOT d = f32[512,512] dot(a, b), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "a = f32[1024,512] parameter(0) b = f32[1024,512] parameter(1) s = f32[1024,512] add(a, b) "
    "d = f32[1024,512] subtract(a, b) ROOT c = f32[2048,512] concatenate(s, d), dimensions={0}",
};

std::string planOf(const char *entry, PlanContext &context) {
  DiagnosticEngine diagnostics;
  std::string text = std::string("HloModule m\nENTRY e { ") + entry + " }";
  std::unique_ptr<HloModule> module = parseHloModule(std::make_shared<const SourceFile>("m.hlo", text), diagnostics);
  REQUIRE(module);
  FusionGraph graph = *FusionGraph::build(*module->entry(), diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget("sm_90"), diagnostics, context);
  REQUIRE(succeeded(plan));
  return plan->toString();
}

} // namespace

TEST_CASE("plans made with one context are those that each makes with its own") {
  PlanContext shared;
  mlir::MLIRContext *context = nullptr;
  for (unsigned round = 0; round < 2; ++round)
    for (const char *fusion : fusions) {
      PlanContext own;
      CHECK(planOf(fusion, shared) == planOf(fusion, own));
      context = context ? context : shared.mlir();
      CHECK(shared.mlir() == context);
    }
}

TEST_CASE("plans use the context that is given") {
  mlir::MLIRContext given(mlir::MLIRContext::Threading::DISABLED);
  PlanContext context(&given);
  planOf(fusions[1], context);
  CHECK(context.mlir() == &given);
}
