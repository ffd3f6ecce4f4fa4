#include "Kernels.h"

#include "hloc/lint/StaticCounts.h"

using namespace hloc;
using namespace hloc::lint;

namespace {

/// Without the four instructions before each body and the one behind it.
StaticCounts counted(const std::string &body) {
  std::optional<StaticCounts> counts = countStatically(parsed(kernelText(body)), "k", {10, 1, 1}, {64, 1, 1});
  REQUIRE(counts);
  counts->once.instructions -= 5;
  return *counts;
}

} // namespace

TEST_CASE("counts of straight code", "[lint]") {
  StaticCounts counts =
      counted("ld.global.nc.v4.b32 {%r2, %r3, %r4, %r5}, [%rd1]; ex2.approx.f32 %f1, %r2; cvt.f32.bf16 "
              "%f2, %rs1; cvt.rn.f32.s32 %f3, %r3; add.f64 %d1, %d2, %d3; st.shared.v2.b32 [%r9], "
              "{%r2, %r3}; shfl.sync.bfly.b32 %r6, %r2, 1, 31, -1; st.global.b32 [%rd2], %r6;");
  CHECK(counts.once.instructions == 8);
  CHECK(counts.once.globalBytes == 20);
  CHECK(counts.once.specialFunctions == 2);
  CHECK(counts.once.doubles == 1);
  CHECK(counts.once.sharedPasses == 3);
  CHECK(counts.once.memoryRoundTrips == 1);
  CHECK(counts.once.sharedRoundTrips == 1);
  CHECK(counts.inLoops.instructions == 0);
  CHECK(counts.sharedBytes == 4096);
}

TEST_CASE("labels are those of the innermost scope that has one", "[lint]") {
  // Both wait in a loop of their own; the second does not go back to the first, which would be one loop of all.
  const std::string wait = "{ .reg .pred %q; WAIT: mbarrier.try_wait.parity.shared::cta.b64 %q, [%r9], 0; "
                           "@!%q bra WAIT; }";
  StaticCounts counts = counted(wait + "add.s32 %r2, %r3, 1;" + wait);
  CHECK(counts.once.instructions == 5);
  CHECK(counts.inLoops.instructions == 4);
}

TEST_CASE("counts of what tensor cores are fed by", "[lint]") {
  StaticCounts counts =
      counted("mov.u32 %r9, tile; mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd1, %rd4;"
              "cp.async.cg.shared.global [%r9], [%rd5], 16; cp.async.ca.shared.global [%r9], [%rd5], 4, 0;"
              "cp.async.commit_group; cp.async.wait_group 0;"
              "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r9];"
              "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r9], {%r2, %r3};");
  CHECK(counts.once.instructions == 9);
  CHECK(counts.once.globalBytes == 20);
  CHECK(counts.once.sectors == 16 + 16);
  CHECK(counts.once.sharedPasses == 4 + 1 + 4 + 2);
  CHECK(counts.once.sharedRoundTrips == 1);
  CHECK(counts.once.memoryRoundTrips == 1);
  // Of groups that are waited for late, only a share of the time is left.
  CHECK(counted("cp.async.commit_group; cp.async.wait_group 3;").once.memoryRoundTrips == 0.25);
  CHECK(counted("cp.async.wait_all;").once.memoryRoundTrips == 1);
  CHECK(counted("cp.async.commit_group;").once.memoryRoundTrips == 0);
}

TEST_CASE("copies come while the rounds of a loop pass", "[lint]") {
  const std::string product = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, "
                              "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};";
  auto tripsOf = [&](unsigned products, const std::string &open) {
    std::string body = "mov.b32 %r10, 0; $L: cp.async.ca.shared.global [%r11], [%rd1], 4; cp.async.commit_group; "
                       "cp.async.wait_group " +
                       open + ";";
    for (unsigned i = 0; i < products; ++i)
      body += product;
    return counted(body + "add.s32 %r10, %r10, 1; setp.lt.s32 %p3, %r10, 8; @%p3 bra $L;").once.memoryRoundTrips;
  };
  // Of memory that is busy two round trips in as many rounds as may be open, and one of the first wait.
  CHECK(tripsOf(0, "1") > 8);
  CHECK(tripsOf(0, "1") < 9);
  CHECK(tripsOf(4, "1") < tripsOf(0, "1"));
  CHECK(tripsOf(24, "1") == 1);
  CHECK(tripsOf(4, "3") < tripsOf(4, "1"));
  CHECK(tripsOf(24, "0") == 8); // nothing is ahead
}

