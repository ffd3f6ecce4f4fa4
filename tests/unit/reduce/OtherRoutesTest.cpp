// What a third opinion is asked with: both modules give their arguments, and one has no such op.
#include "hloc/reduce/OtherRoutes.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("other routes: an op, and by others") {
  const OtherRoutes found = otherRoutes("HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}\nENTRY e {\n"
                                        "  x = f32[4]{0} parameter(0)\n"
                                        "  ROOT r = f32[4]{0} reverse(x), dimensions={0}\n}\n");
  CHECK(found.isOneOp());
  REQUIRE(found.routes.size() == 1);
  const OtherRoute &route = found.routes.front();
  CHECK(route.opcode == Opcode::Reverse);
  CHECK(llvm::StringRef(route.asked).contains("reverse("));
  CHECK(llvm::StringRef(route.asked).contains("tuple(%r, %x)"));
  CHECK_FALSE(llvm::StringRef(route.otherwise).contains("reverse("));
  CHECK(llvm::StringRef(route.otherwise).contains("gather("));
  CHECK(llvm::StringRef(route.otherwise).contains(", %x)"));
}

TEST_CASE("other routes: several ops, their reducers apart") {
  const OtherRoutes found = otherRoutes(
      "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
      "ENTRY e {\n  x = f32[4]{0} parameter(0)\n  k = f32[4]{0} erf(x)\n  f = f32[4]{0} floor(x)\n"
      "  zero = f32[] constant(0)\n  s = f32[] reduce(f, zero), dimensions={0}, to_apply=sum\n"
      "  ROOT t = (f32[], f32[4]{0}) tuple(s, k)\n}\n");
  CHECK(found.numOps == 3);
  REQUIRE(found.routes.size() == 2); // there is nothing else that erf is
  CHECK(found.routes[0].opcode == Opcode::Floor);
  CHECK(found.routes[1].opcode == Opcode::Reduce);
  CHECK_FALSE(llvm::StringRef(found.routes[1].otherwise).contains("reduce("));
  CHECK(otherRoutes("no HLO").routes.empty());
}
