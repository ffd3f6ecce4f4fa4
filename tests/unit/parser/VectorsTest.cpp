// What is HLO text and what is not: one text for each rule, as XLA's parser decides it.
#include "ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

namespace {

void accepted(const std::string &text) {
  Parsed parsed(text);
  INFO(text);
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  CHECK(!parsed.diagnostics.hasErrors());
}

void rejected(const std::string &text, llvm::StringRef kind) {
  Parsed parsed(text);
  INFO(text.substr(0, 1000));
  INFO(parsed.firstReport());
  CHECK(!parsed.module);
  REQUIRE(parsed.diagnostics.hasErrors());
  bool found = false;
  for (const Diagnostic &report : parsed.diagnostics.diagnostics())
    found |= hloc::text(report.kind) == kind;
  CHECK(found);
}

std::string constant(const std::string &shape, const std::string &value) {
  return entry("ROOT c = " + shape + " constant(" + value + ")");
}

const std::string p = "p = f32[] parameter(0)\n";

} // namespace

TEST_CASE("accepted: files of every form") {
  accepted("HloModule m ENTRY e { ROOT a = f32[] constant(1) }");
  accepted("HloModule m:\nENTRY e { ROOT a = f32[] constant(1) }");
  Parsed named("test { ROOT root = f32[1,8]{0,1} parameter(0) } // test");
  REQUIRE(named.module);
  CHECK(named.module->name() == "module_test");
  CHECK(named.module->headerless());
  CHECK(named.module->entry()->root()->shape().toString() == "f32[1,8]{0,1}");
  Parsed entryFirst("ENTRY a { ROOT x = f32[] constant(1) } b { ROOT x = f32[] constant(1) }");
  REQUIRE(entryFirst.module);
  CHECK(entryFirst.module->entry()->name() == "a");
  Parsed noEntry("a { ROOT x = f32[] constant(1) } b { ROOT x = f32[] constant(1) }");
  REQUIRE(noEntry.module);
  CHECK(noEntry.module->entry()->name() == "b");
  accepted("%f (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}");
  accepted("// CRLF\r\nHloModule m\r\nENTRY e {\r\n  ROOT a = f32[] constant(1) // end\r}\r\n");
  accepted("HloModule m\n\nFileNames\n1 \"a.py\"\n\nFunctionNames\n1 \"f\"\n\nFileLocations\n1 {file_name_id=1 "
           "function_name_id=1 line=3 end_line=3 column=1 end_column=9}\n\nStackFrames\n1 {file_location_id=1 "
           "parent_frame_id=1}\n\nENTRY e { ROOT a = f32[] constant(1) }");
}

TEST_CASE("accepted: one instruction is a module of its own") {
  Parsed parsed("f32[4] add(f32[4] x, f32[4] y)");
  REQUIRE(parsed.module);
  CHECK(parsed.module->entry()->numParameters() == 2);
  Parsed shapes("r = f32[4] add(f32[4], f32[4])");
  REQUIRE(shapes.module);
  CHECK(shapes.module->entry()->numParameters() == 2);
  Parsed same("f32[4] add(f32[4] x, x)");
  REQUIRE(same.module);
  CHECK(same.module->entry()->numParameters() == 1);
  rejected("f32[4] add(f32[4] x, x) f32[4] add(f32[4] x, x)", "expected-token");
}

TEST_CASE("accepted: names, roots, omitted shapes, nested operands") {
  Parsed inferred(entry(p + "a = add(p, p)"));
  REQUIRE(inferred.module);
  CHECK(inferred.module->entry()->root()->shape().toString() == "f32[]");
  accepted("f { x = f32[] constant(1) } ENTRY g { x = f32[] constant(1) }");
  Parsed last(entry(p + "a = f32[] add(p, p)\nb = f32[] negate(a)"));
  REQUIRE(last.module);
  CHECK(last.module->entry()->root()->name() == "b");
  accepted("HloModule m\nENTRY e (zzz: f32[7]) -> f32[] { p = f32[2] parameter(0)\nROOT c = f32[] constant(1) }");
  accepted(entry(p + "ROOT n = multiply(add(p, p), f32[] constant(2))"));
  accepted(entry("p = f32[] parameter(0)\n%true = f32[] negate(%p)\nx=f32[] negate(%true)"));
}

TEST_CASE("accepted: `%x#0` makes one get-tuple-element for each path") {
  Parsed parsed(entry("t = (f32[2], (s32[], f32[3])) parameter(0)\nROOT r = (f32[3], f32[3]) tuple(t#1#1, t#1#1)"));
  REQUIRE(parsed.module);
  const HloInstruction *root = parsed.module->entry()->root();
  CHECK(root->operand(0) == root->operand(1));
  CHECK(root->operand(0)->opcode() == Opcode::GetTupleElement);
  CHECK(root->operand(0)->operand(0)->intOr(AttributeKey::Index, -1) == 1);
  CHECK(parsed.module->entry()->instructions().size() == 4);
}

