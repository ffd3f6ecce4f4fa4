// mbarriers and bulk copies: what they do in every schedule, and what is found when something is left out.
#include "Harness.h"

#include "llvm/ADT/StringRef.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;
using Catch::Matchers::Contains;

namespace {

const std::string shared =
    ".shared .align 128 .b8 s[512];\n.shared .align 8 .b64 full[2];\n.shared .align 8 .b64 empty[2];\n";
/// %d12: the thread's word of p2; %r20: that in s; %r21: s; %p1: this is thread 0.
const std::string addresses = "add.s64 %d12, %d3, %d0;\nmov.u32 %r21, s;\nshl.b32 %r22, %r1, 2;\n"
                              "add.s32 %r20, %r21, %r22;\nsetp.eq.u32 %p1, %r1, 0;\n";
const std::string init = "@%p1 mbarrier.init.shared.b64 [full], 1;\nbar.sync 0;\n";
const std::string expectBytes = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;\n";
const std::string load =
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d2], 256, [full];\n";
const std::string wait = "W: mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;\n@!%p2 bra W;\n";
const std::string readOwn = "ld.shared.u32 %r7, [%r20];\nst.global.u32 [%d12], %r7;\n";
/// Its first word to p2 by a bulk store.
const std::string fill = "st.shared.u32 [%r20], %r1;\n";
const std::string fence = "fence.proxy.async.shared::cta;\n";
const std::string store = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d3], [s], 256;\n";
const std::string commit = "cp.async.bulk.commit_group;\n";
const std::string waitRead = "cp.async.bulk.wait_group.read 0;\n";

const Schedule schedules[] = {{Schedule::Order::Ascending, 0},
                              {Schedule::Order::Reversed, 0},
                              {Schedule::Order::Shuffled, 1},
                              {Schedule::Order::Shuffled, 2},
                              {Schedule::Order::Shuffled, 3}};

void run(Harness &h, const std::string &body, const Schedule &schedule) {
  h.options.schedule = schedule;
  h.block = {64, 1, 1};
  h.runOnThree(addresses + body, shared);
}

void expectValues(const char *what, const std::string &body, llvm::function_ref<uint32_t(uint32_t)> value) {
  for (const Schedule &schedule : schedules) {
    Harness h;
    run(h, body, schedule);
    INFO(what << ", " << schedule.name() << "\n" << h.messages());
    REQUIRE(h.silent());
    const std::vector<uint32_t> out = h.read<uint32_t>(2);
    for (uint32_t i = 0; i < 64; ++i)
      CHECK(out[i] == value(i));
  }
}

/// A finding of the kind in every schedule; none is a wrong result that goes unnoticed.
void expectFinding(const char *what, const std::string &body, FindingKind kind, const char *message) {
  for (const Schedule &schedule : schedules) {
    Harness h;
    run(h, body, schedule);
    INFO(what << ", " << schedule.name() << "\n" << h.messages());
    const Finding *finding = h.find(kind);
    REQUIRE(finding);
    CHECK_THAT(finding->message, Contains(message));
  }
}

/// Which one depends on the schedule.
void expectAnyFinding(const char *what, const std::string &body) {
  for (const Schedule &schedule : schedules) {
    Harness h;
    run(h, body, schedule);
    INFO(what << ", " << schedule.name() << "\n" << h.messages());
    CHECK_FALSE(h.silent());
  }
}

uint32_t counting(uint32_t i) { return i + 1; }

