// What is said about wrong text besides "expected X": what was meant, where it is, and the errors further down.
#include "ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

namespace {

using Reports = std::vector<std::string>;

/// `line:column message` of the notes of the first report.
Reports notesOf(const Parsed &parsed) {
  Reports notes;
  REQUIRE(!parsed.diagnostics.diagnostics().empty());
  for (const DiagnosticNote &note : parsed.diagnostics.diagnostics()[0].notes) {
    LineColumn place = note.range.isValid() ? parsed.file->lineColumn(note.range.begin) : LineColumn{};
    notes.push_back(fmt::format("{}:{} {}", place.line, place.column, note.message));
  }
  return notes;
}

} // namespace

TEST_CASE("StableHLO is recognised, and how to get HLO is said") {
  const std::string message =
      "this is StableHLO, not HLO text; jax gives HLO by `jax.jit(f).lower(...).as_text(\"hlo\")`";
  for (const char *text : {"module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n  func.func public "
                           "@main(%arg0: tensor<4xf32>) {\n",
                           "#loc = loc(unknown)\nmodule @jit_f {\n  func.func public @main() {\n",
                           "// x\nmodule {\n  %0 = stablehlo.add\n", "func.func @main() -> tensor<4xf32> {\n",
                           "\"builtin.module\"() ({\n"}) {
    INFO(text);
    Parsed parsed(text);
    REQUIRE(parsed.reports().size() == 1);
    CHECK(parsed.reports()[0].substr(3) == " [not-hlo-text] " + message);
  }
  CHECK(Parsed("# proto\nname: \"m\"\n").firstReport().find("text protobuf") != std::string::npos);
  CHECK(Parsed("module {\n  ROOT x = f32[] constant(1)\n}\n").module); // a computation of that name
}

TEST_CASE("element types of numpy, torch and MLIR suggest HLO's") {
  auto report = [](const std::string &line) { return Parsed(entry(line)).firstReport(); };
  CHECK(report("ROOT x = float32[4] parameter(0)") ==
        "3:10 [bad-shape] unknown element type `float32`; did you mean `f32`?");
  CHECK(report("ROOT x = (s32[], int64[4]) parameter(0)") ==
        "3:18 [bad-shape] unknown element type `int64`; did you mean `s64`?");
  CHECK(report("ROOT x = Bool[] parameter(0)") == "3:10 [bad-shape] unknown element type `Bool`; did you mean `pred`?");
  CHECK(report("ROOT x = fp32[4] parameter(0)") == "3:10 [bad-shape] unknown element type `fp32`; did you mean `f32`?");
  CHECK(report("ROOT x = coordinates[4] parameter(0)") == "3:10 [bad-shape] unknown element type `coordinates`");
}

TEST_CASE("independent errors do not hide each other") {
  Parsed parsed("HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  a = f32[4] ad(p, p)\n  b = f32[5] add(p, p)\n"
                "  c = f32[4] negate(p, p)\n  d = f32[4] abs(q)\n  ROOT r = f32[4] add(a, c)\n}\n");
  CHECK(parsed.reports() ==
        Reports{"5:14 [unknown-opcode] unknown opcode `ad`; did you mean `add`?",
                "7:14 [operand-count] `negate` expects 1 operand, has 2",
                "8:18 [undefined-name] instruction `q` is not defined before this use",
                "6:3 [shape-mismatch] add: declared shape `f32[5]` differs from the inferred shape `f32[4]`"});
}

TEST_CASE("an error in one computation does not hide what another means") {
  Parsed parsed("HloModule m\nf {\n  x = f32[4] parameter(0)\n  ROOT y = f32[5] negate(x)\n}\nENTRY e {\n"
                "  p = f32[4] parameter(0)\n  ROOT r = f32[4] foo(p)\n}\n");
  REQUIRE(parsed.reports().size() == 2);
  CHECK(parsed.reports()[0].substr(0, 21) == "8:19 [unknown-opcode]");
  CHECK(parsed.reports()[1].substr(0, 20) == "4:8 [shape-mismatch]");
}