TEST_CASE("what tensor cores multiply", "[lint]") {
  auto products = [](const std::string &instruction) { return counted(instruction).once.products; };
  CHECK(products("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, "
                 "{%r5, %r6}, {%f1, %f2, %f3, %f4};") == 16 * 8 * 16);
  CHECK(products("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, "
                 "{%r5, %r6}, {%f1, %f2, %f3, %f4};") == 2 * 16 * 8 * 8);
  CHECK(products("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r11, %r12, %r13, %r14}, {%r1, %r2, %r3, %r4}, "
                 "{%r5, %r6}, {%r11, %r12, %r13, %r14};") == 16 * 8 * 32 / 2);
  CHECK(products("add.f32 %f1, %f2, %f3;") == 0);
  const lint::PathCounts doubles =
      counted("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd1, %fd2};").once;
  CHECK(doubles.doubleProducts == 8 * 8 * 4);
  CHECK(doubles.products == 0);
  CHECK(doubles.doubles == 0); // not by the lanes that add and multiply
}

TEST_CASE("sectors of a warp by its lanes' addresses", "[lint]") {
  auto sectors = [](const std::string &body) { return counted(body).once.sectors; };
  const std::string load = "add.s64 %rd5, %rd1, %rd4; ld.global.nc.b32 %r9, [%rd5];";
  CHECK(sectors("mul.wide.u32 %rd4, %r1, 4;" + load) == 4);
  CHECK(sectors("mul.wide.u32 %rd4, %r1, 8;" + load) == 8);
  CHECK(sectors("mul.wide.u32 %rd4, %r1, 100;" + load) == 32);
  CHECK(sectors("mov.b64 %rd4, 0;" + load) == 1);
  CHECK(sectors("mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd4, 16;" + load) == 5);
  // Eight lanes a row, rows apart.
  CHECK(sectors("shr.u32 %r2, %r1, 3; and.b32 %r3, %r1, 7; mad.lo.s32 %r4, %r2, 1024, %r3; mul.wide.u32 %rd4, %r4, 4;" +
                load) == 4);
  CHECK(sectors("mov.u32 %r5, %ntid.x; mov.u32 %r6, %ctaid.x; mad.lo.s32 %r7, %r6, %r5, %r1; neg.s32 %r8, %r7; "
                "mul.wide.s32 %rd4, %r8, 4;" +
                load) == 5);
  // What comes from memory may be anything, but what all lanes load from one place is one thing: a slice's begin.
  CHECK(sectors("mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; ld.global.b32 %r2, [%rd5]; mul.wide.u32 %rd4, "
                "%r2, 4;" +
                load) == 4 + 32);
  CHECK(sectors("ld.global.b32 %r2, [%rd1]; shl.b32 %r2, %r2, 10; add.s32 %r2, %r2, %r1; mul.wide.u32 %rd4, %r2, 4;" +
                load) == 1 + 4);
  CHECK(
      sectors("mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd1, %rd4; st.global.v4.b32 [%rd5], {%r1, %r1, %r1, %r1};") ==
      16);
  CHECK(sectors("mov.b32 %r2, tile; ld.shared.b32 %r3, [%r2];") == 0);
}

TEST_CASE("sectors behind signed quotients and fields", "[lint]") {
  auto sectors = [](const std::string &row) {
    return counted(row + "mul.wide.s32 %rd4, %r4, 4; add.s64 %rd5, %rd1, %rd4; ld.global.nc.b32 %r9, [%rd5];")
        .once.sectors;
  };
  // Rows of 1024, eight lanes each, as Triton numbers its tiles.
  CHECK(sectors("div.s32 %r2, %r1, 8; rem.s32 %r3, %r1, 8; mad.lo.s32 %r4, %r2, 1024, %r3;") == 4);
  CHECK(sectors("neg.s32 %r2, %r1; div.s32 %r2, %r2, 8; mul.lo.s32 %r4, %r2, 8;") == 4);
  CHECK(sectors("bfe.s32 %r2, %r1, 4, 1; and.b32 %r2, %r2, 1024; and.b32 %r3, %r1, 15; add.s32 %r4, %r2, %r3;") == 4);
  CHECK(sectors("mov.b32 %r3, 0; div.s32 %r4, %r1, %r3;") == 32);
}

