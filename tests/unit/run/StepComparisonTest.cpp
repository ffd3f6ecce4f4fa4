// Whether a wrong step, memory that is overwritten too early and results that are not where they should be are found,
// on a device that keeps bytes and computes three fusions.
#include "run/StepComparison.h"

#include "hloc/kernel/TargetInfo.h"
#include "unit/kernel/MemoryDevice.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace hloc;
using namespace hloc::test;

namespace {

const char *const moduleText = R"(HloModule m
negate { x = f32[8] parameter(0)
 ROOT n = f32[8] negate(x) }
less { i = s32[] parameter(0)
 n = s32[] constant(2)
 ROOT c = pred[] compare(i, n), direction=LT }
more { i = s32[] parameter(0)
 n = s32[] constant(1)
 ROOT a = s32[] add(i, n) }
condition { t = (s32[], f32[8]) parameter(0)
 i = s32[] get-tuple-element(t), index=0
 ROOT c = pred[] fusion(i), kind=kLoop, calls=less }
body { t = (s32[], f32[8]) parameter(0)
 i = s32[] get-tuple-element(t), index=0
 x = f32[8] get-tuple-element(t), index=1
 j = s32[] fusion(i), kind=kLoop, calls=more
 y = f32[8] fusion(x), kind=kLoop, calls=negate
 ROOT r = (s32[], f32[8]) tuple(j, y) }
ENTRY e { i = s32[] parameter(0)
 x = f32[8] parameter(1)
 a = f32[8] fusion(x), kind=kLoop, calls=negate
 b = f32[8] fusion(a), kind=kLoop, calls=negate
 t = (s32[], f32[8]) tuple(i, b)
 w = (s32[], f32[8]) while(t), condition=condition, body=body
 l = f32[8] get-tuple-element(w), index=1
 ROOT r = (f32[8], f32[8]) tuple(l, a) }
)";

int32_t numberAt(const uint8_t *bytes) {
  int32_t number = 0;
  std::memcpy(&number, bytes, 4);
  return number;
}

/// A run of the text, as it is or with something broken.
struct Run {
  Parsed parsed;
  RunOptions options;
  CompileObserver timing;
  RunProgress progress;
  DiagnosticEngine diagnostics;
  MemoryBudget memory{options};
  Comparison comparison{options, memory, timing, progress, diagnostics};
  StepComparison::Shared shared;
  std::optional<ExecutionPlan> plan;
  DeviceProgram program;
  MemoryDevice device;
  int wrongNegation = -1; ///< which of them gives something else
  int numNegations = 0;
  std::vector<Literal> arguments{Literal(Shape::scalar(ElementType::S32)),
                                 Literal(Shape::array(ElementType::F32, {8}))};

  explicit Run(const std::string &text = moduleText) : parsed(text) {
    REQUIRE(parsed.module);
    plan = planModule(*parsed.module, *findTarget("sm_90"), diagnostics);
    REQUIRE(plan);
    for (int i = 0; i < 8; ++i)
      arguments[1].setDouble(i, i + 1);
    for (const PlannedKernel &kernel : plan->kernels)
      program.kernels.push_back(
          {kernel.fusion->computation(AttributeKey::Calls)->name().str(), {1, 1, 1}, {1, 1, 1}, 0, {}});
    program.steps = plan->steps;
    device.kernels["negate"] = [this](const std::vector<uint8_t *> &arguments) { negate(arguments); };
    device.kernels["more"] = [](const std::vector<uint8_t *> &arguments) {
      const int32_t next = numberAt(arguments.front()) + 1;
      std::memcpy(arguments.back(), &next, 4);
    };
    device.kernels["less"] = [](const std::vector<uint8_t *> &arguments) {
      *arguments.back() = numberAt(arguments.front()) < 2;
    };
    for (const ModuleBuffer &buffer : plan->buffers) {
      device.buffers.emplace_back(buffer.bytes, 0xFF);
      if (buffer.kind == ModuleBuffer::Kind::Parameter)
        llvm::copy(arguments[buffer.parameterNumber].bytes(), device.buffers.back().begin());
    }
  }

  void negate(const std::vector<uint8_t *> &arguments) {
    float values[8];
    std::memcpy(values, arguments.front(), 32);
    for (float &value : values)
      value = -value;
    if (numNegations++ == wrongNegation)
      values[5] += 1;
    std::memcpy(arguments.back(), values, 32);
  }

