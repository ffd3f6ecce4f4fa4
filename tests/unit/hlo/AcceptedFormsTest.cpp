// Texts that XLA takes and that look wrong at first: each parses, verifies and reads back, with a warning where
// something in it is not used as it is written.
#include "VerifierText.h"

#include "hloc/hlo/Printer.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct AcceptedForm {
  const char *what;
  const char *body; ///< of the entry
  const char *before = "";
  const char *warning = ""; ///< a part of the only warning; empty: there is none
  const char *header = "";
};

constexpr const char *oneSum =
    "one { a = f32[] parameter(0) b = f32[] parameter(1) s = f32[] add(a, b) ROOT t = (f32[]) tuple(s) }";

const AcceptedForm forms[] = {
    {"a done op in a computation of its own",
     "p = f32[4] parameter(0) s = (f32[4], f32[4], u32[]) copy-start(p) ROOT r = f32[4] call(s), to_apply=done",
     "done { s = (f32[4], f32[4], u32[]) parameter(0) ROOT d = f32[4] copy-done(s) }"},
    {"the done op of an all-reduce in a computation of its own",
     "p = f32[4] parameter(0) s = f32[4] all-reduce-start(p), to_apply=sum ROOT r = f32[4] call(s), to_apply=done",
     "done { s = f32[4] parameter(0) ROOT d = f32[4] all-reduce-done(s) }"},
    {"update and done op in computations of their own",
     "p = f32[4] parameter(0) s = ((f32[4]), f32[4], u32[]) async-start(p), calls=neg "
     "u = ((f32[4]), f32[4], u32[]) call(s), to_apply=update ROOT r = f32[4] call(u), to_apply=done",
     "neg { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) } "
     "update { s = ((f32[4]), f32[4], u32[]) parameter(0) ROOT u = ((f32[4]), f32[4], u32[]) async-update(s) } "
     "done { s = ((f32[4]), f32[4], u32[]) parameter(0) ROOT d = f32[4] async-done(s) }"},
    {"names in a signature that are types and keywords", "p = f32[] parameter(0) ROOT r = f32[] call(p, p), to_apply=f",
     "f (pred: f32[], true: f32[]) -> f32[] { x = f32[] parameter(0) y = f32[] parameter(1) ROOT n = f32[] add(x, y) "
     "}"},
    {"a comma after the last operand", "p = f32[4] parameter(0) ROOT r = f32[4] add(p, p,)"},
    {"a backend_config in which only the braces match",
     "p = f32[4] parameter(0) ROOT r = f32[4] negate(p), backend_config={a [ 'b' { ) } \"}\" }"},
    {"reduce to a tuple of one",
     "p = f32[4,3] parameter(0) z = f32[] constant(0) r = (f32[4]) reduce(p, z), dimensions={1}, to_apply=one "
     "ROOT g = f32[4] get-tuple-element(r), index=0",
     oneSum},
    {"reduce to a tuple of one, its shape omitted",
     "p = f32[4,3] parameter(0) z = f32[] constant(0) r = reduce(p, z), dimensions={1}, to_apply=one "
     "ROOT g = f32[4] get-tuple-element(r), index=0",
     oneSum},
    {"reduce-window to a tuple of one",
     "p = f32[4,3] parameter(0) z = f32[] constant(0) ROOT r = (f32[4,1]) reduce-window(p, z), window={size=1x3}, "
     "to_apply=one",
     oneSum},
    {"scan to a tuple of one",
     "p = f32[4] parameter(0) z = f32[] constant(0) ROOT r = (f32[]) scan(p, z), dimensions={0}, num_carries=1, "
     "to_apply=one",
     oneSum},
    {"scan to a tuple of one by a computation of one result",
     "p = f32[4] parameter(0) z = f32[] constant(0) ROOT r = (f32[]) scan(p, z), dimensions={0}, num_carries=1, "
     "to_apply=sum"},
    {"batching dimensions of a gather in any order",
     "p = f32[3,5,8] parameter(0) i = s32[5,3,1] parameter(1) ROOT r = f32[5,3,2] gather(p, i), offset_dims={2}, "
     "collapsed_slice_dims={}, start_index_map={2}, operand_batching_dims={1,0}, start_indices_batching_dims={0,1}, "
     "index_vector_dim=2, slice_sizes={1,1,2}"},
    {"batching dimensions of a scatter in any order",
     "p = f32[3,5,8] parameter(0) i = s32[5,3,1] parameter(1) u = f32[5,3,2] parameter(2) ROOT r = f32[3,5,8] "
     "scatter(p, i, u), update_window_dims={2}, inserted_window_dims={}, scatter_dims_to_operand_dims={2}, "
     "input_batching_dims={1,0}, scatter_indices_batching_dims={0,1}, index_vector_dim=2, to_apply=sum"},
    {"an integer order of floats", "p = f32[4] parameter(0) ROOT r = pred[4] compare(p, p), direction=LT, type=SIGNED",
     "", "`type=SIGNED` does not suit operands of type `f32`"},
    {"a float order of integers", "p = u8[4] parameter(0) ROOT r = pred[4] compare(p, p), direction=LT, type=FLOAT", "",
     "`type=FLOAT` does not suit operands of type `u8`"},
    {"an order of complex numbers",
     "p = c64[4] parameter(0) ROOT r = pred[4] compare(p, p), direction=EQ, type=TOTALORDER", "",
     "`type=TOTALORDER` does not suit operands of type `c64`"},
    {"after-all of nothing", "ROOT t = () after-all()", "", "the result of `after-all` is `token[]`"},
    {"after-all in a tuple", "ROOT t = (token[]) after-all()", "", "the result of `after-all` is `token[]`"},
    {"after-all of an array", "p = f32[4] parameter(0) a = token[] after-all() ROOT t = token[] after-all(a, p)", "",
     "`after-all` waits for `p`"},
    {"outfeed of nothing", "p = f32[4] parameter(0) t = token[] after-all() ROOT o = () outfeed(p, t)", "",
     "the result of `outfeed` is `token[]`"},
    {"send without a token",
     "p = f32[4] parameter(0) t = token[] after-all() s = (f32[4], u32[]) send(p, t), channel_id=1 "
     "ROOT d = token[] send-done(s), channel_id=1",
     "", "the result of `send` is `(f32[4], u32[], token[])`"},
    {"send-done of nothing",
     "p = f32[4] parameter(0) t = token[] after-all() s = (f32[4], u32[], token[]) send(p, t), channel_id=1 "
     "ROOT d = () send-done(s), channel_id=1",
     "", "the result of `send-done` is `token[]`"},
    {"recv without a token",
     "t = token[] after-all() s = (f32[4], u32[]) recv(t), channel_id=1 "
     "ROOT d = (f32[4], token[]) recv-done(s), channel_id=1",
     "", "the result of `recv` is `(f32[4], u32[], token[])`"},
    {"recv-done of the data alone",
     "t = token[] after-all() s = (f32[4], u32[], token[]) recv(t), channel_id=1 "
     "ROOT d = f32[4] recv-done(s), channel_id=1",
     "", "the result of `recv-done` is `(f32[4], token[])`"},
    {"an all-reduce among groups of several sizes",
     "p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), to_apply=sum, replica_groups={{0,2},{1}}"},
    {"an all-gather whose groups have a size of one",
     "p = f32[4] parameter(0) ROOT r = f32[8] all-gather(p), dimensions={0}, replica_groups={{0},{1}}"},
    {"an all-gather among more devices than its groups name",
     "p = f32[4] parameter(0) ROOT r = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1}}, channel_id=1", "",
     "", ", num_partitions=2"},
    {"an all-gather among devices that are numbered through",
     "p = f32[4] parameter(0) ROOT r = f32[8] all-gather(p), dimensions={0}, replica_groups={{0,1},{2,/*x*/3}}, "
     "channel_id=1, use_global_device_ids=true",
     "", "", ", replica_count=2, num_partitions=2"},
    {"a reduce-scatter among the groups of a mesh",
     "p = f32[8] parameter(0) ROOT r = f32[2] reduce-scatter(p), dimensions={0}, to_apply=sum, "
     "replica_groups=mesh['x'=2,'y'=4] {'y'}"},
    {"an all-to-all among partitions",
     "p = f32[6] parameter(0) ROOT r = f32[6] all-to-all(p), dimensions={0}, channel_id=1", "", "",
     ", replica_count=4, num_partitions=3"},
    {"an all-to-all of one operand a device",
     "p = f32[6] parameter(0) ROOT r = (f32[6], f32[6]) all-to-all(p, p), replica_groups=[1,2]<=[2]"},
    {"a dead instruction in a fusion", "p = f32[4] parameter(0) ROOT r = f32[4] fusion(p), kind=kLoop, calls=f",
     "f { x = f32[4] parameter(0) d = f32[4] abs(x) ROOT n = f32[4] negate(x) }", "abs `d` in a fusion has no user"},
    {"a parameter of a fusion that nothing reads",
     "p = f32[4] parameter(0) ROOT r = f32[4] fusion(p, p), kind=kLoop, calls=f",
     "f { x = f32[4] parameter(0) y = f32[4] parameter(1) ROOT n = f32[4] negate(x) }"},
    {"a fusion whose root is read", "p = f32[4] parameter(0) ROOT r = f32[4] fusion(p), kind=kLoop, calls=f",
     "f { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) d = f32[4] abs(n) }", "abs `d` in a fusion has no user"},
};

