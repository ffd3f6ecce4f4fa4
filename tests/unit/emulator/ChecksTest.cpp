// Every check fires on a kernel that is broken in its way, names the place, and is silent on the kernel next to it that
// is right.
#include "Harness.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;
using Catch::Matchers::Contains;

namespace {

const std::string sharedWords = ".shared .align 16 .b32 s[256];";
/// %d10 = address of the thread's own word in p0, %d11 in p1, %d12 in p2; %r20 = that in shared memory.
const std::string addresses = "add.s64 %d10, %d1, %d0;\nadd.s64 %d11, %d2, %d0;\nadd.s64 %d12, %d3, %d0;\n"
                              "mov.u32 %r21, s;\nshl.b32 %r22, %r1, 2;\nadd.s32 %r20, %r21, %r22;\n";
const std::string copyOwn = "ld.global.u32 %r5, [%d11];\nst.global.u32 [%d12], %r5;\n";

struct Case {
  const char *what;
  std::string body;
  FindingKind kind;
  const char *message; ///< a part of it
  Dim3 grid{1, 1, 1}, block{32, 1, 1};
};

void expectFinding(const Case &c) {
  Harness h;
  h.grid = c.grid;
  h.block = c.block;
  h.runOnThree(addresses + c.body, sharedWords);
  INFO(c.what << "\n" << h.messages());
  const Finding *finding = h.find(c.kind);
  REQUIRE(finding);
  CHECK_THAT(finding->message, Contains(c.message));
  CHECK(finding->kernel == "k");
  CHECK(finding->line > 10);
}

void expectSilence(const char *what, const std::string &body, Dim3 grid = {1, 1, 1}, Dim3 block = {32, 1, 1},
                   const std::string &declarations = "") {
  Harness h;
  h.grid = grid;
  h.block = block;
  h.runOnThree(declarations + addresses + body, sharedWords);
  INFO(what << "\n" << h.messages());
  CHECK(h.silent());
}

/// Writes one's own shared word, waits by `sync`, reads that of the thread `distance` on (of `threads`).
std::string exchange(const std::string &sync, unsigned distance, unsigned threads) {
  return "st.shared.u32 [%r20], %r1;\n" + sync + "\nadd.s32 %r6, %r1, " + std::to_string(distance) +
         ";\nrem.u32 %r6, %r6, " + std::to_string(threads) +
         ";\nshl.b32 %r6, %r6, 2;\nadd.s32 %r6, %r21, %r6;\nld.shared.u32 %r7, [%r6];\nst.global.u32 [%d12], %r7;\n";
}

/// The same with the thread whose number differs in bit 3.
std::string exchangeWithin16(const std::string &sync) {
  return "st.shared.u32 [%r20], %r1;\n" + sync +
         "\nxor.b32 %r6, %r22, 32;\nadd.s32 %r6, %r21, %r6;\nld.shared.u32 %r7, [%r6];\nst.global.u32 [%d12], %r7;\n";
}

} // namespace

TEST_CASE("checks: bounds") {
  expectSilence("own words", copyOwn, {2, 1, 1});
  expectFinding({"one past the end",
                 "ld.global.u32 %r5, [%d11+136];\nst.global.u32 [%d12], %r5;",
                 FindingKind::OutOfBounds,
                 "reads 4 bytes at byte 256 of `counting`, which has 256",
                 {1, 1, 1},
                 {31, 1, 1}});
  expectFinding({"before the start", "st.global.u32 [%d12+-4], %r1;", FindingKind::OutOfBounds,
                 "writes 4 bytes at byte -4 of `fresh`"});
  expectFinding({"whole warp outside", "st.global.u32 [%d12+1024], %r1;", FindingKind::OutOfBounds, "of `fresh`"});
  expectFinding({"null", "mov.u64 %d20, 0;\nld.global.u32 %r5, [%d20];", FindingKind::OutOfBounds, "no buffer is"});
  expectFinding(
      {"shared", "st.shared.u32 [%r20+1000], %r1;", FindingKind::OutOfBounds, "shared memory, which has 1024"});
  expectFinding({"shared, far apart", "setp.eq.u32 %p1, %r1, 0;\nselp.b32 %r6, -4, %r20, %p1;\nst.shared.u32 [%r6], 7;",
                 FindingKind::OutOfBounds, "byte 4294967292 of shared memory"});
  expectFinding({"generic, the whole space apart",
                 "mov.u64 %d20, 0;\nsetp.eq.u32 %p1, %r1, 0;\n"
                 "selp.b64 %d20, -4, %d20, %p1;\nld.u32 %r5, [%d20];",
                 FindingKind::OutOfBounds, "no buffer is"});
  // 31 times 2^64 / 31 is almost nothing: the last lane is next to the first one.
  expectFinding({"so far apart that the last is near the first",
                 "mul.wide.u32 %d20, %r1, 4;\n"
                 "mad.lo.u64 %d20, %d20, 148764065110560899, %d2;\nld.global.u32 %r5, [%d20];",
                 FindingKind::OutOfBounds, "no buffer is"});
  expectFinding({"read-only argument", "st.global.u32 [%d11], %r1;", FindingKind::ReadOnlyWrite, "`counting`"});
  expectFinding(
      {"atomic on a read-only argument", "red.global.add.u32 [%d11], 1;", FindingKind::ReadOnlyWrite, "`counting`"});
  expectFinding({"vector access on a word boundary", "ld.global.v2.u32 {%r5, %r6}, [%d11];", FindingKind::Misaligned,
                 "byte 4 of `counting`"});
}

