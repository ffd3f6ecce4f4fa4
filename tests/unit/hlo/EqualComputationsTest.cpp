#include "hloc/hlo/EqualComputations.h"

#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

namespace {

/// Two computations `a` and `b`, after some that they may call.
bool areEqual(const std::string &a, const std::string &b) {
  Parsed parsed("HloModule m\n"
                "sum { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
                "total { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT t = f32[] add(p, q) }\n"
                "most { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] maximum(x, y) }\n"
                "a { " +
                a + " }\nb { " + b + " }\nENTRY e { ROOT z = f32[] constant(0) }\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  EqualComputations equal(*parsed.module);
  const HloComputation *first = parsed.module->findComputation("a"), *second = parsed.module->findComputation("b");
  CHECK(&equal.first(*first) == first);
  CHECK((&equal.first(*second) == first || &equal.first(*second) == second));
  return &equal.first(*second) == first;
}

const std::string x = "x = f32[4] parameter(0)\n ", y = "y = f32[4] parameter(1)\n ";

} // namespace

TEST_CASE("names, metadata and places do not make computations different") {
  CHECK(areEqual(x + "ROOT n = f32[4] negate(x)", "other = f32[4] parameter(0)\n\n  ROOT m = f32[4] negate(other), "
                                                  "metadata={op_name=\"jit(f)/neg\" source_line=3}"));
  CHECK(areEqual("c = f32[2] constant({nan, -0})\n ROOT n = f32[2] negate(c)",
                 "d = f32[2] constant({nan, -0})\n ROOT n = f32[2] negate(d)"));
}

TEST_CASE("equal computations call equal ones") {
  const std::string zero = x + "z = f32[] constant(0)\n ";
  auto reduce = [&](const char *by) { return zero + "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=" + by; };
  CHECK(areEqual(reduce("sum"), reduce("sum")));
  CHECK(areEqual(reduce("sum"), reduce("total")));
  CHECK_FALSE(areEqual(reduce("sum"), reduce("most")));
}

TEST_CASE("what is computed and how makes computations different") {
  CHECK_FALSE(areEqual(x + "ROOT n = f32[4] negate(x)", x + "ROOT n = f32[4] abs(x)"));
  CHECK_FALSE(areEqual(x + y + "ROOT d = f32[4] subtract(x, y)", x + y + "ROOT d = f32[4] subtract(y, x)"));
  CHECK_FALSE(areEqual(x + y + "ROOT d = f32[4] subtract(x, y)", y + x + "ROOT d = f32[4] subtract(x, y)"));
  CHECK_FALSE(areEqual(x + "ROOT n = f32[4] negate(x)", x + "n = f32[4] negate(x)\n ROOT m = f32[4] negate(x)"));
  CHECK_FALSE(areEqual(x + "n = f32[4] negate(x)\n ROOT m = f32[4] abs(x)",
                       x + "ROOT n = f32[4] negate(x)\n m = f32[4] abs(x)"));
  CHECK_FALSE(areEqual("c = f32[] constant(0)\n ROOT n = f32[] negate(c)",
                       "c = f32[] constant(-0)\n ROOT n = f32[] negate(c)"));
  auto transpose = [](const char *layout) {
    return std::string("x = f32[2,3]") + layout + " parameter(0)\n ROOT t = f32[3,2] transpose(x), dimensions={1,0}";
  };
  CHECK_FALSE(areEqual(transpose("{1,0}"), transpose("{0,1}")));
  auto compare = [](const char *direction) { return x + y + "ROOT c = pred[4] compare(x, y), direction=" + direction; };
  CHECK(areEqual(compare("LT"), compare("LT")));
  CHECK_FALSE(areEqual(compare("LT"), compare("LE")));
}

TEST_CASE("nobody knows whether constants that are not written out are equal") {
  CHECK_FALSE(areEqual("ROOT c = f32[4] constant({...})", "ROOT c = f32[4] constant({...})"));
}