std::string printed(const HloModule &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printHlo(module, os, PrintOptions());
  return text;
}

std::unique_ptr<HloModule> parse(const std::string &text, DiagnosticEngine &diagnostics) {
  return parseHloModule(std::make_shared<SourceFile>("form.hlo", text), diagnostics);
}

/// The op with operands bf16 p, f32 q, pred c, s32 i and a result of type `result`, as it is after reading.
std::string readMixed(const std::string &result, const std::string &op) {
  std::string text = ruleModule(
      {VerifierRule::module_c1, ("p = bf16[4] parameter(0) q = f32[4] parameter(1) c = pred[4] parameter(2) z = f32[] "
                                 "parameter(3) i = s32[] parameter(4) u = f32[2] parameter(5) ROOT r = " +
                                 result + " " + op)
                                    .c_str()});
  INFO(text << parseAndVerify(text).messages);
  DiagnosticEngine diagnostics, silent;
  auto module = parse(text, diagnostics);
  REQUIRE(module);
  CHECK(verify(*module, diagnostics));
  REQUIRE(diagnostics.diagnostics().size() == 1);
  CHECK(diagnostics.diagnostics()[0].kind == DiagnosticKind::MixedPrecision);
  auto again = parse(printed(*module), silent);
  REQUIRE(again);
  CHECK(printed(*again) == printed(*module));
  std::string types;
  for (const HloInstruction *instr : module->entry()->instructions())
    if (instr->opcode() != Opcode::Parameter)
      types += (types.empty() ? "" : " ") + hloc::text(instr->opcode()).str() + ":" +
               hloc::text(instr->shape().elementType()).str();
  CHECK(module->entry()->root()->name() == "r");
  return types;
}

} // namespace