TEST_CASE("bulk copies move what barriers are told to expect", "[lint]") {
  const std::string expect = "mov.b32 %r2, tile; @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 49152;";
  const std::string load = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";
  StaticCounts counts = counted("setp.eq.s32 %p1, %r1, 0;" + expect + load + " [%r2], [%rd1, {%r3, %r4}], [%r2];");
  CHECK(counts.once.sectors == 49152 / 32);
  CHECK(counts.once.sharedPasses == 49152 / 128);
  // Of what arrives in two blocks, each has issued one half.
  CHECK(counted("setp.eq.s32 %p1, %r1, 0;" + expect + load +
                ".multicast::cluster [%r2], [%rd1, {%r3, %r4}], [%r2], %rs1;")
            .once.sectors == 49152 / 64);
  CHECK(counted("setp.lt.s32 %p1, %r1, 0;" + expect).once.sectors == 0);
}

TEST_CASE("loads that wait for loads", "[lint]") {
  CHECK(counted("ld.global.b64 %rd4, [%rd1]; ld.global.b32 %r2, [%rd4];").once.memoryRoundTrips == 2);
  CHECK(counted("ld.global.b64 %rd4, [%rd1]; ld.global.b32 %r2, [%rd2];").once.memoryRoundTrips == 1);
  // What a short branch goes around is done under its predicate, and waits for that; otherwise loads are on their way
  // together. What stands behind a long one waits for what is before it.
  CHECK(counted("ld.global.b32 %r2, [%rd1]; setp.ne.b32 %p1, %r1, 0; @%p1 bra $E; ld.global.b32 %r3, [%rd2]; $E: ret;")
            .once.memoryRoundTrips == Approx(1));
  std::string body = "ld.global.b32 %r2, [%rd1]; setp.ne.b32 %p1, %r1, 0; @%p1 bra $E; ";
  for (int i = 0; i < 8; ++i)
    body += "add.s32 %r1, %r1, 1; ";
  CHECK(counted(body + "ld.global.b32 %r3, [%rd2]; $E: ret;").once.memoryRoundTrips == 2);
  CHECK(counted("ld.global.b32 %r2, [%rd1]; setp.ne.b32 %p1, %r2, 0; @%p1 bra $E; ld.global.b32 %r3, [%rd2]; $E: ret;")
            .once.memoryRoundTrips == 2);
  // A short one that a warp is known not to come to ends nothing either.
  CHECK(counted("ld.global.b32 %r2, [%rd1]; setp.lt.u32 %p1, %r1, 64; @%p1 bra $E; add.s32 %r4, %r4, 1; $E: "
                "ld.global.b32 %r3, [%rd2];")
            .once.memoryRoundTrips == Approx(1));
}

TEST_CASE("parts that some blocks execute count as often", "[lint]") {
  // Blocks 0 to 2 of 10, and of all the first 16 threads of 64.
  const std::string body = "mov.u32 %r5, %ctaid.x; setp.gt.u32 %p1, %r5, 2; @%p1 bra $A; add.s32 %r2, %r2, 1; add.s32 "
                           "%r2, %r2, 1; $A: setp.gt.u32 %p2, %r1, 15; @%p2 bra $B; mul.wide.u32 %rd4, %r1, 4; add.s64 "
                           "%rd5, %rd1, %rd4; ld.global.b32 %r2, [%rd5]; $B: add.s32 %r3, %r3, 1;";
  const StaticCounts counts = counted(body);
  CHECK(counts.once.instructions == Approx(6 + 2 * 0.3 + 3 * 0.5));
  CHECK(counts.once.sectors == Approx(2 * 0.5)); // of the 16 lanes
  // The chain is that of the busiest.
  CHECK(counts.once.memoryRoundTrips == 1);
  CHECK(counts.once.globalBytes == Approx(4 * 0.5));
}

