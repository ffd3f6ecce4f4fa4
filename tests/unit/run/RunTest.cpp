// A run as a library: its verdict and what it has found are data, and are told as they come.
#include "hloc/run/Run.h"
#include "hloc/support/Files.h"

#include "run/NumpyFiles.h"

#include "unit/SystemToolchain.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

const char *const twoSteps = R"(HloModule two
f { x = f32[8] parameter(0)
 ROOT n = f32[8] negate(x) }
g { x = f32[8] parameter(0)
 y = f32[8] parameter(1)
 ROOT s = f32[8] add(x, y) }
ENTRY e { x = f32[8] parameter(0)
 n = f32[8] fusion(x), kind=kLoop, calls=f
 ROOT s = f32[8] fusion(n, x), kind=kLoop, calls=g }
)";

/// Keeps what it is told of.
struct Recorder : RunObserver {
  std::vector<std::string> stages;
  size_t numExecuted = 0, numVerified = 0;
  void beginStage(std::string name) override { stages.push_back(std::move(name)); }
  void passesVerified(size_t numSets) override { numVerified = numSets; }
  void executed(const ProgramRun &run) override { ++numExecuted; }
};

struct Run {
  RunOptions options;
  DiagnosticEngine diagnostics;
  Recorder recorder;

  Run() {
    options.target = *findTarget("sm_90");
    options.regimes = {Regime::Ordinary};
  }
  RunReport operator()(const char *text) {
    CompileObserver nobody;
    return runModule(std::make_shared<const SourceFile>("test.hlo", text), options, test::systemToolchain(), nobody,
                     recorder, diagnostics);
  }
  std::string message() const {
    return diagnostics.diagnostics().empty() ? "" : diagnostics.diagnostics().front().message;
  }
};

TemporaryFolder makeFolder() {
  std::string error;
  auto made = TemporaryFolder::create("run", error);
  REQUIRE(made);
  return std::move(*made);
}

} // namespace

TEST_CASE("run: kernels and the interpreter agree, by steps and at the end") {
  Run run;
  run.options.regimes = {Regime::Ordinary, Regime::Exact};
  run.options.countsEvents = run.options.estimates = true;
  RunReport report = run(twoSteps);
  CHECK(run.message().empty());
  CHECK(report.verdict == RunVerdict::Agrees);
  CHECK(report.compared.numSteps == 2);
  CHECK(report.compared.inSteps.numElements == 32); // two steps in two regimes
  CHECK(report.compared.atEnd.numElements == 8);
  CHECK_THAT(report.agreement, Catch::Contains("of 2 steps agree with the interpreter in 2 regimes"));
  REQUIRE(report.runs.size() == 2);
  CHECK(run.recorder.numExecuted == 2);
  CHECK(report.runs[1].regime == Regime::Exact);
  CHECK_FALSE(report.runs[0].result); // nobody asked for it
  REQUIRE(report.runs[0].counters);
  CHECK(report.runs[0].counters->blocks == 2);
  REQUIRE(report.runs[0].estimate);
  CHECK(report.runs[0].estimate->kernels.size() == 2);
  CHECK_FALSE(report.runs[1].counters); // of the first run alone
  CHECK(llvm::is_contained(run.recorder.stages, "compile"));
}

TEST_CASE("run: a result is given where nothing is compared") {
  Run run;
  run.options.reference = Reference::None;
  run.options.platform = Platform::Interpreter;
  RunReport report = run("HloModule m\nENTRY e { ROOT c = s32[2] constant({3, 4}) }");
  CHECK(report.verdict == RunVerdict::Executed);
  CHECK(report.agreement.empty());
  REQUIRE(report.runs.size() == 1);
  REQUIRE(report.runs[0].result);
  CHECK(report.runs[0].result->getInt(1) == 4);
}

TEST_CASE("run: results of the user's that are wrong make the verdict") {
  TemporaryFolder folder = makeFolder();
  Literal wrong(Shape::array(ElementType::F32, {8}));
  for (int i = 0; i < 8; ++i)
    wrong.setDouble(i, i == 5 ? 1 : 0); // x - x
  Run run;
  run.options.expectedFile = folder.path() + "/expected.npz";
  REQUIRE(writeResult(run.options.expectedFile, wrong, run.diagnostics));
  RunReport report = run(twoSteps);
  CHECK(report.verdict == RunVerdict::Wrong);
  CHECK_THAT(run.message(), Catch::Contains("1 of 8 elements of `" + run.options.expectedFile + "` are not what"));
  CHECK(report.runs.size() == 1);
}

TEST_CASE("run: what cannot be run has no verdict on results") {
  Run run;
  CHECK(run("HloModule m\nENTRY e { ROOT c = s32[2] constant({3}) }").verdict == RunVerdict::NotRun);
  CHECK_FALSE(run.message().empty());
  CHECK(run.recorder.numExecuted == 0);
}

TEST_CASE("run: passes are verified on every set of arguments, and modules shrunk") {
  Run run;
  run.options.regimes = {Regime::Ordinary, Regime::Exact};
  run.options.verifyEachPass = true;
  run.options.shrink = 4;
  RunReport report = run(twoSteps);
  CHECK(report.verdict == RunVerdict::Agrees);
  CHECK(report.numVerifiedSets == 2);
  CHECK(run.recorder.numVerified == 2);
  CHECK(report.shrunkSizes == std::map<int64_t, int64_t>{{8, 4}});
  CHECK(report.compared.atEnd.numElements == 4);
}