  /// What is said; empty if all agrees.
  std::string verdict() {
    StepComparison listener(*parsed.module, plan->values, program, device, arguments, comparison, Regime::Ordinary,
                            shared, diagnostics);
    std::string error;
    bool good = issueSteps(device, program, program.steps, error, &listener);
    if (good) {
      std::vector<Literal> leaves;
      for (const ModuleResult &result : plan->results) {
        leaves.emplace_back(Shape::array(ElementType::F32, {8}));
        REQUIRE(device.download(result.slice, leaves.back().mutableBytes().data(), error));
      }
      good = listener.finish(Literal::tuple(std::move(leaves)));
    }
    REQUIRE(good == diagnostics.diagnostics().empty());
    return good ? "" : diagnostics.diagnostics().front().message;
  }
};

bool says(const std::string &verdict, const std::string &what) {
  INFO(verdict);
  return verdict.find(what) != std::string::npos;
}

} // namespace

TEST_CASE("compare steps: every launch is compared, in loops each time") {
  Run run;
  CHECK(run.verdict() == "");
  CHECK(run.shared.numSteps == 2 + 3 + 2 * 2); // a and b; i < 2; twice j and y
}

TEST_CASE("compare steps: a loop that is counted goes round as often as its condition says") {
  auto verdictFor = [](const char *rounds, size_t steps) {
    std::string counted = moduleText;
    counted.insert(counted.find("body=body") + 9,
                   fmt::format(", backend_config={{\"known_trip_count\":{{\"n\":\"{}\"}}}}", rounds));
    Run run(counted);
    std::string verdict = run.verdict();
    CHECK(run.shared.numSteps == steps);
    return verdict;
  };
  CHECK(verdictFor("2", 2 + 2 * 2) == "");
  CHECK(says(verdictFor("1", 2 + 2), "the loop `w` ends, which is not what its condition has computed"));
  CHECK(says(verdictFor("3", 2 + 2 * 2), "the loop `w` goes on, which is not"));
  CHECK(says(verdictFor("0", 2), "the loop `w` ends, which is not"));
}

TEST_CASE("compare steps: the first step that differs is named, wherever it is") {
  for (auto [number, name] : {std::pair(0, "`a`"), {1, "`b`"}, {2, "`y`"}, {3, "`y`"}}) {
    Run run;
    run.wrongNegation = number;
    std::string verdict = run.verdict();
    CHECK(says(verdict, "1 of 8 elements of step"));
    CHECK(says(verdict, name));
  }
}

TEST_CASE("compare steps: of the first that differs the values are found that led to its first wrong element") {
  Run run;
  run.options.tracesFailures = true;
  run.wrongNegation = 3; // y, the second time
  CHECK(!run.verdict().empty());
  const std::optional<ValueChain> chain = run.comparison.takeChain();
  REQUIRE(chain);
  CHECK(chain->step == "y");
  CHECK(chain->index == std::vector<int64_t>{5});
  CHECK(chain->expected == "6");
  CHECK(chain->actual == "7");
  REQUIRE(chain->values.size() == 2);
  CHECK(chain->values[0].name == "x");
  CHECK(chain->values[0].value == "-6"); // what the round before has handed on
  CHECK(chain->values[1].name == "n");
  CHECK(chain->values[1].value == "6");
  CHECK(chain->values[1].line == 3);
  Run other;
  other.wrongNegation = 3;
  CHECK(!other.verdict().empty());
  CHECK(!other.comparison.takeChain());
}

TEST_CASE("compare steps: what is overwritten before it is read shows in whoever reads it") {
  Run run;
  for (size_t i = 0; i < run.program.steps.size(); ++i)
    if (run.program.steps[i].name == "b") {
      BufferSlice read = std::get<BufferSlice>(std::get<LaunchStep>(run.program.steps[i].action).arguments.front());
      run.program.steps.insert(run.program.steps.begin() + i, {"clobber", FillStep{read, 0}});
      break;
    }
  CHECK(says(run.verdict(), "`b`"));
}

TEST_CASE("compare steps: what a loop or the module hands on is what was computed last") {
  {
    Run run; // the loop's result is spoilt at the end of each round
    auto &loop = std::get<WhileStep>(run.program.steps.back().action);
    BufferSlice state = std::get<BufferSlice>(std::get<LaunchStep>(loop.body.back().action).arguments.back());
    loop.condition.push_back({"clobber", FillStep{{state.buffer, state.offset, 1}, 1}});
    CHECK(!run.verdict().empty());
  }
  Run run; // the second result is another buffer
  run.plan->results[1].slice = run.plan->results[0].slice;
  CHECK(says(run.verdict(), "leaf 1 of the result"));
}
