#include "hloc/fusion/Places.h"

#include "hloc/fusion/FusionPlan.h"
#include "hloc/fusion/StagedReductions.h"
#include "hloc/parser/Parser.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Fusion {
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module;

  explicit Fusion(const std::string &entry) {
    std::string text = "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
                       "ENTRY e { zero = f32[] constant(0) x = f32[8,8] parameter(0) " +
                       entry + " }";
    module = parseHloModule(std::make_shared<const SourceFile>("m.hlo", text), diagnostics);
    INFO((diagnostics.hasErrors() ? diagnostics.diagnostics().front().message : ""));
    REQUIRE(module);
  }
  FusionGraph graph() { return *FusionGraph::build(*module->entry(), diagnostics); }
  const HloInstruction &operator[](llvm::StringRef name) const {
    for (const HloInstruction *instr : module->entry()->instructions())
      if (instr->name() == name)
        return *instr;
    FAIL(name.str());
    abort();
  }
};

/// A number that ops change, as rows up or down from the own one would be.
PlaceAnswer<int> shifted(const HloInstruction &instr, unsigned, int read) {
  if (instr.opcode() == Opcode::Reverse)
    return -read;
  if (instr.opcode() == Opcode::Abs)
    return read + 1;
  if (instr.opcode() == Opcode::Iota || instr.opcode() == Opcode::Reduce)
    return Independent();
  return placeIf(readsOperandsInPlace(instr), read);
}

struct Shifted : Fusion {
  Places<int> places;
  explicit Shifted(const std::string &entry) : Fusion(entry), places(*module->entry()) {
    places.set((*this)["x"], 0);
    places.follow(module->entry()->instructions(), shifted);
  }
  std::optional<int> at(llvm::StringRef name) const {
    const int *place = places.at((*this)[name]);
    return place ? std::optional(*place) : std::nullopt;
  }
};

} // namespace

TEST_CASE("what an instruction is at follows from what its operands are at") {
  Shifted f("a = f32[8,8] abs(x) b = f32[8,8] abs(a) r = f32[8,8] reverse(b), dimensions={0} y = f32[8,8] parameter(1) "
            "ROOT s = f32[8,8] add(r, y)");
  CHECK(f.at("x") == 0);
  CHECK(f.at("b") == 2);
  CHECK(f.places.isAt(f["s"], -2));
  CHECK_FALSE(f.places.isAt(f["s"], 2));
  CHECK_FALSE(f.at("y"));
  CHECK(!f.places.firstElsewhere());
}

TEST_CASE("two places are none, and what reads them has none either") {
  Shifted f("a = f32[8,8] abs(x) same = f32[8,8] add(x, x) s = f32[8,8] add(same, a) n = f32[8,8] negate(s) "
            "t = f32[8,8] transpose(a), dimensions={1,0} ROOT r = f32[8,8] add(n, t)");
  CHECK(f.at("same") == 0);
  CHECK(!f.at("s"));
  CHECK(!f.at("n"));
  CHECK(!f.at("r"));
  REQUIRE(f.places.firstElsewhere());
  CHECK(f.places.firstElsewhere()->name() == "s");
}

TEST_CASE("an instruction may have nothing of what it reads") {
  Shifted f("r = f32[8] reduce(x, zero), dimensions={1}, to_apply=add b = f32[8,8] broadcast(r), dimensions={0} "
            "ROOT s = f32[8,8] add(b, x)");
  CHECK(!f.at("r"));
  CHECK(f.at("s") == 0);
  CHECK(!f.places.firstElsewhere());
}

TEST_CASE("elements of tuples are where they are made") {
  Shifted f("a = f32[8,8] abs(x) t = (f32[8,8], f32[8,8]) tuple(x, a) o = (f32[8,8], f32[8,8]) opt-barrier(t) "
            "g = f32[8,8] get-tuple-element(o), index=1 ROOT n = f32[8,8] negate(g)");
  CHECK(f.at("g") == 1);
  CHECK(f.at("n") == 1);
  CHECK(!f.at("t"));
  CHECK(!f.places.firstElsewhere());
}

TEST_CASE("roles in reductions of rows") {
  Fusion f("r = f32[8] reduce(x, zero), dimensions={1}, to_apply=add n = f32[8] negate(r) "
           "b = f32[8,8] broadcast(n), dimensions={0} s = f32[8,8] subtract(x, b) "
           "across = f32[8,8] broadcast(n), dimensions={1} two = f32[8,8] add(s, across) "
           "q = f32[8] reduce(s, zero), dimensions={1}, to_apply=add "
           "down = f32[8] reduce(s, zero), dimensions={0}, to_apply=add "
           "ROOT t = (f32[8,8], f32[8], f32[8]) tuple(two, q, down)");
  const ReducedShape shape = *shapeOfReduction(f["r"]);
  Places<ReducedRole> roles(*f.module->entry());
  roles.set(f["r"], ReducedRole::Result);
  roles.follow(f.module->entry()->instructions(), [&](const HloInstruction &instr, unsigned operand, ReducedRole read) {
    return roleThrough(instr, operand, read, shape);
  });
  CHECK(roles.isAt(f["n"], ReducedRole::Result));
  CHECK(roles.isAt(f["b"], ReducedRole::Element));
  CHECK(roles.isAt(f["s"], ReducedRole::Element));
  CHECK(roles.isAt(f["q"], ReducedRole::Result));
  CHECK(!roles.at(f["x"]));
  CHECK(!roles.at(f["across"]));
  CHECK(roles.firstElsewhere()->name() == "across");
}

TEST_CASE("an output behind a tuple that is taken apart takes the place of what it is made of") {
  auto takes = [](const std::string &entry) {
    Fusion f(entry);
    FusionGraph graph = f.graph();
    FusionAliasing offers(graph.roots().size());
    offers[0] = 0;
    llvm::FailureOr<FusionPlan> plan = planFusion(graph, offers, *findTarget("sm_90"), f.diagnostics);
    REQUIRE(succeeded(plan));
    return plan->aliasing[0].has_value();
  };
  const std::string reversed = "r = f32[8,8] reverse(x), dimensions={0} ", both = "(f32[8,8], f32[8,8]) ";
  CHECK(takes(reversed + "t = " + both +
              "tuple(x, x) g = f32[8,8] get-tuple-element(t), index=0 "
              "ROOT n = f32[8,8] negate(g)"));
  CHECK_FALSE(takes(reversed + "t = " + both +
                    "tuple(x, r) g = f32[8,8] get-tuple-element(t), index=1 "
                    "ROOT n = f32[8,8] negate(g)"));
  // A barrier is no output of its own, and what it keeps may be another array.
  CHECK(takes("n = f32[8,8] negate(x) a = f32[8,8] abs(x) t = " + both + "tuple(n, a) ROOT o = " + both +
              "opt-barrier(t)"));
  const std::string turned = "(f32[8,8], f32[8,8]{0,1}) ";
  CHECK_FALSE(takes("n = f32[8,8] negate(x) a = f32[8,8]{0,1} abs(x) t = " + turned + "tuple(n, a) ROOT o = " + turned +
                    "opt-barrier(t)"));
}
