// setmaxnreg: registers that some warps give back, others take and wait for.
#include "Harness.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

/// Runs a kernel of two warpgroups; %p1: the thread is of the first.
std::unique_ptr<Harness> run(const std::string &body, const std::string &directives) {
  auto h = std::make_unique<Harness>();
  h->block = {256, 1, 1};
  std::string text = Harness::kernel("setp.lt.u32 %p1, %r1, 128;\nshr.u32 %r20, %r1, 5;\nsetp.eq.u32 %p2, %r20, 0;\n" +
                                         body + "\nadd.s64 %d20, %d1, %d0;\nst.global.b32 [%d20], %r1;\n",
                                     1);
  text.replace(text.find("sm_100a"), 7, "sm_90a");
  text.insert(text.find(") {") + 1, "\n" + directives + "\n");
  h->load(text);
  h->output("out", 1024);
  h->launch();
  return h;
}

std::string kindOf(const std::string &body, const std::string &directives = ".maxnreg 128") {
  const auto h = run(body, directives);
  INFO(h->messages());
  const auto findings = h->emulator->findings();
  CHECK(h->succeeded == findings.empty());
  return findings.empty() ? "" : findingName(findings[0].kind).str();
}

std::string set(const std::string &what, unsigned count) {
  return "setmaxnreg." + what + ".sync.aligned.u32 " + std::to_string(count) + ";\n";
}

/// One warpgroup gives back what it does not need, the other takes it.
std::string exchange(unsigned left, unsigned taken) {
  return "@%p1 bra TAKES;\n" + set("dec", left) + "bra.uni DONE;\nTAKES: " + set("inc", taken) + "DONE:\n";
}

} // namespace

TEST_CASE("setmaxnreg: registers go from warp to warp") {
  CHECK(kindOf(exchange(24, 232)) == "");
  CHECK(kindOf(exchange(24, 240)) == "deadlock");
  CHECK(kindOf(exchange(128, 128)) == "");
  CHECK(kindOf(exchange(128, 136)) == "deadlock");
  CHECK(kindOf(exchange(24, 232), ".maxnreg 121") == ""); // they come by eights
  CHECK(kindOf(exchange(24, 232), ".maxnreg 120") == "deadlock");
}

TEST_CASE("setmaxnreg: warps take registers of their part of the multiprocessor") {
  // 64 a thread are free, 72 wanted: three of four warps would get them from one pool.
  const auto h = run(exchange(64, 200), ".maxnreg 128");
  INFO(h->messages());
  const Finding *found = h->find(FindingKind::Deadlock);
  REQUIRE(found);
  CHECK(found->count == 4);
}

TEST_CASE("setmaxnreg: what a kernel begins with") {
  CHECK(kindOf(exchange(24, 232), ".maxntid 256\n.minnctapersm 2") == ""); // 128 of 65,536
  CHECK(kindOf(exchange(24, 232), ".maxntid 256\n.minnctapersm 3") == "deadlock");
  CHECK(kindOf(exchange(24, 136), ".reqntid 256\n.minnctapersm 3") == ""); // 80
  CHECK(kindOf(exchange(24, 144), ".reqntid 256\n.minnctapersm 3") == "deadlock");
  // ptxas ignores it.
  CHECK(kindOf(exchange(24, 256), ".maxntid 256") == "");
  CHECK(kindOf(exchange(24, 256), "") == "");
}

TEST_CASE("setmaxnreg: more is no less") {
  CHECK(kindOf(set("dec", 136)) == "register-limit");
  CHECK(kindOf(set("inc", 120)) == "register-limit");
  CHECK(kindOf(set("dec", 128) + set("inc", 128)) == "");
  CHECK(kindOf(set("dec", 40) + set("inc", 32)) == "register-limit");
}

TEST_CASE("setmaxnreg: a whole warpgroup executes it") {
  CHECK(kindOf("@%p2 bra NONE;\n" + set("dec", 40) + "NONE:\n") == "divergent-warpgroup");
  CHECK(kindOf("@!%p2 bra NONE;\n" + set("dec", 40) + "NONE:\n") == "divergent-warpgroup");
  CHECK(kindOf("@%p2 bra OTHER;\n" + set("dec", 40) + "bra DONE;\nOTHER: " + set("dec", 40) + "DONE:\n") ==
        "divergent-warpgroup");
  CHECK(kindOf("setp.eq.u32 %p3, %r1, 3;\n@%p3 bra NONE;\n" + set("dec", 40) + "NONE:\n") == "inactive-shuffle");
}

