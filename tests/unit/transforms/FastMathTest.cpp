// Rules that change floats: only where they are named, and only by a rounding on ordinary numbers.
#include "transforms/AlgebraicRules.h"

#include "RunPasses.h"
#include "hloc/interp/Inputs.h"
#include "hloc/interp/Interpreter.h"

#include <cmath>
#include <map>

using namespace hloc;
using namespace hloc::test;

namespace {

struct RuleCase {
  const char *rule, *body, *expected; ///< the instructions after it
};

const RuleCase cases[] = {
    {"add-any-zero",
     "x = f32[3] parameter(0)\n c = f32[] constant(0)\n z = f32[3] broadcast(c), dimensions={}\n"
     "ROOT r = f32[3] add(z, x)",
     "ROOT x = parameter()\n"},
    {"add-constants",
     "x = f32[] parameter(0)\n c = f32[] constant(1)\n d = f32[] constant(2)\n a = f32[] add(c, x)\n"
     "ROOT r = f32[] add(a, d)",
     "x = parameter()\nc = constant()\nd = constant()\nadd.1.anon = add(c d)\nROOT add.2.anon = add(x add.1.anon)\n"},
    {"multiply-constants",
     "x = f32[] parameter(0)\n c = f32[] constant(3)\n d = f32[] constant(2)\n"
     "a = f32[] multiply(x, c)\n ROOT r = f32[] multiply(d, a)",
     nullptr},
    {"multiply-float-zero", "x = f32[] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] multiply(x, z)", nullptr},
    {"multiply-exponentials",
     "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n a = f32[9] exponential(x)\n"
     "b = f32[9] exponential(y)\n ROOT r = f32[9] multiply(a, b)",
     nullptr},
    {"divide-by-constant",
     "x = f32[9] parameter(0)\n c = f32[] constant(3)\n z = f32[9] broadcast(c), dimensions={}\n"
     "ROOT r = f32[9] divide(x, z)",
     nullptr},
    {"divide-by-sqrt",
     "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n m = f32[9] abs(y)\n a = f32[9] sqrt(m)\n"
     "ROOT r = f32[9] divide(x, a)",
     nullptr},
    {"divide-by-rsqrt",
     "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n m = f32[9] abs(y)\n a = f32[9] rsqrt(m)\n"
     "ROOT r = f32[9] divide(x, a)",
     nullptr},
    {"divide-by-exponential",
     "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n a = f32[9] exponential(y)\n"
     "ROOT r = f32[9] divide(x, a)",
     nullptr},
    {"divide-twice",
     "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n z = f32[9] parameter(2)\n"
     "a = f32[9] divide(x, y)\n ROOT r = f32[9] divide(a, z)",
     nullptr},
    {"divide-twice",
     "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n z = f32[9] parameter(2)\n"
     "a = f32[9] divide(x, y)\n ROOT r = f32[9] divide(z, a)",
     nullptr},
    {"log-of-exponential", "x = f32[9] parameter(0)\n a = f32[9] exponential(x)\n ROOT r = f32[9] log(a)",
     "ROOT x = parameter()\n"},
    {"power-of-constant",
     "x = f32[9] parameter(0)\n c = f32[] constant(0.5)\n z = f32[9] broadcast(c), dimensions={}\n"
     "ROOT r = f32[9] power(x, z)",
     "x = parameter()\nROOT sqrt.1.anon = sqrt(x)\n"},
    {"power-of-constant",
     "x = f32[9] parameter(0)\n c = f32[] constant(3)\n z = f32[9] broadcast(c), dimensions={}\n"
     "ROOT r = f32[9] power(x, z)",
     nullptr},
    {"power-of-constant",
     "x = f32[9] parameter(0)\n c = f32[] constant(-1)\n z = f32[9] broadcast(c), dimensions={}\n"
     "ROOT r = f32[9] power(x, z)",
     nullptr},
    {"sqrt-of-square", "x = f32[9] parameter(0)\n a = f32[9] multiply(x, x)\n ROOT r = f32[9] sqrt(a)", nullptr},
};

bool isClose(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(a));
}

void checkClose(const HloModule &expected, const HloModule &actual) {
  DiagnosticEngine diagnostics;
  auto arguments = makeArguments(expected, diagnostics);
  REQUIRE(succeeded(arguments));
  auto before = interpret(expected, *arguments, diagnostics), after = interpret(actual, *arguments, diagnostics);
  REQUIRE(succeeded(before));
  REQUIRE(succeeded(after));
  for (int64_t i = 0; i < before->numElements(); ++i) {
    INFO("element " << i << ": " << before->getDouble(i) << " and " << after->getDouble(i));
    CHECK(isClose(before->getDouble(i), after->getDouble(i)));
  }
}

} // namespace

TEST_CASE("rules that change floats are applied where they are named") {
  std::map<std::string, unsigned> seen;
  for (const RuleCase &one : cases) {
    INFO(one.rule << "\n" << one.body);
    PassRun without(entry(one.body));
    CHECK(without.run(simplifyAlgebra) == PassResult::Unchanged);
    PassRun p(entry(one.body));
    p.context.options.fastMath = {one.rule};
    CHECK(p.run(simplifyAlgebra) == PassResult::Changed);
    CHECK(p.context.statistics.of(one.rule) == 1);
    INFO(print(*p.module));
    if (one.expected)
      CHECK(p.body() == one.expected);
    checkClose(*p.parsed.module, *p.module);
    CHECK(p.run(simplifyAlgebra) == PassResult::Unchanged);
    ++seen[one.rule];
  }
  for (const RewriteRule &rule : fastMathRules()) {
    INFO(rule.name.str() << " has no text it applies to");
    CHECK(seen[rule.name.str()] > 0);
  }
}

TEST_CASE("all of them together come to rest") {
  for (const RuleCase &one : cases) {
    PassRun p(entry(one.body));
    for (const RewriteRule &rule : fastMathRules())
      p.context.options.fastMath.push_back(rule.name.str());
    CHECK(p.run(simplify) == PassResult::Changed);
    CHECK(p.run(simplify) == PassResult::Unchanged);
  }
}

TEST_CASE("integers and complex numbers are not meant") {
  for (const char *body : {"x = c64[] parameter(0)\n c = c64[] constant((3,0))\n ROOT r = c64[] divide(x, c)",
                           "x = s32[] parameter(0)\n c = s32[] constant(3)\n ROOT r = s32[] divide(x, c)",
                           "x = f32[] parameter(0)\n c = f32[] constant(0)\n ROOT r = f32[] divide(x, c)"}) {
    PassRun p(entry(body));
    for (const RewriteRule &rule : fastMathRules())
      p.context.options.fastMath.push_back(rule.name.str());
    CHECK(p.run(simplifyAlgebra) == PassResult::Unchanged);
  }
}
