// cp.async between its issue and the wait: who may touch what it writes, and when the bytes land. Kernels that are
// whole pipelines are in tests/mutation/ptx/multistage_copies.
#include "Harness.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

const std::string variables = ".shared .align 16 .b8 s[1024];";
/// %r20, %r21: the thread's word of `s`, and that of the thread at the other end of the block; %d11: its word of the
/// buffer that counts.
const std::string places = "mov.u32 %r9, s;\nshl.b32 %r10, %r1, 2;\nadd.u32 %r20, %r9, %r10;\n"
                           "sub.u32 %r11, %r4, 1;\nsub.u32 %r11, %r11, %r1;\nshl.b32 %r11, %r11, 2;\n"
                           "add.u32 %r21, %r9, %r11;\nadd.s64 %d11, %d2, %d0;\nadd.s64 %d10, %d1, %d0;\n";
const std::string copy = "cp.async.ca.shared.global [%r20], [%d11], 4;\n";
const std::string wait = "cp.async.wait_all;\n", barrier = "bar.sync 0;\n";
const std::string readOther = "ld.shared.u32 %r5, [%r21];\n", writeOther = "st.shared.u32 [%r21], 7;\n";
const std::string readOwn = "ld.shared.u32 %r5, [%r20];\n", writeOwn = "st.shared.u32 [%r20], 7;\n";
const std::string keep = "st.global.u32 [%d10], %r5;\n";

Harness ran(const std::string &body, Schedule schedule = {}) {
  Harness h;
  h.block = {64, 1, 1};
  h.options.schedule = schedule;
  h.options.checkUninit = false; // what is read too early has no value, too
  h.runOnThree(places + body, variables);
  return h;
}

const std::vector<Schedule> schedules = {{Schedule::Order::Ascending, 0},
                                         {Schedule::Order::Reversed, 0},
                                         {Schedule::Order::Shuffled, 1},
                                         {Schedule::Order::Shuffled, 2}};

} // namespace

TEST_CASE("asynchronous copies: orders that are right") {
  for (const std::string &body :
       {copy + wait + barrier + readOther + keep, copy + wait + readOwn + keep, writeOwn + copy + wait + readOwn + keep,
        readOther + barrier + copy + wait + barrier + readOther + keep,
        // One of two groups is waited for.
        copy +
            "cp.async.commit_group;\ncp.async.ca.shared.global [%r20+512], [%d11], 4;\ncp.async.commit_group;\n"
            "cp.async.wait_group 1;\n" +
            barrier + readOther + keep + "cp.async.wait_group 0;\n",
        // The same bytes twice.
        copy + copy + wait + barrier + readOther + keep}) {
    std::vector<std::vector<uint32_t>> results;
    for (const Schedule &schedule : schedules) {
      INFO(body << schedule.name());
      Harness h = ran(body, schedule);
      INFO(h.messages());
      CHECK(h.silent());
      results.push_back(h.read<uint32_t>(0));
    }
    CHECK(std::count(results.begin(), results.end(), results[0]) == std::ptrdiff_t(results.size()));
  }
}

TEST_CASE("asynchronous copies: what is touched between issue and wait") {
  for (const auto &[body, party] : std::vector<std::pair<std::string, const char *>>{
           {copy + readOwn + wait, "reads byte 0 of shared memory, which the copy of thread 0 in line"},
           {copy + writeOwn + wait, "writes byte 0 of shared memory, which the copy of thread 0 in line"},
           {copy + barrier + readOther + wait, "reads byte 252 of shared memory, which the copy of thread 63 in line"},
           {copy + barrier + writeOther + wait, "writes byte 252 of shared memory, which the copy of thread 63"},
           {copy + barrier + "atom.shared.add.u32 %r5, [%r21], 1;\n" + wait, "which the copy of thread 63"},
           {copy + barrier + "ld.shared.u32 %r5, [%r9];\n" + wait, "which the copy of thread 0 in line"},
           // 16 bytes a lane, of which the first matrix has the rows.
           {copy + barrier +
                "and.b32 %r6, %r1, 7;\nmad.lo.u32 %r6, %r6, 16, %r9;\n"
                "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r6];\n" +
                wait,
            "which the copy of thread"},
           // The bytes behind what is read are written, too.
           {"cp.async.ca.shared.global [%r20], [%d11], 4, 0;\n" + barrier + readOther + wait,
            "which the copy of thread 63"},
           // In no group.
           {copy + "cp.async.wait_group 0;\n" + readOwn + wait, "which the copy of thread 0 in line"},
           // In the last group.
           {copy + "cp.async.commit_group;\ncp.async.wait_group 1;\n" + readOwn + wait, "which the copy of thread 0"},
           // Two copies of different bytes.
           {copy + "cp.async.ca.shared.global [%r20], [%d11], 4, 0;\n" + wait, "which the copy of thread 0 in line"}})
    for (const Schedule &schedule : schedules) {
      INFO(body << schedule.name());
      Harness h = ran(body, schedule);
      INFO(h.messages());
      CHECK(h.find(FindingKind::SharedRace));
      // In other orders the other thread may have waited already: then a barrier is missing.
      if (schedule.order == Schedule::Order::Ascending)
        CHECK(h.messages().find(party) != std::string::npos);
    }
}