/// Four tiles of 64 words by way of two places: thread 0 brings them, the second warp adds them up.
std::string ring(const std::string &waitEmpty, const std::string &waitFull, const std::string &leave) {
  return "@%p1 mbarrier.init.shared.b64 [full], 1;\n@%p1 mbarrier.init.shared.b64 [full+8], 1;\n"
         "@%p1 mbarrier.init.shared.b64 [empty], 32;\n@%p1 mbarrier.init.shared.b64 [empty+8], 32;\nbar.sync 0;\n"
         "mov.u32 %r10, 0;\nmov.u32 %r11, full;\nmov.u32 %r12, empty;\nmov.u32 %r19, 0;\n"
         "setp.lt.u32 %p3, %r1, 32;\n@!%p3 bra CONSUMER;\n@!%p1 bra END;\n"
         "P: and.b32 %r13, %r10, 1;\nshr.u32 %r14, %r10, 1;\nand.b32 %r14, %r14, 1;\nxor.b32 %r15, %r14, 1;\n"
         "shl.b32 %r16, %r13, 3;\nadd.s32 %r17, %r12, %r16;\nadd.s32 %r18, %r11, %r16;\n" +
         waitEmpty +
         "mbarrier.arrive.expect_tx.shared.b64 _, [%r18], 256;\nshl.b32 %r13, %r13, 8;\nadd.s32 %r13, %r13, %r21;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r13], [%d2], 256, [%r18];\n"
         "add.u32 %r10, %r10, 1;\nsetp.lt.u32 %p4, %r10, 4;\n@%p4 bra P;\nbra END;\n"
         "CONSUMER: and.b32 %r13, %r10, 1;\nshr.u32 %r14, %r10, 1;\nand.b32 %r14, %r14, 1;\n"
         "shl.b32 %r16, %r13, 3;\nadd.s32 %r17, %r12, %r16;\nadd.s32 %r18, %r11, %r16;\n" +
         waitFull +
         "shl.b32 %r13, %r13, 8;\nadd.s32 %r13, %r13, %r20;\nld.shared.u32 %r23, [%r13];\nadd.u32 %r19, %r19, %r23;\n"
         "ld.shared.u32 %r23, [%r13-128];\nadd.u32 %r24, %r24, %r23;\n" +
         leave +
         "add.u32 %r10, %r10, 1;\nsetp.lt.u32 %p4, %r10, 4;\n@%p4 bra CONSUMER;\n"
         "st.global.u32 [%d12], %r19;\nst.global.u32 [%d12+-128], %r24;\nEND:";
}
const std::string waitEmpty = "WE: mbarrier.try_wait.parity.shared.b64 %p2, [%r17], %r15;\n@!%p2 bra WE;\n";
const std::string waitFull = "WF: mbarrier.try_wait.parity.shared.b64 %p2, [%r18], %r14;\n@!%p2 bra WF;\n";
const std::string leave = "mbarrier.arrive.shared.b64 _, [%r17];\n";

} // namespace

TEST_CASE("asynchronous machine: a bulk copy that all threads wait for") {
  expectValues("load", init + expectBytes + load + wait + readOwn, counting);
  expectValues("bytes are expected after the copy has been issued", init + load + expectBytes + wait + readOwn,
               counting);
  expectValues("a state instead of a parity",
               init + "@!%p1 bra OTHERS;\nmbarrier.arrive.expect_tx.shared.b64 %d20, [full], 256;\n" + load +
                   "T: mbarrier.test_wait.shared.b64 %p2, [full], %d20;\n@!%p2 bra T;\nOTHERS: bar.sync 0;\n" + readOwn,
               counting);
}

TEST_CASE("asynchronous machine: what a bulk copy that nobody waits for does is found") {
  expectFinding("no wait", init + expectBytes + load + readOwn, FindingKind::SharedRace, "");
  expectAnyFinding("waits for the phase before",
                   init + expectBytes + load +
                       "W: mbarrier.try_wait.parity.shared.b64 %p2, [full], 1;\n@!%p2 bra W;\n" + readOwn);
  expectFinding("one thread waits, nobody tells the others",
                init + expectBytes + load + "@!%p1 bra E;\n" + wait + "E: " + readOwn, FindingKind::SharedRace, "");
  expectFinding("nobody ever waits", init + expectBytes + load, FindingKind::OpenCopy, "may still write shared memory");
  expectFinding("too many bytes are expected",
                init + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], 272;\n" + load + wait + readOwn,
                FindingKind::Deadlock, "16 bytes are missing");
  expectFinding("nobody arrives", init + load + wait + readOwn, FindingKind::Deadlock, "1 of 1 arrivals");
  expectFinding("no mbarrier", expectBytes + load + wait + readOwn, FindingKind::BrokenMbarrier, "was not initialized");
  expectFinding("the place is read before", init + fill + "bar.sync 0;\n" + expectBytes + load + wait + readOwn,
                FindingKind::SharedRace, "fence.proxy.async");
  expectFinding("the mbarrier is overwritten", init + "st.shared.u32 [full+4], %r1;\n", FindingKind::BrokenMbarrier,
                "where there is an mbarrier");
  expectFinding("arrives twice of once", init + "@%p1 mbarrier.arrive.shared.b64 _, [full], 2;\n",
                FindingKind::BrokenMbarrier, "1 of 1 arrivals are missing");
  expectFinding(
      "misaligned",
      init + expectBytes +
          "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d2+8], 240, [full];\n",
      FindingKind::Misaligned, "multiples of 16");
  expectFinding(
      "beyond the buffer",
      init + expectBytes +
          "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d2+16], 256, [full];\n",
      FindingKind::OutOfBounds, "`counting`, which has 256");
}

TEST_CASE("asynchronous machine: too few bytes are expected") {
  expectAnyFinding("240 of 256",
                   init + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], 240;\n" + load + wait + readOwn);
}

