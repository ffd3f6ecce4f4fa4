// What one evaluation of an op is worth, in instructions: figures that decisions about fusions rest on. Each class of
// ops has one here, and what multiplies it.

#include "fusion/OpWork.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloModule.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Root {
  test::Parsed parsed;
  explicit Root(const std::string &body)
      : parsed("HloModule m\n"
               "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
               "farther { x = f32[] parameter(0) y = f32[] parameter(1) a = f32[] abs(x) b = f32[] abs(y) "
               "ROOT m = f32[] maximum(a, b) }\n"
               "scale { x = f32[] parameter(0) y = f32[] parameter(1) d = f32[] divide(x, y) "
               "b = f32[] reshape(d) ROOT e = f32[] exponential(b) }\n"
               "above { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = pred[] compare(x, y), direction=GE }\n"
               "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = pred[] compare(x, y), direction=LT }\n"
               "ENTRY e {\n" +
               body + "\n}\n") {
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
  }
  const HloInstruction &operator*() const { return *parsed.module->entry()->root(); }
};

double workOf(const std::string &body) { return workPerElement(*Root(body)); }

/// Of an op of one or two operands of a type.
double elementwise(const char *opcode, const std::string &type = "f32", bool isBinary = false) {
  return workOf(fmt::format("p = {1}[64] parameter(0)  q = {1}[64] parameter(1)\nROOT r = {1}[64] {0}(p{2})", opcode,
                            type, isBinary ? ", q" : ""));
}

} // namespace

TEST_CASE("what elementwise ops are worth", "[fusion]") {
  CHECK(elementwise("negate") == 1);
  CHECK(elementwise("multiply", "bf16", true) == 1);
  CHECK(elementwise("exponential") == 8);
  CHECK(elementwise("divide", "f32", true) == 6);
  CHECK(elementwise("divide", "s32", true) == 20); // no hardware divides integers
  CHECK(elementwise("log") == 26);
  CHECK(elementwise("remainder", "f32", true) == 44);
  CHECK(elementwise("tanh") == 18);
  CHECK(elementwise("sine") == 76);
  CHECK(elementwise("power", "f32", true) == 95);
}

TEST_CASE("wider and complex numbers are worth more", "[fusion]") {
  CHECK(elementwise("exponential", "f64") == 42);
  CHECK(elementwise("sine", "f64") == 60); // shorter than that of f32, whose large arguments are reduced in a branch
  CHECK(elementwise("exponential", "c64") == 4 * 8); // of 64 bits
  CHECK(elementwise("exponential", "c128") == 6 * 8);
  CHECK(elementwise("multiply", "c64", true) == 4);
  CHECK(elementwise("multiply", "f64", true) == 1); // one instruction
  CHECK(elementwise("copy", "c64") == 4);
  CHECK(elementwise("copy") == 1);
}

TEST_CASE("what has less than 16 bits is converted by a sequence of code", "[fusion]") {
  CHECK(workOf("p = f32[64] parameter(0)  ROOT r = f8e4m3[64] convert(p)") == 6);
  CHECK(workOf("p = f32[64] parameter(0)  ROOT r = bf16[64] convert(p)") == 1);
}

TEST_CASE("what computes or moves one element for another", "[fusion]") {
  CHECK(workOf("p = f32[64,64] parameter(0)  ROOT r = f32[4096] reshape(p)") == 0.25); // vanishes in addresses
  CHECK(workOf("p = f32[64,32] parameter(0)  ROOT r = f32[32,64] transpose(p), dimensions={1,0}") == 2);
  CHECK(workOf("z = f32[] constant(0)  p = f32[64] parameter(0)  ROOT r = f32[70] pad(p, z), padding=3_3") == 2);
  CHECK(workOf("p = f32[64] parameter(0)  q = f32[4] parameter(1)  s = f32[4] parameter(2)\n"
               "ROOT r = f32[72] concatenate(p, q, s), dimensions={0}") == 2 * 3); // one test an operand
  CHECK(workOf("p = f32[64] parameter(0)  i = s32[] parameter(1)\n"
               "ROOT r = f32[8] dynamic-slice(p, i), dynamic_slice_sizes={8}") == 4);
  CHECK(workOf("p = f32[64] parameter(0)  u = f32[8] parameter(1)  i = s32[] parameter(2)\n"
               "ROOT r = f32[64] dynamic-update-slice(p, u, i)") == 4);
  CHECK(workOf("t = f32[64] parameter(0)  i = s32[8,1] parameter(1)  u = f32[8] parameter(2)\n"
               "ROOT r = f32[64] scatter(t, i, u), update_window_dims={}, inserted_window_dims={0}, "
               "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add") == 8);
  CHECK(workOf("p = f32[64] parameter(0)  ROOT r = f32[64] sort(p), dimensions={0}, to_apply=less") == 64);
  CHECK(workOf("ROOT r = s32[64] iota(), iota_dimension=0") == 0.5);
}

TEST_CASE("what combines many elements is worth that many", "[fusion]") {
  auto reduced = [](const char *reducer) {
    return workOf(fmt::format("p = f32[8,64] parameter(0)  z = f32[] constant(0)\n"
                              "ROOT r = f32[8] reduce(p, z), dimensions={{1}}, to_apply={}",
                              reducer));
  };
  CHECK(reduced("add") == 64);
  CHECK(reduced("farther") == 64 * 3);
  CHECK(workOf("p = f32[64] parameter(0)  z = f32[] constant(0)\n"
               "ROOT r = f32[60] reduce-window(p, z), window={size=5}, to_apply=farther") == 5 * 3);
  CHECK(workOf("p = f32[8,64] parameter(0)  q = f32[64,8] parameter(1)\n"
               "ROOT r = f32[8,8] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}") == 64 * 3);
  CHECK(workOf("p = f32[1,16,16,8] parameter(0)  w = f32[3,3,8,4] parameter(1)\n"
               "ROOT r = f32[1,14,14,4] convolution(p, w), window={size=3x3}, dim_labels=b01f_01io->b01f") ==
        3 * 3 * 8 * 5); // addresses of both
  // Of a dilated base only its own elements.
  CHECK(workOf("p = f32[1,8,8,8] parameter(0)  w = f32[3,3,8,4] parameter(1)\n"
               "ROOT r = f32[1,13,13,4] convolution(p, w), window={size=3x3 lhs_dilate=2x2}, "
               "dim_labels=b01f_01io->b01f") == 2 * 2 * 8 * 5);
  // All elements of all windows that an element is in: 2 windows of 4.
  CHECK(workOf("p = f32[64] parameter(0)  s = f32[31] parameter(1)  z = f32[] constant(0)\n"
               "ROOT r = f32[64] select-and-scatter(p, s, z), window={size=4 stride=2}, select=above, scatter=add") ==
        4 * 2 * 6);
  CHECK(workOf("p = f32[64] parameter(0)  q = f32[64] parameter(1)\n"
               "ROOT r = f32[64] map(p, q), dimensions={0}, to_apply=scale") == 6 + 1 + 8);
}