TEST_CASE("accepted: inline computations and asynchronous sugar") {
  Parsed parsed(entry("x = f32[4] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[] reduce(x, z), dimensions={0}, "
                      "to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"));
  REQUIRE(parsed.module);
  CHECK(parsed.module->computations().size() == 2);
  Parsed async(entry("x = f32[4] parameter(0)\ns = ((f32[4]), f32[4], u32[]) negate-start(x), "
                     "async_execution_thread=\"t\"\nu = ((f32[4]), f32[4], u32[]) negate-update(s)\n"
                     "ROOT d = f32[4] negate-done(u)"));
  INFO(async.firstReport());
  REQUIRE(async.module);
  CHECK(async.module->entry()->root()->opcode() == Opcode::AsyncDone);
  CHECK(async.module->entry()->root()->computation(AttributeKey::Calls)->root()->opcode() == Opcode::Negate);
}

TEST_CASE("accepted: shapes, layouts and their extras") {
  Parsed blank(entry("p = f32[2, 3] {1, 0} parameter(0)"));
  REQUIRE(blank.module);
  CHECK(blank.module->entry()->root()->shape().toString() == "f32[2,3]{1,0}");
  for (const char *shape : {"f32[2,3]{0,1}", "s4[8]{0:E(4)}", "f32[8,128]{1,0:T(8,128)S(1)}", "f32[<=5,2]{1,0}",
                            "f32[?,2]{1,0}", "f32[0,3]{1,0}", "token[]", "(f32[2]{0}, (s32[], ()))", "b(f32[4]{0})"}) {
    Parsed parsed(entry(std::string("p = ") + shape + " parameter(0)"));
    INFO(shape);
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
    CHECK(parsed.module->entry()->root()->shape().toString() == shape);
  }
}

TEST_CASE("accepted: attribute values") {
  accepted(entry("x = f32[4,5] parameter(0)\ns = f32[3,2] slice(x), slice={[0:3], [0:4:2]}"));
  accepted(entry("c = f32[] constant(1), metadata={source_line=5, op_type=\"::const\"}"));
  accepted(entry("c = f32[] constant(1), backend_config={sizes:[128], \"a\":\"}\"}, sharding={devices=[2,2]<=[4] "
                 "last_tile_dims={manual}}, frontend_attributes={a.b-c=\"x\",j={\"k\":1}}, statistics={a=1.5}"));
  for (const char *groups : {"{}", "{{0,1},{2,3}}", "[2,4]<=[8]", "[4,2]<=[2,4]T(1,0)", "mesh['x'=2,'y'=4] {'y'}"})
    accepted("HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\nENTRY e { p "
             "= f32[4] parameter(0)\nROOT r = f32[4] all-reduce(p), to_apply=add, replica_groups=" +
             std::string(groups) + " }");
}

TEST_CASE("accepted: literals") {
  for (auto [shape, value] :
       std::initializer_list<std::pair<const char *, const char *>>{{"u64[]", "-1"},
                                                                    {"u64[]", "9223372036854775808"},
                                                                    {"bf16[]", "-65505"},
                                                                    {"f32[]", "3e+2"},
                                                                    {"f32[]", "-nan"},
                                                                    {"bf16[2]", "{-nan(0x7f), nan}"},
                                                                    {"f32[67,89]", "{...}"},
                                                                    {"f32[1000000,1000000]", "{...}"},
                                                                    {"f32[0,2]", "{}"},
                                                                    {"f32[2,0]", "{{},{}}"},
                                                                    {"(s32[], f32[2])", "(7, {1,2})"},
                                                                    {"c64[2]", "{(1, 2), (-inf, nan)}"},
                                                                    {"pred[3]", "{1, true, 0}"},
                                                                    {"s32[2]", "{1 2}"},
                                                                    {"s32[2]", "{1,,2}"},
                                                                    {"f32[4]", "7"},
                                                                    {"f32[]", "5."},
                                                                    {"f32[]", "-.5"}})
    accepted(constant(shape, value));
}

TEST_CASE("rejected: files") {
  rejected("ENTRY a { ROOT x = f32[] constant(1) } ENTRY b { ROOT x = f32[] constant(1) }", "redefinition");
  rejected("/* unterminated", "unterminated-token");
  rejected("# RUN: x", "not-hlo-text");
  rejected("", "empty-input");
  rejected(" // nothing\n", "empty-input");
  rejected("HloModule m", "bad-module");
  rejected("HloModule m, colour=red\nENTRY e { ROOT a = f32[] constant(1) }", "unknown-attribute");
  rejected("HloModule m, input_output_alias={ {0, a}: (0, {0}) }\nENTRY e { ROOT a = f32[] constant(1) }",
           "expected-token");
  rejected(std::string("HloModule m\0ENTRY e { ROOT a = f32[] constant(1) }", 49), "bad-character");
  rejected("HloModule m\nENTRY e { }", "bad-module");
  rejected("HloModule m\nENTRY e { ROOT a = f32[] constant(1)", "expected-token");
}

