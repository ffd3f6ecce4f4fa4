#include "hloc/support/Recovery.h"

#include "hloc/support/Check.h"
#include "hloc/support/Parallel.h"

#include <catch2/catch.hpp>

#include <atomic>

using namespace hloc;

TEST_CASE("work that ends is not given up", "[recovery]") {
  bool ran = false;
  CHECK_FALSE(isRecoverable());
  CHECK_FALSE(runRecoverably([&] { ran = isRecoverable(); }));
  CHECK(ran);
  CHECK_FALSE(isRecoverable());
  giveUp({ExitCode::InternalError, "nobody hears it"}); // returns
}

TEST_CASE("a failed check ends the innermost work only", "[recovery]") {
  std::optional<GivenUp> inner;
  std::optional<GivenUp> outer = runRecoverably([&] {
    inner = runRecoverably([] { HLOC_CHECK(1 + 1 == 3, "sums are wrong"); });
    CHECK(isRecoverable());
  });
  CHECK_FALSE(outer);
  REQUIRE(inner);
  CHECK(inner->code == ExitCode::InternalError);
  CHECK(inner->what.find("sums are wrong") == 0);
}

TEST_CASE("a failure in one of several threads is that of their caller", "[recovery]") {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> numBegun = 0;
    std::optional<GivenUp> why = runRecoverably([&] {
      runInParallel(100, 4, [&](size_t i) {
        ++numBegun;
        if (i == size_t(round))
          giveUp({ExitCode::Unsupported, "piece " + std::to_string(i)});
      });
      FAIL("went on");
    });
    REQUIRE(why);
    CHECK(why->code == ExitCode::Unsupported);
    CHECK(why->what == "piece " + std::to_string(round));
    CHECK(numBegun > round);
    CHECK_FALSE(isRecoverable());
    // Threads that helped are given back.
    std::atomic<int> sum = 0;
    runInParallel(10, 4, [&](size_t i) { sum += int(i); });
    CHECK(sum == 45);
  }
}
