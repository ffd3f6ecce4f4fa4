// Buffers and steps of modules in normal form: who takes whose place, and what is copied where nobody can.
#include "PlanText.h"

using namespace hloc;
using namespace hloc::test;

namespace {

const std::string computations = R"(
sum { x = f32[1000] parameter(0)
 y = f32[1000] parameter(1)
 ROOT s = f32[1000] add(x, y) }
back { x = f32[1000] parameter(0)
 ROOT r = f32[1000] reverse(x), dimensions={0} }
both { x = f32[1000] parameter(0)
 n = f32[1000] negate(x)
 a = f32[1000] abs(x)
 ROOT t = (f32[1000], f32[1000]) tuple(n, a) }
part { x = f32[1000] parameter(0)
 u = f32[10] parameter(1)
 i = s32[] parameter(2)
 ROOT d = f32[1000] dynamic-update-slice(x, u, i) }
)";

Planned planText(const std::string &entry, const std::string &header = "") {
  return planModuleText("HloModule m" + header + computations + "ENTRY e {\n" + entry + "\n}\n");
}

const std::string x = "x = f32[1000] parameter(0)\n";
const std::string xy = x + "y = f32[1000] parameter(1)\n";

std::string call(const char *name, const char *computation, const char *operands, const char *attributes = "") {
  return std::string(name) + " = f32[1000] fusion(" + operands + "), kind=kLoop, calls=" + computation + attributes +
         "\n";
}
const char *const inPlace = ", output_to_operand_aliasing={{}: (0, {})}";

} // namespace

TEST_CASE("without aliases every value has a buffer of its own") {
  Planned p = planText(xy + call("s", "sum", "x, y") + call("b", "back", "s") +
                       "ROOT t = (f32[1000], f32[1000], f32[1000]) tuple(b, s, x)");
  CHECK(p.steps == "sum(0,1,2) back(2,3)");
  CHECK(p.results == "3,2,0");
  CHECK(p.plan->buffers[3].kind == ModuleBuffer::Kind::Result);
  CHECK_FALSE(p.plan->buffers[0].donated);
}

TEST_CASE("a result is computed in the parameter it is given, where each element is read in time") {
  Planned p = planText(xy + "ROOT " + call("s", "sum", "x, y"), ", input_output_alias={ {}: (1, {}) }");
  CHECK(p.steps == "sum(0,1,1)");
  CHECK(p.results == "1");
  CHECK(p.plan->buffers[1].donated);
  CHECK(p.plan->buffers.size() == 2);
  const KernelPlan &kernel = p.plan->kernels[0].plan();
  CHECK_FALSE(kernel.buffers[0].written); // loads of it are still invariant
  CHECK(kernel.buffers[1].written);
  CHECK(kernel.buffers[2].sameAs == 1u);
}

TEST_CASE("a result that cannot be computed in its parameter is copied there at the end") {
  const char *header = ", input_output_alias={ {}: (0, {}) }";
  CHECK(planText(x + "ROOT " + call("b", "back", "x"), header).steps == "back(0,1) copy(1->0)");
  // Computed in place, but the parameter is needed again.
  CHECK(planText(xy + call("s", "sum", "x, y") + call("b", "back", "x") + "ROOT t = (f32[1000], f32[1000]) tuple(s, b)",
                 ", input_output_alias={ {0}: (0, {}) }")
            .steps == "sum(0,1,2) back(0,3) copy(2->0)");
  // A kernel that does not read the parameter may write there once nobody else does.
  CHECK(planText(xy + call("b", "back", "x") + "ROOT " + call("c", "back", "b"), header).steps ==
        "back(0,2) back(2,0)");
}

TEST_CASE("results that are parameters change places by way of other memory") {
  Planned p = planText(xy + "ROOT t = (f32[1000], f32[1000]) tuple(x, y)",
                       ", input_output_alias={ {0}: (1, {}), {1}: (0, {}) }");
  CHECK(p.steps == "copy(1->2) copy(0->1) copy(2->0)");
  CHECK(p.results == "1,0");
  // One of each circle does; what is only in the way goes first.
  const std::string five = "(f32[1000], f32[1000], f32[1000], f32[1000], f32[1000])";
  std::string parameters, aliases;
  for (int i = 0; i < 5; ++i) {
    const std::string number = std::to_string(i);
    parameters += "p" + number + " = f32[1000] parameter(" + number + ")\n ";
    aliases += (i ? ", {" : "{") + number + "}: (" + number + ", {})";
  }
  Planned many = planText(parameters + "ROOT t = " + five + " tuple(p1, p2, p0, p0, p3)",
                          ", input_output_alias={ " + aliases + " }");
  CHECK(many.steps == "copy(3->4) copy(0->3) copy(0->5) copy(1->0) copy(2->1) copy(5->2)");
  CHECK(many.results == "0,1,2,3,4");
  // One that stays is saved before its place is taken.
  Planned kept = planText(xy + call("s", "sum", "x, y") + "ROOT t = (f32[1000], f32[1000]) tuple(s, x)",
                          ", input_output_alias={ {0}: (0, {}) }");
  CHECK(kept.steps == "sum(0,1,2) copy(0->3) copy(2->0)");
  CHECK(kept.results == "0,3");
}

