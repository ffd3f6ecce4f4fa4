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

TEST_CASE("of many kernels there are sums, the slowest ten, and counts") {
  Timing timing(true);
  Timing::Clock::time_point t = Timing::Clock::now();
  timing.timed("parse", "", t, t + milliseconds(1), 0);
  for (int i = 0; i < 20; ++i) {
    const std::string kernel = "k" + std::to_string(i);
    timing.beginKernel(kernel);
    Timing::Clock::time_point begin = t + milliseconds(10 * i);
    timing.timed("emit", kernel, begin, begin + milliseconds(1), 0);
    timing.timed("passes", kernel, begin + milliseconds(1), begin + milliseconds(5 + i), 0);
    timing.timed("inline", kernel, begin + milliseconds(1), begin + milliseconds(2), 1);
    timing.timed("cse", kernel, begin + milliseconds(2), begin + milliseconds(4), 1);
    timing.timed("hash", kernel, begin + milliseconds(2), begin + milliseconds(3), 2);
  }
  timing.counted("kernels", 15);
  timing.counted("kernels", 5);
  std::string table = timing.table();
  INFO(table);
  auto has = [&](const char *text) { return table.find(text) != std::string::npos; };
  CHECK(has("     1.000  parse\n       sum    elapsed  stage of 20 kernels\n    20.000    191.000  emit\n"));
  CHECK(has("   270.000    213.000  passes\n    40.000               cse\n    20.000                 hash\n    20.000  "
            "             inline\n"));
  CHECK(has("slowest kernels\n    24.000  k19: emit 1.000, passes 23.000\n    23.000  k18: "));
  CHECK(has("    15.000  k10: "));
  CHECK_FALSE(has("k9"));
  CHECK_FALSE(has("[k"));
  CHECK(has("        20  kernels\n"));
  CHECK(has("  processor time"));
}

TEST_CASE("timing-says-what-is-in-no-stage") {
  Timing timing(true);
  Timing::Clock::time_point begin = Timing::Clock::now();
  timing.timed("all", "", begin - milliseconds(1), begin + std::chrono::hours(1), 0);
  CHECK(timing.table().find("     0.000  in no stage\n") != std::string::npos);
}
