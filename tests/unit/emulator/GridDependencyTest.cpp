// Launches that may begin before those before them are complete: what comes before griddepcontrol.wait is judged.
#include "Harness.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;
using Catch::Matchers::Contains;

namespace {

/// Launches of kernels with two pointers, on buffers of 64 words.
struct Stream : Harness {
  explicit Stream(const std::vector<std::string> &bodies, const std::vector<const char *> &names = {"a", "b"}) {
    std::string text;
    for (size_t i = 0; i < bodies.size(); ++i) {
      std::string one = kernel("add.s64 %d10, %d1, %d0;\nadd.s64 %d11, %d2, %d0;\n" + bodies[i], 2,
                               i ? "" : ".shared .align 16 .b32 s[64];\n.shared .align 8 .b64 full;");
      one.replace(one.find(" k("), 3, " k" + std::to_string(i) + "(");
      text += i ? one.substr(one.find(".visible")) : one;
    }
    load(text);
    for (const char *name : names)
      buffers.push_back(input(name, std::vector<uint32_t>(64, 5), true));
  }
  /// A kernel on two buffers, of which the first is read, the second written.
  bool step(unsigned number, unsigned from, unsigned to, bool early = true) {
    LaunchRequest request{"k" + std::to_string(number), {1, 1, 1}, {64, 1, 1}, 0, {}, cluster, {}, early};
    request.arguments = {BufferArgument{buffers[from], 0, 256, false}, BufferArgument{buffers[to], 0, 256, true}};
    return llvm::succeeded(emulator->launch(request, diagnostics));
  }
  std::vector<BufferId> buffers;
};

const std::string copy = "ld.global.u32 %r5, [%d10];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%d11], %r5;\n";
const std::string wait = "griddepcontrol.wait;\n", go = "griddepcontrol.launch_dependents;\n";
const std::string oneWaits = "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra L;\n" + wait + "L:\n";

/// Kernel 0 reads a and writes b, kernel 1 comes after it: its finding, if any.
std::string second(const std::string &body, unsigned from = 1, unsigned to = 0, bool early = true) {
  Stream s({copy, body});
  REQUIRE(s.step(0, 0, 1));
  if (s.step(1, from, to, early))
    return "";
  const Finding *finding = s.find(FindingKind::EarlyAccess);
  return finding ? finding->message : s.messages();
}

} // namespace

TEST_CASE("grid dependency: what the kernel before writes is waited for") {
  CHECK(second(wait + copy) == "");
  CHECK(second(copy, 1, 0, false) == "");
  const std::string reads = "reads byte 0 of `b`, which kernel `k0` before it may still write";
  CHECK_THAT(second(copy), Contains(reads));
  CHECK_THAT(second(copy + wait), Contains(reads));
  CHECK_THAT(second("ld.global.u32 %r5, [%d1];\n" + wait), Contains(reads)); // all lanes from one place
  CHECK_THAT(second("xor.b32 %r6, %r1, 5;\nmul.wide.u32 %d12, %r6, 4;\nadd.s64 %d12, %d1, %d12;\n"
                    "ld.global.u32 %r5, [%d12];\n" +
                    wait),
             Contains("of `b`, which kernel `k0` before it may still write"));
  CHECK_THAT(second("mov.u32 %r6, s;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\n"
                    "cp.async.ca.shared.global [%r6], [%d1], 4;\ncp.async.wait_all;\nEND: " +
                    wait),
             Contains(reads));
}

TEST_CASE("grid dependency: what the kernel before reads is not replaced") {
  // Kernel 1 reads and writes a, which kernel 0 reads.
  CHECK_THAT(second("st.global.u32 [%d11], %r1;\n" + wait, 0, 0),
             Contains("writes byte 0 of `a`, which kernel `k0` before it may still read"));
  CHECK_THAT(second("red.global.add.u32 [%d11], 1;\n" + wait, 0, 0), Contains("may still read"));
  CHECK(second("ld.global.u32 %r5, [%d10];\n" + wait + "st.global.u32 [%d11], %r5;", 0, 0) == "");
}

TEST_CASE("grid dependency: bulk copies are accesses of the thread that issues them") {
  const std::string first = "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\nmov.u32 %r6, s;\n";
  const std::string load =
      "mbarrier.init.shared.b64 [full], 1;\nfence.proxy.async;\n"
      "mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%d1], 16, [full];\n"
      "W: mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;\n@!%p2 bra W;\n";
  const std::string store = "st.shared.v4.u32 [%r6], {1, 2, 3, 4};\nfence.proxy.async;\n"
                            "cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r6], 16;\n"
                            "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  CHECK(second(first + wait + load + "END:") == "");
  CHECK_THAT(second(first + load + "END:"), Contains("of `b`, which kernel `k0` before it may still write"));
  CHECK(second(first + wait + store + "END:") == "");
  CHECK_THAT(second(first + store + "END:"), Contains("of `a`, which kernel `k0` before it may still read"));
}

TEST_CASE("grid dependency: one thread waits for others, if they wait for it") {
  CHECK(second(oneWaits + "bar.sync 0;\n" + copy) == "");
  CHECK_THAT(second("bar.sync 0;\n" + oneWaits + copy), Contains("reads byte 4 of `b`"));
  // By lanes of a warp, where the checks follow what each thread knows.
  const std::string firstLane = "and.b32 %r6, %r1, 31;\nsetp.ne.u32 %p1, %r6, 0;\n@%p1 bra L;\n" + wait + "L:\n";
  CHECK(second(firstLane + "bar.warp.sync -1;\n" + copy) == "");
  CHECK_THAT(second("bar.warp.sync -1;\n" + firstLane + copy), Contains("reads byte 4 of `b`"));
  CHECK_THAT(second(oneWaits + "bar.warp.sync -1;\n" + copy), Contains("reads byte 128 of `b`"));
}

TEST_CASE("grid dependency: kernels further back may still run if dependents were let go before they were waited for") {
  auto third = [](const std::string &between) {
    Stream s({copy, between, copy}, {"a", "b", "c", "d"});
    REQUIRE(s.step(0, 0, 1));
    REQUIRE(s.step(1, 2, 3)); // touches neither a nor b
    return s.step(2, 1, 2) ? std::string() : s.messages();
  };
  CHECK_THAT(third(go + wait + copy), Contains("which kernel `k0` before it may still write"));
  CHECK_THAT(third(copy), Contains("which kernel `k0` before it may still write"));
  CHECK_THAT(third(wait + go + copy), !Contains("k0") && Contains("which kernel `k1` before it may still read"));
}

TEST_CASE("grid dependency: only kernels are not waited for, and none twice") {
  {
    Stream s({copy, copy});
    REQUIRE(s.step(0, 0, 1));
    s.emulator->copy(s.buffers[0], 0, s.buffers[1], 0, 4);
    CHECK(s.step(1, 1, 0));
  }
  {
    Stream s({copy, wait + copy, copy});
    REQUIRE(s.step(0, 0, 1));
    REQUIRE(s.step(1, 1, 0));
    CHECK_FALSE(s.step(2, 0, 1));
  }
  Stream s({copy, wait + copy, copy});
  REQUIRE(s.step(0, 0, 1));
  REQUIRE(s.step(2, 1, 0, false));
  REQUIRE(s.step(1, 0, 1));
}
