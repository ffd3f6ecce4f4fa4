// The mechanism of fusion, with groups that no policy of today forms.
#include "transforms/FuseGroups.h"

#include "RunPasses.h"

using namespace hloc;
using namespace hloc::test;

namespace {

struct Grouping : PassRun {
  explicit Grouping(const std::string &body) : PassRun(entry(body)) {}
  HloInstruction *named(llvm::StringRef name) {
    for (HloInstruction *instr : module->entry()->instructions())
      if (instr->name() == name)
        return instr;
    return nullptr;
  }
  FusionGroup group(const char *name, std::initializer_list<const char *> members,
                    std::initializer_list<const char *> roots, const char *before = nullptr) {
    FusionGroup made;
    made.fusionName = name;
    made.bodyName = std::string(name) + "_body";
    for (const char *member : members)
      made.members.push_back(named(member));
    for (const char *root : roots)
      made.roots.push_back(named(root));
    made.before = before ? named(before) : nullptr;
    return made;
  }
  void fuse(llvm::ArrayRef<FusionGroup> groups) {
    {
      HloEditor editor(*module->entry());
      GroupFuser fuser(editor);
      for (const FusionGroup &each : groups)
        fuser.fuse(each);
      fuser.finish();
    }
    requireSound();
  }
};

} // namespace

TEST_CASE("several results make a tuple, and what stands between them moves") {
  // `a` and `d` in one kernel: `c` must come before it and `b`, which reads `a`, behind.
  Grouping g("p = f32[4] parameter(0)\n a = f32[4] negate(p)\n b = f32[4] abs(a)\n c = f32[4] exponential(p)\n"
             "d = f32[4] log(c)\n ROOT r = (f32[4], f32[4]) tuple(b, d)");
  g.fuse({g.group("f", {"a", "d"}, {"a", "d"}, "a")});
  CHECK(g.body() == "p = parameter()\nc = exponential(p)\nf = fusion(p c)\n"
                    "get-tuple-element.1.anon = get-tuple-element(f)\nget-tuple-element.2.anon = "
                    "get-tuple-element(f)\nb = abs(get-tuple-element.1.anon)\n"
                    "ROOT r = tuple(b get-tuple-element.2.anon)\n");
  CHECK(g.body("f_body") == "p = parameter()\na = negate(p)\nc = parameter()\nd = log(c)\nROOT tuple.1.anon = "
                            "tuple(a d)\n");
}

TEST_CASE("independent ops of different shapes share a kernel") {
  Grouping g("p = f32[4] parameter(0)\n q = f32[8] parameter(1)\n a = f32[4] negate(p)\n b = f32[8] negate(q)\n"
             "ROOT r = (f32[4], f32[8]) tuple(a, b)");
  g.fuse({g.group("f", {"a", "b"}, {"a", "b"}, "b")});
  CHECK(g.named("f")->shape().toString() == "(f32[4]{0}, f32[8]{0})");
  CHECK_FALSE(g.named("a"));
}

TEST_CASE("a member of two groups is computed in both, and stays while something outside reads it") {
  const std::string text = "p = f32[4] parameter(0)\n a = f32[4] negate(p)\n b = f32[4] abs(a)\n c = f32[4] log(a)\n";
  Grouping g(text + "ROOT r = (f32[4], f32[4]) tuple(b, c)");
  g.fuse({g.group("f", {"a", "b"}, {"b"}, "b"), g.group("h", {"a", "c"}, {"c"}, "c")});
  CHECK(g.body() == "p = parameter()\nf = fusion(p)\nh = fusion(p)\nROOT r = tuple(f h)\n");
  Grouping kept(text + "ROOT r = (f32[4], f32[4], f32[4]) tuple(a, b, c)");
  kept.fuse({kept.group("f", {"a", "b"}, {"b"}, "b")});
  CHECK(kept.body() == "p = parameter()\na = negate(p)\nf = fusion(p)\nc = log(a)\nROOT r = tuple(a f c)\n");
}

TEST_CASE("groups read each other, whichever is formed first") {
  const std::string text =
      "p = f32[4] parameter(0)\n a = f32[4] negate(p)\n b = f32[4] abs(a)\n ROOT c = f32[4] log(b)";
  const std::string expected = "p = parameter()\nf = fusion(p)\nh = fusion(f)\nROOT k = fusion(h)\n";
  Grouping inOrder(text), reversed(text);
  inOrder.fuse(
      {inOrder.group("f", {"a"}, {"a"}, "a"), inOrder.group("h", {"b"}, {"b"}, "b"), inOrder.group("k", {"c"}, {"c"})});
  CHECK(inOrder.body() == expected);
  reversed.fuse({reversed.group("k", {"c"}, {"c"}, "c"), reversed.group("h", {"b"}, {"b"}, "b"),
                 reversed.group("f", {"a"}, {"a"}, "a")});
  CHECK(reversed.body() == expected);
}

TEST_CASE("bodies come before the caller and have names of their own") {
  Grouping g("p = f32[4] parameter(0)\n a = f32[4] negate(p)\n ROOT b = f32[4] abs(a)");
  g.module->addComputationBefore(*g.module->entry(), "f_body")->setRoot([&] {
    HloBuilder builder(*g.module->findComputation("f_body"));
    return builder.parameter(0, Shape::scalar(ElementType::F32));
  }());
  g.fuse({g.group("f", {"a"}, {"a"}, "a")});
  CHECK(g.named("f")->computation(AttributeKey::Calls)->name() == "f_body.1");
  CHECK(g.module->computations().back().get() == g.module->entry());
}

TEST_CASE("a side effect happens once, inside the fusion") {
  Grouping g("z = f32[] constant(0)\n o = f32[] constant(1)\n u = f32[4] rng(z, o), distribution=rng_uniform\n"
             "n = f32[4] negate(u)\n v = f32[4] rng(z, o), distribution=rng_uniform\n"
             "ROOT r = (f32[4], f32[4]) tuple(n, v)");
  g.fuse({g.group("f", {"z", "o", "u", "n"}, {"n"}, "n")});
  CHECK(g.body() == "z = constant()\no = constant()\nf = fusion()\nv = rng(z o)\nROOT r = tuple(f v)\n");
}
