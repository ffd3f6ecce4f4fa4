// Conditionals that become choices of elements, and those that do not.
#include "RunPasses.h"
#include "SameResults.h"

#include "fmt/format.h"

using namespace hloc;
using namespace hloc::test;

namespace {

const std::string branches = "negative { x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x) }\n"
                             "same { ROOT x = f32[4] parameter(0) }\n"
                             "both { t = (f32[4], s32[]) parameter(0)\n x = f32[4] get-tuple-element(t), index=0\n"
                             " i = s32[] get-tuple-element(t), index=1\n f = f32[] convert(i)\n"
                             " b = f32[4] broadcast(f), dimensions={}\n ROOT s = f32[4] add(x, b) }\n"
                             "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
                             "total { x = f32[4] parameter(0)\n z = f32[] constant(0)\n"
                             " t = f32[] reduce(x, z), dimensions={0}, to_apply=sum\n"
                             " ROOT b = f32[4] broadcast(t), dimensions={} }\n"
                             "put { x = f32[4] parameter(0)\n u = f32[1] constant({3})\n i = s32[] constant(2)\n"
                             " ROOT d = f32[4] dynamic-update-slice(x, u, i) }\n";

/// An entry of these parameters that ends with `choice`.
PassRun made(const std::string &extra, const std::string &choice) {
  return PassRun("HloModule m\n" + branches + extra +
                 "ENTRY e { p = pred[] parameter(0)\n i = s32[] parameter(1)\n x = f32[4] parameter(2)\n y = f32[4] "
                 "parameter(3)\n t = (f32[4], s32[]) tuple(y, i)\n " +
                 choice + " }\n");
}

void check(PassRun &&run, PassResult expected) {
  auto before = cloneModule(*run.module);
  INFO(print(*before));
  CHECK(run.run(selectBranches) == expected);
  INFO(print(*run.module));
  CHECK(resultDifference(*before, *run.module) == "");
  CHECK(resultDifference(*before, *run.module, 1) == "");
  CHECK(run.run(selectBranches) == PassResult::Unchanged);
  const bool stays = llvm::any_of(run.module->entry()->instructions(),
                                  [](auto *instr) { return instr->opcode() == Opcode::Conditional; });
  CHECK(stays == (expected == PassResult::Unchanged));
}

} // namespace

TEST_CASE("branches of elementwise ops are both computed, and one is chosen for each element") {
  PassRun run = made("", "ROOT c = f32[4] conditional(p, x, y), true_computation=negative, false_computation=same");
  CHECK(run.run(selectBranches) == PassResult::Changed);
  CHECK(run.module->entry()->root()->opcode() == Opcode::Select);
  CHECK(run.module->entry()->root()->operand(1)->opcode() == Opcode::Negate);
  CHECK(run.module->entry()->root()->operand(2)->name() == "y");
  CHECK(!run.module->findComputation("negative"));
}

TEST_CASE("what is chosen is what the branch gives, whatever the selector") {
  check(made("", "ROOT c = f32[4] conditional(p, x, y), true_computation=negative, false_computation=same"),
        PassResult::Changed);
  check(made("", "ROOT c = f32[4] conditional(p, t, x), true_computation=both, false_computation=put"),
        PassResult::Changed);
  auto of = [](const char *selector) {
    return fmt::format("ROOT c = f32[4] conditional({}, x, y, t), branch_computations={{negative, same, both}}",
                       selector);
  };
  check(made("", of("i")), PassResult::Changed);
  for (int number : {-1, 0, 1, 2, 3})
    check(made("", fmt::format("k = s32[] constant({})\n ", number) + of("k")), PassResult::Changed);
  // Results in tuples.
  const std::string tuples = "two { x = f32[4] parameter(0)\n i = s32[] constant(7)\n n = (s32[]) tuple(i)\n"
                             " ROOT t = (f32[4], (s32[])) tuple(x, n) }\n"
                             "other { x = f32[4] parameter(0)\n i = s32[] constant(8)\n n = (s32[]) tuple(i)\n"
                             " m = f32[4] negate(x)\n ROOT t = (f32[4], (s32[])) tuple(m, n) }\n";
  check(made(tuples, "ROOT c = (f32[4], (s32[])) conditional(p, x, y), true_computation=two, false_computation=other"),
        PassResult::Changed);
}

TEST_CASE("what is worth not being computed stays a branch") {
  check(made("", "ROOT c = f32[4] conditional(p, x, y), true_computation=total, false_computation=same"),
        PassResult::Unchanged);
  const std::string large = "large { s = f32[] parameter(0)\n ROOT b = f32[100000] broadcast(s), dimensions={} }\n"
                            "small { s = f32[] parameter(0)\n n = f32[] negate(s)\n"
                            " ROOT b = f32[100000] broadcast(n), dimensions={} }\n";
  check(made(large, "s = f32[] convert(i)\n ROOT c = f32[100000] conditional(p, s, s), true_computation=large, "
                    "false_computation=small"),
        PassResult::Unchanged);
  std::string many = "many { x = f32[4] parameter(0)\n a0 = f32[4] negate(x)\n";
  for (int i = 1; i < 200; ++i)
    many += fmt::format(" a{} = f32[4] negate(a{})\n", i, i - 1);
  check(made(many + " ROOT r = f32[4] add(a199, x) }\n",
             "ROOT c = f32[4] conditional(p, x, y), true_computation=many, false_computation=same"),
        PassResult::Unchanged);
  check(made("", "ROOT c = f32[4] conditional(i, x, x, x, x, y), branch_computations={negative, same, same, same, "
                 "same}"),
        PassResult::Unchanged);
}
