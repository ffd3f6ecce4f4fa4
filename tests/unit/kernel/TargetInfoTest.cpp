#include "hloc/kernel/TargetInfo.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {
std::string nameOf(const char *spelling) {
  auto target = findTarget(spelling);
  return target ? target->name : "none";
}
} // namespace

TEST_CASE("targets are found by architecture, number and product") {
  CHECK(nameOf("sm_90") == "sm_90");
  CHECK(nameOf("SM_90A") == "sm_90a");
  CHECK(nameOf("9.0") == "sm_90");
  CHECK(nameOf("9.0a") == "sm_90a");
  CHECK(nameOf("90") == "sm_90");
  CHECK(nameOf("12.1") == "sm_121");
  CHECK(nameOf("121a") == "sm_121a");
  CHECK(nameOf("h200") == "sm_90a");
  CHECK(nameOf("H100") == "sm_90a");
  CHECK(nameOf("A100") == "sm_80");
  CHECK(nameOf("RTX 4090") == "sm_89");
  CHECK(nameOf("rtx-4090") == "sm_89");
  CHECK(nameOf(" b200 ") == "sm_100");
}

TEST_CASE("what is not a target is not found") {
  for (const char *spelling :
       {"", "sm_", "sm_60", "sm_90b", "sm_90aa", "9.", ".9", "9.0.0x", "h", "cpu", "sm_9999999999"})
    CHECK(nameOf(spelling) == "none");
}

TEST_CASE("what is nearly a target suggests it") {
  for (auto [spelling, meant] : {std::pair("sm90", "sm_90"),
                                 {"SM90a", "sm_90a"},
                                 {"compute_80", "sm_80"},
                                 {"h100 pcie", "h100"},
                                 {"NVIDIA H200 NVL", "h200"},
                                 {"GeForce RTX 4090 D", "rtx4090"},
                                 {"A100-SXM4-80GB", "a100"},
                                 {"h10O", "h100"},
                                 {"sm_91", "sm_90"},
                                 {"cpu", ""},
                                 {"", ""},
                                 {"riscv64", ""}}) {
    INFO(spelling);
    CHECK(!findTarget(spelling));
    CHECK(nearestTarget(spelling) == meant);
    CHECK((!*meant || findTarget(meant)));
  }
}

TEST_CASE("rows are ascending, unique and consistent") {
  std::vector<TargetInfo> targets = allTargets();
  CHECK(targets.front().name == "sm_70");
  CHECK(targets.back().name == "sm_121a");
  for (size_t i = 0; i < targets.size(); ++i) {
    const TargetInfo &target = targets[i];
    INFO(target.name);
    CHECK(nameOf(target.name.c_str()) == target.name);
    CHECK(target.name.substr(0, 3 + std::to_string(target.major * 10 + target.minor).size()) ==
          "sm_" + std::to_string(target.major * 10 + target.minor));
    CHECK(target.maxVectorBytes == (target.major >= 10 ? 32u : 16u));
    CHECK(target.maxSharedBytes >= target.staticSharedBytes);
    if (i) {
      CHECK(target.atLeast(targets[i - 1].major, targets[i - 1].minor));
      CHECK(target.name != targets[i - 1].name);
    }
    for (const std::string &product : productNames(target))
      CHECK(nameOf(product.c_str()) == target.name);
  }
}