TEST_CASE("a fusion that says so works in place on what nobody reads any more") {
  CHECK(planText(xy + call("b", "back", "x") + "ROOT " + call("s", "sum", "b, y", inPlace)).steps ==
        "back(0,2) sum(2,1,2)");
  CHECK(planText(xy + call("b", "back", "x") + call("s", "sum", "b, y", inPlace) + "ROOT " +
                 call("u", "sum", "s, y", inPlace))
            .steps == "back(0,2) sum(2,1,2) sum(2,1,2)");
  // Not a parameter that was not given away, not what is a result or read later, not what is read at other places.
  CHECK(planText(xy + "ROOT " + call("s", "sum", "x, y", inPlace)).steps == "sum(0,1,2)");
  CHECK(planText(xy + call("b", "back", "x") + call("s", "sum", "b, y", inPlace) +
                 "ROOT t = (f32[1000], f32[1000]) tuple(s, b)")
            .steps == "back(0,2) sum(2,1,3)");
  CHECK(planText(xy + call("b", "back", "x") + call("s", "sum", "b, y", inPlace) + "ROOT " + call("u", "sum", "s, b"))
            .steps == "back(0,2) sum(2,1,3) sum(3,2,4)");
  CHECK(planText(x + call("b", "back", "x") + "ROOT " + call("c", "back", "b", inPlace)).steps ==
        "back(0,1) back(1,2)");
  CHECK(planText(x + call("b", "back", "x") + "ROOT " + call("s", "sum", "b, b", inPlace)).steps ==
        "back(0,1) sum(1,1,2)");
}

TEST_CASE("an update works in place on what nobody reads any more, without being told") {
  const std::string xui = x + "u = f32[10] parameter(1)\ni = s32[] parameter(2)\n";
  CHECK(planText(xui + call("b", "back", "x") + "ROOT " + call("d", "part", "b, u, i")).steps ==
        "back(0,3) part(3,1,2,3)");
  CHECK(planText(xui + call("b", "back", "x") + call("d", "part", "b, u, i") +
                 "ROOT t = (f32[1000], f32[1000]) tuple(d, b)")
            .steps == "back(0,3) part(3,1,2,4)");
  CHECK(planText(xui + "ROOT " + call("d", "part", "x, u, i")).steps == "part(0,1,2,3)"); // the caller's
}

TEST_CASE("two outputs do not take one place") {
  Planned p = planText(x + call("b", "back", "x") +
                       "ROOT t = (f32[1000], f32[1000]) fusion(b), kind=kLoop, calls=both, "
                       "output_to_operand_aliasing={{0}: (0, {}), {1}: (0, {})}");
  CHECK(p.steps == "back(0,1) both(1,1,2)");
}

TEST_CASE("fusions that call one computation in one way share its kernel") {
  Planned p =
      planText(xy + call("s", "sum", "x, y") + call("u", "sum", "s, y") + "ROOT " + call("v", "sum", "u, y", inPlace));
  CHECK(p.steps == "sum(0,1,2) sum(2,1,3) sum(3,1,3)");
  CHECK(p.plan->kernels.size() == 2); // in place it is another
  CHECK(std::get<LaunchStep>(p.plan->steps[0].action).kernel == std::get<LaunchStep>(p.plan->steps[1].action).kernel);
}

TEST_CASE("fusions of equal computations share a kernel") {
  auto twice = [](const char *type, const char *factor) {
    return std::string(" v = ") + type + " parameter(0)\n c = " + type + " constant(" + factor +
           ")\n ROOT w = " + type + " multiply(v, c) }\n";
  };
  auto plan = [&](const std::string &second, const char *type = "f32[4,4]{1,0}", const char *attributes = "") {
    const std::string first = "f32[4,4]{1,0}",
                      one = twice("f32[4,4]{1,0}", "{{2,2,2,2},{2,2,2,2},{2,2,2,2},{2,2,2,2}}");
    return planModuleText("HloModule m\nfirst {" + one + "second {" + second + "ENTRY e { x = " + first +
                          " parameter(0)\n y = " + type + " parameter(1)\n a = " + first +
                          " fusion(x), kind=kLoop, calls=first\n b = " + type + " fusion(y), kind=kLoop, calls=second" +
                          attributes + "\n ROOT t = (" + first + ", " + type + ") tuple(a, b) }");
  };
  auto renamed = [](std::string text) {
    for (char &c : text)
      c = c == 'v' ? 'p' : c;
    return text;
  };
  const char *const twos = "{{2,2,2,2},{2,2,2,2},{2,2,2,2},{2,2,2,2}}";
  Planned shared = plan(renamed(twice("f32[4,4]{1,0}", twos)));
  CHECK(shared.steps == "first(0,2) first(1,3)");
  REQUIRE(shared.plan->kernels.size() == 1);
  REQUIRE(shared.plan->servedBy.size() == 1);
  CHECK(shared.plan->servedBy.begin()->first->name() == "b");
  CHECK(shared.plan->servedBy.begin()->second->name() == "a");
  CHECK(plan(twice("f32[4,4]{1,0}", "{{2,2,2,2},{2,2,2,2},{2,2,2,2},{2,2,2,3}}")).plan->kernels.size() == 2);
  CHECK(plan(twice("f32[4,4]{0,1}", twos), "f32[4,4]{0,1}").plan->kernels.size() == 2);
  CHECK(plan(twice("s32[4,4]{1,0}", twos), "s32[4,4]{1,0}").plan->kernels.size() == 2);
  // In place it is another.
  CHECK(planModuleText(
            "HloModule m, input_output_alias={ {1}: (1, {}) }\nfirst {" + twice("f32[8]", "{2,2,2,2,2,2,2,2}") +
            "second {" + twice("f32[8]", "{2,2,2,2,2,2,2,2}") +
            "ENTRY e { x = f32[8] parameter(0)\n y = f32[8] parameter(1)\n a = f32[8] fusion(x), kind=kLoop, "
            "calls=first\n b = f32[8] fusion(y), kind=kLoop, calls=second\n ROOT t = (f32[8], f32[8]) tuple(a, "
            "b) }")
            .plan->kernels.size() == 2);
}

