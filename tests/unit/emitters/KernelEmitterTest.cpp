#include "hloc/emitters/KernelEmitter.h"
#include "hloc/hlo/HloBuilder.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// gelu, the tanh form, as jax prints it.
HloComputation *buildGelu(HloModule &module, const Shape &shape) {
  HloComputation *body = module.addComputation("gelu");
  HloBuilder b(*body);
  HloInstruction *x = b.parameter(0, shape, "x");
  auto splat = [&](double value) {
    Literal literal(Shape::scalar(shape.elementType()));
    literal.setDouble(0, value);
    return b.broadcast(b.constant(std::move(literal)), shape, {});
  };
  auto binary = [&](Opcode opcode, HloInstruction *l, HloInstruction *r) { return b.add(opcode, shape, {l, r}); };
  HloInstruction *cube = binary(Opcode::Multiply, binary(Opcode::Multiply, x, x), x);
  HloInstruction *inner = binary(Opcode::Add, x, binary(Opcode::Multiply, cube, splat(0.044715)));
  HloInstruction *tanh = b.add(Opcode::Tanh, shape, {binary(Opcode::Multiply, inner, splat(0.797885))});
  HloInstruction *half = binary(Opcode::Multiply, binary(Opcode::Add, tanh, splat(1.0)), splat(0.5));
  body->setRoot(binary(Opcode::Multiply, x, half));
  module.setEntry(body);
  return body;
}

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

} // namespace

TEST_CASE("gelu of bf16 becomes one function called from one loop") {
  HloModule module("m");
  HloComputation *body = buildGelu(module, Shape::array(ElementType::BF16, {6, 512, 4096}));
  mlir::MLIRContext context;
  DiagnosticEngine diagnostics;
  llvm::FailureOr<FusionGraph> graph = supportedGraph(*body, diagnostics);
  REQUIRE(succeeded(graph));
  llvm::FailureOr<FusionPlan> plan = planFusion(*graph, {}, *findTarget("sm_90"), diagnostics);
  REQUIRE(succeeded(plan));
  const auto &kernel = std::get<KernelPlan>(plan->steps.front());
  auto emitted = emitKernel(*graph, kernel, "gelu", context, diagnostics);
  REQUIRE(succeeded(emitted));
  CHECK(succeeded(mlir::verify(**emitted)));
  KernelSpec spec = describeKernel(*graph, *plan, kernel, "gelu");
  CHECK(spec.grid == Dim3{12288, 1, 1});
  CHECK(spec.block == Dim3{128, 1, 1});
  CHECK(spec.hero == "loop");
  CHECK(spec.rejections.size() == size_t(Hero::Loop)); // every hero before it
  CHECK(spec.bytesRead == 25165824);
  std::string text = print(**emitted);
  CHECK(text.find("s0 in [0, 7]") != std::string::npos);
  CHECK(text.find("math.tanh") != std::string::npos);
}