TEST_CASE("checks: an access outside the slices of a launch is outside, though the buffer has it") {
  Harness h;
  h.load(Harness::kernel("add.s64 %d10, %d1, %d0;\nld.global.u32 %r5, [%d10];", 1));
  BufferId id = h.emulator->allocate("whole", 256, Emulator::Contents::Written);
  h.arguments.push_back(BufferArgument{id, 64, 128, false});
  CHECK(h.launch().silent());
  h.arguments = {BufferArgument{id, 64, 124, false}};
  h.launch();
  const Finding *finding = h.only(FindingKind::OutOfBounds);
  REQUIRE(finding);
  CHECK_THAT(finding->message, Contains("byte 188 of `whole`, outside what the kernel was given"));
  CHECK(finding->thread.x == 31);
}

TEST_CASE("checks: addresses of 32 bits wrap around with their offset") {
  // A negative index into a table in local memory, taken back by the offset.
  expectSilence("local",
                "mov.u32 %r5, table;\nst.local.u32 [%r5+4], %r1;\nsub.s32 %r6, %r5, 8;\n"
                "ld.local.u32 %r7, [%r6+12];\nst.global.u32 [%d12], %r7;",
                {1, 1, 1}, {32, 1, 1}, ".local .align 4 .b8 table[8];\n");
}

TEST_CASE("checks: variables of the module have bounds of their own, and constants stay") {
  const std::string variables = ".global .align 4 .b32 a[2] = {1, 2};\n.const .align 4 .b32 c[2] = {3, 4};\n"
                                ".global .align 4 .b32 b[32];";
  auto run = [&](Harness &h, const std::string &body) { h.runOnThree(addresses + body, variables + sharedWords); };
  Harness fine;
  run(fine, "ld.global.u32 %r5, [a+4];\nld.const.u32 %r6, [c+4];\nadd.u32 %r5, %r5, %r6;\nmov.u64 %d20, b;\n"
            "add.s64 %d20, %d20, %d0;\nst.global.u32 [%d20], %r5;\nld.global.u32 %r7, [%d20];\n"
            "st.global.u32 [%d12], %r7;");
  INFO(fine.messages());
  CHECK(fine.silent());
  CHECK(fine.read<uint32_t>(2)[31] == 6);
  Harness outside;
  run(outside, "mov.u64 %d20, b;\nadd.s64 %d20, %d20, %d0;\nst.global.u32 [%d20+4], 1;");
  CHECK(outside.find(FindingKind::OutOfBounds));
  Harness constant;
  run(constant, "mov.u64 %d20, c;\nst.global.u32 [%d20], 1;");
  CHECK(constant.find(FindingKind::ReadOnlyWrite));
}

TEST_CASE("checks: memory that nobody wrote") {
  expectFinding({"global", "ld.global.u32 %r5, [%d12];", FindingKind::UninitializedRead, "of `fresh`, which nobody"});
  expectFinding({"global, one lane of many",
                 "setp.ne.u32 %p1, %r1, 9;\n@%p1 st.global.u32 [%d12], 1;\n"
                 "ld.global.u32 %r5, [%d12];",
                 FindingKind::UninitializedRead, "byte 36 of `fresh`"});
  expectFinding({"shared", "ld.shared.u32 %r5, [%r20];", FindingKind::UninitializedRead, "shared memory"});
  expectFinding({"shared, written by the block before",
                 "setp.eq.u32 %p1, %r3, 0;\n@%p1 st.shared.u32 [%r20], 1;\n"
                 "ld.shared.u32 %r5, [%r20];",
                 FindingKind::UninitializedRead,
                 "shared memory",
                 {2, 1, 1}});
  expectFinding({"shared broadcast", "ld.shared.u32 %r5, [s];", FindingKind::UninitializedRead, "shared memory"});
  expectFinding({"local",
                 ".local .align 4 .b32 l[4];\nmov.u64 %d20, l;\nst.local.u32 [%d20], 1;\n"
                 "ld.local.u32 %r5, [%d20+4];",
                 FindingKind::UninitializedRead, "byte 4 of local memory"});
  expectSilence("written before", ".local .align 4 .b32 l[4];\nmov.u64 %d20, l;\nst.local.u32 [%d20+4], 1;\n"
                                  "ld.local.u32 %r5, [%d20+4];\nst.shared.u32 [%r20], 1;\nld.shared.u32 %r5, [%r20];\n"
                                  "st.global.u32 [%d12], 1;\nld.global.u32 %r5, [%d12];");
}

