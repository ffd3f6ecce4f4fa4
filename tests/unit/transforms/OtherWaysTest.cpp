// Ops expressed by others compute the same: exactly, or for numbers of ordinary size nearly so.
#include "hloc/transforms/OtherWays.h"

#include "RunPasses.h"
#include "SameResults.h"

#include <cmath>

using namespace hloc;
using namespace hloc::test;

namespace {

struct Example {
  Opcode opcode;
  std::string line; ///< of %x and %y, both f32[3,4]
};

PassRun moduleOf(const std::string &line) {
  return PassRun("HloModule m\nmost {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                 "  ROOT r = f32[] maximum(a, b)\n}\nENTRY e {\n  x = f32[3,4]{1,0} parameter(0)\n"
                 "  y = f32[3,4]{1,0} parameter(1)\n  one = f32[] constant(1)\n  two = s32[] constant(2)\n"
                 "  p = pred[3,4]{1,0} compare(x, y), direction=LT\n  q = pred[3,4]{1,0} is-finite(y)\n  ROOT r = " +
                 line + "\n}\n");
}

/// Arguments from 1/8 to 3.
Literal numbers(const Shape &shape, int64_t first) {
  Literal literal(shape);
  for (int64_t i = 0; i < literal.numElements(); ++i)
    literal.setDouble(i, double((first + 5 * i) % 24 + 1) / 8);
  return literal;
}

} // namespace

TEST_CASE("other ways: the same bits") {
  const Example examples[] = {
      {Opcode::Reverse, "f32[3,4]{0,1} reverse(x), dimensions={1,0}"},
      {Opcode::Transpose, "f32[4,3]{1,0} transpose(x), dimensions={1,0}"},
      {Opcode::Broadcast, "f32[4,2,3]{2,1,0} broadcast(x), dimensions={2,0}"},
      {Opcode::Slice, "f32[2,2]{1,0} slice(x), slice={[1:3], [0:4:2]}"},
      {Opcode::Reshape, "f32[2,6]{1,0} reshape(x)"},
      {Opcode::Concatenate, "f32[3,8]{1,0} concatenate(x, y), dimensions={1}"},
      {Opcode::Reduce, "f32[4]{0} reduce(x, one), dimensions={0}, to_apply=most"},
      {Opcode::Reduce, "f32[] reduce(x, one), dimensions={0,1}, to_apply=most"},
      {Opcode::Pad, "f32[6,5]{1,0} pad(x, one), padding=1_2x0_1"},
      {Opcode::DynamicSlice, "f32[2,3]{1,0} dynamic-slice(x, two, two), dynamic_slice_sizes={2,3}"},
      {Opcode::Iota, "f32[3,4]{0,1} iota(), iota_dimension=1"},
      {Opcode::Iota, "s8[3,4]{1,0} iota(), iota_dimension=0"},
      {Opcode::Sign, "f32[3,4]{1,0} sign(x)"},
      {Opcode::IsFinite, "pred[3,4]{1,0} is-finite(x)"},
      {Opcode::Floor, "f32[3,4]{1,0} floor(x)"},
      {Opcode::Ceil, "f32[3,4]{1,0} ceil(x)"},
      {Opcode::Maximum, "f32[3,4]{1,0} maximum(x, y)"},
      {Opcode::Minimum, "f32[3,4]{1,0} minimum(x, y)"},
      {Opcode::Add, "f32[3,4]{1,0} add(x, y)"},
      {Opcode::Subtract, "f32[3,4]{1,0} subtract(x, y)"},
      {Opcode::Negate, "f32[3,4]{1,0} negate(x)"},
      {Opcode::Select, "f32[3,4]{1,0} select(p, x, y)"},
      {Opcode::And, "pred[3,4]{1,0} and(p, q)"},
      {Opcode::Or, "pred[3,4]{1,0} or(p, q)"},
      {Opcode::Xor, "pred[3,4]{1,0} xor(p, q)"},
  };
  for (const Example &example : examples) {
    INFO(example.line);
    PassRun run = moduleOf(example.line);
    REQUIRE(expressOtherwise(*run.module, example.opcode));
    run.requireSound();
    if (example.opcode != Opcode::Select) // of the negation
      CHECK(run.module->entry()->root()->opcode() != example.opcode);
    CHECK(resultDifference(*run.parsed.module, *run.module) == "");
  }
}

