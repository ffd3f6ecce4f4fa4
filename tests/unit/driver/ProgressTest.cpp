// What the line of --progress says, by a clock that the test turns.
#include "driver/Progress.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("time left: at an even pace what is done takes what it took") {
  RemainingTime remaining;
  remaining.begin(100);
  CHECK_FALSE(remaining.update(100.1, 0.001)); // too soon to tell
  CHECK(*remaining.update(101, 0.01) == Approx(99));
  CHECK(*remaining.update(125, 0.25) == Approx(75));
  CHECK(*remaining.update(200, 1) == Approx(0).margin(1e-9));
}

TEST_CASE("time left: the last ten seconds count, not a start that was slower or faster") {
  RemainingTime remaining;
  remaining.begin(0);
  double now = 0;
  for (; now < 100; ++now)
    remaining.update(now, now * 0.001);
  for (; now < 115; ++now) // ten times as fast
    remaining.update(now, 0.1 + (now - 100) * 0.01);
  CHECK(*remaining.update(115, 0.25) == Approx(75));
}

TEST_CASE("time left: nothing is known of work that does not get on") {
  RemainingTime remaining;
  remaining.begin(0);
  CHECK_FALSE(remaining.update(5, 0));
  remaining.update(6, 0.5);
  for (double now = 7; now < 30; ++now)
    remaining.update(now, 0.5);
  CHECK_FALSE(remaining.update(30, 0.5));
  CHECK(remaining.update(31, 0.6));
  remaining.begin(40); // another piece of work
  CHECK_FALSE(remaining.update(41, 0));
  CHECK(*remaining.update(42, 0.5) == Approx(2));
}

TEST_CASE("durations are for people") {
  CHECK(durationText(-1) == "0 s");
  CHECK(durationText(0.2) == "1 s");
  CHECK(durationText(59.5) == "1 min 0 s");
  CHECK(durationText(200) == "3 min 20 s");
  CHECK(durationText(7500) == "2 h 5 min");
  CHECK(durationText(1e18) == "more than 99 h");
  CHECK(durationText(std::numeric_limits<double>::quiet_NaN()) == "more than 99 h");
}

TEST_CASE("the line says what runs, how far it is and how long it takes") {
  ProgressLine line;
  line.beginStage("interpret", 0);
  CHECK(line.text(0.5, 0, 80) == "hloc: interpret");
  CHECK(line.text(3.2, 0, 80) == "hloc: interpret: 3 s so far"); // how far is not known
  line.setCircumstances("regime special (3 of 4)");
  line.beginStage("emulate `gelu` (kernel 2 of 7)", 10);
  CHECK(line.text(10, 0, 80) == "hloc: emulate `gelu` (kernel 2 of 7), regime special (3 of 4)");
  CHECK(line.text(14, 0.25, 80) == "hloc: emulate `gelu` (kernel 2 of 7), regime special (3 of 4): 25 %, 12 s left");
  CHECK(line.text(14, 0.25, 20) == "hloc: emulate `gelu`");
}

TEST_CASE("work that is counted is a fraction, whatever comes first") {
  WorkProgress work;
  CHECK(work.fraction() == 0);
  work.advance(5); // of unknown work
  CHECK(work.fraction() == 0);
  work.begin(8);
  work.advance();
  work.advance(3);
  CHECK(work.fraction() == 0.5);
  work.advance(100);
  CHECK(work.fraction() == 1);
}