TEST_CASE("checks: races in shared memory") {
  expectFinding({"no barrier", exchange("", 32, 64), FindingKind::UninitializedRead, "shared", {1, 1, 1}, {64, 1, 1}});
  expectFinding({"no barrier, the other warp came first",
                 exchange("bar.warp.sync -1;", 31, 64),
                 FindingKind::SharedRace,
                 "",
                 {1, 1, 1},
                 {64, 1, 1}});
  expectFinding({"lanes of one warp", exchange("", 1, 32), FindingKind::SharedRace, "which thread"});
  expectFinding({"written over what others still read",
                 exchange("bar.sync 0;", 1, 64) + "st.shared.u32 [%r20], 5;",
                 FindingKind::SharedRace,
                 "writes byte",
                 {1, 1, 1},
                 {64, 1, 1}});
  expectFinding({"two values at once", "st.shared.u32 [s], %r1;", FindingKind::SharedRace, "another value"});
  expectFinding({"plain against atomic", "red.shared.add.u32 [s], 1;\nld.shared.u32 %r5, [s];", FindingKind::SharedRace,
                 "reads byte 0"});
  expectFinding({"many readers, one of them writes",
                 "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [s], 1;\nbar.sync 0;\n"
                 "ld.shared.u32 %r5, [s];\n@%p1 st.shared.u32 [s], 2;",
                 FindingKind::SharedRace,
                 "writes byte 0",
                 {1, 1, 1},
                 {64, 1, 1}});
  expectSilence("barrier", exchange("bar.sync 0;", 32, 64) + "bar.sync 0;\nst.shared.u32 [%r20], 5;", {1, 1, 1},
                {64, 1, 1});
  expectSilence("warp barrier", exchange("bar.warp.sync -1;", 1, 32));
  for (const char *collective :
       {"shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;", "vote.sync.ballot.b32 %r9, %p1, -1;", "activemask.b32 %r9;",
        "match.any.sync.b32 %r9, %r1, -1;", "redux.sync.add.u32 %r9, %r1, -1;"})
    expectFinding({collective, exchange(collective, 1, 32), FindingKind::SharedRace, "which thread"});
  // Lanes 0..15 and 16..31 wait among themselves.
  const std::string halves = "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r9, 65535, -65536, %p1;\nbar.warp.sync %r9;";
  expectSilence("members", exchangeWithin16(halves));
  expectFinding({"no members", exchange(halves, 1, 32), FindingKind::SharedRace, "reads byte 64 of shared memory"});
  expectSilence("atomics",
                "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [s], 0;\nbar.sync 0;\n"
                "red.shared.add.u32 [s], 1;\nbar.sync 0;\nld.shared.u32 %r5, [s];",
                {1, 1, 1}, {64, 1, 1});
  expectSilence("one value at once", "st.shared.u32 [s], 7;");
  const Dim3 one{1, 1, 1}, twoWarps{64, 1, 1};
  const std::string copies = "and.b32 %r5, %r1, 31;\nshl.b32 %r6, %r5, 2;\nadd.s32 %r6, %r21, %r6;\n"
                             "st.shared.u32 [%r6], %r5;\n";
  expectSilence("copies of one value", copies + "bar.sync 0;\nld.shared.u32 %r5, [%r6];", one, twoWarps);
  // Two warps store one tile each to the same place: word 0 of all lanes is the same, or has the number of the warp.
  const std::string rows = "and.b32 %r5, %r1, 7;\nshl.b32 %r5, %r5, 4;\nadd.s32 %r5, %r21, %r5;\n";
  const std::string storeTile = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r6};";
  expectSilence("copies of a tile", rows + "and.b32 %r6, %r1, 31;\n" + storeTile, one, twoWarps);
  expectFinding({"tiles that differ", rows + "mov.u32 %r6, %r1;\n" + storeTile, FindingKind::SharedRace, "writes byte",
                 one, twoWarps});
  expectFinding({"a copy that differs",
                 "setp.eq.u32 %p1, %r1, 37;\nselp.u32 %r7, 9, 0, %p1;\nand.b32 %r5, %r1, 31;\nshl.b32 %r6, %r5, 2;\n"
                 "add.s32 %r6, %r21, %r6;\nadd.u32 %r7, %r7, %r5;\nst.shared.u32 [%r6], %r7;",
                 FindingKind::SharedRace, "writes byte 20 of shared memory, which thread 5 wrote", one, twoWarps});
  expectFinding({"copies, read by another warp",
                 copies + "xor.b32 %r7, %r5, 1;\nshl.b32 %r7, %r7, 2;\nadd.s32 %r7, %r21, %r7;\n"
                          "ld.shared.u32 %r5, [%r7];",
                 FindingKind::SharedRace, "reads byte", one, twoWarps});
}