TEST_CASE("rejected: names and roots") {
  rejected(entry(p + "c = convert(p)"), "missing-shape");
  rejected(entry(p + "ROOT r = f32[] add(x, p)\nx = f32[] negate(p)"), "undefined-name");
  rejected(entry(p + "x = f32[] negate(p)\nx = f32[] negate(p)"), "redefinition");
  rejected("a { x = f32[] constant(1) } a { x = f32[] constant(1) }", "redefinition");
  rejected(entry("ROOT a = f32[] constant(1)\nROOT b = f32[] constant(1)"), "redefinition");
  rejected("HloModule m\nENTRY e () -> f32[2] { ROOT r = f32[3] parameter(0) }", "shape-mismatch");
  rejected(entry(p + "a = f32[] negate(p), control-predecessors={%done}\ndone = f32[] negate(p)"), "undefined-name");
  rejected(entry("__x = f32[] parameter(0)"), "bad-name");
  rejected(entry("f32 = f32[] parameter(0)"), "bad-name");
  rejected(entry(p + "r = f32[] call(p), to_apply=nowhere"), "undefined-name");
  rejected(entry("p = f32[] parameter(-1)"), "bad-parameter");
  rejected(entry("p = f32[] parameter(0)\nq = f32[] parameter(0)"), "bad-parameter");
  rejected(entry("p = f32[] parameter(0)\nq = f32[] parameter(2)"), "bad-parameter");
}

TEST_CASE("rejected: shapes") {
  rejected(entry("p = f32[2,3]{0} parameter(0)"), "bad-layout");
  rejected(entry("p = f32[2,3]{1,1} parameter(0)"), "bad-layout");
  rejected(entry("p = f32[2,3]{1,0:Q(3)} parameter(0)"), "bad-layout");
  rejected(entry("p = f32[-1] parameter(0)"), "bad-shape");
  rejected(entry("p = f32[4294967296,4294967296] parameter(0)"), "bad-shape");
  rejected(entry("p = f32[9223372036854775807] parameter(0)"), "bad-shape");
  rejected(entry("p = token[2] parameter(0)"), "bad-shape");
  rejected(entry("p = f33[2] parameter(0)"), "bad-shape");
  rejected(entry("p = f32[4,6] parameter(0)\nr = f32[5] reshape(p)"), "shape-mismatch");
  accepted(entry("p = f32[?,6] parameter(0)\nr = f32[5] reshape(p)"));
  rejected(entry("p = f32[2] parameter(0)\nr = f32[2] negate(f32[3] p)"), "shape-mismatch");
}

TEST_CASE("rejected: literals") {
  for (auto [shape, value] :
       std::initializer_list<std::pair<const char *, const char *>>{{"s4[]", "8"},
                                                                    {"u4[]", "16"},
                                                                    {"u32[]", "4294967296"},
                                                                    {"f16[]", "-65520"},
                                                                    {"bf16[]", "1e100"},
                                                                    {"u32[]", "-1"},
                                                                    {"bf16[1]", "{nan(0x3ff)}"},
                                                                    {"f8e4m3fn[1]", "{nan(0x1)}"},
                                                                    {"f32[3,2]", "{1,{2,3},4}"},
                                                                    {"f32[3,2]", "{{1,2},{3,4},{5,6},{7,8}}"},
                                                                    {"f32[3,2]", "{{1,2},{3},{5,6}}"},
                                                                    {"f32[1000000,1000000]", "{{1}}"},
                                                                    {"f32[2]", "{{1,2}}"},
                                                                    {"token[]", "1"}})
    rejected(constant(shape, value), "bad-literal");
  rejected(constant("f64[]", "1.8e308"), "bad-number");
  rejected(constant("s64[]", "18446744073709551616"), "bad-number");
  rejected(constant("c64[]", "1"), "expected-token");
  rejected(constant("s32[]", "1.5"), "expected-token");
  rejected(constant("f32[1000000,1000000]", "1"), "input-too-large");
}