TEST_CASE("warps that are looked at have no step in common with the grid", "[lint]") {
  // Of 2,400 blocks every other one does more, as of an image of even width every other row.
  const std::string body = "mov.u32 %r5, %ctaid.x; and.b32 %r5, %r5, 1; setp.ne.b32 %p1, %r5, 0; @%p1 bra $A; add.s32 "
                           "%r2, %r2, 1; add.s32 %r2, %r2, 1; add.s32 %r2, %r2, 1; add.s32 %r2, %r2, 1; $A: add.s32 "
                           "%r3, %r3, 1;";
  const std::optional<StaticCounts> counts = countStatically(parsed(kernelText(body)), "k", {2400, 1, 1}, {32, 1, 1});
  REQUIRE(counts);
  CHECK(counts->once.instructions - 5 == Approx(5 + 4 * 0.5).epsilon(0.1));
}

TEST_CASE("guards that hold for no lane cost nothing", "[lint]") {
  CHECK(counted("setp.gt.u32 %p1, %r1, 100; @%p1 add.s32 %r2, %r2, 1; @!%p1 add.s32 %r3, %r3, 1;").once.instructions ==
        2);
}

TEST_CASE("the way with the most instructions", "[lint]") {
  StaticCounts counts =
      counted("@%p1 bra $ELSE; add.s32 %r2, %r2, 1; add.s32 %r2, %r2, 1; bra $END; $ELSE: add.s32 %r2, "
              "%r2, 1; $END: add.s32 %r3, %r3, 1;");
  CHECK(counts.once.instructions == 5);
}

TEST_CASE("what only the first rounds of a loop do", "[lint]") {
  auto bytesOf = [](const std::string &skipped) {
    return counted("mov.b32 %r10, 0; $L: " + skipped + "ld.global.b32 %r2, [%rd1]; $S: add.s32 %r10, %r10, 1; " +
                   "setp.lt.s32 %p3, %r10, 8; @%p3 bra $L;")
        .once.globalBytes;
  };
  CHECK(bytesOf("") == 8 * 4);
  CHECK(bytesOf("setp.gt.s32 %p2, %r10, 4; @%p2 bra $S;") == Approx(5 * 4));
  CHECK(bytesOf("setp.lt.s32 %p2, %r10, 3; @!%p2 bra $S;") == Approx(3 * 4));
  CHECK(bytesOf("setp.gt.s32 %p2, %r9, 4; @%p2 bra $S;") == 8 * 4); // nobody knows
}

TEST_CASE("rounds of loops by bytes and by instructions", "[lint]") {
  StaticCounts counts =
      counted("$L: ld.global.b32 %r2, [%rd1]; add.s64 %rd1, %rd1, 512; add.s32 %r3, %r3, %r2; setp.ne.b64 "
              "%p1, %rd1, %rd9; @%p1 bra $L; st.global.b32 [%rd2], %r3;");
  CHECK(counts.inLoops.instructions == 5);
  CHECK(counts.inLoops.globalBytes == 4);
  CHECK(counts.roundsForBytes(8 + 4 * 99) == 99);
  CHECK(counts.roundsForInstructions(6 + 5 * 10) == 10);
  CHECK(counts.after(9).memoryRoundTrips == 10);
  CHECK(counts.after(9).globalBytes == 44);
  CHECK(counted("add.s32 %r2, %r2, 1;").roundsForBytes(100) == 0);
  KernelSpec kernel;
  kernel.grid = {10, 1, 1};
  kernel.block = {64, 1, 1};
  kernel.bytesRead = 640 * 400;
  kernel.bytesWritten = 640 * 4;
  KernelCounts launch = countsOf(counts, kernel);
  CHECK(launch.sectors == 640 * 404 / 32);
  CHECK(launch.memoryRoundTrips == 100);
  CHECK(launch.instructions == 20 * (1 + 100 * 5));
}