TEST_CASE("checks: lanes of a warp that exchange volatile words wait for each other") {
  auto exchangeBy = [](const std::string &kind, const std::string &sync, const std::string &after = "") {
    return "st." + kind + "shared.u32 [%r20], %r1;\nbar.sync 0;\nxor.b32 %r6, %r22, 32;\nadd.s32 %r6, %r21, %r6;\n" +
           "add.u32 %r7, %r1, 5;\nst." + kind + "shared.u32 [%r20], %r7;\n" + sync + "\nld." + kind +
           "shared.u32 %r7, [%r6];\n" + after + "st.global.u32 [%d12], %r7;\n";
  };
  for (const char *kind : {"volatile.", "relaxed.cta."}) {
    expectFinding({"as if in step", exchangeBy(kind, ""), FindingKind::SharedRace, "wrote with no barrier between"});
    expectSilence("in order", exchangeBy(kind, "bar.warp.sync -1;"));
    const std::string again = std::string("st.") + kind + "shared.u32 [%r20], 1000;\n";
    expectFinding({"written over what a lane may yet read", exchangeBy(kind, "bar.warp.sync -1;", again),
                   FindingKind::SharedRace, "read with no barrier between"});
    expectSilence("written over after that", exchangeBy(kind, "bar.warp.sync -1;", "bar.warp.sync -1;\n" + again));
  }
  // Lanes of which one tells the others, which look until it has.
  const std::string flag = "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.volatile.shared.u32 [s], 0;\nbar.sync 0;\n"
                           "@%p1 st.volatile.shared.u32 [s], 7;\nL: ld.volatile.shared.u32 %r5, [s];\n"
                           "setp.eq.u32 %p2, %r5, 0;\n@%p2 bra L;\nst.global.u32 [%d12], %r5;\n";
  expectSilence("a flag", flag);
  // What is stored is there already.
  expectSilence("no change", "st.volatile.shared.u32 [%r20], 1;\nbar.sync 0;\nst.volatile.shared.u32 [%r20], 1;\n"
                             "xor.b32 %r6, %r22, 32;\nadd.s32 %r6, %r21, %r6;\nld.volatile.shared.u32 %r7, [%r6];\n"
                             "st.global.u32 [%d12], %r7;\n");
  // The lane that writes knows what it wrote, those that read it along with it do not.
  expectFinding({"one word for all lanes",
                 "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [s], 1;\nld.shared.u32 %r5, [s];\n"
                 "bar.warp.sync -1;\nst.global.u32 [%d12], %r5;\n",
                 FindingKind::SharedRace, "which thread 0 wrote"});
}

TEST_CASE("checks: what updates read of words that nobody wrote") {
  auto countOf = [](const std::string &body, bool isAsked) {
    Harness h;
    h.options.checkUpdates = isAsked;
    h.runOnThree(addresses + body, sharedWords);
    INFO(h.messages());
    if (const Finding *finding = h.find(FindingKind::UninitializedRead)) {
      CHECK(finding->ofUpdate);
      CHECK(finding->harmlessIfUnused);
      return finding->count;
    }
    CHECK(h.silent());
    return uint64_t(0);
  };
  for (const char *body : {"atom.shared.cas.b32 %r5, [%r20], 0, 1;", "red.shared.or.b32 [%r20], 255;",
                           "ld.volatile.shared.u32 %r5, [%r20];\nadd.u32 %r6, %r5, 1;\n"
                           "atom.shared.cas.b32 %r7, [%r20], %r5, %r6;"}) {
    CHECK(countOf(body, true) > 0);
    CHECK(countOf(body, false) == 0);
  }
}

TEST_CASE("checks: races in global memory") {
  expectFinding({"two blocks write",
                 "add.s64 %d10, %d1, %d5;\nmul.wide.u32 %d6, %r1, 4;\nadd.s64 %d10, %d1, %d6;\n"
                 "st.global.u32 [%d10], %r3;",
                 FindingKind::GlobalRace,
                 "of block",
                 {2, 1, 1}});
  expectFinding({"one block reads, one writes",
                 "mul.wide.u32 %d6, %r1, 4;\nadd.s64 %d10, %d1, %d6;\n"
                 "setp.eq.u32 %p1, %r3, 0;\n@%p1 st.global.u32 [%d10], %r3;\n"
                 "@!%p1 ld.global.u32 %r5, [%d10];",
                 FindingKind::GlobalRace,
                 "of block",
                 {2, 1, 1}});
  expectFinding({"many blocks read, the last writes",
                 "ld.global.u32 %r5, [%d1];\nsetp.eq.u32 %p1, %r2, 127;\n@%p1 st.global.u32 [%d1], 1;",
                 FindingKind::GlobalRace,
                 "writes byte 0 of `zeros`",
                 {4, 1, 1}});
  expectFinding({"warps of one block",
                 "and.b32 %r6, %r1, 31;\nmul.wide.u32 %d6, %r6, 4;\nadd.s64 %d10, %d1, %d6;\n"
                 "st.global.u32 [%d10], %r1;",
                 FindingKind::GlobalRace,
                 "which thread",
                 {1, 1, 1},
                 {64, 1, 1}});
  expectFinding({"atomic and plain",
                 "red.global.add.u32 [%d1], 1;\nsetp.eq.u32 %p1, %r2, 63;\n"
                 "@%p1 ld.global.u32 %r5, [%d1];",
                 FindingKind::GlobalRace,
                 "reads byte 0 of `zeros`",
                 {2, 1, 1}});
  expectSilence("own words, in place",
                "ld.global.u32 %r5, [%d10];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%d10], %r5;\n"
                "ld.global.u32 %r5, [%d10];\nst.global.u32 [%d10], %r5;",
                {2, 1, 1});
  expectSilence("atomics", "red.global.add.u32 [%d1], 1;", {4, 1, 1});
  expectSilence("all read", "ld.global.u32 %r5, [%d1];\nld.global.u32 %r6, [%d10];", {2, 1, 1});
  expectSilence("after a barrier",
                "st.global.u32 [%d10], %r1;\nbar.sync 0;\nxor.b32 %r6, %r1, 32;\n"
                "mul.wide.u32 %d6, %r6, 4;\nadd.s64 %d11, %d1, %d6;\nld.global.u32 %r5, [%d11];",
                {1, 1, 1}, {64, 1, 1});
}

