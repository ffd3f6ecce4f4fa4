// Loops and conditionals of a program, on a device that only keeps bytes and calls kernels by name.
#include "hloc/kernel/DeviceProgram.h"

#include "unit/kernel/MemoryDevice.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

namespace {

/// Kernels: 0 `below ten`: argument 1 = argument 0 < 10. 1 `increment`. 2 `broken`. 3 `nothing` (an empty grid).
struct Toy {
  DeviceProgram program;
  MemoryDevice device;
  std::string error;

  Toy() {
    program.kernels = {{"below ten", {1, 1, 1}, {1, 1, 1}, 0, {false, true}},
                       {"increment", {1, 1, 1}, {1, 1, 1}, 0, {true}},
                       {"broken", {1, 1, 1}, {1, 1, 1}, 0, {}},
                       {"nothing", {0, 1, 1}, {1, 1, 1}, 0, {}}};
    device.buffers = {std::vector<uint8_t>(64)};
    device.kernels["below ten"] = [](const std::vector<uint8_t *> &a) { *a[1] = *a[0] < 10; };
    device.kernels["increment"] = [](const std::vector<uint8_t *> &a) { ++*a[0]; };
  }
  bool run() { return issueSteps(device, program, program.steps, error); }
  uint8_t byte(size_t i) const { return device.buffers[0][i]; }
};

BufferSlice slice(uint64_t offset, uint64_t bytes = 1) { return {0, offset, bytes}; }
Step increment(uint64_t offset) { return {"", LaunchStep{1, {slice(offset)}}}; }

} // namespace

TEST_CASE("steps: fills, copies and launches run in order; an empty grid is not launched") {
  Toy toy;
  toy.program.steps = {
      {"", FillStep{slice(0, 4), 7}}, increment(1), {"", CopyStep{slice(0, 4), slice(8, 4)}}, {"", LaunchStep{3, {}}}};
  REQUIRE(toy.run());
  CHECK(toy.byte(8) == 7);
  CHECK(toy.byte(9) == 8);
  CHECK(toy.device.launched == std::vector<std::string>{"increment"});
}

TEST_CASE("steps: a loop goes on while its condition says so, loops inside it anew each time") {
  Toy toy;
  // byte 0 counts to ten; each time byte 2 counts from zero to ten, and byte 3 counts those.
  Steps inner = {increment(2), increment(3)};
  WhileStep inside{{{"", LaunchStep{0, {slice(2), slice(5)}}}}, slice(5), inner};
  Steps body = {{"", FillStep{slice(2), 0}}, {"", inside}, increment(0)};
  toy.program.steps = {{"", WhileStep{{{"", LaunchStep{0, {slice(0), slice(4)}}}}, slice(4), body}}};
  REQUIRE(toy.run());
  CHECK(toy.byte(0) == 10);
  CHECK(toy.byte(3) == 100);
}

TEST_CASE("steps: a loop that is counted goes round so often, and ends where a step fails") {
  Toy toy;
  toy.program.steps = {{"", WhileStep{{}, {}, {increment(0)}, 7}}, {"", WhileStep{{}, {}, {increment(1)}, 0}}};
  REQUIRE(toy.run());
  CHECK(toy.byte(0) == 7);
  CHECK(toy.byte(1) == 0);
  toy.program.steps = {{"", WhileStep{{}, {}, {increment(0), {"", LaunchStep{2, {}}}}, 3}}};
  CHECK_FALSE(toy.run());
  CHECK(toy.byte(0) == 8);
}

TEST_CASE("steps: a conditional takes the branch of its selector, the last for an index out of range") {
  auto taken = [](int32_t selector, uint64_t bytes, size_t numBranches) {
    Toy toy;
    std::memcpy(toy.device.at(slice(0)), &selector, 4);
    ConditionalStep choice{slice(0, bytes), {}};
    for (size_t i = 0; i < numBranches; ++i)
      choice.branches.push_back({increment(8 + i)});
    toy.program.steps = {{"", choice}};
    REQUIRE(toy.run());
    for (size_t i = 0; i < numBranches; ++i)
      if (toy.byte(8 + i))
        return int(i);
    return -1;
  };
  CHECK(taken(1, 1, 2) == 0);
  CHECK(taken(0, 1, 2) == 1);
  CHECK(taken(0, 4, 3) == 0);
  CHECK(taken(1, 4, 3) == 1);
  CHECK(taken(3, 4, 3) == 2);
  CHECK(taken(-1, 4, 3) == 2);
}

TEST_CASE("steps: the first failure ends it, however deep; external steps fail by name") {
  Toy toy;
  Steps body = {{"", LaunchStep{2, {}}}, increment(0)};
  toy.device.buffers[0][1] = 1;
  toy.program.steps = {{"", ConditionalStep{slice(1), {body, {}}}}, increment(0)};
  CHECK_FALSE(toy.run());
  CHECK(toy.error == "broken");
  CHECK(toy.byte(0) == 0);
  toy.program.steps = {{"sum", CallStep{CallStep::Kind::External, "all-reduce", "", {}, {}}}};
  CHECK_FALSE(toy.run());
  CHECK(toy.error == "external step `all-reduce` cannot be carried out here");
}

TEST_CASE("steps: what was not compiled is not carried out, wherever it stands") {
  Toy toy;
  Step missing{"sort.3", UnsupportedStep{"opcode `sort`", {}, {}}};
  CHECK(!findUnsupported({increment(1)}));
  toy.program.steps = {increment(1), {"", ConditionalStep{slice(0), {{increment(2)}, {increment(3), missing}}}}};
  const Step *found = findUnsupported(toy.program.steps);
  REQUIRE(found);
  CHECK(describeUnsupported(*found) == "step `sort.3` was not compiled: opcode `sort`");
  CHECK(!toy.run());
  CHECK(toy.error == "not compiled: opcode `sort`");

  Manifest manifest;
  manifest.steps = toy.program.steps;
  std::string error;
  CHECK(!deviceProgram(manifest, [](auto, auto) { return std::nullopt; }, {}, error));
  CHECK(error == "step `sort.3` was not compiled: opcode `sort`");
}