TEST_CASE("a loop that a predicate leaves which no comparison makes", "[lint]") {
  // As LLVM makes of a counter that is 0, then 1.
  const std::string loop = "$L: mov.pred %p1, %p2; ld.global.b32 %r2, [%rd1]; mov.pred %p2, 0; @%p1 bra $L;";
  const StaticCounts twice = counted("mov.pred %p2, -1; " + loop);
  CHECK(twice.inLoops.instructions == 0);
  CHECK(twice.once.memoryRoundTrips == 2);
  CHECK(counted("mov.pred %p2, 0; " + loop).once.memoryRoundTrips == 1);
  // Which is not known.
  CHECK(counted("setp.ne.b32 %p2, %r9, 0; " + loop).inLoops.memoryRoundTrips == 1);
}

TEST_CASE("a block may store one tile of results after another", "[lint]") {
  auto loop = [](const std::string &number, int rounds, const std::string &body) {
    const std::string counter = "%r" + number, label = "$L" + number, again = "%p" + number;
    return "mov.b32 " + counter + ", 0; " + label + ": " + body + "add.s32 " + counter + ", " + counter +
           ", 1; setp.lt.s32 " + again + ", " + counter + ", " + std::to_string(rounds) + "; @" + again + " bra " +
           label + "; ";
  };
  const std::string
      multiply =
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd3, %rd4, 1, 1, 1, 0, 0; ",
      store = "st.global.b32 [%rd2], %r9; ";
  CHECK(counted(loop("7", 6, loop("8", 9, multiply) + store)).tilesOfBlock == 6);
  // Behind all products; and before there are any.
  CHECK(counted(loop("8", 9, multiply) + store).tilesOfBlock == 1);
  CHECK(counted(loop("8", 9, multiply) + loop("7", 6, store)).tilesOfBlock == 1);
}

TEST_CASE("there is nothing to count in what is not there", "[lint]") {
  CHECK_FALSE(countStatically(parsed(kernelText("")), "other", {}, {}));
  StaticCounts counts = counted("$L: bra $L;");
  CHECK(counts.inLoops.instructions == 1);
  CHECK(counts.roundsForBytes(1000) == 0);
}

TEST_CASE("halves of products of 64 bits are known", "[lint]") {
  // tid / 3 as LLVM divides numbers of 64 bits: a warp's lanes read 11 or 12 places, three at each.
  const StaticCounts counts =
      counted("cvt.u64.u32 %rd4, %r1; mul.hi.u64 %rd5, %rd4, 6148914691236517206; shl.b64 %rd5, %rd5, 2; add.s64 %rd5, "
              "%rd1, %rd5; ld.global.b32 %r2, [%rd5];");
  CHECK(counts.once.sectors == 2);
}

namespace {

/// In a kernel that has a function: of an address and a number, the element there, plus 1 where the number is odd.
StaticCounts countedWithFunction(const std::string &body) {
  const std::string kernel = kernelText(body);
  const size_t entry = kernel.find(".visible .entry");
  const std::string function = R"(.func (.param .b32 f_result) f(.param .b64 f_0, .param .b32 f_1)
{
  .reg .pred %p<9>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.b64 %rd1, [f_0];
  ld.param.b32 %r1, [f_1];
  ld.global.b32 %r2, [%rd1];
  and.b32 %r3, %r1, 1;
  setp.eq.b32 %p1, %r3, 0;
  @%p1 bra $F;
  ld.global.b32 %r4, [%rd1+4];
  fence.acq_rel.gpu; fence.acq_rel.gpu; fence.acq_rel.gpu; fence.acq_rel.gpu;
  fence.acq_rel.gpu; fence.acq_rel.gpu; fence.acq_rel.gpu; fence.acq_rel.gpu;
$F: st.param.b32 [f_result], %r2;
  ret;
}
)";
  auto counts =
      countStatically(parsed(kernel.substr(0, entry) + function + kernel.substr(entry)), "k", {10, 1, 1}, {64, 1, 1});
  REQUIRE(counts);
  counts->once.instructions -= 5;
  return *counts;
}