TEST_CASE("asynchronous copies: in kernels whose threads are ordered by other means, too") {
  const std::string some = "barrier.sync 1, 64;\n"; // of 64 threads: takes Causality
  for (const Schedule &schedule : schedules) {
    INFO(schedule.name());
    Harness right = ran(readOther + some + copy + wait + some + readOther + keep, schedule);
    INFO(right.messages());
    CHECK(right.silent());
    for (const std::string &body :
         {copy + some + readOther + wait, copy + some + writeOther + wait, readOther + copy + wait + some,
          copy + wait + readOther + some, some + copy + readOwn + wait}) {
      INFO(body);
      Harness wrong = ran(body, schedule);
      INFO(wrong.messages());
      CHECK(wrong.find(FindingKind::SharedRace));
    }
    CHECK(ran(some + copy, schedule).only(FindingKind::OpenCopy));
  }
}

TEST_CASE("asynchronous copies: what comes before the issue and after the wait") {
  for (const std::string &body :
       {readOther + copy + wait, writeOther + copy + wait, copy + wait + readOther, copy + wait + writeOther})
    for (const Schedule &schedule : schedules) {
      INFO(body << schedule.name());
      Harness h = ran(body, schedule);
      INFO(h.messages());
      const Finding *found = h.find(FindingKind::SharedRace);
      REQUIRE(found);
      CHECK(found->message.find("with no barrier between") != std::string::npos);
    }
}

TEST_CASE("asynchronous copies: threads that end before their copies") {
  for (const std::string &body : {copy, copy + "cp.async.commit_group;\ncp.async.wait_group 1;\n",
                                  "setp.lt.u32 %p1, %r1, 40;\n@%p1 " + copy + "cp.async.wait_group 0;\n"}) {
    INFO(body);
    Harness h = ran(body);
    INFO(h.messages());
    const Finding *found = h.only(FindingKind::OpenCopy);
    REQUIRE(found);
    CHECK(found->thread.x == 0);
    CHECK(found->count == 2); // warps
    CHECK(found->message == "ends without having waited for its copy to byte 0 of shared memory");
  }
  Harness early = ran(copy + "setp.lt.u32 %p1, %r1, 40;\n@%p1 exit;\n" + wait);
  const Finding *found = early.only(FindingKind::OpenCopy);
  REQUIRE(found);
  CHECK(found->count == 2);
}

TEST_CASE("asynchronous copies: the source may change until the wait") {
  const std::string from = "cp.async.ca.shared.global [%r20], [%d10], 4;\n";
  const std::string change = "sub.u32 %r12, %r4, 1;\nsub.u32 %r12, %r12, %r1;\nmul.wide.u32 %d12, %r12, 4;\n"
                             "add.s64 %d12, %d1, %d12;\nst.global.u32 [%d12], 5;\n";
  CHECK(ran(from + wait + barrier + change).silent());
  CHECK(ran(from + change + wait).find(FindingKind::GlobalRace));
  CHECK(ran(from + barrier + change + wait).find(FindingKind::GlobalRace));
}

TEST_CASE("asynchronous copies: when the bytes land shows in the results") {
  const std::string stale = "st.shared.u32 [%r20], 1000;\n" + barrier + copy + readOwn + keep + wait;
  std::vector<std::vector<uint32_t>> results;
  for (const Schedule &schedule : schedules) {
    Harness h;
    h.block = {64, 1, 1};
    h.options.schedule = schedule;
    h.options.checkRaces = h.options.checkUninit = false;
    h.runOnThree(places + stale, variables);
    INFO(h.messages());
    CHECK(h.silent());
    results.push_back(h.read<uint32_t>(0));
  }
  const auto late = [](uint32_t word) { return word == 1000; };
  CHECK(std::all_of(results[0].begin(), results[0].end(), late));
  CHECK(std::none_of(results[1].begin(), results[1].end(), late));
  for (size_t i : {2u, 3u}) {
    CHECK(std::any_of(results[i].begin(), results[i].end(), late));
    CHECK(!std::all_of(results[i].begin(), results[i].end(), late));
  }
  CHECK(results[2] != results[3]);
}
