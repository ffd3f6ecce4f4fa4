// The interpreter is an oracle, not a toy: these bounds are generous multiples of what is expected of it.
#include "hloc/hlo/HloBuilder.h"
#include "hloc/interp/Interpreter.h"

#include <catch2/catch.hpp>

#include <chrono>

using namespace hloc;

namespace {

double secondsToRun(const HloModule &module, llvm::ArrayRef<Literal> arguments) {
  DiagnosticEngine diagnostics;
  auto start = std::chrono::steady_clock::now();
  REQUIRE(llvm::succeeded(interpret(module, arguments, diagnostics)));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

TEST_CASE("gelu of bf16[6,512,4096]", "[.speed]") {
  HloModule module("gelu");
  module.setEntry(module.addComputation("main"));
  HloBuilder b(*module.entry());
  Shape shape = Shape::array(ElementType::BF16, {6, 512, 4096});
  auto constant = [&](double value) {
    Literal scalar(Shape::scalar(ElementType::BF16));
    scalar.setDouble(0, value);
    return b.broadcast(b.constant(std::move(scalar)), shape, {});
  };
  HloInstruction *x = b.parameter(0, shape);
  HloInstruction *cube = b.add(Opcode::Multiply, shape, {x, b.add(Opcode::Multiply, shape, {x, x})});
  HloInstruction *inner = b.add(Opcode::Add, shape, {x, b.add(Opcode::Multiply, shape, {constant(0.044715), cube})});
  HloInstruction *tanh = b.add(Opcode::Tanh, shape, {b.add(Opcode::Multiply, shape, {constant(0.79788456), inner})});
  HloInstruction *half =
      b.add(Opcode::Multiply, shape, {constant(0.5), b.add(Opcode::Add, shape, {constant(1), tanh})});
  module.entry()->setRoot(b.add(Opcode::Multiply, shape, {x, half}));
  Literal argument(shape);
  for (int64_t i = 0; i < argument.numElements(); ++i)
    argument.mutableData<uint16_t>()[size_t(i)] = uint16_t(0x3E00 + i % 512);
  CHECK(secondsToRun(module, {argument}) < 4);
}

TEST_CASE("dot of f32[1024,1024]", "[.speed]") {
  HloModule module("dot");
  module.setEntry(module.addComputation("main"));
  HloBuilder b(*module.entry());
  Shape shape = Shape::array(ElementType::F32, {1024, 1024});
  HloInstruction *x = b.parameter(0, shape), *y = b.parameter(1, shape);
  module.entry()->setRoot(
      b.add(Opcode::Dot, shape, {x, y},
            {b.ints(AttributeKey::LhsContractingDims, {1}), b.ints(AttributeKey::RhsContractingDims, {0})}));
  Literal argument(shape);
  for (float &value : argument.mutableData<float>())
    value = 0.5f;
  CHECK(secondsToRun(module, {argument, argument}) < 10);
}
