// Where errors are, what they say, and that one run reports several.
#include "ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

using Reports = std::vector<std::string>;

TEST_CASE("errors name line and column") {
  CHECK(Parsed("HloModule m\nENTRY e {\n  ROOT x = f32[] add, p\n}\n").reports() ==
        Reports{"3:21 [expected-token] expected `(`, found `,`"});
  CHECK(Parsed("HloModule m\nENTRY e {\n  ROOT x = f32[] parametr(0)\n}\n").reports() ==
        Reports{"3:18 [unknown-opcode] unknown opcode `parametr`; did you mean `parameter`?"});
  CHECK(Parsed("HloModule m\nENTRY e {\n  ROOT x = f32[2,3]{0} parameter(0)\n}\n").firstReport() ==
        "3:20 [bad-layout] layout has 1 dimensions, the shape 2");
  CHECK(Parsed("HloModule m\nENTRY e {\n  ROOT x = s4[2] constant({1, 8})\n}\n").reports() ==
        Reports{"3:31 [bad-literal] `8` is out of range for `s4`"});
  CHECK(Parsed("HloModule m\n/* open").reports() == Reports{"2:1 [unterminated-token] comment is not closed by `*/`"});
}

TEST_CASE("undefined names suggest near ones, redefinitions point to the first") {
  Parsed near("HloModule m\nENTRY e {\n  weight = f32[] parameter(0)\n  ROOT r = f32[] negate(wieght)\n}\n");
  REQUIRE(near.reports() == Reports{"4:25 [undefined-name] instruction `wieght` is not defined before this use"});
  REQUIRE(near.diagnostics.diagnostics()[0].notes.size() == 1);
  CHECK(near.diagnostics.diagnostics()[0].notes[0].message == "did you mean `weight`?");
  CHECK(near.file->lineColumn(near.diagnostics.diagnostics()[0].notes[0].range.begin).line == 3);
  Parsed twice("HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  x = f32[] parameter(1)\n}\n");
  REQUIRE(twice.reports() == Reports{"4:3 [redefinition] instruction `x` is already defined"});
  CHECK(twice.file->lineColumn(twice.diagnostics.diagnostics()[0].notes.at(0).range.begin).line == 3);
}

TEST_CASE("parsing goes on at the next instruction, and errors do not breed others") {
  Parsed parsed("HloModule m\nf {\n  a = f32[] bogus(1)\n  ROOT b = f32[] negate(a)\n}\nENTRY e {\n  p = f32[2 "
                "parameter(0)\n  q = f32[] constant({1})\n  r = f32[] add(p, q)\n  s = f32[] call(q), to_apply=f\n  "
                "ROOT t = f32[] negate(u)\n}\n");
  Reports reports = parsed.reports();
  REQUIRE(reports.size() == 4);
  CHECK(reports[0].substr(0, 4) == "3:13");
  CHECK(reports[1].substr(0, 4) == "7:13");
  CHECK(reports[2].substr(0, 4) == "8:22");
  CHECK(reports[3].substr(0, 5) == "11:25");
}

TEST_CASE("a file of nothing but errors ends at the limit") {
  std::string text = "HloModule m\nENTRY e {\n";
  for (int i = 0; i < 100000; ++i)
    text += "  x" + std::to_string(i) + " = f32[] negate(undefined" + std::to_string(i) + ")\n";
  Parsed parsed(text + "}\n");
  CHECK(!parsed.module);
  CHECK(parsed.reports().size() <= DiagnosticEngine::maxErrors + 1);
}

TEST_CASE("odd but accepted input warns") {
  Parsed bare("HloModule m\nENTRY e {\n  ROOT c = f32[4] constant(7)\n}\n");
  REQUIRE(bare.module);
  CHECK(bare.module->entry()->root()->literal().getDouble(0) == 7);
  CHECK(bare.module->entry()->root()->literal().getDouble(1) == 0);
  CHECK(bare.firstReport().find("[ignored-input]") != std::string::npos);
  Parsed elided("HloModule m\nENTRY e {\n  ROOT c = f32[40] constant({...})\n}\n");
  REQUIRE(elided.module);
  CHECK(elided.module->entry()->root()->literal().isElided());
  CHECK(elided.firstReport().find("[elided-constant]") != std::string::npos);
  Parsed large(
      "HloModule m\nENTRY e {\n  ROOT c = (s8[99999,99999,99999], s32[]) constant(({ /* all */ ... }, 3))\n}\n");
  REQUIRE(large.module);
  const Literal &literal = large.module->entry()->root()->literal().element(0);
  CHECK(literal.isElided());
  CHECK(literal.getInt(99999) == 0);
  CHECK(literal.isSplat());
  CHECK(literal == Literal::elided(Shape::array(ElementType::S8, {99999, 99999, 99999})));
  CHECK(!(literal == Literal(Shape::array(ElementType::S8, {0}))));
}

TEST_CASE("texts are split at separator lines") {
  auto parts = splitModules("a\n// -----\nb // -----\n// -----\n");
  REQUIRE(parts.size() == 3);
  CHECK(parts[0] == "a\n");
  CHECK(parts[1] == "b // -----\n");
  CHECK(parts[2] == "");
}
