// What becomes of the state of loops, and of loops of few rounds. Whatever that is, the module computes the same.
#include "RunPasses.h"
#include "SameResults.h"
#include "hloc/hlo/HloEditor.h"

#include "fmt/format.h"

#include <random>
#include <set>

using namespace hloc;
using namespace hloc::test;

namespace {

struct Leaf {
  std::string start, next; ///< of the parameters p and q and the constants zero and two; of the leaves l0, l1, ...
};

/// A loop over a counter, which is leaf 0, and `leaves`; `result` is read of `w`, the loop. All arrays are s32[4].
std::string loopText(int rounds, const std::vector<Leaf> &leaves, const std::string &result,
                     const std::string &resultShape = "s32[4]") {
  std::string shape = "(s32[]", reads = " l0 = s32[] get-tuple-element(t), index=0\n", starts = "first", nexts = "j",
              computed;
  for (auto [i, leaf] : llvm::enumerate(leaves)) {
    shape += ", s32[4]";
    reads += fmt::format(" l{0} = s32[4] get-tuple-element(t), index={0}\n", i + 1);
    computed += fmt::format(" n{} = s32[4] {}\n", i + 1, leaf.next);
    starts += ", " + leaf.start;
    nexts += leaf.next.starts_with("copy(l") ? fmt::format(", {}", leaf.next.substr(5, leaf.next.size() - 6))
                                             : fmt::format(", n{}", i + 1);
  }
  shape += ")";
  return fmt::format("HloModule m\n"
                     "plus {{ a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT s = s32[] add(a, b) }}\n"
                     "cond {{ t = {0} parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
                     " n = s32[] constant({1})\n ROOT c = pred[] compare(i, n), direction=LT }}\n"
                     "body {{ t = {0} parameter(0)\n{2} one = s32[] constant(1)\n j = s32[] add(l0, one)\n{3}"
                     " ROOT r = {0} tuple({4}) }}\n"
                     "ENTRY e {{ p = s32[4] parameter(0)\n q = s32[4] parameter(1)\n first = s32[] constant(0)\n"
                     " zero = s32[4] broadcast(first), dimensions={{}}\n two = s32[4] constant({{2,2,2,2}})\n"
                     " t = {0} tuple({5})\n w = {0} while(t), condition=cond, body=body\n"
                     " ROOT r = {6} {7} }}\n",
                     shape, rounds, reads, computed, nexts, starts, resultShape == "w" ? shape : resultShape, result);
}

std::string leafOf(int i) { return fmt::format("get-tuple-element(w), index={}", i); }

/// The run after the pass, which must not find anything a second time.
std::unique_ptr<PassRun> after(PassResult (*pass)(HloModule &, HloPassContext &), const std::string &text,
                               PassResult expected = PassResult::Changed) {
  auto run = std::make_unique<PassRun>(text);
  auto before = cloneModule(*run->module);
  INFO(text);
  CHECK(run->run(pass) == expected);
  INFO(print(*run->module));
  CHECK(resultDifference(*before, *run->module) == "");
  CHECK(run->run(pass) == PassResult::Unchanged);
  return run;
}

const HloInstruction *loopIn(const PassRun &run) {
  for (const HloInstruction *instr : run.module->entry()->instructions())
    if (instr->opcode() == Opcode::While)
      return instr;
  return nullptr;
}

/// The operands with which the loop starts, and the body's root takes, by name.
std::string stateOf(const PassRun &run) {
  const HloInstruction *loop = loopIn(run);
  REQUIRE(loop);
  std::string names;
  for (HloInstruction *tuple : {loop->operand(0), loop->computation(AttributeKey::Body)->root()}) {
    names += names.empty() ? "" : " -> ";
    for (const HloInstruction *operand : tuple->operands())
      names += operand->name().str() + " ";
  }
  return names;
}

std::string simplified(const std::vector<Leaf> &leaves, const std::string &result) {
  return stateOf(*after(simplifyLoops, loopText(10, leaves, result)));
}
std::string untouched(const std::vector<Leaf> &leaves, const std::string &result) {
  return stateOf(*after(simplifyLoops, loopText(10, leaves, result), PassResult::Unchanged));
}

} // namespace

TEST_CASE("a leaf that is always a constant is that constant") {
  CHECK(simplified({{"p", "add(l1, l2)"}, {"two", "copy(l2)"}}, leafOf(1)) == "first p  -> j n1 ");
  // After the loop as well; a computed start is no constant, and what the body changes is none either.
  CHECK(simplified({{"p", "add(l1, l1)"}, {"two", "copy(l2)"}}, leafOf(2)) == "first  -> j ");
  CHECK(untouched({{"p", "add(l1, l2)"}, {"zero", "copy(l2)"}}, leafOf(1)) == "first p zero  -> j n1 l2 ");
  CHECK(untouched({{"p", "add(l1, l2)"}, {"two", "add(l2, l1)"}}, leafOf(1)) == "first p two  -> j n1 n2 ");
}

