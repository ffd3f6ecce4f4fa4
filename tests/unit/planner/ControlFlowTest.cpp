// Loops and conditionals: where their state lies, what is copied, what is not.
#include "PlanText.h"

using namespace hloc;
using namespace hloc::test;

namespace {

const std::string computations = R"(
less { i = s32[] parameter(0)
 n = s32[] constant(5)
 ROOT c = pred[] compare(i, n), direction=LT }
more { i = s32[] parameter(0)
 n = s32[] constant(1)
 ROOT a = s32[] add(i, n) }
none { ROOT z = s32[] constant(0) }
twice { x = f32[1000] parameter(0)
 ROOT s = f32[1000] add(x, x) }
sum { x = f32[1000] parameter(0)
 y = f32[1000] parameter(1)
 ROOT s = f32[1000] add(x, y) }
back { x = f32[1000] parameter(0)
 ROOT r = f32[1000] reverse(x), dimensions={0} }
part { x = f32[1000] parameter(0)
 u = f32[10] parameter(1)
 i = s32[] parameter(2)
 ROOT d = f32[1000] dynamic-update-slice(x, u, i) }
small { i = s32[] parameter(0)
 f = f32[] convert(i)
 ROOT b = f32[10] broadcast(f), dimensions={} }
)";

const std::string state = "(s32[], f32[1000], f32[1000])";

std::string call(const std::string &name, const std::string &shape, const std::string &computation,
                 const std::string &operands) {
  return name + " = " + shape + " fusion(" + operands + "), kind=kLoop, calls=" + computation + "\n";
}
std::string vector(const std::string &name, const std::string &computation, const std::string &operands) {
  return call(name, "f32[1000]", computation, operands);
}

/// A leaf of the state `t`.
std::string leaf(const std::string &name, const std::string &shape, int index) {
  return " " + name + " = " + shape + " get-tuple-element(t), index=" + std::to_string(index) + "\n";
}
const std::string takesState = " { t = " + state + " parameter(0)\n",
                  xyOfState = leaf("x", "f32[1000]", 1) + leaf("y", "f32[1000]", 2);

/// A body of `state`: i, x and y are its leaves, j is the next i.
std::string body(const std::string &name, const std::string &text, const std::string &next) {
  return name + takesState + leaf("i", "s32[]", 0) + xyOfState + text + call("j", "s32[]", "more", "i") +
         " ROOT r = " + state + " tuple(" + next + ") }\n";
}
/// A condition of `state`: is its number less?
std::string isLess(const std::string &name) {
  return name + takesState + leaf("i", "s32[]", 0) + " ROOT " + call("c", "pred[]", "less", "i") + "}\n";
}
const std::string condition = isLess("cond");
/// The entry has parameters 0 and 1; the loop starts with a fresh i and these.
const std::string xy = "x = f32[1000] parameter(0)\n y = f32[1000] parameter(1)\n" + call("i", "s32[]", "none", "");

std::string loop(const std::string &init) {
  return "t = " + state + " tuple(" + init + ")\n w = " + state + " while(t), condition=cond, body=body\n";
}

Planned planLoop(const std::string &bodyText, const std::string &entry, const std::string &header = "") {
  return planModuleText("HloModule m" + header + computations + bodyText + condition + "ENTRY e {\n" + entry + "}\n");
}

} // namespace

