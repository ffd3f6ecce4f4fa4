// What is found in kernels with wgmmas: registers touched in flight or without a fence, waits that are missing, warps
// that part, descriptors that no layout has.
#include "WgmmaHarness.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

const Wgmmas w;

/// The only kind of finding, if there is one.
std::string kindOf(const std::string &body, const Wgmmas &wgmmas = w) {
  const auto h = wgmmas.run(body);
  INFO(h->messages());
  std::string kind;
  for (const Finding &finding : h->emulator->findings()) {
    const std::string name = findingName(finding.kind).str();
    CHECK((kind.empty() || kind == name));
    kind = name;
  }
  CHECK(h->succeeded == kind.empty());
  return kind;
}

const std::string race = "register-race", open = "open-wgmma", divergent = "divergent-warpgroup",
                  descriptor = "bad-descriptor";

} // namespace

TEST_CASE("wgmma checks: right kernels") {
  CHECK(kindOf(w.fence + w.multiply() + w.commit + w.wait() + w.store) == "");
  CHECK(kindOf(w.fence + w.multiply() + w.multiply() + w.commit + w.multiply() + w.commit + w.wait() + w.store) == "");
  // Two pairs of sums, one of which is stored while the other is in flight.
  CHECK(kindOf(w.fence + w.multiply('w') + w.commit + w.multiply('v') + w.commit + w.wait(1) + w.store + w.wait()) ==
        "");
  // An empty group counts.
  CHECK(kindOf(w.fence + w.multiply() + w.commit + w.commit + w.wait(1) + w.store) == "");
  CHECK(kindOf(w.fence + w.multiply('w', true) + w.commit + w.wait() + "mov.b32 %a0, 1;\n" + w.fence +
               w.multiply('w', true) + w.commit + w.wait() + w.store) == "");
  // A loop with one group in flight.
  CHECK(kindOf(w.fence + "mov.b32 %r21, 4;\nAGAIN: " + w.multiply() + w.commit + w.wait(1) +
               "sub.s32 %r21, %r21, 1;\nsetp.ne.s32 %p4, %r21, 0;\n@%p4 bra AGAIN;\n" + w.wait() + w.store) == "");
}

TEST_CASE("wgmma checks: registers in flight") {
  const std::string begin = w.fence + w.multiply() + w.commit;
  CHECK(kindOf(begin + "add.s32 %r30, %w3, 1;\n" + w.wait()) == race);
  CHECK(kindOf(begin + "mov.b32 %w3, 1;\n" + w.wait()) == race);
  CHECK(kindOf(begin + "@%p3 mov.b32 %w3, 1;\n" + w.wait()) == race);
  CHECK(kindOf(begin + w.wait(1) + w.store + w.wait()) == race);
  CHECK(kindOf(begin + w.multiply('v') + w.commit + w.wait(1) + "add.s32 %r30, %v3, 1;\n" + w.wait()) == race);
  // Not committed, so not waited for.
  CHECK(kindOf(w.fence + w.multiply() + w.commit + w.multiply('v') + w.wait() + "mov.b32 %r30, 0;\nmov.b32 %v0, 1;\n" +
               w.commit + w.wait()) == race);
  // Factors.
  CHECK(kindOf(w.fence + w.multiply('w', true) + w.commit + "mov.b32 %a1, 1;\n" + w.wait()) == race);
  CHECK(kindOf(w.fence + w.multiply('w', true) + w.commit + w.wait() + "mov.b32 %a1, 1;\n") == "");
  // Only on a path that no thread takes.
  CHECK(kindOf("setp.ne.u32 %p5, %r4, 128;\n" + begin + "@%p5 bra TOUCH;\n" + w.wait() +
               "TOUCH: add.s32 %r30, %w3, 1;\n") == "");
  CHECK(kindOf("setp.eq.u32 %p5, %r4, 128;\n" + begin + "@%p5 bra TOUCH;\n" + w.wait() +
               "TOUCH: add.s32 %r30, %w3, 1;\n" + w.wait()) == race);
  // Not in step with the number of groups in flight.
  CHECK(kindOf(w.fence + "mov.b32 %r21, 4;\nAGAIN: " + w.multiply() + w.commit + w.wait(1) +
               "sub.s32 %r21, %r21, 1;\nsetp.ne.s32 %p4, %r21, 0;\n@%p4 bra AGAIN;\n" + w.store + w.wait()) == race);
}

