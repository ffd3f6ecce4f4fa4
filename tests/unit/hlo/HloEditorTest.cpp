#include "hloc/hlo/HloEditor.h"

#include "hloc/hlo/HloBuilder.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

namespace {

struct Edited : Parsed {
  explicit Edited(const std::string &body) : Parsed(entry(body)) {
    INFO(firstReport());
    REQUIRE(module);
  }
  HloComputation &computation() { return *module->entry(); }
  HloInstruction *named(llvm::StringRef name) {
    for (HloInstruction *instr : computation().instructions())
      if (instr->name() == name)
        return instr;
    return nullptr;
  }
  std::string names() {
    std::string all;
    for (auto [i, instr] : llvm::enumerate(computation().instructions())) {
      REQUIRE(instr->id() == i);
      all += instr->name().str() + (instr == computation().root() ? "! " : " ");
    }
    return all;
  }
};

std::string names(llvm::ArrayRef<HloUse> uses) {
  std::string all;
  for (const HloUse &use : uses)
    all += use.user->name().str() + std::to_string(use.operand) + " ";
  return all;
}

const char *diamond = "p = f32[4] parameter(0)\n a = f32[4] negate(p)\n b = f32[4] abs(p)\n s = f32[4] add(a, a)\n"
                      "ROOT r = f32[4] multiply(s, b)";

} // namespace

TEST_CASE("what is unnamed gets a name that nothing else has, in copies too") {
  Edited e("p = f32[4] parameter(0)\n abs.7.anon = f32[4] abs(p)\n x.y.anon = f32[4] negate(p)\n"
           "ROOT r = f32[4] add(abs.7.anon, x.y.anon)");
  HloBuilder builder(e.computation());
  CHECK(builder.infer(Opcode::Abs, {e.named("p")})->name() == "abs.8.anon");
  std::unique_ptr<HloModule> copy = cloneModule(*e.module);
  HloBuilder other(*copy->entry());
  CHECK(other.infer(Opcode::Abs, {copy->entry()->parameters().front()})->name() == "abs.9.anon");
}

TEST_CASE("uses, users and the root") {
  Edited e(diamond);
  HloEditor editor(e.computation());
  CHECK(names(editor.uses(e.named("p"))) == "a0 b0 ");
  CHECK(names(editor.uses(e.named("a"))) == "s0 s1 ");
  CHECK(editor.hasOneUser(e.named("a"))); // one that reads it twice
  CHECK_FALSE(editor.hasOneUser(e.named("p")));
  CHECK_FALSE(editor.isUsed(e.named("r")));
  CHECK_FALSE(editor.hasOneUser(e.named("r")));
  CHECK_FALSE(editor.isRemovable(e.named("r")));
  CHECK_FALSE(editor.changed());
}

TEST_CASE("replacing and erasing") {
  Edited e(diamond);
  HloEditor editor(e.computation());
  HloInstruction *s = e.named("s"), *p = e.named("p");
  editor.replaceAllUses(s, p);
  CHECK(names(editor.uses(p)) == "a0 b0 r0 ");
  CHECK(editor.eraseIfDead(s) == 2); // and `a`
  CHECK(editor.isErased(e.named("a")));
  CHECK(names(editor.uses(p)) == "b0 r0 ");
  CHECK(editor.eraseIfDead(p) == 0); // used
  editor.finish();
  CHECK(e.names() == "p b r! ");
  editor.replaceAllUses(e.named("r"), e.named("b"));
  CHECK(editor.eraseDead() == 1);
  editor.finish();
  CHECK(e.names() == "p b! ");
  editor.setRoot(e.named("p"));
  CHECK(editor.eraseDead() == 1);
  CHECK(editor.eraseDead() == 0); // parameters stay
}

TEST_CASE("what only an effect has kept goes with its operands, what is needed stays") {
  const std::string effect = ", custom_call_target=\"f\", custom_call_has_side_effect=true\n ";
  Edited e("p = f32[4] parameter(0)\n a = f32[4] negate(p)\n c = f32[4] custom-call(a)" + effect +
           "d = f32[4] custom-call(c, c)" + effect + "o = f32[4] custom-call(p)" + effect +
           "n = f32[4] abs(p), control-predecessors={o}\n ROOT r = f32[4] custom-call(n)" +
           ", custom_call_target=\"f\", custom_call_has_side_effect=true");
  HloEditor editor(e.computation());
  CHECK(editor.eraseIfDead(e.named("d")) == 0);
  CHECK(editor.eraseWithOperands(e.named("c")) == 0); // used
  CHECK(editor.eraseWithOperands(e.named("o")) == 0); // ordered
  CHECK(editor.eraseWithOperands(e.named("r")) == 0); // the root
  CHECK(editor.eraseWithOperands(e.named("d")) == 1);
  CHECK(editor.eraseWithOperands(e.named("c")) == 2);
  editor.finish();
  CHECK(e.names() == "p o n r! ");
}

