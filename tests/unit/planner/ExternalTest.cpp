// Steps that no kernel does: where their operands and results lie, and in which order they are done.
#include "PlanText.h"

#include "hloc/kernel/LibraryCall.h"

using namespace hloc;
using namespace hloc::test;

namespace {

const std::string negation = "n { p = f32[8] parameter(0)\n ROOT r = f32[8] negate(p) }\n";

std::string program(const std::string &body) {
  return "HloModule m, replica_count=2\n" + negation + "ENTRY e {\n" + body + "\n}\n";
}

} // namespace

TEST_CASE("an external step reads its operands and writes its results, where they have to go") {
  Planned p = planModuleText(program("x = f32[8] parameter(0)\n f = f32[8] fusion(x), kind=kLoop, calls=n\n"
                                     "c = (f32[8], s32[2]) custom-call(f, x), custom_call_target=\"mine\"\n"
                                     "g = f32[8] get-tuple-element(c), index=0\n"
                                     "ROOT r = f32[8] fusion(g), kind=kLoop, calls=n"));
  CHECK(p.steps == "n(0,1) mine(1,0->2,3) n(2,4)");
  CHECK(p.results == "4");
}

TEST_CASE("a result that lies in an operand's place takes it, or that of a copy") {
  auto text = [](const std::string &operand) {
    return program("x = f32[8] parameter(0)\n f = f32[8] fusion(x), kind=kLoop, calls=n\n"
                   "ROOT c = f32[8] custom-call(" +
                   operand + "), custom_call_target=\"mine\", output_to_operand_aliasing={{}: (0, {})}");
  };
  Planned over = planModuleText(text("f"));
  CHECK(over.steps == "n(0,1) mine(1->1)");
  CHECK(over.results == "1");
  Planned kept = planModuleText(text("x"));
  CHECK(kept.steps == "n(0,1) copy(0->2) mine(2->2)");
  Planned twice = planModuleText(text("f, f"));
  CHECK(twice.steps == "n(0,1) copy(1->2) mine(2,1->2)");
}

TEST_CASE("a donated parameter takes the result of an external step") {
  Planned p =
      planModuleText("HloModule m, replica_count=2, input_output_alias={ {}: (0, {}, must-alias) }\n" + negation +
                     "ENTRY e { x = f32[8] parameter(0)\n f = f32[8] fusion(x), kind=kLoop, calls=n\n"
                     "ROOT g = f32[8] collective-permute(f), source_target_pairs={{0,1}} }\n");
  CHECK(p.steps == "n(0,1) collective-permute(1->0)");
  CHECK(p.plan->buffers[0].donated);
}

TEST_CASE("tokens take no memory, and steps with side effects keep their order in loops") {
  Planned p =
      planModuleText("HloModule m\n"
                     "below { i = s32[] parameter(0)\n c = s32[] constant(3)\n"
                     " ROOT r = pred[] compare(i, c), direction=LT }\n"
                     "less { p = (s32[], token[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n"
                     " ROOT f = pred[] fusion(i), kind=kLoop, calls=below }\n"
                     "next { i = s32[] parameter(0)\n c = s32[] constant(1)\n ROOT r = s32[] add(i, c) }\n"
                     "step { p = (s32[], token[], f32[8]) parameter(0)\n"
                     " i = s32[] get-tuple-element(p), index=0\n t = token[] get-tuple-element(p), index=1\n"
                     " x = f32[8] get-tuple-element(p), index=2\n"
                     " o = token[] outfeed(x, t), outfeed_shape=f32[8]\n"
                     " in = (f32[8], token[]) infeed(o)\n d = f32[8] get-tuple-element(in), index=0\n"
                     " u = token[] get-tuple-element(in), index=1\n"
                     " j = s32[] fusion(i), kind=kLoop, calls=next\n"
                     " ROOT s = (s32[], token[], f32[8]) tuple(j, u, d) }\n"
                     "ENTRY e { i = s32[] parameter(0)\n x = f32[8] parameter(1)\n t = token[] after-all()\n"
                     " s = (s32[], token[], f32[8]) tuple(i, t, x)\n"
                     " w = (s32[], token[], f32[8]) while(s), condition=less, body=step\n"
                     " ROOT r = f32[8] get-tuple-element(w), index=2 }\n");
  for (const ModuleBuffer &buffer : p.plan->buffers)
    CHECK((buffer.shape != "token[]" || buffer.bytes == 0));
  const size_t out = p.steps.find("outfeed("), in = p.steps.find("infeed(");
  CHECK(out != std::string::npos);
  CHECK(out < in);
  CHECK(in != std::string::npos);
}

TEST_CASE("a call of a library reads operands in the order of its function, and has workspace") {
  Planned p = planModuleText(
      "HloModule m\nn { p = f32[16,48] parameter(0)\n ROOT r = f32[16,48] negate(p) }\nENTRY e {\n"
      "x = f32[16,32] parameter(0)\n y = f32[32,48] parameter(1)\n z = f32[16,48] parameter(2)\n"
      "f = f32[16,48] fusion(z), kind=kLoop, calls=n\n"
      "ROOT c = f32[16,48] custom-call(x, y, f), custom_call_target=\"__cublas$lt$matmul\", "
      "output_to_operand_aliasing={{}: (2, {})}, frontend_attributes={hloc_library=\"call\"}, "
      "backend_config={\"alpha_real\":1,\"beta\":1,\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"
      "\"rhs_contracting_dimensions\":[\"0\"]}} }\n");
  CHECK(p.steps == "n(2,3) cublasLtMatmul(1,0,3->3,4)"); // what is added lies where the result does
  CHECK(p.results == "3");
  CHECK(p.plan->buffers[4].bytes == 32 << 20);
  const auto &call = std::get<CallStep>(p.plan->steps[1].action);
  CHECK(call.kind == CallStep::Kind::Library);
  CHECK(checkLibraryCall(call) == "");
}