TEST_CASE("a loop works on its state in place, on what nobody needs any more") {
  const std::string double2 = body("body", vector("a", "twice", "x") + vector("b", "sum", "y, a"), "j, a, b");
  // i is fresh, x and y are parameters that somebody may need.
  Planned p = planLoop(double2, xy + loop("i, x, y") + "ROOT g = f32[1000] get-tuple-element(w), index=2\n");
  CHECK(p.steps == "none(2) copy(0->3) copy(1->4) while 5 {less(2,5)} {twice(3,3) sum(4,3,4) more(2,2)}");
  CHECK(p.results == "4");
  // Given away, they are the state.
  Planned donated = planLoop(double2, xy + loop("i, x, y") + "ROOT r = " + state + " tuple(w#0, w#1, w#2)\n",
                             ", input_output_alias={ {1}: (0, {}), {2}: (1, {}) }");
  CHECK(donated.steps == "none(2) while 3 {less(2,3)} {twice(0,0) sum(1,0,1) more(2,2)}");
  CHECK(donated.results == "2,0,1");
  // One value for two leaves: the first has a copy, the second is the value's own place. A temporary for one: it is the
  // state.
  Planned same = planLoop(double2, xy + vector("v", "back", "x") + loop("i, v, v") +
                                       "ROOT g = f32[1000] get-tuple-element(w), index=2\n");
  CHECK(same.steps == "none(2) back(0,3) copy(3->4) while 5 {less(2,5)} {twice(4,4) sum(3,4,3) more(2,2)}");
  Planned fresh = planLoop(double2, xy + vector("v", "back", "x") + loop("i, v, y") +
                                        "ROOT g = f32[1000] get-tuple-element(w), index=2\n");
  CHECK(fresh.steps == "none(2) back(0,3) copy(1->4) while 5 {less(2,5)} {twice(3,3) sum(4,3,4) more(2,2)}");
  // It is not while somebody reads it after the loop.
  Planned read = planLoop(double2, xy + vector("v", "back", "x") + loop("i, v, y") + "g = f32[1000] " +
                                       "get-tuple-element(w), index=2\n ROOT " + vector("s", "sum", "g, v"));
  CHECK(read.steps == "none(2) back(0,3) copy(3->4) copy(1->5) while 7 {less(2,7)} {twice(4,4) sum(5,4,5) more(2,2)} "
                      "sum(5,3,6)");
}

TEST_CASE("what a body hands on is neither copied nor given to anybody") {
  Planned p = planLoop(body("body", vector("b", "sum", "y, x"), "j, x, b"),
                       xy + loop("i, x, y") + "ROOT r = " + state + " tuple(w#0, w#1, w#2)\n");
  CHECK(p.steps == "none(2) copy(1->3) while 4 {less(2,4)} {sum(3,0,3) more(2,2)}");
  CHECK(p.results == "2,0,3");
  // Where it lies nothing else may, though what lies there is copied before.
  Planned two = planLoop(body("body", vector("b", "sum", "y, x"), "j, x, b"),
                         xy + vector("v", "back", "x") + loop("i, v, v") + "ROOT r = f32[1000] " +
                             "get-tuple-element(w), index=2\n");
  CHECK(two.steps == "none(2) back(0,3) copy(3->4) while 5 {less(2,5)} {sum(4,3,4) more(2,2)}");
}

TEST_CASE("what cannot be computed where the old value lies is copied there at the end of the body") {
  const std::string get = "ROOT g = f32[1000] get-tuple-element(w), index=2\n";
  CHECK(planLoop(body("body", vector("a", "back", "x"), "j, a, y"), xy + loop("i, x, y") + get).steps ==
        "none(2) copy(0->3) while 4 {less(2,4)} {back(3,5) more(2,2) copy(5->3)}");
  // Leaves that change places, and one that becomes another's old value.
  CHECK(planLoop(body("body", "", "j, y, x"), xy + loop("i, x, y") + get).steps ==
        "none(2) copy(0->3) copy(1->4) while 5 {less(2,5)} {more(2,2) copy(3->6) copy(4->3) copy(6->4)}");
  CHECK(planLoop(body("body", vector("s", "sum", "x, y"), "j, s, x"), xy + loop("i, x, y") + get).steps ==
        "none(2) copy(0->3) copy(1->4) while 5 {less(2,5)} {sum(3,4,6) more(2,2) copy(3->4) copy(6->3)}");
  // One value in two leaves.
  CHECK(planLoop(body("body", vector("s", "sum", "x, y"), "j, s, s"), xy + loop("i, x, y") + get).steps ==
        "none(2) copy(0->3) copy(1->4) while 5 {less(2,5)} {sum(3,4,3) more(2,2) copy(3->4)}");
}