TEST_CASE("wgmma checks: sums go from wgmma to wgmma") {
  const std::string other =
                        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%w0, %w1, %w2, %w3}, %d20, %d21, 1, 1, "
                        "1, 0, 0;\n",
                    shifted =
                        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%w1, %w0, %w2, %w3, %w4, %w5, %w6, "
                        "%w7}, %d20, %d21, 1, 1, 1, 0, 0;\n",
                    asFactor =
                        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%v0, %v1, %v2, %v3, %v4, %v5, %v6, "
                        "%v7}, {%w0, %w1, %w2, %w3}, %d21, 1, 1, 1, 0;\n";
  for (const std::string &next : {other, shifted, asFactor}) {
    CHECK(kindOf(w.fence + w.multiply() + next + w.commit + w.wait()) == race);
    CHECK(kindOf(w.fence + w.multiply() + w.commit + w.wait() + w.fence + next + w.commit + w.wait()) == "");
  }
}

TEST_CASE("wgmma checks: copies of sums in flight are names") {
  std::string copies, back;
  for (unsigned i = 0; i < 8; ++i) {
    copies += "mov.b32 %v" + std::to_string(i) + ", %w" + std::to_string(i) + ";\n";
    back += "mov.b32 %w" + std::to_string(i) + ", %v" + std::to_string(i) + ";\n";
  }
  const std::string begin = w.fence + w.multiply() + w.commit;
  CHECK(kindOf(begin + copies + w.multiply('v') + w.commit + w.wait() + "add.s32 %r30, %v0, 1;\n") == "");
  CHECK(kindOf(begin + copies + w.multiply('v') + w.commit + back + w.multiply() + w.commit + w.wait() + w.store) ==
        "");
  CHECK(kindOf(begin + copies + "add.s32 %r30, %v0, 1;\n" + w.wait()) == race);
  CHECK(kindOf(begin + copies + w.wait() + "add.s32 %r30, %v0, 1;\n") == "");
  // In another order: no name of the same sums.
  CHECK(kindOf(begin + "mov.b32 %v1, %w0;\nmov.b32 %v0, %w1;\n" + w.multiply('v') + w.commit + w.wait()) == race);
}

TEST_CASE("wgmma checks: an operand that the warps of a group write for each other") {
  const std::string end = w.commit + w.wait() + w.store;
  const std::string write = "shl.b32 %r14, %r1, 4;\nadd.s32 %r14, %r14, %r11;\nst.shared.b32 [%r14], %r12;\n";
  CHECK(kindOf(write + "fence.proxy.async;\n" + w.fence + w.multiply() + end) == "");
  CHECK(kindOf(write + w.fence + w.multiply() + end) == "shared-race");
  CHECK(kindOf(w.fence + write + "fence.proxy.async;\n" + w.multiply() + end) == "shared-race");
  CHECK(kindOf(w.fence + w.multiply() + write + end) == "shared-race");
}

TEST_CASE("wgmma checks: fences") {
  const std::string end = w.commit + w.wait() + w.store;
  CHECK(kindOf(w.multiply() + end) == race);
  CHECK(kindOf(w.fence + "mov.b32 %w3, 1;\n" + w.multiply() + end) == race);
  CHECK_FALSE(w.run("@%p2 bra NONE;\n" + w.fence + "NONE: " + w.multiply() + end)->silent());
  CHECK(kindOf(w.fence + w.multiply() + end + w.multiply() + end) == race); // stored between
  CHECK(kindOf(w.fence + w.multiply() + end + w.fence + w.multiply() + end) == "");
  CHECK(kindOf(w.fence + w.multiply() + w.commit + w.wait() + w.multiply() + end) == "");
  CHECK(kindOf(w.fence + "mov.b32 %a3, 1;\n" + w.multiply('w', true) + end) == race);
  CHECK(kindOf(w.fence + "mov.b32 %a3, 1;\n" + w.multiply() + end) == "");
  // Only on a path that no thread takes.
  CHECK(kindOf(w.fence + "setp.ne.u32 %p5, %r4, 128;\n@%p5 mov.b32 %w3, 1;\n" + w.multiply() + end) == "");
}