TEST_CASE("operands of several precisions are converted to the highest, the result is rounded") {
  for (const char *op : {"maximum(p, q)", "minimum(q, p)", "add(p, q)", "power(p, q)", "atan2(p, q)"}) {
    std::string name = llvm::StringRef(op).split('(').first.str();
    CHECK(readMixed("f32[4]", op) == "convert:f32 " + name + ":f32");
    CHECK(readMixed("bf16[4]", op) == "convert:f32 " + name + ":f32 convert:bf16");
    CHECK(readMixed("", op) == "convert:f32 " + name + ":f32");
  }
  CHECK(readMixed("f32[4]", "negate(p)") == "convert:f32 negate:f32");
  CHECK(readMixed("bf16[4]", "negate(q)") == "negate:f32 convert:bf16");
  CHECK(readMixed("f32[4]", "add(p, p)") == "convert:f32 add:f32");
  CHECK(readMixed("f64[4]", "add(p, q)") == "convert:f64 convert:f64 add:f64");
  CHECK(readMixed("f32[4]", "select(c, p, q)") == "convert:f32 select:f32");
  CHECK(readMixed("f32[4]", "clamp(p, q, p)") == "convert:f32 clamp:f32");
  CHECK(readMixed("pred[4]", "compare(p, q), direction=LT") == "convert:f32 compare:pred");
  CHECK(readMixed("bf16[8]", "concatenate(p, q), dimensions={0}") == "convert:f32 concatenate:f32 convert:bf16");
  CHECK(readMixed("bf16[5]", "pad(p, z), padding=0_1") == "convert:f32 pad:f32 convert:bf16");
  CHECK(readMixed("f32[4]", "dynamic-update-slice(p, u, i)") == "convert:f32 dynamic-update-slice:f32");
}

TEST_CASE("bf16 is a higher precision than f16, as in XLA") {
  DiagnosticEngine diagnostics;
  auto module = parse("HloModule m\nENTRY e { p = bf16[4] parameter(0) q = f16[4] parameter(1) ROOT r = add(p, q) }\n",
                      diagnostics);
  REQUIRE(module);
  CHECK(module->entry()->root()->shape().elementType() == ElementType::BF16);
}

TEST_CASE("forms that XLA takes are taken and read back") {
  for (const AcceptedForm &form : forms) {
    std::string text = ruleModule({VerifierRule::module_c1, form.body, form.before, form.header});
    INFO(form.what << ": " << text);
    INFO(parseAndVerify(text).messages);
    DiagnosticEngine diagnostics, silent;
    auto module = parse(text, diagnostics);
    REQUIRE(module);
    CHECK(verify(*module, diagnostics));
    bool warned = diagnostics.diagnostics().size() == 1 &&
                  llvm::StringRef(diagnostics.diagnostics()[0].message).contains(form.warning);
    CHECK((form.warning[0] ? warned : diagnostics.diagnostics().empty()));
    auto again = parse(printed(*module), silent);
    REQUIRE(again);
    CHECK(printed(*again) == printed(*module));
    CHECK(verify(*again, silent));
  }
}