TEST_CASE("errors in the header and in a signature do not hide those in bodies") {
  Parsed header("HloModule m, colour=red, is_scheduled=true\n\nENTRY e {\n  ROOT a = f32[4] foo()\n}\n");
  REQUIRE(header.reports().size() == 2);
  CHECK(header.reports()[0].substr(0, 24) == "1:14 [unknown-attribute]");
  CHECK(header.reports()[1].substr(0, 21) == "4:19 [unknown-opcode]");
  Parsed signature("HloModule m\n\nENTRY e (x: float32[4]) -> f32[4] {\n  ROOT a = f32[4] foo()\n}\n");
  REQUIRE(signature.reports().size() == 2);
  CHECK(signature.reports()[0].substr(0, 16) == "3:13 [bad-shape]");
  CHECK(signature.reports()[1].substr(0, 21) == "4:19 [unknown-opcode]");
}

TEST_CASE("a use before the definition names the line of the definition") {
  Parsed parsed("HloModule m\nf {\n  x = f32[] parameter(0)\n  n = f32[] negate(y)\n  ROOT %y = f32[] abs(x)\n}\n");
  CHECK(parsed.reports() == Reports{"4:20 [undefined-name] instruction `y` is not defined before this use"});
  CHECK(notesOf(parsed) == Reports{"5:9 it is defined here, after this use"});
  // Not in another computation.
  Parsed other("HloModule m\nf {\n  w = f32[] parameter(0)\n  ROOT n = f32[] negate(y)\n}\nENTRY e {\n"
               "  ROOT y = f32[] parameter(0)\n}\n");
  CHECK(notesOf(other) == Reports{});
}

TEST_CASE("an unknown computation names its later definition, or a near one") {
  const std::string before = "HloModule m\nsum { a = f32[] parameter(0) ROOT n = f32[] negate(a) }\nENTRY e {\n"
                             "  p = f32[] parameter(0)\n  ROOT c = f32[] call(p), to_apply=",
                    later =
                        "\n}\n%twice (b: f32[]) -> f32[] {\n  b = f32[] parameter(0)\n  ROOT d = f32[] add(b, b)\n}\n";
  Parsed near(before + "summ" + later);
  CHECK(near.reports() == Reports{"5:36 [undefined-name] computation `summ` is not defined before this use"});
  CHECK(notesOf(near) == Reports{"2:1 did you mean `sum`?"});
  CHECK(notesOf(Parsed(before + "twice" + later)) == Reports{"7:2 it is defined here, after this use"});
  CHECK(notesOf(Parsed(before + "nothing" + later)) == Reports{});
}

TEST_CASE("what is not closed points to where it is opened, and the next line is read") {
  Parsed operands("HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  a = f32[4] add(p, p\n  b = f32[4] foo(a)\n"
                  "  ROOT c = f32[4] negate(p, p)\n}\n");
  CHECK(operands.reports() == Reports{"5:3 [expected-token] expected `,` or `)`, found `b`",
                                      "5:14 [unknown-opcode] unknown opcode `foo`",
                                      "6:19 [operand-count] `negate` expects 1 operand, has 2"});
  CHECK(notesOf(operands) == Reports{"4:17 `(` is opened here"});
  Parsed attributes(entry("p = f32[4] parameter(0)\nROOT r = f32[4] reverse(p, dimensions={0}"));
  CHECK(attributes.reports() == Reports{"4:28 [expected-token] expected an operand, found `dimensions=`"});
  CHECK(notesOf(attributes) == Reports{"4:24 `(` is opened here"});
  Parsed parameter(entry("ROOT p = f32[4] parameter(0"));
  CHECK(parameter.reports() == Reports{"4:1 [expected-token] expected `)`, found `}`"});
  CHECK(notesOf(parameter) == Reports{"3:26 `(` is opened here"});
  Parsed constant(entry("ROOT p = f32[] constant(1"));
  CHECK(notesOf(constant) == Reports{"3:24 `(` is opened here"});
  Parsed tuple(entry("ROOT p = (f32[4], s32[] parameter(0)"));
  CHECK(tuple.reports() == Reports{"3:25 [expected-token] expected `,` or `)`, found `parameter`"});
  CHECK(notesOf(tuple) == Reports{"3:10 `(` is opened here"});
}

TEST_CASE("a byte order mark is skipped") {
  CHECK(Parsed("\xEF\xBB\xBFHloModule m\nENTRY e {\n  ROOT x = f32[] constant(1)\n}\n").module);
  CHECK(!Parsed("HloModule m\n\xEF\xBB\xBF ENTRY e {\n  ROOT x = f32[] constant(1)\n}\n").module);
}