TEST_CASE("checks: barriers of some warps order these and no others") {
  // Three warps with a branch for each; %r23 is the address of the word of the thread's lane in warp 0.
  auto body = [](const std::string &first, const std::string &second, const std::string &third) {
    return "and.b32 %r24, %r22, 127;\nadd.s32 %r23, %r21, %r24;\nmul.wide.u32 %d20, %r24, 1;\nadd.s64 %d21, %d1, "
           "%d20;\n"
           "setp.ge.u32 %p1, %r1, 32;\nsetp.ge.u32 %p2, %r1, 64;\n@%p2 bra THIRD;\n@%p1 bra SECOND;\n" +
           first + "\nbra END;\nSECOND:\n" + second + "\nbra END;\nTHIRD:\n" + third + "\nEND:";
  };
  auto race = [&](const char *what, FindingKind kind, const std::string &text) {
    expectFinding({what, text, kind, "which thread", {1, 1, 1}, {96, 1, 1}});
  };
  auto silence = [&](const char *what, const std::string &text) { expectSilence(what, text, {1, 1, 1}, {96, 1, 1}); };
  const std::string write = "st.shared.u32 [%r23], %r1;\n", read = "ld.shared.u32 %r7, [%r23];\n";
  const std::string join = "bar.sync 1, 64;\n", arrive = "bar.arrive 1, 64;\n", second = "bar.sync 2, 64;\n";
  const FindingKind shared = FindingKind::SharedRace;

  silence("both meet", body(write + join, join + read, ""));
  silence("both meet often", body(write + join + join + write + join, join + join + join + read + write, ""));
  race("the third does not", shared, body(write + join, join, read));
  race("the third does not, and another has read", shared, body(write + join, join + read, read));
  race("written after they met", shared, body(write + join + write, join + read, ""));
  race("read and written after they met", shared,
       body(join + write, join + read, "").insert(0, "st.shared.u32 [%r20], 1;\nbar.sync 0;\n"));
  silence("read, met, then written",
          body(read + join, join + write, "").insert(0, "st.shared.u32 [%r20], 1;\nbar.sync 0;\n"));
  silence("one tells the other", body(write + arrive, join + read, ""));
  race("one tells the other and goes on", shared, body(write + arrive + write, join + read, ""));
  race("who only tells has not heard", shared,
       body(arrive + write, read + join, "").insert(0, "st.shared.u32 [%r20], 1;\nbar.sync 0;\n"));
  silence("passed on", body(write + join, join + second, second + read));
  silence("all meet in the end", body(write + join, join, "").append("\nbar.sync 0;\n" + read));

  const std::string writeGlobal = "st.global.u32 [%d21], %r1;\n", readGlobal = "ld.global.u32 %r7, [%d21];\n";
  silence("global memory", body(writeGlobal + join, join + readGlobal, ""));
  race("global memory, the third", FindingKind::GlobalRace, body(writeGlobal + join, join, readGlobal));
}

TEST_CASE("checks: a look at what an atomic maximum would change") {
  const std::string look = "ld.global.u32 %r5, [%d1];\nsetp.ge.s32 %p1, %r5, %r1;\n";
  expectSilence("maximum", look + "@!%p1 atom.global.max.s32 %r6, [%d1], %r1;", {1, 1, 1}, {64, 1, 1});
  expectSilence("maximum without a result", look + "@!%p1 red.global.max.s32 [%d1], %r1;", {1, 1, 1}, {64, 1, 1});
  expectFinding({"a sum, which may miss one",
                 look + "@!%p1 red.global.add.s32 [%d1], %r1;",
                 FindingKind::GlobalRace,
                 "byte 0 of `zeros`",
                 {1, 1, 1},
                 {64, 1, 1}});
}

