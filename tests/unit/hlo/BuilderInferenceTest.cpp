// Builder functions that find the shape themselves: what they make satisfies the verifier, with these shapes.
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/Verifier.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("shapes are inferred") {
  HloModule module("m");
  HloComputation *sum = module.addComputation("sum");
  HloBuilder inner(*sum);
  Shape scalar = Shape::scalar(ElementType::F32);
  auto *a = inner.parameter(0, scalar, "a"), *b = inner.parameter(1, scalar, "b");
  sum->setRoot(inner.infer(Opcode::Add, {a, b}));
  HloComputation *entry = module.addComputation("e");
  module.setEntry(entry);
  HloBuilder builder(*entry);
  HloInstruction *x = builder.parameter(0, Shape::array(ElementType::F32, {2, 3}), "x");
  llvm::SmallVector<HloInstruction *> made;
  auto check = [&](HloInstruction *instr, const char *shape) {
    CHECK(instr->shape().toString() == shape);
    made.push_back(instr);
    return instr;
  };
  check(builder.infer(Opcode::Exponential, {x}), "f32[2,3]{1,0}");
  HloInstruction *less = check(builder.compare(ComparisonDirection::Lt, x, x), "pred[2,3]{1,0}");
  CHECK(less->intOr(AttributeKey::Direction, -1) == static_cast<int64_t>(ComparisonDirection::Lt));
  check(builder.infer(Opcode::Select, {less, x, x}), "f32[2,3]{1,0}");
  check(builder.convert(x, ElementType::BF16), "bf16[2,3]{1,0}");
  CHECK(builder.convert(x, ElementType::F32) == x);
  check(builder.reshape(x, {6}), "f32[6]{0}");
  check(builder.transpose(x, {1, 0}), "f32[3,2]{1,0}");
  check(builder.slice(x, {SliceDim{0, 2, 1}, SliceDim{1, 3, 2}}), "f32[2,1]{1,0}");
  check(builder.concatenate({x, x, x}, 1), "f32[2,9]{1,0}");
  check(builder.reduce(x, builder.scalar(ElementType::F32, 0), {0}, sum), "f32[3]{0}");
  CHECK(check(builder.scalar(ElementType::BF16, 1.5), "bf16[]")->literal().getDouble(0) == 1.5);
  CHECK(check(builder.scalar(ElementType::S8, -3), "s8[]")->literal().getInt(0) == -3);
  CHECK(check(builder.scalar(ElementType::C64, 2), "c64[]")->literal().getComplex(0) == 2.0);
  check(builder.tuple({x, less}), "(f32[2,3]{1,0}, pred[2,3]{1,0})");
  entry->setRoot(builder.tuple(made));
  DiagnosticEngine diagnostics;
  CHECK(verify(module, diagnostics));
}
