#include "RunPasses.h"

#include "hloc/hlo/External.h"
#include "hloc/interp/Inputs.h"
#include "hloc/interp/Interpreter.h"

using namespace hloc;
using namespace hloc::test;

namespace {

std::string program(const std::string &body, const std::string &header = "") {
  return "HloModule m" + header +
         "\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e {\n"
         "x = f32[4,8] parameter(0)\n" +
         body + "\n}\n";
}

bool isLeft(const std::string &collective, const std::string &header = "") {
  PassRun p(program("ROOT r = f32[4,8] " + collective, header));
  bool changed = p.run(foldCollectives) == PassResult::Changed;
  CHECK(p.run(foldCollectives) == PassResult::Unchanged);
  const HloInstruction *root = p.module->entry()->root();
  CHECK(changed == (family(root->opcode()) != OpcodeFamily::Collective));
  return !changed;
}

} // namespace

TEST_CASE("what each device exchanges with itself is what it is given") {
  for (const char *collective :
       {"all-reduce(x), replica_groups={}, to_apply=add", "all-reduce(x), replica_groups={{0}}, to_apply=add",
        "all-reduce(x), replica_groups={{0}}, channel_id=1, to_apply=add",
        "all-reduce(x), replica_groups=[1,1]<=[1], channel_id=1, use_global_device_ids=true, to_apply=add",
        "all-gather(x), replica_groups={{0}}, dimensions={1}",
        "reduce-scatter(x), replica_groups={{0}}, dimensions={0}, to_apply=add",
        "all-to-all(x), replica_groups={{0}}, dimensions={0}", "collective-broadcast(x), replica_groups={{0}}",
        "collective-permute(x), source_target_pairs={{0,0}}"}) {
    INFO(collective);
    PassRun p(program(std::string("ROOT r = f32[4,8] ") + collective));
    auto arguments = makeArguments(*p.module, p.diagnostics, /*seed=*/1);
    REQUIRE(succeeded(arguments));
    auto before = interpret(*p.module, *arguments, p.diagnostics);
    CHECK(p.run(foldCollectives) == PassResult::Changed);
    CHECK(p.body() == "ROOT x = parameter()\n");
    auto after = interpret(*p.module, *arguments, p.diagnostics);
    REQUIRE((succeeded(before) && succeeded(after)));
    CHECK(*before == *after);
  }
}

TEST_CASE("groups of one replica are alone where they are not of all partitions as well") {
  const std::string replicas = ", replica_count=2", partitions = ", num_partitions=2";
  const std::string ones = "all-reduce(x), replica_groups={{0},{1}}, to_apply=add";
  CHECK_FALSE(isLeft(ones, replicas));
  CHECK_FALSE(isLeft(ones + ", channel_id=1", replicas));
  CHECK(isLeft("all-reduce(x), replica_groups={{0}}, channel_id=1, to_apply=add", partitions));
  CHECK_FALSE(isLeft(ones + ", channel_id=1, use_global_device_ids=true", partitions));
  CHECK(isLeft("all-reduce(x), replica_groups={}, to_apply=add", replicas));
  CHECK_FALSE(isLeft("all-reduce(x), replica_groups={}, to_apply=add", partitions));
  CHECK(isLeft("all-reduce(x), replica_groups={{0,1}}, to_apply=add", replicas));
  CHECK(isLeft("collective-permute(x), source_target_pairs={{0,0}}", replicas));
  CHECK_FALSE(isLeft("collective-permute(x), source_target_pairs={{1,1},{0,0}}", replicas));
  CHECK(isLeft("collective-permute(x), source_target_pairs={{0,1},{1,0}}", replicas));
  CHECK(isLeft("collective-permute(x), channel_id=1, source_target_pairs={{0,0}}", partitions));
}

TEST_CASE("a module made for any number of devices keeps what changes shape") {
  PassRun p(program("ROOT r = f32[16,8] all-gather(x), replica_groups={}, dimensions={0}"));
  CHECK(p.run(foldCollectives) == PassResult::Unchanged);
}