TEST_CASE("checks: barriers and shuffles that not all reach") {
  expectFinding({"half a warp", "setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra L;\nbar.sync 0;\nL:",
                 FindingKind::DivergentBarrier, "lanes 0x0000ffff of 0xffffffff"});
  expectFinding({"a warp that never comes",
                 "setp.lt.u32 %p1, %r1, 32;\n@!%p1 bra L;\nbar.sync 1, 64;\nL:",
                 FindingKind::Deadlock,
                 "32 of 64",
                 {1, 1, 1},
                 {64, 1, 1}});
  expectFinding({"two different barriers",
                 "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra L;\nbar.sync 1;\nbra M;\nL: bar.sync 0;\n"
                 "bar.sync 0;\nM:",
                 FindingKind::Deadlock,
                 "barrier 0",
                 {1, 1, 1},
                 {64, 1, 1}});
  expectFinding({"a member that is not there",
                 "setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra L;\n"
                 "shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;\nL:",
                 FindingKind::InactiveShuffle, "0xffffffff"});
  expectSilence("warps that left", "setp.ge.u32 %p1, %r1, 32;\n@%p1 exit;\nbar.sync 0;", {1, 1, 1}, {96, 1, 1});
  expectSilence("half a warp shuffles among itself", "setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra L;\n"
                                                     "shfl.sync.idx.b32 %r9, %r1, 0, 31, 65535;\nL:");
  expectSilence("partial warps", "bar.sync 0;", {1, 1, 1}, {40, 1, 1});
}

TEST_CASE("checks: a byte for what has no value") {
  // Shared memory, local memory, a fresh buffer, and what lies behind one.
  const std::string body = "ld.shared.u32 %r5, [%r20];\nmov.u32 %r6, own;\nld.local.u32 %r6, [%r6];\n"
                           "ld.global.u32 %r7, [%d12];\nld.global.u32 %r8, [%d11+128];\n"
                           "and.b32 %r5, %r5, %r6;\nand.b32 %r5, %r5, %r7;\nand.b32 %r5, %r5, %r8;\n"
                           "st.global.u32 [%d10], %r5;";
  const std::string local = ".local .align 4 .b32 own;\n";
  for (std::optional<uint8_t> byte : {std::optional<uint8_t>(0x7e), std::optional<uint8_t>()}) {
    Harness h;
    h.options.undefinedByte = byte;
    h.load(Harness::kernel(local + addresses + body, 3, sharedWords));
    BufferId out = h.input("out", std::vector<uint32_t>(32), true);
    h.input("short", std::vector<uint32_t>(32));
    h.output("fresh", 128);
    h.launch();
    INFO(h.messages());
    CHECK(h.silent() == byte.has_value());
    for (const Finding &finding : h.emulator->findings())
      CHECK(finding.harmlessIfUnused);
    CHECK(h.emulator->findings().size() == (byte ? 0 : 4));
    if (byte)
      CHECK(h.read<uint32_t>(out) == std::vector<uint32_t>(32, 0x7e7e7e7e));
  }
  Harness writes;
  writes.options.undefinedByte = 0;
  writes.runOnThree(addresses + "st.global.u32 [%d12+256], %r1;", sharedWords);
  CHECK(writes.only(FindingKind::OutOfBounds));
}

TEST_CASE("checks: outputs left unwritten") {
  Harness h;
  h.runOnThree(addresses + copyOwn, sharedWords); // 32 of 64 words
  CHECK(h.silent());
  h.emulator->requireWritten(2, 0, 128);
  CHECK(h.emulator->findings().empty());
  h.emulator->requireWritten(2, 0, 256);
  REQUIRE(h.emulator->findings().size() == 1);
  CHECK(h.emulator->findings()[0].kind == FindingKind::UnwrittenOutput);
  CHECK_THAT(h.emulator->findings()[0].message, Contains("128 of 256 bytes of `fresh`") && Contains("byte 128"));
}

TEST_CASE("lent bytes are read where they are, and stay as they are") {
  for (bool writes : {false, true}) {
    Harness h;
    h.load(Harness::kernel("add.s64 %d10, %d1, %d0;\nadd.s64 %d11, %d2, %d0;\nld.global.u32 %r5, [%d10];\n" +
                               std::string(writes ? "st.global.u32 [%d10], %r1;" : "st.global.u32 [%d11], %r5;"),
                           2));
    alignas(16) uint32_t words[32];
    for (uint32_t i = 0; i < 32; ++i)
      words[i] = 100 + i;
    BufferId lent = h.input("lent", std::vector<uint32_t>(32)), out = h.output("out", 128);
    const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(words), sizeof(words));
    CHECK_FALSE(h.emulator->lend(lent, bytes.drop_back(4)));
    CHECK_FALSE(h.emulator->lend(out, bytes));
    CHECK_FALSE(h.emulator->lend(h.emulator->allocate("empty", 0, Emulator::Contents::Written), {}));
    REQUIRE(h.emulator->lend(lent, bytes));
    h.launch();
    INFO(h.messages());
    if (writes)
      CHECK(h.only(FindingKind::ReadOnlyWrite));
    else
      CHECK((h.silent() && h.read<uint32_t>(out) == std::vector<uint32_t>(words, words + 32)));
    CHECK(words[7] == 107);
  }
  Harness unchecked;
  unchecked.options.checkBounds = false;
  unchecked.load(Harness::kernel("", 1));
  BufferId own = unchecked.input("own", std::vector<uint32_t>(4));
  alignas(16) const uint8_t bytes[16] = {};
  CHECK_FALSE(unchecked.emulator->lend(own, bytes));
}

