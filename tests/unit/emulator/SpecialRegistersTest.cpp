// Special registers beyond the numbers of threads and blocks: the workspace of a grid, clocks, sizes of shared memory.
#include "Harness.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

/// The address of the grid's workspace in %d10.
const std::string workspace = "mov.u32 %r10, %envreg1;\nmov.u32 %r11, %envreg2;\nmov.b64 %d10, {%r11, %r10};\n";

/// One thread of each block adds 1 to the word of the grid's barrier, and waits until all have done so.
const std::string meet = "bar.sync 0;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra MET;\nmov.u32 %r12, %nctaid.x;\n"
                         "atom.add.release.gpu.global.u32 %r13, [%d10+4], 1;\n"
                         "L: ld.acquire.gpu.global.u32 %r13, [%d10+4];\nsetp.lt.u32 %p2, %r13, %r12;\n@%p2 bra L;\n"
                         "MET: bar.sync 0;\n";

/// A word of each block goes by way of p1 to the next block's word of p2; p0 gets nothing.
std::string neighbours(const std::string &between) {
  return workspace + "add.u64 %d11, %d3, %d0;\nst.global.u32 [%d11], %r2;\n" + between +
         "mov.u32 %r14, %ntid.x;\nxor.b32 %r15, %r2, %r14;\nmul.wide.u32 %d12, %r15, 4;\nadd.u64 %d12, %d3, %d12;\n"
         "ld.global.u32 %r16, [%d12];\nadd.u64 %d13, %d1, %d0;\nst.global.u32 [%d13], %r16;";
}

Harness &runNeighbours(Harness &h, const std::string &between) {
  h.grid = {2, 1, 1};
  return h.runOnThree(neighbours(between));
}

} // namespace

TEST_CASE("special registers: a grid meets at the word of its workspace") {
  Harness h;
  runNeighbours(h, meet);
  INFO(h.messages());
  REQUIRE(h.silent());
  std::vector<uint32_t> words = h.read<uint32_t>(0);
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(words[i] == (i ^ 32));
  Harness apart; // only its address is asked for
  runNeighbours(apart, "");
  CHECK(apart.find(FindingKind::GlobalRace));
}

TEST_CASE("special registers: the workspace is zero at every launch") {
  Harness h;
  h.load(Harness::kernel(workspace + "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\nld.global.u32 %r12, [%d10];\n"
                                     "atom.global.add.u32 %r13, [%d10+4], 5;\nadd.u32 %r13, %r13, %r12;\n"
                                     "st.global.u32 [%d1], %r13;\nEND:",
                         1, ".global .align 4 .u32 before = 7;"));
  BufferId out = h.output("out", 4);
  for (int run = 0; run < 2; ++run) {
    std::memset(h.emulator->bytes(out).data(), 0xff, 4);
    INFO(h.launch().messages());
    REQUIRE(h.silent());
    CHECK(h.read<uint32_t>(out)[0] == 0);
  }
}

TEST_CASE("special registers: the workspace ends") {
  for (const char *offset : {"8", "-4"}) {
    Harness h;
    h.runOnThree(workspace + "ld.global.u32 %r12, [%d10+" + offset + "];");
    INFO(h.messages());
    CHECK(h.only(FindingKind::OutOfBounds));
  }
}

TEST_CASE("special registers: a grid that meets must fit on the device") {
  Harness h;
  h.options.multiprocessors = 2; // of 2048 threads
  h.block = {1024, 1, 1};
  h.load(Harness::kernel(workspace + meet, 0));
  h.grid = {4, 1, 1};
  INFO(h.launch().messages());
  CHECK(h.silent());
  h.grid = {5, 1, 1};
  h.launch();
  CHECK_FALSE(h.succeeded);
  CHECK(h.emulator->findings().empty());
  REQUIRE(h.diagnostics.numErrors() == 1);
  CHECK(h.diagnostics.diagnostics()[0].kind == DiagnosticKind::BadLaunch);
  CHECK(h.messages().find("of its 5 blocks only 4 fit") != std::string::npos);
}

TEST_CASE("special registers: those of the driver are refused by name, others are unknown") {
  auto kindOf = [](const std::string &instruction) {
    DiagnosticEngine diagnostics;
    diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", Harness::kernel(instruction, 1)));
    CHECK_FALSE(Emulator::load(diagnostics, {}));
    REQUIRE(diagnostics.numErrors() == 1);
    return diagnostics.diagnostics()[0].kind;
  };
  for (const char *name : {"%envreg0", "%envreg3", "%envreg31", "%pm0", "%pm7"})
    CHECK(kindOf("mov.u32 %r5, " + std::string(name) + ";") == DiagnosticKind::UnsupportedFeature);
  CHECK(kindOf("mov.u64 %d5, %pm3_64;") == DiagnosticKind::UnsupportedFeature);
  for (const char *name : {"%envreg32", "%envreg", "%envregx", "%pm8", "%pmx", "%clock_mid"})
    CHECK(kindOf("mov.u32 %r5, " + std::string(name) + ";") == DiagnosticKind::UndefinedName);
  CHECK(kindOf("mov.u64 %d5, %envreg1;") == DiagnosticKind::TypeMismatch);
  CHECK(kindOf("mov.u64 %d5, %clock_hi;") == DiagnosticKind::TypeMismatch);
}

TEST_CASE("special registers: halves of clocks, and all of a block's shared memory") {
  // The halves are read twice, around the whole: some half must be as it was before or as it is after.
  auto halves = [](const std::string &whole, const std::string &low, const std::string &high) {
    Harness h;
    h.options.numThreads = 1;
    h.runOnThree("mov.u32 %r5, " + high + ";\nmov.u64 %d5, " + whole + ";\nmov.u32 %r6, " + high + ";\nmov.u32 %r7, " +
                 low + ";\nmov.u64 %d6, " + whole +
                 ";\nshr.u64 %d7, %d5, 32;\ncvt.u32.u64 %r8, %d7;\nsetp.ge.u32 %p1, %r8, %r5;\n"
                 "setp.le.and.u32 %p1, %r8, %r6, %p1;\ncvt.u32.u64 %r9, %d5;\nsub.u32 %r10, %r7, %r9;\n"
                 "sub.u64 %d8, %d6, %d5;\ncvt.u64.u32 %d9, %r10;\nsetp.le.and.u64 %p1, %d9, %d8, %p1;\n"
                 "setp.ne.and.u64 %p1, %d5, 0, %p1;\nselp.u32 %r11, 1, 0, %p1;\nadd.u64 %d10, %d1, %d0;\n"
                 "st.global.u32 [%d10], %r11;");
    INFO(h.messages());
    REQUIRE(h.silent());
    return h.read<uint32_t>(0)[31];
  };
  CHECK(halves("%clock64", "%clock_lo", "%clock_hi") == 1);
  CHECK(halves("%globaltimer", "%globaltimer_lo", "%globaltimer_hi") == 1);

  Harness h;
  h.dynamicShared = 64;
  h.runOnThree("mov.u32 %r5, %total_smem_size;\nmov.u32 %r6, %aggr_smem_size;\nst.shared.u32 [s], %r5;\n"
               "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\nst.global.v2.u32 [%d1], {%r5, %r6};\nEND:",
               ".shared .align 16 .b8 s[32];");
  INFO(h.messages());
  CHECK(h.read<uint32_t>(0)[0] == 96);
  CHECK(h.read<uint32_t>(0)[1] == 96 + 1024); // with what the system keeps
}