TEST_CASE("an update in a loop stores the update alone") {
  CHECK(planLoop(body("body", call("u", "f32[10]", "small", "i") + vector("a", "part", "x, u, i"), "j, a, y"),
                 xy + loop("i, x, y") + "ROOT g = f32[1000] get-tuple-element(w), index=1\n")
            .steps == "none(2) copy(0->3) while 4 {less(2,4)} {small(2,5) part(3,5,2,3) more(2,2)}");
}

TEST_CASE("what replaces a leaf of the state waits for those that read it") {
  const std::string get = "ROOT g = f32[1000] get-tuple-element(w), index=1\n";
  Planned p = planLoop(
      body("body",
           call("k", "s32[]", "more", "i") + call("u", "f32[10]", "small", "i") + vector("a", "part", "x, u, i"),
           "k, a, y"),
      xy + loop("i, x, y") + get);
  // The last of the body, j, is read by nobody.
  CHECK(p.steps == "none(2) copy(0->3) while 4 {less(2,4)} {small(2,5) part(3,5,2,3) more(2,6) more(2,2)}");
  // Not if one of these needs it.
  CHECK(planLoop(body("body", vector("a", "twice", "x") + vector("b", "sum", "a, x"), "j, a, b"),
                 xy + loop("i, x, y") + get)
            .steps == "none(2) copy(0->3) copy(1->4) while 5 {less(2,5)} {more(2,2) twice(3,6) sum(6,3,4) copy(6->3)}");
}

TEST_CASE("a value on the way to the next state may lie in the state") {
  CHECK(planLoop(body("body",
                      call("u", "f32[10]", "small", "i") + vector("a", "part", "x, u, i") + vector("b", "back", "a"),
                      "j, b, y"),
                 xy + loop("i, x, y") + "ROOT g = f32[1000] get-tuple-element(w), index=1\n")
            .steps ==
        "none(2) copy(0->3) while 4 {less(2,4)} {small(2,5) part(3,5,2,3) back(3,6) more(2,2) copy(6->3)}");
}

TEST_CASE("a loop inside a loop has its state in the outer one's") {
  const std::string inner = body("body", vector("a", "twice", "x"), "j, a, y") + condition + "outer" + takesState +
                            xyOfState + call("i", "s32[]", "none", "") + " s = " + state +
                            " tuple(i, x, y)\n w = " + state + " while(s), condition=cond, body=body\n" +
                            leaf("n", "s32[]", 0) + call("j", "s32[]", "more", "n") + " ROOT r = " + state +
                            " tuple(j, w#1, w#2) }\n" + isLess("again");
  Planned p = planModuleText("HloModule m" + computations + inner + "ENTRY e {\n" + xy + "t = " + state +
                             " tuple(i, x, y)\n w = " + state +
                             " while(t), condition=again, body=outer\n ROOT g = f32[1000] get-tuple-element(w), "
                             "index=1\n}\n");
  CHECK(p.steps == "none(2) copy(0->3) while 4 {less(2,4)} {none(5) while 6 {less(5,6)} {twice(3,3) more(5,5)} "
                   "more(2,2)}");
  CHECK(p.results == "3");
}

TEST_CASE("a loop that goes round a known number of times has no condition") {
  std::string text = xy + loop("i, x, y") + "ROOT g = f32[1000] get-tuple-element(w), index=2\n";
  text.insert(text.find(" body=body") + 10, ", backend_config={\"known_trip_count\":{\"n\":\"5\"}}");
  Planned p = planLoop(body("body", vector("b", "sum", "y, x"), "j, x, b"), text);
  CHECK(p.steps == "none(2) copy(1->3) repeat 5 {sum(3,0,3) more(2,2)}");
  CHECK(p.results == "3");
}

TEST_CASE("a predicate may be a leaf of the state") {
  Planned p = planModuleText("HloModule m" + computations +
                             "not { p = pred[] parameter(0)\n ROOT n = pred[] not(p) }\n"
                             "body { p = pred[] parameter(0)\n ROOT " +
                             call("n", "pred[]", "not", "p") + "}\ncond { ROOT p = pred[] parameter(0) }\n" +
                             "ENTRY e { p = pred[] parameter(0)\n ROOT w = pred[] while(p), condition=cond, "
                             "body=body\n}\n");
  CHECK(p.steps == "copy(0->1) while 1 {} {not(1,1)}");
  CHECK(p.results == "1");
}