TEST_CASE("other ways: nearly the same numbers") {
  const Example examples[] = {
      {Opcode::Logistic, "f32[3,4]{1,0} logistic(x)"},
      {Opcode::Tanh, "f32[3,4]{1,0} tanh(x)"},
      {Opcode::Exponential, "f32[3,4]{1,0} exponential(x)"},
      {Opcode::ExponentialMinusOne, "f32[3,4]{1,0} exponential-minus-one(x)"},
      {Opcode::Log, "f32[3,4]{1,0} log(x)"},
      {Opcode::LogPlusOne, "f32[3,4]{1,0} log-plus-one(x)"},
      {Opcode::Sqrt, "f32[3,4]{1,0} sqrt(x)"},
      {Opcode::Rsqrt, "f32[3,4]{1,0} rsqrt(x)"},
      {Opcode::Cbrt, "f32[3,4]{1,0} cbrt(x)"},
      {Opcode::Sine, "f32[3,4]{1,0} sine(x)"},
      {Opcode::Cosine, "f32[3,4]{1,0} cosine(x)"},
      {Opcode::Tan, "f32[3,4]{1,0} tan(x)"},
      {Opcode::RoundNearestAfz, "f32[3,4]{1,0} round-nearest-afz(x)"},
      {Opcode::RoundNearestEven, "f32[3,4]{1,0} round-nearest-even(x)"},
      {Opcode::Abs, "f32[3,4]{1,0} abs(x)"},
      {Opcode::Multiply, "f32[3,4]{1,0} multiply(x, y)"},
      {Opcode::Divide, "f32[3,4]{1,0} divide(x, y)"},
      {Opcode::Power, "f32[3,4]{1,0} power(x, y)"},
      {Opcode::Dot, "f32[3,3]{0,1} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
      {Opcode::Dot, "f32[3,4,4]{2,1,0} dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}"},
      {Opcode::Dot, "f32[4]{0} dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={0}, "
                    "rhs_contracting_dims={0}"},
      {Opcode::Clamp, "f32[3,4]{1,0} clamp(one, x, y)"},
  };
  for (const Example &example : examples) {
    INFO(example.line);
    PassRun run = moduleOf(example.line);
    REQUIRE(!otherWayOf(example.opcode).empty());
    REQUIRE(expressOtherwise(*run.module, example.opcode));
    run.requireSound();
    const Shape &shape = run.parsed.module->entry()->parameters()[0]->shape();
    const Literal arguments[] = {numbers(shape, 0), numbers(shape, 7)};
    auto expected = interpret(*run.parsed.module, arguments, run.diagnostics);
    auto actual = interpret(*run.module, arguments, run.diagnostics);
    REQUIRE((succeeded(expected) && succeeded(actual)));
    for (int64_t i = 0; i < expected->numElements(); ++i)
      CHECK(std::abs(expected->getDouble(i) - actual->getDouble(i)) <= 1e-5 * (1 + std::abs(expected->getDouble(i))));
  }
}

TEST_CASE("other ways: there is none") {
  CHECK(otherWayOf(Opcode::Sort).empty());
  PassRun ofIntegers("HloModule m\nENTRY e {\n  x = s32[4]{0} parameter(0)\n  ROOT r = s32[4]{0} multiply(x, x)\n}\n");
  CHECK_FALSE(expressOtherwise(*ofIntegers.module, Opcode::Multiply)); // there is no 1 / x
  CHECK_FALSE(expressOtherwise(*ofIntegers.module, Opcode::Reverse));  // nothing to express
  PassRun large("HloModule m\nENTRY e {\n  x = f32[999999]{0} parameter(0)\n"
                "  ROOT r = f32[999999]{0} reverse(x), dimensions={0}\n}\n");
  CHECK_FALSE(expressOtherwise(*large.module, Opcode::Reverse)); // too many places
}