TEST_CASE("what nobody sends to is zero") {
  PassRun p(program("ROOT r = f32[4,8] collective-permute(x), source_target_pairs={}", ", replica_count=2"));
  CHECK(p.run(foldCollectives) == PassResult::Changed);
  CHECK(p.module->entry()->root()->opcode() == Opcode::Broadcast);
}

TEST_CASE("results of several operands, layouts, and results that nobody reads") {
  PassRun p(program("y = f32[4,8] negate(x)\n all = (f32[4,8]{0,1}, f32[4,8]) all-reduce(x, y), replica_groups={{0}}, "
                    "to_apply=add\n unread = f32[4,8] all-reduce(y), replica_groups={{0}}, to_apply=add\n"
                    "ROOT g = f32[4,8]{0,1} get-tuple-element(all), index=0"));
  CHECK(p.run(foldCollectives) == PassResult::Changed);
  CHECK(p.run(simplifyTuples) == PassResult::Changed);
  (void)p.run(eraseDeadCode);
  CHECK(p.module->entry()->root()->opcode() == Opcode::Copy);
  CHECK(p.module->entry()->instructions().size() == 2);
}

TEST_CASE("notes to a partitioner are what they are notes about") {
  PassRun p(program("s = f32[4,8] custom-call(x), custom_call_target=\"Sharding\", sharding={replicated}\n"
                    "u = f32[4,8] custom-call(x), custom_call_target=\"annotate_device_placement\", "
                    "custom_call_has_side_effect=true\n"
                    "ROOT o = f32[4,8] custom-call(s), custom_call_target=\"other\""));
  CHECK(p.run(foldCollectives) == PassResult::Changed);
  CHECK(p.body() == "x = parameter()\nROOT o = custom-call(x)\n");
  CHECK(p.run(foldCollectives) == PassResult::Unchanged);
}

TEST_CASE("notes that change a shape stay") {
  PassRun p(program("ROOT s = f32[2,8] custom-call(x), custom_call_target=\"SPMDFullToShardShape\""));
  CHECK(p.run(foldCollectives) == PassResult::Unchanged);
}

TEST_CASE("external steps, their functions and what these have to know") {
  PassRun p(program("i = u32[] partition-id()\n j = u32[] replica-id()\n"
                    "c = f32[4,8] custom-call(x), custom_call_target=\"mine\", metadata={op_name=\"q\"}\n"
                    "ROOT r = f32[4,8] all-reduce(c), replica_groups={{0,1}}, to_apply=add",
                    ", num_partitions=2"));
  llvm::ArrayRef<HloInstruction *> all = p.module->entry()->instructions();
  REQUIRE(all.size() == 5);
  CHECK_FALSE(isExternal(*all[0]));
  CHECK(isExternal(*all[1]));
  CHECK_FALSE(isExternal(*all[2]));
  CHECK(externalFunction(*all[3]) == "mine");
  CHECK(externalConfiguration(*all[3]) == "c = f32[4,8]{1,0} custom-call(x), custom_call_target=\"mine\"");
  CHECK(externalFunction(*all[4]) == "all-reduce");
  CHECK(externalConfiguration(*all[4]) ==
        "r = f32[4,8]{1,0} all-reduce(c), replica_groups={{0,1}}, to_apply=add\nadd {\n  a = f32[] parameter(0)\n"
        "  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}");
}

TEST_CASE("barriers are what they are given, elements of their tuples too") {
  PassRun p(program("y = f32[4,8] negate(x)\n t = (f32[4,8], f32[4,8]) tuple(x, y)\n"
                    "b = (f32[4,8], f32[4,8]) opt-barrier(t)\n g = f32[4,8] get-tuple-element(b), index=1\n"
                    "c = f32[4,8] opt-barrier(g)\n ROOT r = f32[4,8] abs(c)"));
  CHECK(p.run(dropBarriers) == PassResult::Changed);
  CHECK(p.body() == "x = parameter()\ny = negate(x)\nROOT r = abs(y)\n");
  CHECK(p.run(dropBarriers) == PassResult::Unchanged);
}