namespace {

Planned planChoice(const std::string &branches, const std::string &entry, const std::string &header = "") {
  return planModuleText("HloModule m" + header + computations + branches + "ENTRY e {\n" + entry + "}\n");
}
const std::string px = "p = pred[] parameter(0)\n x = f32[1000] parameter(1)\n";
const std::string flip = "flip { x = f32[1000] parameter(0)\n ROOT " + vector("b", "back", "x") + "}\n";
const std::string keep = "keep { ROOT x = f32[1000] parameter(0) }\n";
const std::string change = "change { x = f32[1000] parameter(0)\n ROOT " + vector("b", "twice", "x") + "}\n";
const std::string choose = "f32[1000] conditional(p, v, v), true_computation=";

} // namespace

TEST_CASE("branches leave their results in one place") {
  Planned p = planChoice(flip + keep, px + "ROOT c = f32[1000] conditional(p, x, x), true_computation=flip, "
                                           "false_computation=keep\n");
  CHECK(p.steps == "choose 0 {back(1,2)} {copy(1->2)}");
  CHECK(p.results == "2");
}

TEST_CASE("a branch that hands on what nobody else needs has nothing to do") {
  CHECK(planChoice(keep + change,
                   px + vector("v", "back", "x") + "ROOT c = " + choose + "keep, false_computation=change\n")
            .steps == "back(1,2) choose 0 {} {twice(2,2)}");
  // The other branch cannot compute in place.
  CHECK(planChoice(flip + keep, px + vector("v", "back", "x") + "ROOT c = " + choose + "flip, false_computation=keep\n")
            .steps == "back(1,2) choose 0 {back(2,3) copy(3->2)} {}");
  // Somebody reads it afterwards.
  CHECK(planChoice(keep + change, px + vector("v", "back", "x") + "c = " + choose +
                                      "keep, false_computation=change\n ROOT " + vector("s", "sum", "c, v"))
            .steps == "back(1,2) choose 0 {copy(2->3)} {twice(2,3)} sum(3,2,4)");
  // A result in a parameter that was given away.
  Planned donated = planChoice(keep + change,
                               px + "ROOT c = f32[1000] conditional(p, x, x), true_computation=keep, "
                                    "false_computation=change\n",
                               ", input_output_alias={ {}: (1, {}) }");
  CHECK(donated.steps == "choose 0 {} {twice(1,1)}");
  CHECK(donated.plan->buffers[1].donated);
}

TEST_CASE("a conditional in a loop works on its state") {
  const std::string chosen = "flip { x = f32[1000] parameter(0)\n ROOT " + vector("b", "twice", "x") + "}\n" + keep;
  CHECK(planLoop(chosen + body("body",
                               call("c", "pred[]", "less", "i") +
                                   " d = f32[1000] conditional(c, x, x), true_computation=flip, "
                                   "false_computation=keep\n",
                               "j, d, y"),
                 xy + loop("i, x, y") + "ROOT g = f32[1000] get-tuple-element(w), index=1\n")
            .steps == "none(2) copy(0->3) while 4 {less(2,4)} {less(2,5) choose 5 {twice(3,3)} {} more(2,2)}");
}

TEST_CASE("control flow that does not fit its computations is not in normal form") {
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module = parseHloModule(
      std::make_shared<SourceFile>(
          "test.hlo", "HloModule m\nkeep { ROOT x = f32[2,3]{0,1} parameter(0) }\nENTRY e { p = pred[] parameter(0)\n"
                      " x = f32[2,3]{1,0} parameter(1)\n ROOT c = f32[2,3]{1,0} conditional(p, x, x), "
                      "true_computation=keep, false_computation=keep\n}\n"),
      diagnostics);
  REQUIRE(module);
  CHECK_FALSE(checkNormalForm(*module, diagnostics));
  CHECK(diagnostics.numErrors() == 1);
}