TEST_CASE("setmaxnreg: counts that there are not") {
  for (const char *count : {"16", "20", "100", "264"}) {
    DiagnosticEngine diagnostics;
    std::string text = Harness::kernel(std::string("setmaxnreg.dec.sync.aligned.u32 ") + count + ";", 1);
    text.replace(text.find("sm_100a"), 7, "sm_90a");
    diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", text));
    INFO(count);
    CHECK(!Emulator::load(diagnostics, {}));
    REQUIRE(diagnostics.numErrors() == 1);
    CHECK(diagnostics.diagnostics()[0].kind == DiagnosticKind::TypeMismatch);
  }
}

TEST_CASE("setmaxnreg: code that needs more registers than it leaves") {
  // So many values that differ from thread to thread, all of them live.
  auto code = [](unsigned values, const std::string &first) {
    std::string text = ".reg .b32 %v<64>;\n";
    for (unsigned i = 0; i < values; ++i)
      text += "add.s32 %v" + std::to_string(i) + ", " + first + ", " + std::to_string(i) + ";\n";
    for (unsigned i = 1; i < values; ++i)
      text += "xor.b32 %v0, %v0, %v" + std::to_string(i) + ";\n";
    return text + "add.s32 %r1, %r1, %v0;\nsub.s32 %r1, %r1, %v0;\n";
  };
  CHECK(kindOf(set("dec", 40) + code(30, "%r1")) == "");
  CHECK(kindOf(set("dec", 40) + code(50, "%r1")) == "register-limit");
  CHECK(kindOf(set("dec", 56) + code(50, "%r1")) == "");
  CHECK(kindOf(code(50, "%r1") + set("dec", 40)) == "");
  CHECK(kindOf(set("dec", 40) + code(50, "%r3")) == "");     // the same in all threads
  CHECK(kindOf(set("dec", 40) + code(50, "%r1"), "") == ""); // without effect
  CHECK(kindOf("@%p1 bra MANY;\n" + set("dec", 40) + "bra DONE;\nMANY: " + set("inc", 216) + code(50, "%r1") +
               "DONE:\n") == "");
}

TEST_CASE("setmaxnreg: sums that a wgmma replaces want no registers before it") {
  // 50 values, and behind them a product of 16 sums, to which no thread comes.
  auto code = [](const std::string &scale) {
    std::string text = ".reg .b32 %v<50>;\n.reg .f32 %s<16>;\n.reg .b64 %m;\nsetp.eq.u32 %p3, %r1, 999;\n"
                       "@!%p3 bra END;\nmov.b64 %m, 0;\n",
                sums;
    for (unsigned i = 0; i < 50; ++i)
      text += "add.s32 %v" + std::to_string(i) + ", %r1, " + std::to_string(i) + ";\n";
    for (unsigned i = 1; i < 50; ++i)
      text += "xor.b32 %v0, %v0, %v" + std::to_string(i) + ";\n";
    for (unsigned i = 0; i < 16; ++i)
      sums += (i ? ", %s" : "%s") + std::to_string(i);
    text += "wgmma.fence.sync.aligned;\n" + scale + "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" + sums +
            "}, %m, %m, %p4, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
    for (unsigned i = 1; i < 16; ++i)
      text += "add.f32 %s0, %s0, %s" + std::to_string(i) + ";\n";
    return text + "mov.b32 %r1, %s0;\nxor.b32 %r1, %r1, %v0;\nEND:\n";
  };
  const std::string replaces = "setp.ne.b32 %p4, 0, 0;\n", adds = "setp.ne.b32 %p4, 1, 0;\n";
  CHECK(kindOf(set("dec", 56) + code(replaces)) == "");
  CHECK(kindOf(set("dec", 56) + code(adds)) == "register-limit");
  CHECK(kindOf(set("dec", 80) + code(adds)) == "");
  // Whether it adds is not known: of what is set otherwise, of a place that others come to.
  CHECK(kindOf(set("dec", 56) + code(replaces + adds)) == "register-limit");
  CHECK(kindOf(set("dec", 56) + code(replaces + "@%p1 bra THERE;\nTHERE: ")) == "register-limit");
  CHECK(kindOf(set("dec", 56) + code("setp.ne.b32 %p4, %v0, 0;\n")) == "register-limit");
}