TEST_CASE("leaves that are always equal are one") {
  CHECK(simplified({{"p", "add(l1, l1)"}, {"p", "add(l2, l2)"}}, leafOf(2)) == "first p  -> j n1 ");
  // Equal as long as others are.
  CHECK(simplified({{"p", "add(l1, l3)"}, {"p", "add(l2, l4)"}, {"q", "negate(l3)"}, {"q", "negate(l4)"}}, leafOf(2)) ==
        "first p q  -> j n1 n3 ");
  // One of three differs, and with it what is made of it.
  CHECK(simplified({{"p", "negate(l1)"},
                    {"p", "negate(l2)"},
                    {"p", "not(l3)"},
                    {"q", "add(l1, l4)"},
                    {"q", "add(l2, l5)"},
                    {"q", "add(l3, l6)"}},
                   "add(w#5, w#6)") == "first p p q q  -> j n1 n3 n4 n6 ");
  CHECK(untouched({{"p", "add(l1, l3)"}, {"p", "add(l2, l4)"}, {"q", "negate(l3)"}, {"q", "not(l4)"}},
                  "add(w#1, w#2)") == "first p p q q  -> j n1 n2 n3 n4 ");
  // Two of a class that split from the first stay together.
  CHECK(simplified({{"p", "negate(l1)"}, {"p", "not(l2)"}, {"p", "not(l3)"}}, "add(w#1, w#3)") ==
        "first p p  -> j n1 n2 ");
  CHECK(untouched({{"p", "add(l1, l1)"}, {"q", "add(l2, l2)"}}, "add(w#1, w#2)") == "first p q  -> j n1 n2 ");
}

TEST_CASE("leaves that nobody needs go") {
  CHECK(simplified({{"p", "add(l1, l1)"}, {"q", "add(l2, l1)"}}, leafOf(1)) == "first p  -> j n1 ");
  CHECK(simplified({{"p", "add(l1, l1)"}, {"q", "add(l2, l3)"}, {"p", "negate(l2)"}}, leafOf(1)) ==
        "first p  -> j n1 ");
  CHECK(untouched({{"p", "add(l1, l2)"}, {"q", "negate(l2)"}}, leafOf(1)) == "first p q  -> j n1 n2 ");
}

TEST_CASE("what a loop hands on is read of where it began") {
  CHECK(simplified({{"p", "add(l1, l2)"}, {"q", "copy(l2)"}}, "add(w#1, w#2)") == "first p q  -> j n1 l2 ");
  CHECK(simplified({{"p", "add(l1, l1)"}, {"q", "copy(l2)"}}, "add(w#1, w#2)") == "first p  -> j n1 ");
  // Also if the loop is the result.
  std::string whole = loopText(10, {{"p", "add(l1, l1)"}, {"q", "copy(l2)"}}, "", "w");
  whole.replace(whole.find(" w = "), 3, " ROOT w");
  whole.erase(whole.find(" ROOT r = (s32[], s32[4], s32[4])  }"), 36).append("}\n");
  auto run = after(simplifyLoops, whole);
  CHECK(stateOf(*run) == "first p  -> j n1 ");
  CHECK(run->module->entry()->root()->operand(2)->name() == "q");
}

TEST_CASE("loops whose computations others call stay as they are") {
  std::string text = loopText(10, {{"p", "add(l1, l1)"}, {"q", "add(l2, l1)"}}, leafOf(1));
  text.insert(text.find(" ROOT r = s32[4] get-tuple-element(w)"),
              " v = (s32[], s32[4], s32[4]) while(w), condition=cond, body=body\n");
  text.replace(text.find("get-tuple-element(w), index=1 }"), 20, "get-tuple-element(v)");
  after(simplifyLoops, text, PassResult::Unchanged);
}

TEST_CASE("what loops begin with is made for each leaf, where that costs nothing") {
  // How many values the leaves begin with, and how many of them nothing else reads. (The counter's is read by `zero`.)
  auto separated = [](const std::vector<Leaf> &leaves, const std::string &result, unsigned values, unsigned own) {
    auto run = after(separateStarts, loopText(10, leaves, result));
    const HloInstruction *start = loopIn(*run)->operand(0);
    CHECK(std::set<const HloInstruction *>(start->operands().begin(), start->operands().end()).size() == values);
    HloEditor editor(*run->module->entry());
    CHECK(llvm::count_if(start->operands(), [&](auto *value) { return editor.uses(value).size() == 1; }) == own);
  };
  separated({{"zero", "add(l1, l2)"}, {"zero", "negate(l1)"}}, "add(w#1, w#2)", 3, 3);
  separated({{"zero", "add(l1, l1)"}}, "add(w#1, zero)", 2, 2);
  // Parameters and larger constants lie somewhere already; what is handed on is not written.
  separated({{"p", "add(l1, l2)"}, {"p", "negate(l1)"}}, "add(w#1, w#2)", 2, 1);
  separated({{"two", "add(l1, l2)"}, {"two", "negate(l1)"}}, "add(w#1, w#2)", 2, 1);
  separated({{"zero", "add(l1, l2)"}, {"zero", "copy(l2)"}}, "add(w#1, w#2)", 3, 3);
  separated({{"zero", "copy(l1)"}, {"zero", "copy(l2)"}}, "add(w#1, w#2)", 2, 1);
}

