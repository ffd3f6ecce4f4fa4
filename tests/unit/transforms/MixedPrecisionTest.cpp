// What HLO lets differ in its floats without saying how it is rounded, and what it does not.

#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"
#include "hloc/transforms/Transforms.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// The entry of a module with computations over one f32[4], and one bf16[4]; both verify.
bool handsOn(const std::string &entry) {
  const std::string text =
      "HloModule m\nhalve {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] multiply(a, a)\n}\n"
      "less {\n  a = f32[4] parameter(0)\n  ROOT b = pred[] constant(false)\n}\n"
      "ENTRY e {\n  p = f32[4] parameter(0)\n  q = bf16[4] parameter(1)\n  s = s32[] parameter(2)\n" +
      entry + "}\n";
  CAPTURE(text);
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("m.hlo", text), diagnostics);
  REQUIRE(module);
  REQUIRE(verify(*module, diagnostics));
  const bool result = handsOnInOneType(*module, diagnostics);
  CHECK(diagnostics.hasErrors() != result);
  if (!result)
    CHECK(diagnostics.exitCode() == ExitCode::Unsupported);
  return result;
}

} // namespace

TEST_CASE("what is handed on has the type that it has", "[mixed-precision]") {
  CHECK(handsOn("  ROOT r = (f32[4], bf16[4]) tuple(p, q)\n"));
  CHECK(handsOn("  t = (f32[4], bf16[4]) tuple(p, q)\n  ROOT r = bf16[4] get-tuple-element(t), index=1\n"));
  CHECK(handsOn("  ROOT r = f32[4] call(p), to_apply=halve\n"));
  CHECK(handsOn("  ROOT r = f32[4] while(p), condition=less, body=halve\n"));
  CHECK(handsOn("  ROOT r = f32[4] conditional(s, p, p), branch_computations={halve, halve}\n"));
  CHECK(handsOn("  ROOT r = f32[4] opt-barrier(p)\n"));
}

TEST_CASE("what is handed on as another type is refused", "[mixed-precision]") {
  CHECK_FALSE(handsOn("  ROOT r = (f32[4], f32[4]) tuple(p, q)\n"));
  CHECK_FALSE(handsOn("  t = (f32[4], bf16[4]) tuple(p, q)\n  ROOT r = f32[4] get-tuple-element(t), index=1\n"));
  CHECK_FALSE(handsOn("  ROOT r = bf16[4] call(p), to_apply=halve\n"));
  CHECK_FALSE(handsOn("  ROOT r = bf16[4] while(p), condition=less, body=halve\n"));
  CHECK_FALSE(handsOn("  ROOT r = bf16[4] conditional(s, p, p), branch_computations={halve, halve}\n"));
  CHECK_FALSE(handsOn("  ROOT r = bf16[4] opt-barrier(p)\n"));
}