TEST_CASE("rejected: attributes") {
  rejected(entry("x = f32[4] parameter(0)\nz = f32[] constant(0)\nr = f32[4] custom-call(x), custom_call_target=\"t\", "
                 "window={pad=1_1_0 size=1}"),
           "bad-attribute");
  for (const char *labels : {"00_01->10", "013_0123->210"})
    rejected(entry("x = f32[1,1] parameter(0)\nr = f32[1,1] convolution(x, x), dim_labels=" + std::string(labels)),
             "bad-attribute");
  rejected(entry("x = f32[4] parameter(0)\nr = f32[4] negate(x), dimensions={0}"), "unknown-attribute");
  rejected(entry("x = f32[4] parameter(0)\nr = f32[4] reverse(x)"), "missing-attribute");
  rejected(entry("x = f32[4] parameter(0)\nr = f32[4] reverse(x), dimensions={0}, dimensions={0}"),
           "duplicate-attribute");
  rejected(entry("x = f32[4] parameter(0)\nr = f32[4] collective-permute(x), source_target_pairs={{0,1,2}}"),
           "bad-attribute");
  rejected(entry("x = f32[4] parameter(0), metadata={colour=\"red\"}"), "bad-attribute");
  rejected(entry("x = f32[4] parameter(0), metadata={op_name=3}"), "expected-token");
  rejected(entry("x = f32[4] parameter(0), metadata={op_name=\"\\q\""), "expected-token");
  rejected(entry("x = f32[4] parameter(0), sharding={painted}"), "bad-attribute");
  rejected(entry("x = f32[4] parameter(0), backend_config={{\"a\":1"), "unterminated-token");
  rejected(entry("x = f32[4] parameter(0), backend_config=\"\\q\""), "bad-escape");
  rejected(entry("x = f32[4] parameter(0)\nr = pred[4] compare(x, x), direction=UP"), "bad-attribute");
}

TEST_CASE("rejected: operands and what depends on the opcode") {
  rejected(entry("x = f32[128,32] parameter(0)\nr = f32[128,128] all-gather(x), dimensions={}"), "bad-attribute");
  rejected(entry("x = f32[2,3] parameter(0)\nr = s32[] get-dimension-size(x), dimensions={}"), "bad-attribute");
  rejected(entry("x = f32[2] parameter(0)\nr = f32[4] concatenate(x, x), dimensions={0,1}"), "bad-attribute");
  rejected(entry("ROOT s = f32[10,10] sqrt(f32[10,10] broadcast(f32[10] parameter(0)))"), "missing-attribute");
  rejected(entry(p + "r = f32[] add(p)"), "operand-count");
  rejected(entry("x = f32[2,3] parameter(0)\ni = s32[] constant(0)\nr = f32[1,1] dynamic-slice(x, i), "
                 "dynamic_slice_sizes={1,1}"),
           "operand-count");
  rejected(entry("t = (f32[2], s32[]) parameter(0)\nr = f32[2] get-tuple-element(t), index=2"), "shape-mismatch");
  const std::string branches = "f { ROOT a = f32[] parameter(0) }\ng { ROOT a = f32[] parameter(0) }\nENTRY e {\na = "
                               "f32[] parameter(0)\ns = s32[] parameter(1)\nv = s32[2] parameter(2)\nb = pred[] "
                               "parameter(3)\nROOT r = f32[] conditional(";
  accepted(branches + "s, a, a), branch_computations={f, g}\n}");
  accepted(branches + "b, a, a), true_computation=f, false_computation=g\n}");
  rejected(branches + "b, a, a), branch_computations={f, g}\n}", "unknown-attribute");
  rejected(branches + "a, a, a), branch_computations={f, g}\n}", "type-mismatch");
  rejected(branches + "v, a, a), branch_computations={f, g}\n}", "type-mismatch");
  rejected(branches + "s, a), branch_computations={f, g}\n}", "operand-count");
}

TEST_CASE("rejected: nesting without end, in linear time and without a crash") {
  auto nested = [](const std::string &open, const std::string &core, const std::string &close) {
    std::string text;
    for (int i = 0; i < 100000; ++i)
      text += open;
    text += core;
    for (int i = 0; i < 100000; ++i)
      text += close;
    return text;
  };
  rejected(entry("p = " + nested("(", "f32[]", ")") + " parameter(0)"), "too-deep");
  rejected(entry("p = f32[] parameter(0)\nr = f32[] " + nested("negate(", "p", ")")), "too-deep");
  rejected(entry("x = f32[] parameter(0)\nr = f32[] " +
                 nested("call(x), to_apply={ x = f32[] parameter(0) r = f32[] ", "negate(x)", "}")),
           "too-deep");
  rejected(entry("p = f32[] parameter(0), sharding=" + nested("{", "replicated", "}")), "too-deep");
  rejected(constant("f32[2]", nested("{", "1", "}")), "bad-literal");
  rejected(entry("p = f32[] parameter(0), backend_config=" + nested("{", "", "}") + "}"), "expected-token");
}