TEST_CASE("asynchronous machine: copies of single threads that arrive at an mbarrier") {
  const std::string initAll = "@%p1 mbarrier.init.shared.b64 [full], 64;\n@%p1 mbarrier.init.shared.b64 [empty], 64;\n"
                              "bar.sync 0;\nadd.s64 %d11, %d2, %d0;\n";
  const std::string copy = "cp.async.ca.shared.global [%r20], [%d11], 4;\n";
  const std::string arrive = "mbarrier.arrive.shared.b64 _, [full];\n";
  const std::string readOther = "xor.b32 %r9, %r22, 128;\nadd.s32 %r9, %r21, %r9;\nld.shared.u32 %r7, [%r9];\n"
                                "st.global.u32 [%d12], %r7;\n";
  const auto others = [](uint32_t i) { return counting(i ^ 32); };
  expectValues("an arrival of their own",
               initAll + copy + "cp.async.mbarrier.arrive.noinc.shared.b64 [full];\n" + wait + readOther, others);
  expectValues("beside that of their thread",
               initAll + copy + "cp.async.mbarrier.arrive.shared.b64 [full];\n" + arrive + wait + readOther, others);
  expectValues("the thread itself may wait in the old way",
               initAll + copy + "cp.async.mbarrier.arrive.noinc.shared.b64 [full];\ncp.async.wait_all;\n" + readOwn,
               counting);
  expectFinding("they arrive elsewhere",
                initAll + copy + "cp.async.mbarrier.arrive.shared.b64 [empty];\n" + arrive + wait + readOther,
                FindingKind::SharedRace, "nothing says that this is over");
  expectFinding("they arrive elsewhere, their own thread reads",
                initAll + copy + "cp.async.mbarrier.arrive.shared.b64 [empty];\n" + arrive + wait + readOwn,
                FindingKind::SharedRace, "nothing says that this is over");
}

TEST_CASE("asynchronous machine: bulk stores") {
  const auto own = [](uint32_t i) { return i; };
  expectValues("store", fill + fence + "bar.sync 0;\n" + store + commit + waitRead, own);
  expectValues("the fence of the thread that stores", fill + "bar.sync 0;\n" + fence + store + commit + waitRead, own);
  expectValues(
      "its place is used again",
      fill + fence + "bar.sync 0;\n" + store + commit + waitRead + "bar.sync 0;\n" + "st.shared.u32 [%r20], 7;\n", own);
  expectFinding("no fence", fill + "bar.sync 0;\n" + store + commit + waitRead, FindingKind::SharedRace,
                "no fence.proxy.async between");
  expectFinding("no barrier", fill + fence + store + commit + waitRead, FindingKind::SharedRace, "no order between");
  expectFinding("no wait", fill + fence + "bar.sync 0;\n" + store + commit, FindingKind::OpenCopy,
                "may still read shared memory");
  expectFinding("its place is used too early",
                fill + fence + "bar.sync 0;\n" + store + commit + "bar.sync 0;\nst.shared.u32 [%r20], 7;\n" + waitRead,
                FindingKind::SharedRace, "");
  expectFinding("a wait for the reads alone",
                fill + fence + "bar.sync 0;\n" + store + commit + waitRead + "@%p1 ld.global.u32 %r9, [%d3];\n",
                FindingKind::GlobalRace, "");
  expectValues("a wait for all",
               fill + fence + "bar.sync 0;\n" + store + commit +
                   "cp.async.bulk.wait_group 0;\n@%p1 ld.global.u32 %r9, [%d3];\n",
               own);
}

TEST_CASE("asynchronous machine: who asks but once, and goes on, is found") {
  // A try_wait may fail for nothing: of a shuffled schedule it does, for some phases.
  constexpr uint64_t seeds = 16;
  const std::string once = "mbarrier.try_wait.parity.shared.b64 %p2, [%r18], %r14;\n";
  uint64_t found = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Schedule shuffled{Schedule::Order::Shuffled, seed};
    Harness right, wrong;
    run(right, ring(waitEmpty, waitFull, leave), shuffled);
    INFO(right.messages());
    CHECK(right.silent());
    run(wrong, ring(waitEmpty, once, leave), shuffled);
    found += !wrong.silent();
  }
  CHECK(found >= seeds / 2);
}

TEST_CASE("asynchronous machine: a ring of two places") {
  for (const Schedule &schedule : schedules) {
    Harness h;
    run(h, "mov.u32 %r24, 0;\n" + ring(waitEmpty, waitFull, leave), schedule);
    INFO(schedule.name() << "\n" << h.messages());
    REQUIRE(h.silent());
    const std::vector<uint32_t> out = h.read<uint32_t>(2);
    for (uint32_t i = 0; i < 64; ++i)
      CHECK(out[i] == 4 * counting(i));
  }
  const std::string zero = "mov.u32 %r24, 0;\n";
  expectAnyFinding("the producer does not wait", zero + ring("", waitFull, leave));
  expectAnyFinding("the consumer does not wait", zero + ring(waitEmpty, "", leave));
  expectFinding("the consumer leaves nothing", zero + ring(waitEmpty, waitFull, ""), FindingKind::Deadlock,
                "32 of 32 arrivals");
  expectAnyFinding("the consumer leaves too early", zero + ring(waitEmpty, leave + waitFull, ""));
}