TEST_CASE("checks: copies carry along what was written") {
  Harness h;
  h.load(Harness::kernel("", 0));
  BufferId from = h.emulator->allocate("from", 64, Emulator::Contents::Unwritten);
  BufferId to = h.emulator->allocate("to", 64, Emulator::Contents::Unwritten);
  BufferId full = h.emulator->allocate("full", 64, Emulator::Contents::Written);
  h.emulator->copy(full, 0, from, 0, 16);
  h.emulator->copy(from, 0, to, 32, 32);
  h.emulator->requireWritten(to, 32, 16);
  CHECK(h.emulator->findings().empty());
  h.emulator->requireWritten(to, 32, 17);
  CHECK(h.emulator->findings().size() == 1);
}

TEST_CASE("checks: trap and time limit") {
  expectFinding({"trap", "trap;", FindingKind::Trap, "trap"});
  Harness h;
  h.options.timeLimitSeconds = 0.05;
  h.runOnThree("L: add.u32 %r5, %r5, 1;\nbra L;");
  CHECK(h.only(FindingKind::TimeLimit));
}

TEST_CASE("checks: findings are merged by line and capped") {
  Harness h;
  h.options.maxFindings = 2;
  h.grid = {3, 1, 1};
  h.runOnThree("mov.u64 %d20, 0;\nld.global.u32 %r5, [%d20];\nld.global.u32 %r5, [%d20];\nld.global.u32 %r5, [%d20];");
  REQUIRE(h.emulator->findings().size() == 2);
  CHECK(h.emulator->findings()[0].count == 96);
  CHECK(!h.succeeded);
}

TEST_CASE("checks: findings come by block and thread, not by host thread") {
  // Blocks from 100 on are wrong in one place and come to it late; all blocks but 0 are wrong in another; threads from
  // 9 on are wrong in a third one.
  const std::string body = "setp.eq.u32 %p1, %r3, 0;\nsetp.lt.u32 %p2, %r3, 100;\nsetp.lt.u32 %p3, %r1, 9;\n"
                           "mov.u64 %d20, 0;\n@!%p2 ld.global.u32 %r5, [%d20];\n@!%p1 ld.global.u32 %r5, [%d20];\n"
                           "@!%p3 ld.global.u32 %r5, [%d20];\n";
  for (unsigned attempt = 0; attempt < 5; ++attempt)
    for (uint64_t limit : {2, 20}) {
      Harness h;
      h.options.numThreads = 4;
      h.options.checkRaces = false; // all cores from the start
      h.options.maxFindings = limit;
      h.grid = {400, 1, 1};
      h.runOnThree(body);
      INFO(h.messages());
      auto findings = h.emulator->findings();
      REQUIRE(findings.size() == std::min<uint64_t>(limit, 3));
      CHECK((findings[0].block.x == 0 && findings[0].thread.x == 9 && findings[0].count == 400 * 23));
      CHECK((findings[1].block.x == 1 && findings[1].thread.x == 0 && findings[1].count == 399 * 32));
      if (limit > 2)
        CHECK((findings[2].block.x == 100 && findings[2].thread.x == 0 && findings[2].count == 300 * 32));
    }
}

TEST_CASE("checks: switched off, they are silent, and wild accesses still touch nothing") {
  Harness h;
  h.options.checkBounds = h.options.checkUninit = h.options.checkRaces = h.options.checkDivergence = false;
  h.runOnThree(addresses + "ld.global.u32 %r5, [%d12];\nst.shared.u32 [s], %r1;\nst.global.u32 [%d11], %r1;",
               sharedWords);
  INFO(h.messages());
  CHECK(h.silent());
  Harness wild;
  wild.options = h.options;
  wild.runOnThree("st.global.u32 [%d3+-1048576], %r1;");
  CHECK(wild.only(FindingKind::OutOfBounds));
}