std::string callOf(const std::string &address, const std::string &number) {
  return "{ .param .b64 p0; .param .b32 p1; .param .b32 result; st.param.b64 [p0], " + address +
         "; st.param.b32 [p1], " + number + "; call.uni (result), f, (p0, p1); ld.param.b32 %r20, [result]; } ";
}

} // namespace

TEST_CASE("what functions do that a kernel calls is counted, with what they are called with", "[lint]") {
  const std::string address = "mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; ";
  const StaticCounts even = countedWithFunction(address + callOf("%rd5", "2"));
  CHECK(even.once.instructions == Approx(2 + 4 + 8));
  CHECK(even.once.sectors == Approx(4));
  CHECK(even.once.memoryRoundTrips == Approx(1));
  const StaticCounts odd = countedWithFunction(address + callOf("%rd5", "3"));
  CHECK(odd.once.instructions == Approx(even.once.instructions + 9));
  CHECK(odd.once.sectors == Approx(4 + 5));
  CHECK(odd.once.memoryRoundTrips == Approx(2));
  // Calls follow each other and what is before them, as often as they are.
  const StaticCounts twice =
      countedWithFunction("ld.global.b32 %r2, [%rd1]; " + address + callOf("%rd5", "2") + callOf("%rd5", "2"));
  CHECK(twice.once.memoryRoundTrips == Approx(3));
  CHECK(twice.once.sectors == Approx(1 + 2 * 4));
  const StaticCounts inLoop = countedWithFunction(address + "mov.b32 %r10, 0; $L: " + callOf("%rd5", "2") +
                                                  "add.s32 %r10, %r10, 1; setp.lt.s32 %p3, %r10, 7; @%p3 bra $L;");
  CHECK(inLoop.once.memoryRoundTrips == Approx(7));
  CHECK(inLoop.once.sectors == Approx(7 * 4));
  // What comes back is what was stored: lanes know their element again.
  CHECK(countedWithFunction(callOf("%rd1", "2") + "mul.wide.u32 %rd6, %r20, 4; add.s64 %rd7, %rd1, %rd6; "
                                                  "ld.global.b32 %r21, [%rd7];")
            .once.sectors == Approx(1 + 1));
}

TEST_CASE("a block may stand before others that go on in it", "[lint]") {
  // As LLVM places what both sides of a branch end in: 9 warps of 10 come to it by a jump upward.
  const StaticCounts counts =
      counted("mov.u32 %r2, %ctaid.x; setp.gt.u32 %p1, %r2, 0; @%p1 bra $FAR; ld.global.b32 %r3, [%rd1]; "
              "ld.global.b32 %r3, [%rd1+4]; ld.global.b32 %r3, [%rd1+8]; "
              "$END: st.global.b32 [%rd2], %r3; st.global.b32 [%rd2+64], %r3; bra $OUT; "
              "$FAR: ld.global.b32 %r3, [%rd1+12]; bra $END; $OUT:");
  CHECK(counts.once.sectors == Approx(0.1 * 3 + 0.9 * 1 + 2));
}

TEST_CASE("of two places of which nobody knows which, the first", "[lint]") {
  const StaticCounts counts = counted(
      "ld.global.b32 %r9, [%rd1]; setp.ne.b32 %p1, %r9, 3; shl.b32 %r2, %r1, 2; add.s32 %r3, %r2, 4096; selp.b32 "
      "%r4, %r2, %r3, %p1; cvt.u64.u32 %rd4, %r4; add.s64 %rd5, %rd1, %rd4; ld.global.b32 %r5, [%rd5];");
  CHECK(counts.once.sectors == 1 + 4);
}

TEST_CASE("functions that call themselves are walked through for a while", "[lint]") {
  const std::string kernel = kernelText("call.uni g, ();");
  const size_t entry = kernel.find(".visible .entry");
  const std::string function = ".func g()\n{\n  call.uni g, ();\n  call.uni g, ();\n  ret;\n}\n";
  const auto counts =
      countStatically(parsed(kernel.substr(0, entry) + function + kernel.substr(entry)), "k", {1, 1, 1}, {32, 1, 1});
  REQUIRE(counts);
  CHECK(counts->once.instructions >= 4);
}
