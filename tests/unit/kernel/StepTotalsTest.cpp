// How often what is launched when the steps of a program are carried out once.
#include "hloc/kernel/StepTotals.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

Step launch(uint32_t kernel) { return {"k", LaunchStep{kernel, {}}}; }
Step copy(uint64_t bytes) { return {"c", CopyStep{{0, 0, bytes}, {1, 0, bytes}}}; }

const DeviceModel &device() { return *findDevice("h100"); }

} // namespace

TEST_CASE("every launch counts, those of loops for each round, conditions once more") {
  const Steps steps{launch(0), Step{"w", WhileStep{{launch(1)}, {}, {launch(2), copy(100)}, 8}}, launch(0)};
  const double seconds[] = {1, 10, 100};
  const StepTotals totals = totalsOf(steps, seconds, device());
  CHECK(totals.launches == std::vector<double>{2, 9, 8});
  CHECK(totals.copies == 8);
  CHECK(totals.bytesCopied == 800);
  CHECK(totals.seconds == Approx(2 + 90 + 800 + 8 * secondsToMove(200, device())));
  CHECK(totals.openLoops == 0);
  CHECK(totals.starts == 2 + 9 + 8 + 8);
  CHECK(totals.decisions == 0); // counted
}

TEST_CASE("loops inside loops multiply, and one of unknown rounds goes round once") {
  const Steps inner{Step{"v", WhileStep{{launch(0)}, {}, {launch(1)}, 3}}};
  const double seconds[] = {1, 1};
  const StepTotals known = totalsOf({Step{"w", WhileStep{{}, {}, inner, 5}}}, seconds, device());
  CHECK(known.launches == std::vector<double>{20, 15});
  const StepTotals open = totalsOf({Step{"w", WhileStep{{}, {}, inner}}}, seconds, device());
  CHECK(open.launches == std::vector<double>{4, 3});
  CHECK(open.openLoops == 1);
  const StepTotals decided =
      totalsOf({Step{"w", WhileStep{{launch(0)}, {0, 0, 1}, {launch(1)}, 5}}}, seconds, device());
  CHECK(decided.starts == 11);
  CHECK(decided.decisions == 6);
}

TEST_CASE("of a conditional the branch that takes longest counts") {
  const Steps steps{Step{"c", ConditionalStep{{0, 0, 1}, {{launch(0), launch(0)}, {launch(1)}}}}};
  const double seconds[] = {1, 10};
  CHECK(totalsOf(steps, seconds, device()).launches == std::vector<double>{0, 1});
  CHECK(totalsOf(steps, seconds, device()).decisions == 1);
  CHECK(totalsOf(steps, seconds, device()).starts == 1);
}

TEST_CASE("fills move what they write, and steps of others nothing") {
  const Steps steps{Step{"f", FillStep{{0, 0, 64}, 0}}, Step{"x", CallStep{}}};
  const StepTotals totals = totalsOf(steps, {}, device());
  CHECK(totals.fills == 1);
  CHECK(totals.starts == 1);
  CHECK(totals.bytesFilled == 64);
  CHECK(totals.seconds == secondsToMove(64, device()));
}