TEST_CASE("wgmma checks: wgmmas that nobody waits for") {
  CHECK(kindOf(w.fence + w.multiply()) == open);
  CHECK(kindOf(w.fence + w.multiply() + w.commit) == open);
  CHECK(kindOf(w.fence + w.multiply() + w.commit + w.multiply() + w.commit + w.wait(1)) == open);
  CHECK(kindOf(w.fence + w.multiply() + w.commit + w.wait() + w.multiply() + w.wait()) == open);
  CHECK(kindOf(w.fence + w.multiply() + w.commit + "exit;\n") == open);
}

TEST_CASE("wgmma checks: the warps of a warpgroup") {
  const std::string end = w.commit + w.wait();
  // One of them never issues it: the others would wait for ever.
  CHECK(kindOf(w.fence + "@%p2 bra NONE;\n" + w.multiply() + end + "NONE:\n") == divergent);
  // All but one leave.
  CHECK(kindOf(w.fence + "@!%p2 exit;\n" + w.multiply() + end) == divergent);
  // Each executes another one.
  CHECK(kindOf(w.fence + "@%p2 bra OTHER;\n" + w.multiply() + end + "bra DONE;\nOTHER: " + w.multiply() + end +
               "DONE:\n") == divergent);
  // Other descriptors; another scale-d.
  CHECK(kindOf(w.fence + "@%p2 add.s64 %d21, %d21, 64;\n" + w.multiply() + end) == divergent);
  std::string scaled = w.multiply();
  scaled.replace(scaled.find(", 1, 1, 1"), 3, ", %p2");
  CHECK(kindOf(w.fence + scaled + end) == divergent);
  // Within a warp.
  CHECK(kindOf(w.fence + "@%p3 add.s64 %d21, %d21, 64;\n" + w.multiply() + end) == divergent);
  CHECK(kindOf(w.fence + "@%p3 bra NONE;\n" + w.multiply() + end + "NONE:\n") == "inactive-shuffle");
  // One is at a barrier before its own, where the others come after they have waited.
  const auto h =
      w.run(w.fence + "@%p2 bra LATE;\n" + w.multiply() + end + "bar.sync 0;\nbra DONE;\nLATE: bar.sync 0;\nDONE:\n");
  CHECK(h->find(FindingKind::DivergentWarpgroup));
  CHECK(h->find(FindingKind::Deadlock));
  // Two warps are no warpgroup.
  Wgmmas few;
  few.threads = 64;
  CHECK(kindOf(w.fence + w.multiply() + end, few) == divergent);
  Wgmmas many;
  many.threads = 256;
  CHECK(kindOf(w.fence + w.multiply() + end, many) == "");
}

TEST_CASE("wgmma checks: a wait ends when the other warps have issued") {
  // Warp 0 is through its wait before the others get to their wgmma, but for this rule.
  Wgmmas any;
  for (auto order : {Schedule::Order::Ascending, Schedule::Order::Reversed}) {
    any.options.schedule.order = order;
    const auto h = any.run(w.fence + w.multiply() + w.commit + w.wait() +
                           "setp.eq.u32 %p6, %r1, 0;\nmov.u32 %r31, image;\nmov.b32 %r32, 1069547520;\n"
                           "@%p6 st.shared.b32 [%r31+8192], %r32;\nmov.b32 %r30, %w0;\n" +
                           "add.s64 %d22, %d1, %d0;\nst.global.b32 [%d22], %r30;\n");
    CHECK(h->read<uint32_t>(0) == std::vector<uint32_t>(128));
  }
}