TEST_CASE("short loops of elementwise ops are their rounds") {
  const std::vector<Leaf> swaps = {{"p", "copy(l2)"}, {"q", "add(l1, l2)"}};
  for (int rounds : {0, 1, 2, 8}) {
    auto run = after(unrollLoops, loopText(rounds, swaps, "add(w#1, w#2)"));
    CHECK(!loopIn(*run));
    CHECK(!run->module->findComputation("body"));
    CHECK(llvm::count_if(run->module->entry()->instructions(), [](auto *instr) {
            return instr->opcode() == Opcode::Add && instr->shape().rank() == 1;
          }) == rounds + 1);
  }
  after(unrollLoops, loopText(9, swaps, "add(w#1, w#2)"), PassResult::Unchanged);
  // A kernel of its own each round, or much work: worth a loop. Once is no loop.
  const std::vector<Leaf> updates = {{"p", "dynamic-update-slice(l1, u, l0)"}, {"q", "copy(l2)"}};
  auto updating = [&](int rounds) {
    std::string text = loopText(rounds, updates, leafOf(1));
    return text.insert(text.find(" n1 = "), " u = s32[1] slice(l2), slice={[0:1]}\n");
  };
  after(unrollLoops, updating(3), PassResult::Unchanged);
  CHECK(!loopIn(*after(unrollLoops, updating(1))));
  std::vector<Leaf> many(60, {"p", "add(l1, l2)"});
  after(unrollLoops, loopText(8, many, leafOf(1)), PassResult::Unchanged);
  CHECK(!loopIn(*after(unrollLoops, loopText(4, many, leafOf(1)))));
}

TEST_CASE("a loop in a loop that goes round once has its computations for itself") {
  const std::string state = "(s32[], s32[4])";
  auto loop = [&](const std::string &name, int rounds, const std::string &work) {
    return fmt::format("{0}.cond {{ t = {1} parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
                       " n = s32[] constant({2})\n ROOT c = pred[] compare(i, n), direction=LT }}\n"
                       "{0} {{ t = {1} parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
                       " x = s32[4] get-tuple-element(t), index=1\n one = s32[] constant(1)\n"
                       " j = s32[] add(i, one)\n{3} ROOT r = {1} tuple(j, y) }}\n",
                       name, state, rounds, work);
  };
  const std::string inner = " z = s32[] constant(0)\n u = (s32[], s32[4]) tuple(z, x)\n"
                            " w = (s32[], s32[4]) while(u), condition=inner.cond, body=inner\n"
                            " y = s32[4] get-tuple-element(w), index=1\n";
  for (int rounds : {3, 30}) {
    auto run = after(unrollLoops, "HloModule m\n" + loop("inner", rounds, " y = s32[4] add(x, x)\n") +
                                      loop("outer", 1, inner) +
                                      "ENTRY e { x = s32[4] parameter(0)\n z = s32[] constant(0)\n"
                                      " t = (s32[], s32[4]) tuple(z, x)\n"
                                      " ROOT w = (s32[], s32[4]) while(t), condition=outer.cond, body=outer }\n");
    CHECK(bool(loopIn(*run)) == (rounds == 30));
    CHECK(!run->module->findComputation("outer"));
  }
}

TEST_CASE("random loops compute the same without what they need not keep") {
  std::mt19937 random(7);
  auto any = [&](int n) { return int(random() % unsigned(n)); };
  unsigned changes = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const int n = 1 + any(5);
    std::vector<Leaf> leaves;
    for (int i = 1; i <= n; ++i) {
      const std::string starts[] = {"p", "q", "two", "zero"};
      const int a = 1 + any(n), b = 1 + any(n);
      const std::string nexts[] = {fmt::format("copy(l{})", i), fmt::format("copy(l{})", a),
                                   fmt::format("add(l{}, l{})", a, b), fmt::format("negate(l{})", a),
                                   fmt::format("add(l{0}, l{0})", i)};
      leaves.push_back({starts[any(4)], nexts[any(5)]});
    }
    const std::string text = loopText(any(12), leaves, fmt::format("add(w#{}, w#{})", 1 + any(n), 1 + any(n)));
    PassRun run(text);
    auto before = cloneModule(*run.module);
    changes += run.run(simplifyLoops) == PassResult::Changed;
    INFO(text << print(*run.module));
    CHECK(resultDifference(*before, *run.module) == "");
    run.run(unrollLoops);
    CHECK(resultDifference(*before, *run.module) == "");
    CHECK(runToFixpoint(*run.module, simplificationPasses(), run.context) != PassResult::Failed);
    CHECK(resultDifference(*before, *run.module) == "");
  }
  CHECK(changes > 150);
}