TEST_CASE("inserting and moving") {
  Edited e(diamond);
  {
    HloEditor editor(e.computation());
    HloBuilder inFront(editor, e.named("s")), atEnd(editor, nullptr);
    HloInstruction *m = inFront.add(Opcode::Negate, e.named("b")->shape(), {e.named("b")}, {}, "m");
    CHECK(m->id() == 5); // after those that were there
    CHECK(editor.idBound() == 6);
    editor.setOperand(e.named("s"), 1, m);
    CHECK(names(editor.uses(e.named("a"))) == "s0 ");
    editor.setRoot(atEnd.add(Opcode::Negate, m->shape(), {e.named("r")}, {}, "last"));
    editor.moveBefore(e.named("b"), e.named("a"));
  }
  CHECK(e.names() == "p b a m s r last! ");
  CHECK(e.named("s")->operand(1)->name() == "m");
}

TEST_CASE("the order is restored, moving what users need in front of them") {
  Edited e("p = f32[4] parameter(0)\n a = f32[4] negate(p)\n b = f32[4] abs(p)\n c = f32[4] exponential(b)\n"
           "ROOT r = f32[4] add(a, c)");
  HloEditor editor(e.computation());
  editor.setOperand(e.named("a"), 0, e.named("c"));
  editor.sortTopologically();
  editor.finish();
  CHECK(e.names() == "p b c a r! ");
  editor.sortTopologically();
  CHECK_FALSE(editor.changed()); // nothing to move
}

TEST_CASE("what has changed comes in order, once until it is taken") {
  Edited e(diamond);
  HloEditor editor(e.computation());
  CHECK_FALSE(editor.takeChanged());
  editor.setOperand(e.named("s"), 0, e.named("b"));
  editor.setOperand(e.named("s"), 1, e.named("b"));
  CHECK(editor.takeChanged() == e.named("s"));
  CHECK(editor.takeChanged() == e.named("a")); // has lost its users
  CHECK_FALSE(editor.takeChanged());
  editor.erase(e.named("a"));
  CHECK(editor.takeChanged() == e.named("p"));
  CHECK_FALSE(editor.takeChanged());
}

TEST_CASE("attributes and parameters change") {
  Edited e("p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n w = f32[4] parameter(2)\n"
           "ROOT r = f32[4] reverse(q), dimensions={0}, metadata={op_name=\"n\"}");
  HloEditor editor(e.computation());
  HloBuilder builder(editor, nullptr);
  editor.setAttribute(e.named("r"), builder.ints(AttributeKey::Dimensions, {}));
  CHECK(e.named("r")->ints(AttributeKey::Dimensions).empty());
  CHECK(e.named("r")->opName() == "n");
  editor.eraseParameter(e.named("p"));
  editor.eraseParameter(e.named("w"));
  editor.finish();
  CHECK(e.names() == "q r! ");
  CHECK(e.computation().numParameters() == 1);
  CHECK(e.named("q")->parameterNumber() == 0);
}

TEST_CASE("an order given by control predecessors is kept") {
  Edited e("p = f32[4] parameter(0)\n a = f32[4] negate(p)\n b = f32[4] abs(p), control-predecessors={a}\n"
           "ROOT r = f32[4] exponential(p)");
  HloEditor editor(e.computation());
  CHECK(editor.isOrdered(e.named("a")));
  CHECK(editor.isOrdered(e.named("b")));
  CHECK_FALSE(editor.isOrdered(e.named("r")));
  CHECK(editor.eraseDead() == 0);
}

TEST_CASE("what is erased is used again") {
  Edited e(diamond);
  HloArena &arena = e.module->arena();
  auto replaceAll = [&] {
    HloEditor editor(e.computation());
    for (HloInstruction *instr : e.computation().instructions())
      if (instr->opcode() != Opcode::Parameter) {
        HloBuilder builder(editor, instr);
        editor.replaceAllUses(instr, builder.clone(*instr, instr->operands()));
        editor.erase(instr);
      }
  };
  replaceAll();
  size_t bytes = arena.numBytes();
  std::string text = print(*e.module);
  for (int i = 0; i < 50; ++i)
    replaceAll();
  CHECK(print(*e.module) == text);
  // Names are copied again: they may be made up, as here. Everything else is used again.
  size_t names = 0;
  for (HloInstruction *instr : e.computation().instructions())
    names += instr->name().size();
  CHECK(arena.numBytes() - bytes <= 50 * names);
}

TEST_CASE("a clone shares no computation and no instruction with its source") {
  Parsed p("HloModule m\nunused {\n ROOT a = f32[] parameter(0)\n}\n"
           "sum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
           "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n"
           " ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=sum\n}\n");
  REQUIRE(p.module);
  std::string before = print(*p.module);
  auto clone = cloneModule(*p.module);
  CHECK_FALSE(clone->findComputation("unused"));
  HloComputation *sum = clone->findComputation("sum");
  CHECK(clone->entry()->root()->computation(AttributeKey::ToApply) == sum);
  CHECK(&sum->module() == clone.get());
  {
    HloEditor editor(*clone->entry());
    HloBuilder builder(editor, nullptr);
    editor.setRoot(builder.infer(Opcode::Negate, {editor.root()}));
  }
  CHECK(print(*p.module) == before);
}