TEST_CASE("wgmma checks: descriptors") {
  auto found = [](auto change) {
    Wgmmas changed;
    change(changed);
    return kindOf(w.fence + w.multiply() + w.commit + w.wait(), changed);
  };
  CHECK(found([](Wgmmas &x) { x.a += 2; }) == "");                                    // 32 bytes along k
  CHECK(found([](Wgmmas &x) { x.a += 6; }) == "");                                    // the last ones
  CHECK(found([](Wgmmas &x) { x.a += 7; }) == descriptor);                            // beyond the row
  CHECK(found([](Wgmmas &x) { x.a += 8; }) == descriptor);                            // the second row of an atom
  CHECK(found([](Wgmmas &x) { x.a += uint64_t(1) << 49; }) == descriptor);            // base offset
  CHECK(found([](Wgmmas &x) { x.a += 8 + (uint64_t(1) << 49); }) == "");              // both: an atom that begins there
  CHECK(found([](Wgmmas &x) { x.a += uint64_t(1) << 32; }) == descriptor);            // stride
  CHECK(found([](Wgmmas &x) { x.a -= uint64_t(64) << 32; }) == descriptor);           // none
  CHECK(found([](Wgmmas &x) { x.b += uint64_t(1) << 46; }) == descriptor);            // no such bit
  CHECK(found([](Wgmmas &x) { x.b = 8192 >> 4 | uint64_t(8) << 32; }) == descriptor); // leading offset, not swizzled
  CHECK(found([](Wgmmas &x) { x.b = 8192 >> 4 | uint64_t(16) << 16 | uint64_t(8) << 32; }) == "");
  CHECK(found([](Wgmmas &x) { x.b += 8192 >> 4; }) == "out-of-bounds");
  CHECK(found([](Wgmmas &x) { x.a += uint64_t(192) << 32; }) ==
        "out-of-bounds"); // four times the distance between atoms
}

TEST_CASE("wgmma checks: operands in shared memory") {
  const std::string begin = w.fence + w.multiply() + w.commit, meet = "bar.sync 0;\n", proxy = "fence.proxy.async;\n",
                    end = w.fence + w.multiply() + w.commit + w.wait();
  auto write = [](const std::string &of) {
    return "mov.u32 %r31, image;\n@" + of + " st.shared.b32 [%r31+8192], %r12;\n";
  };
  const std::string found = "shared-race", some = write("%p3"),
                    read = "mov.u32 %r31, image;\nld.shared.b32 %r33, [%r31+8192];\n";
  CHECK(kindOf(begin + some + w.wait()) == found);
  CHECK(kindOf(begin + meet + some + w.wait()) == found); // nobody has waited
  CHECK(kindOf(begin + w.wait() + meet + some) == "");
  CHECK(kindOf(begin + w.wait() + some) == ""); // who has waited knows of all four warps
  CHECK(kindOf(begin + w.multiply() + w.commit + w.wait(1) + meet + some + w.wait()) == found); // not of the second one
  CHECK(kindOf(begin + read + w.wait()) == "");                                                 // both read
  CHECK(kindOf(begin + w.wait() + meet + some + meet + end) == found);                          // without a proxy fence
  CHECK(kindOf(begin + w.wait() + meet + some + proxy + meet + end) == "");
  CHECK(kindOf(begin + w.wait() + meet + some + meet + proxy + end) == "");
  CHECK(kindOf(begin + w.wait() + meet + some + proxy + end) == ""); // the four warps issue it together
  // One warp waits and lets the other ones' threads write.
  CHECK(kindOf(begin + "@!%p2 bra OTHERS;\n" + w.wait() + "OTHERS: " + meet + "setp.eq.u32 %p4, %r1, 70;\n" +
               write("%p4") + "@%p2 bra DONE;\n" + w.wait() + "DONE:\n") == "");
}

TEST_CASE("wgmma: what it counts as") {
  for (bool listed : {false, true}) {
    Wgmmas counting;
    counting.options.countEvents = true;
    const auto h = counting.run(w.fence + w.multiply('w', listed) + w.commit + w.wait());
    REQUIRE(h->silent());
    const Counters &counters = h->emulator->counters();
    const auto names = instructionClassNames();
    const auto number = size_t(std::find(names.begin(), names.end(), "wgmma") - names.begin());
    CHECK(counters.warpInstructions[number] == 4);
    // 16 rows of a in each warp, 16 of b for all, 32 bytes each: 128 a pass.
    CHECK(counters.sharedLoadWavefronts == (listed ? 4u : 20u));
    CHECK(counters.sharedLoadIdealWavefronts == counters.sharedLoadWavefronts);
    CHECK(counters.sharedLoadRequests == (listed ? 1u : 4u));
  }
}