TEST_CASE("what is not in normal form is all reported") {
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module = parseHloModule(
      std::make_shared<SourceFile>("test.hlo", "HloModule m\nENTRY e { x = f32[4] parameter(0)\n t = b(f32[4]) "
                                               "parameter(1)\n s = f32[4] abs(x)\n ROOT r = f32[4] negate(s) }\n"),
      diagnostics);
  REQUIRE(module);
  CHECK_FALSE(checkNormalForm(*module, diagnostics));
  CHECK(diagnostics.numErrors() == 3);
}

TEST_CASE("what reads a large array for the last time and makes little of it does so as soon as it can") {
  const std::string callees =
      "f { p = f32[1048576] parameter(0)\n ROOT r = f32[1048576] negate(p) }\n"
      "g { p = f32[1048576] parameter(0)\n ROOT r = f32[1048576] abs(p) }\n"
      "part { p = f32[1048576] parameter(0)\n ROOT r = f32[4] slice(p), slice={[0:4]} }\n"
      "other { p = f32[1048576] parameter(0)\n ROOT r = f32[4] slice(p), slice={[4:8]} }\n"
      "both { p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n ROOT r = f32[4] add(p, q) }\n";
  Planned p = planModuleText("HloModule m\n" + callees +
                             "ENTRY e { x = f32[1048576] parameter(0)\n"
                             "a = f32[1048576] fusion(x), kind=kLoop, calls=f\n"
                             "b = f32[1048576] fusion(x), kind=kLoop, calls=g\n"
                             "s = f32[4] fusion(b), kind=kLoop, calls=other\n"
                             "t = f32[4] fusion(a), kind=kLoop, calls=part\n"
                             "ROOT r = f32[4] fusion(s, t), kind=kLoop, calls=both }\n");
  CHECK(p.steps == "f(0,1) part(1,4) g(0,2) other(2,3) both(3,4,5)");
  CHECK(temporaryBytes(p.plan->buffers) == 4 * 1048576 + 512);
}

TEST_CASE("constants lie in one buffer, equal ones in one place, and nobody writes there") {
  std::string numbers, others;
  for (int i = 0; i < 1000; ++i) {
    numbers += std::to_string(i) + ", ";
    others += std::to_string(i + 1) + ", ";
  }
  auto constant = [](const char *name, llvm::StringRef list) {
    return std::string(name) + " = f32[1000] constant({" + list.drop_back(2).str() + "})\n";
  };
  Planned p = planText(
      xy + "u = f32[10] parameter(2)\ni = s32[] parameter(3)\n" + constant("c", numbers) + constant("d", others) +
      constant("k", numbers) + call("s", "sum", "x, c") + call("t", "sum", "s, d") + call("v", "sum", "t, k", inPlace) +
      call("w", "part", "c, u, i", inPlace) + "ROOT r = (f32[1000], f32[1000], f32[1000]) tuple(v, w, d)");
  // Buffer 4 is that of the constants.
  CHECK(p.steps == "sum(0,4,5) sum(5,4,6) sum(6,4,6) part(4,2,3,7)");
  CHECK(p.results == "6,7,4");
  const ModuleBuffer &buffer = p.plan->buffers[4];
  CHECK(buffer.kind == ModuleBuffer::Kind::Constant);
  CHECK(buffer.bytes == 2 * 4096);
  CHECK(buffer.constantData.size() == buffer.bytes);
  CHECK(p.plan->results[2].slice == BufferSlice{4, 4096, 4000});
  auto offset = [&](size_t step) {
    return std::get<BufferSlice>(std::get<LaunchStep>(p.plan->steps[step].action).arguments[1]).offset;
  };
  CHECK(offset(0) == 0);
  CHECK(offset(1) == 4096);
  CHECK(offset(2) == 0);
}
