// st.async and red.async: words for other blocks of a cluster, which learn of them by their own mbarriers.
#include "Harness.h"

#include "llvm/ADT/STLFunctionalExtras.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;
using Catch::Matchers::Contains;

namespace {

const std::string shared = ".shared .align 16 .b8 s[256];\n.shared .align 8 .b64 full[2];\n";
const std::string meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
/// Thread 0 (%p1) makes the mbarrier, zeros are stored. %r20: the own word; %r23, %r24: word and mbarrier of the next
/// block, %r26, %r27: those of the first one.
const std::string begin =
    "mov.u32 %r21, s;\nshl.b32 %r22, %r1, 2;\nadd.s32 %r20, %r21, %r22;\nsetp.eq.u32 %p1, %r1, 0;\n"
    "mov.u32 %r25, %cluster_ctarank;\nadd.u32 %r25, %r25, 1;\nand.b32 %r25, %r25, 3;\nmov.u32 %r28, full;\n"
    "mapa.shared::cluster.u32 %r23, %r20, %r25;\nmapa.shared::cluster.u32 %r24, %r28, %r25;\n"
    "mapa.shared::cluster.u32 %r26, %r20, 0;\nmapa.shared::cluster.u32 %r27, %r28, 0;\n"
    "st.shared.u32 [%r20], 0;\n@%p1 mbarrier.init.shared.b64 [full], 1;\n"
    "@%p1 fence.mbarrier_init.release.cluster;\n";
std::string expectBytes(unsigned bytes) {
  return "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], " + std::to_string(bytes) + ";\n";
}
const std::string send = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r23], %r2, [%r24];\n";
const std::string wait = "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [full], 0;\n@!%p2 bra W;\n";
const std::string readOwn = "ld.shared.u32 %r7, [%r20];\nadd.s64 %d10, %d1, %d0;\nst.global.u32 [%d10], %r7;\n";

const Schedule schedules[] = {{Schedule::Order::Ascending, 0},
                              {Schedule::Order::Reversed, 0},
                              {Schedule::Order::Shuffled, 1},
                              {Schedule::Order::Shuffled, 2},
                              {Schedule::Order::Shuffled, 3}};

/// Two clusters of four blocks of 32 threads.
void run(Harness &h, const std::string &body, const Schedule &schedule) {
  h.options.schedule = schedule;
  h.grid = {8, 1, 1};
  h.cluster = Dim3{4, 1, 1};
  h.load(Harness::kernel(body, 1, shared));
  h.output("out", 4 * 8 * 32);
  h.launch();
}

void expectValues(const char *what, const std::string &body, uint32_t (*value)(uint32_t block, uint32_t thread)) {
  for (const Schedule &schedule : schedules) {
    Harness h;
    run(h, body, schedule);
    INFO(what << ", " << schedule.name() << "\n" << h.messages());
    REQUIRE(h.silent());
    const std::vector<uint32_t> out = h.read<uint32_t>(0);
    for (uint32_t i = 0; i < out.size(); ++i)
      CHECK(out[i] == value(i / 32, i % 32));
  }
}

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

uint32_t ofPrevious(uint32_t block, uint32_t thread) { return (block / 4 * 4 + (block + 3) % 4) * 32 + thread; }

} // namespace

TEST_CASE("asynchronous stores: a ring of blocks") {
  expectValues("words", begin + expectBytes(128) + meet + send + wait + readOwn, ofPrevious);
  expectValues("expected late", begin + meet + send + expectBytes(128) + wait + readOwn, ofPrevious);
  const std::string generic =
      "cvt.u64.u32 %d11, %r23;\ncvta.shared.u64 %d11, %d11;\ncvt.u64.u32 %d12, %r24;\ncvta.shared.u64 %d12, %d12;\n"
      "st.async.u32 [%d11], %r2, [%d12];\n";
  expectValues("by generic addresses", begin + expectBytes(128) + meet + generic + wait + readOwn, ofPrevious);
  // Lanes 0 to 7 send four words each.
  const std::string vectors =
      "setp.ge.u32 %p3, %r1, 8;\n@%p3 bra S;\nmul.lo.u32 %r5, %r1, 12;\nadd.u32 %r5, %r23, %r5;\nmul.lo.u32 %r6, %r1, "
      "3;\n"
      "add.u32 %r6, %r6, %r2;\nadd.u32 %r9, %r6, 1;\nadd.u32 %r10, %r6, 2;\nadd.u32 %r11, %r6, 3;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r5], {%r6, %r9, %r10, %r11}, [%r24];\nS:\n";
  expectValues("vectors", begin + expectBytes(128) + meet + vectors + wait + readOwn, ofPrevious);
}

TEST_CASE("asynchronous stores: what is missing is found") {
  expectFinding("nobody waits", begin + expectBytes(128) + meet + send + readOwn + wait, FindingKind::SharedRace,
                "asynchronous store");
  expectFinding("the mbarrier of another block",
                begin + expectBytes(128) + meet +
                    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r23], %r2, [%r28];\n" + readOwn,
                FindingKind::BrokenMbarrier, "counts on an mbarrier of another");
  expectFinding("two for one place",
                begin + expectBytes(256) + meet + send +
                    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r23], 5, [%r24];\n" + wait + readOwn,
                FindingKind::SharedRace, "its asynchronous store writes byte");
  expectFinding("more is expected than comes", begin + expectBytes(132) + meet + send + wait + readOwn,
                FindingKind::Deadlock, "4 bytes are missing");
  expectFinding("not aligned",
                begin + expectBytes(128) + meet +
                    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r23+2], %r2, [%r24];\n" + readOwn,
                FindingKind::Misaligned, "not aligned");
  expectFinding("the zeros may come later", // a barrier of the block does not say that the others have stored theirs
                begin + expectBytes(128) + "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n" +
                    send + wait + readOwn,
                FindingKind::SharedRace, "wrote with no order between");
  for (const Schedule &schedule : schedules) { // what is found first depends on who is first
    Harness h;
    run(h, begin + expectBytes(128) + send + wait + readOwn, schedule);
    INFO(schedule.name() << "\n" << h.messages());
    CHECK_FALSE(h.succeeded);
    CHECK_FALSE(h.emulator->findings().empty());
  }
}

TEST_CASE("asynchronous reductions: all blocks add to words of the first") {
  const std::string isFirst = "mov.u32 %r29, %cluster_ctarank;\nsetp.ne.u32 %p4, %r29, 0;\n";
  auto sum = [&](const std::string &expected, const std::string &add, const std::string &end) {
    return begin + isFirst + "@!%p4 bra F;\nbra G;\nF:\n" + expected + "G:\n" + meet + add + "@%p4 bra L;\n" + end +
           "L:\n" + readOwn;
  };
  const std::string add =
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r26], %r2, [%r27];\n";
  expectValues("sum", sum(expectBytes(512), add, wait), [](uint32_t block, uint32_t thread) {
    return block % 4 ? 0 : 4 * (block * 32 + thread) + 32 * (1 + 2 + 3);
  });
  const std::string both = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r26], -1, "
                           "[%r27];\n";
  expectFinding("nobody waits", sum(expectBytes(512), add, "") + "bar.sync 0;\n", FindingKind::SharedRace,
                "which the asynchronous store of thread");
  expectFinding("two kinds of them", sum(expectBytes(1024), add + both, wait), FindingKind::SharedRace,
                "its asynchronous store writes byte");
}