TEST_CASE("checks: memory that is read by ld.nc stays as it is for the whole kernel") {
  const std::string own = "add.u64 %d25, %d1, %d0;\n", mixed = own +
                                                               "xor.b32 %r25, %r2, 5;\nmul.wide.u32 %d26, %r25, 4;\n"
                                                               "add.u64 %d26, %d1, %d26;\n";
  const std::string first = "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\n", fence = "fence.acq_rel.gpu;\n";
  const std::string reads = "reads byte ", writes = "writes byte ";
  struct Row {
    const char *what;
    std::string body, message;
  };
  for (const Row &row : std::initializer_list<Row>{
           {"own word after", own + "st.global.u32 [%d25], 1;\nld.global.nc.u32 %r5, [%d25];", reads},
           {"own word before", own + "ld.global.nc.u32 %r5, [%d25];\nst.global.u32 [%d25], %r5;", writes},
           {"another's after a barrier", mixed + "st.global.u32 [%d25], 1;\nbar.sync 0;\nld.global.nc.u32 %r5, [%d26];",
            reads},
           {"another's before a barrier",
            mixed + "ld.global.nc.u32 %r5, [%d26];\nbar.sync 0;\nst.global.u32 [%d25], %r5;", writes},
           {"all read one",
            "ld.global.nc.u32 %r5, [%d1+8];\nbar.sync 0;\n" + first + "st.global.u32 [%d1+8], 1;\nEND:", writes},
           {"one is read by all", own + "st.global.u32 [%d25], 1;\nbar.sync 0;\nld.global.nc.u32 %r5, [%d1+8];", reads},
           {"part of a vector",
            "st.global.u32 [%d1+8], 1;\nbar.sync 0;\n" + first +
                "ld.global.nc.v4.u32 {%r5, %r6, %r7, %r8}, [%d1];\nEND:",
            reads},
           {"an atomic", own + "ld.global.nc.u32 %r5, [%d25];\nred.global.add.u32 [%d25], 1;", writes},
           {"with fences, after", own + fence + "st.global.u32 [%d25], 1;\nld.global.nc.u32 %r5, [%d25];", reads},
           {"with fences, before", own + fence + "ld.global.nc.u32 %r5, [%d25];\nst.global.u32 [%d25], 1;", writes},
       })
    expectFinding({row.what, row.body, FindingKind::NonCoherentRead, row.message.c_str()});
  expectFinding({"two blocks",
                 own + "setp.eq.u32 %p1, %r3, 0;\n@%p1 st.global.u32 [%d25], 1;\n"
                       "@!%p1 ld.global.nc.u32 %r5, [%d25+-128];",
                 FindingKind::NonCoherentRead,
                 "byte ",
                 {2, 1, 1}});

  expectSilence("coherent loads",
                own + "ld.global.u32 %r5, [%d25];\nst.global.u32 [%d25], 1;\nld.global.u32 %r5, [%d25];");
  expectSilence("other places", own + "ld.global.nc.u32 %r5, [%d25];\nst.global.u32 [%d25+128], %r5;");
  expectSilence("other places, fences", own + fence + "ld.global.nc.u32 %r5, [%d25];\nst.global.u32 [%d25+128], %r5;");
  expectSilence("other buffers", "add.u64 %d25, %d2, %d0;\nadd.u64 %d26, %d3, %d0;\nld.global.nc.u32 %r5, [%d25];\n"
                                 "st.global.u32 [%d26], %r5;");
}

TEST_CASE("checks: ld.nc and a write of blocks on two host threads are found, whichever comes first") {
  // Block 0 writes the words from the first to the last, block 1 reads them from the last to the first: where they meet
  // they are at one word at the same time.
  constexpr unsigned words = 4096;
  const std::string body = "setp.eq.u32 %p1, %r3, 0;\nmov.u32 %r6, 0;\nL: sub.u32 %r7, 4095, %r6;\n"
                           "selp.b32 %r7, %r6, %r7, %p1;\nmul.wide.u32 %d10, %r7, 4;\nadd.u64 %d11, %d1, %d10;\n"
                           "@%p1 st.global.u32 [%d11], 1;\n@!%p1 ld.global.nc.u32 %r5, [%d11];\n"
                           "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 4096;\n@%p2 bra L;";
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    Harness h;
    h.options.numThreads = 2;
    h.grid = {2, 1, 1};
    h.block = {1, 1, 1};
    h.load(Harness::kernel(body, 1));
    h.input("words", std::vector<uint32_t>(words), true);
    h.launch();
    INFO(h.messages());
    uint64_t found = 0;
    for (const Finding &finding : h.emulator->findings())
      found += finding.kind == FindingKind::NonCoherentRead ? finding.count : 0;
    REQUIRE(found >= words);
  }
}

TEST_CASE("checks: what one kernel wrote another may read by ld.nc") {
  Harness h;
  h.load(Harness::kernel("setp.eq.u64 %p1, %d2, 0;\nadd.u64 %d25, %d1, %d0;\n@%p1 st.global.u32 [%d25], 1;\n"
                         "@!%p1 ld.global.nc.u32 %r5, [%d25];",
                         2));
  BufferId buffer = h.output("buffer", 128);
  for (uint64_t reads : {0, 1, 0}) {
    h.arguments = {BufferArgument{buffer, 0, 128, true}, ScalarArgument{reads, 8}};
    INFO(h.launch().messages());
    CHECK(h.silent());
  }
}
