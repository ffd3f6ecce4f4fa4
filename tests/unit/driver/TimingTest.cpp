#include "driver/Timing.h"

#include <catch2/catch.hpp>

using namespace hloc;
using std::chrono::milliseconds;

TEST_CASE("timing-shows-passes-below-the-stage-of-their-track") {
  Timing timing(true);
  Timing::Clock::time_point t = Timing::Clock::now() + milliseconds(10);
  timing.timed("passes", "a", t, t + milliseconds(20), 0);
  timing.timed("passes", "b", t + milliseconds(1), t + milliseconds(30), 0);
  timing.timed("inline", "b", t + milliseconds(2), t + milliseconds(3), 1);
  timing.timed("inline", "a", t + milliseconds(4), t + milliseconds(5), 1);
  std::string table = timing.table();
  size_t a = table.find("    20.000  passes  [a]\n     1.000    inline  [a]\n");
  size_t b = table.find("    29.000  passes  [b]\n     1.000    inline  [b]\n");
  REQUIRE(a != std::string::npos);
  REQUIRE(b != std::string::npos);
  CHECK(a < b);
}

TEST_CASE("a scope is timed from its beginning to its end, and only if timing is on") {
  for (bool on : {false, true}) {
    Timing timing(on);
    {
      TimedScope scope(timing, "stage");
      TimedScope pass(timing, "pass", "kernel", 1);
      CHECK(timing.chromeTrace().find("stage") == std::string::npos);
    }
    std::string trace = timing.chromeTrace();
    CHECK((trace.find("\"stage\"") != std::string::npos) == on);
    CHECK((trace.find("\"module\"") != std::string::npos) == on);
    CHECK((trace.find("\"kernel\"") != std::string::npos) == on);
  }
}

TEST_CASE("timing-says-what-is-in-no-stage") {
  Timing timing(true);
  Timing::Clock::time_point begin = Timing::Clock::now();
  timing.timed("all", "", begin - milliseconds(1), begin + std::chrono::hours(1), 0);
  CHECK(timing.table().find("     0.000  in no stage\n") != std::string::npos);
}
