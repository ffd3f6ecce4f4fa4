// Clusters: how they are launched, what their blocks share, and that broken exchanges between blocks are found whatever
// the schedule.
#include "Harness.h"

#include <numeric>

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;
using Catch::Matchers::Contains;

namespace {

const std::string sharedWords = ".shared .align 16 .b32 s[64];";
const std::string arrive = "barrier.cluster.arrive.aligned;\n", wait = "barrier.cluster.wait.aligned;\n";
const std::string meet = arrive + wait;

/// %r20 = the thread's own word of s, %r23 = that of the block of rank `rank` (a register or number).
std::string ownAnd(const std::string &rank) {
  return "mov.u32 %r21, s;\nshl.b32 %r22, %r1, 2;\nadd.s32 %r20, %r21, %r22;\nmapa.shared::cluster.u32 %r23, %r20, " +
         rank + ";\n";
}
/// %r25 = the next block's rank, %r24 = how many there are.
const std::string nextRank = "mov.u32 %r24, %cluster_nctarank;\nmov.u32 %r25, %cluster_ctarank;\n"
                             "add.u32 %r25, %r25, 1;\nrem.u32 %r25, %r25, %r24;\n";
/// Stores %r7 to the thread's word of p0.
const std::string storeResult = "add.s64 %d10, %d1, %d0;\nst.global.u32 [%d10], %r7;\n";

struct Cluster : Harness {
  explicit Cluster(Dim3 clusterSize, Dim3 gridSize = {4, 1, 1}, Dim3 blockSize = {32, 1, 1}) {
    grid = gridSize;
    block = blockSize;
    cluster = clusterSize;
  }
  /// On one buffer of a word a thread, which nobody has written.
  Cluster &run(const std::string &body, const std::string &variables = sharedWords) {
    load(kernel(body, 1, variables));
    result = output("out", 4 * grid.count() * block.count());
    launch();
    return *this;
  }
  std::vector<uint32_t> words() { return read<uint32_t>(result); }
  BufferId result = 0;
};

const std::vector<Schedule> schedules = {{Schedule::Order::Ascending, 0},
                                         {Schedule::Order::Reversed, 0},
                                         {Schedule::Order::Shuffled, 1},
                                         {Schedule::Order::Shuffled, 2}};

/// The kernel is right in every schedule, and gives these words.
void expectWords(const char *what, const std::string &body, const std::vector<uint32_t> &words,
                 const std::string &variables = sharedWords, Dim3 size = {4, 1, 1}, Dim3 blockSize = {32, 1, 1}) {
  for (const Schedule &schedule : schedules) {
    Cluster c(size, {8, 1, 1}, blockSize);
    c.options.schedule = schedule;
    c.run(body, variables);
    INFO(what << " " << schedule.name() << "\n" << c.messages());
    REQUIRE(c.silent());
    CHECK(c.words() == words);
  }
}

/// It is found to be wrong in every schedule.
void expectFinding(const char *what, const std::string &body, FindingKind kind, const std::string &message,
                   const std::string &variables = sharedWords, Dim3 size = {4, 1, 1}, Dim3 blockSize = {32, 1, 1}) {
  for (const Schedule &schedule : schedules) {
    Cluster c(size, {8, 1, 1}, blockSize);
    c.options.schedule = schedule;
    c.run(body, variables);
    INFO(what << " " << schedule.name() << "\n" << c.messages());
    const Finding *finding = c.find(kind);
    REQUIRE(finding);
    CHECK_THAT(finding->message, Contains(message));
  }
}

std::vector<uint32_t> wordsBy(uint32_t blocks, uint32_t threads, uint32_t (*value)(uint32_t block, uint32_t thread)) {
  std::vector<uint32_t> words;
  for (uint32_t b = 0; b < blocks; ++b)
    for (uint32_t t = 0; t < threads; ++t)
      words.push_back(value(b, t));
  return words;
}

} // namespace

TEST_CASE("clusters: special registers") {
  const char *names[] = {"%clusterid.x",     "%clusterid.y",      "%clusterid.z",      "%nclusterid.x",
                         "%nclusterid.y",    "%nclusterid.z",     "%cluster_ctaid.x",  "%cluster_ctaid.y",
                         "%cluster_ctaid.z", "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z",
                         "%cluster_ctarank", "%cluster_nctarank", "%ctaid.x",          "%ctaid.y",
                         "%ctaid.z"};
  std::string body = "mov.u32 %r5, %nctaid.x;\nmov.u32 %r6, %ctaid.y;\nmad.lo.u32 %r5, %r6, %r5, %r3;\n"
                     "mov.u32 %r6, %nctaid.y;\nmov.u32 %r7, %nctaid.x;\nmul.lo.u32 %r6, %r6, %r7;\n"
                     "mov.u32 %r7, %ctaid.z;\nmad.lo.u32 %r5, %r7, %r6, %r5;\nmul.wide.u32 %d10, %r5, 128;\n"
                     "add.u64 %d10, %d1, %d10;\n";
  unsigned offset = 0;
  for (const char *name : names) {
    body += std::string("mov.u32 %r7, ") + name + ";\nst.global.u32 [%d10+" + std::to_string(offset) + "], %r7;\n";
    offset += 4;
  }
  body += "mov.pred %p1, %is_explicit_cluster;\nselp.u32 %r7, 1, 0, %p1;\nst.global.u32 [%d10+" +
          std::to_string(offset) + "], %r7;\n";
  Cluster c({2, 3, 1}, {4, 3, 2}, {1, 1, 1});
  c.load(Harness::kernel(body, 1));
  c.result = c.output("out", 128 * 24);
  c.launch();
  INFO(c.messages());
  REQUIRE(c.silent());
  const std::vector<uint32_t> words = c.words();
  for (uint32_t z = 0; z < 2; ++z)
    for (uint32_t y = 0; y < 3; ++y)
      for (uint32_t x = 0; x < 4; ++x) {
        const uint32_t *at = &words[32 * (x + 4 * (y + 3 * z))];
        const std::vector<uint32_t> expected = {x / 2,         0, z, 2, 1, 2, x % 2, y, 0, 2, 3, 1,
                                                x % 2 + 2 * y, 6, x, y, z, 1};
        CHECK(std::vector<uint32_t>(at, at + 18) == expected);
      }
}

TEST_CASE("clusters: a launch without has clusters of one block") {
  Harness h;
  h.grid = {3, 1, 1};
  h.runOnThree("mov.u32 %r5, %nclusterid.x;\nmov.u32 %r6, %clusterid.x;\nmov.u32 %r7, %cluster_nctarank;\n"
               "mov.pred %p1, %is_explicit_cluster;\nselp.u32 %r8, 1, 0, %p1;\nmul.wide.u32 %d10, %r6, 16;\n"
               "add.u64 %d10, %d1, %d10;\nsetp.eq.u32 %p2, %r1, 0;\n"
               "@%p2 st.global.v4.u32 [%d10], {%r5, %r6, %r7, %r8};\n" +
               meet);
  INFO(h.messages());
  REQUIRE(h.silent());
  const std::vector<uint32_t> words = h.read<uint32_t>(0);
  CHECK(std::vector<uint32_t>(words.begin(), words.begin() + 12) ==
        std::vector<uint32_t>{3, 0, 1, 0, 3, 1, 1, 0, 3, 2, 1, 0});
}

TEST_CASE("clusters: what a launch may ask for") {
  auto refusal = [](Dim3 grid, std::optional<Dim3> size, const std::string &directives, Dim3 block = {32, 1, 1}) {
    Harness h;
    std::string text = Harness::kernel("", 0);
    text.insert(text.find(") {") + 1, " " + directives + "\n");
    h.load(text);
    h.grid = grid;
    h.block = block;
    h.cluster = size;
    return h.launch().succeeded ? std::string() : h.messages();
  };
  CHECK(refusal({8, 1, 1}, Dim3{8, 1, 1}, "") == "");
  CHECK(refusal({8, 6, 1}, Dim3{4, 3, 1}, ".reqnctapercluster 4, 3") == "");
  CHECK(refusal({8, 1, 1}, std::nullopt, ".reqnctapercluster 4\n.explicitcluster\n.maxclusterrank 8") == "");
  CHECK_THAT(refusal({6, 1, 1}, Dim3{4, 1, 1}, ""),
             Contains("a grid of 6x1x1 blocks is not made of clusters of 4x1x1"));
  CHECK_THAT(refusal({6, 1, 1}, std::nullopt, ".reqnctapercluster 4"), Contains("is not made of clusters of 4x1x1"));
  CHECK_THAT(refusal({8, 1, 1}, Dim3{2, 1, 1}, ".reqnctapercluster 4"), Contains("says .reqnctapercluster 4, 1, 1"));
  CHECK_THAT(refusal({32, 1, 1}, Dim3{32, 1, 1}, ""), Contains("the limit is 16"));
  CHECK_THAT(refusal({32, 1, 1}, Dim3{0, 1, 1}, ""), Contains("the limit is 16"));
  CHECK_THAT(refusal({8, 1, 1}, Dim3{8, 1, 1}, ".maxclusterrank 4"), Contains("more than its .maxclusterrank 4"));
  CHECK_THAT(refusal({8, 1, 1}, std::nullopt, ".explicitcluster"), Contains("says .explicitcluster"));
  CHECK(refusal({2, 1, 1}, std::nullopt, ".reqntid 32\n.reqnctapercluster 4\n.blocksareclusters") == "");
}

TEST_CASE("clusters: a grid may be counted in clusters") {
  Harness h;
  std::string text = Harness::kernel("add.s64 %d10, %d1, %d0;\nmov.u32 %r5, %nctaid.x;\nst.global.u32 [%d10], %r5;", 1);
  text.insert(text.find(") {") + 1, " .reqntid 32\n.reqnctapercluster 4\n.blocksareclusters");
  h.load(text);
  h.grid = {2, 1, 1};
  BufferId out = h.output("out", 4 * 8 * 32);
  INFO(h.launch().messages());
  REQUIRE(h.silent());
  CHECK(h.read<uint32_t>(out) == std::vector<uint32_t>(8 * 32, 8));
}

TEST_CASE("clusters: directives need a target that has them") {
  auto refusal = [](const std::string &directives, const std::string &target) {
    DiagnosticEngine diagnostics;
    std::string text =
        ".version 9.0\n.target " + target + "\n.address_size 64\n.entry k() " + directives + "\n{\nret;\n}\n";
    diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", text));
    std::string out;
    llvm::raw_string_ostream os(out);
    if (Emulator::load(diagnostics, {}))
      return std::string();
    diagnostics.print(os, false);
    return out;
  };
  CHECK(refusal(".reqnctapercluster 2\n.maxclusterrank 4", "sm_90") == "");
  CHECK_THAT(refusal(".reqnctapercluster 2", "sm_89"), Contains("`.reqnctapercluster` needs sm_90"));
  CHECK_THAT(refusal(".explicitcluster", "sm_80"), Contains("`.explicitcluster` needs sm_90"));
  CHECK_THAT(refusal(".reqnctapercluster 0, 1", "sm_90"), Contains("`.reqnctapercluster 0, 1` is not supported"));
  CHECK_THAT(refusal(".reqnctapercluster 2\n.blocksareclusters", "sm_90"), Contains("without .reqntid"));
}

TEST_CASE("clusters: addresses of other blocks") {
  // Which block an address is of, by space and generic, and whether it is of the own block.
  const std::string body =
      nextRank + ownAnd("%r25") + meet +
      "getctarank.shared::cluster.u32 %r5, %r23;\ngetctarank.shared::cluster.u32 %r6, %r20;\n"
      "cvt.u64.u32 %d11, %r20;\ncvta.shared.u64 %d12, %d11;\nmapa.u64 %d13, %d12, %r25;\n"
      "getctarank.u64 %r7, %d13;\ncvta.to.shared::cluster.u64 %d14, %d13;\ncvt.u32.u64 %r8, %d14;\n"
      "isspacep.shared::cta %p1, %d12;\nisspacep.shared::cta %p2, %d13;\nisspacep.shared::cluster %p3, %d13;\n"
      "isspacep.shared::cluster %p4, %d1;\nisspacep.shared %p5, %d13;\nisspacep.global %p6, %d13;\n"
      "mov.u32 %r26, %cluster_ctarank;\nmapa.shared::cluster.u32 %r27, %r23, %r26;\ncvt.u64.u32 %d15, %r27;\n"
      "cvta.shared::cluster.u64 %d15, %d15;\nisspacep.shared::cta %p7, %d15;\n"
      "st.shared.u32 [%r20], 9;\nld.shared::cluster.u32 %r28, [%r27];\nmul.lo.u32 %r28, %r28, 100;\n"
      "shl.b32 %r5, %r5, 16;\nshl.b32 %r6, %r6, 20;\nshl.b32 %r7, %r7, 24;\nor.b32 %r5, %r5, %r6;\n"
      "or.b32 %r7, %r5, %r7;\nsetp.eq.u32 %p8, %r8, %r23;\nselp.u32 %r9, 1, 0, %p1;\nselp.u32 %r10, 2, 0, %p2;\n"
      "selp.u32 %r11, 4, 0, %p3;\nselp.u32 %r12, 8, 0, %p4;\nselp.u32 %r13, 16, 0, %p5;\nselp.u32 %r14, 32, 0, %p6;\n"
      "selp.u32 %r15, 64, 0, %p7;\nselp.u32 %r16, 128, 0, %p8;\nor.b32 %r7, %r7, %r9;\nor.b32 %r7, %r7, %r10;\n"
      "or.b32 %r7, %r7, %r11;\nor.b32 %r7, %r7, %r12;\nor.b32 %r7, %r7, %r13;\nor.b32 %r7, %r7, %r14;\n"
      "or.b32 %r7, %r7, %r15;\nor.b32 %r7, %r7, %r16;\nadd.u32 %r7, %r7, %r28;\n" +
      storeResult + meet;
  expectWords("addresses", body, wordsBy(8, 32, [](uint32_t b, uint32_t) {
                const uint32_t rank = b % 4, next = (rank + 1) % 4;
                return (next << 16 | rank << 20 | next << 24 | 1 | 4 | 64 | 128) + 900;
              }));
}

TEST_CASE("clusters: each block reads what the next one stored") {
  auto shift = [](const std::string &first, const std::string &between, const std::string &last,
                  const std::string &load = "ld.shared::cluster.u32 %r7, [%r23];\n") {
    return nextRank + ownAnd("%r25") + first + "st.shared.u32 [%r20], %r2;\n" + between + load + last + storeResult;
  };
  const std::vector<uint32_t> shifted =
      wordsBy(8, 32, [](uint32_t b, uint32_t t) { return (b / 4 * 4 + (b + 1) % 4) * 32 + t; });
  const std::string generic = "cvt.u64.u32 %d12, %r20;\ncvta.shared.u64 %d12, %d12;\nmapa.u64 %d13, %d12, %r25;\n"
                              "ld.u32 %r7, [%d13];\n";
  expectWords("by space", shift("", meet, meet), shifted);
  expectWords("generic", shift("", meet, meet, generic), shifted);
  expectWords("not aligned, with all said",
              shift("", "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n",
                    "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"),
              shifted);
  expectWords("what is relaxed needs a fence",
              shift("", "fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\n" + wait, meet), shifted);
  expectFinding("no barrier between", shift(meet, "", meet), FindingKind::SharedRace, " of block ");
  expectFinding("nothing at all", shift("", "", ""), FindingKind::AbsentBlock, "of block");
  expectFinding("relaxed", shift("", "barrier.cluster.arrive.relaxed.aligned;\n" + wait, meet), FindingKind::SharedRace,
                "with no order between");
  expectFinding("a fence of the block alone",
                shift("", "fence.acq_rel.cta;\nbarrier.cluster.arrive.relaxed.aligned;\n" + wait, meet),
                FindingKind::SharedRace, "with no order between");
  expectFinding("stored after arriving",
                nextRank + ownAnd("%r25") + arrive + "st.shared.u32 [%r20], %r2;\n" + wait +
                    "ld.shared::cluster.u32 %r7, [%r23];\n" + meet + storeResult,
                FindingKind::SharedRace, "with no order between");
  expectFinding("ends too early", shift("", meet, ""), FindingKind::AbsentBlock, "of block");
  expectFinding("ends when the others may still read", shift("", meet, arrive), FindingKind::AbsentBlock, "of block");
  expectFinding("a block that is not there",
                ownAnd("5") + meet + "ld.shared::cluster.u32 %r7, [%r23];\n" + meet + storeResult,
                FindingKind::OutOfBounds, "of shared memory of block 5 of its cluster, which has 4");
  expectFinding("outside the other's memory",
                ownAnd("1") + meet + "ld.shared::cluster.u32 %r7, [%r23+256];\n" + meet + storeResult,
                FindingKind::OutOfBounds, "of shared memory");
  expectFinding("the wrong window", ownAnd("1") + meet + "ld.shared.u32 %r7, [%r23];\n" + meet + storeResult,
                FindingKind::OutOfBounds, "only .shared::cluster leads to other blocks");
  expectFinding("nobody wrote there", ownAnd("1") + meet + "ld.shared::cluster.u32 %r7, [%r23];\n" + meet + storeResult,
                FindingKind::UninitializedRead, "byte 0 of shared memory");
  expectFinding("an address that is not shared", "mapa.u64 %d13, %d1, 1;\nmov.u32 %r7, 0;\n" + storeResult,
                FindingKind::OutOfBounds, "which is none of shared memory");
}

TEST_CASE("clusters: the barrier is split, and is found where it is used wrongly") {
  expectFinding(
      "some threads never come",
      "shr.u32 %r5, %r2, 5;\nsetp.eq.u32 %p1, %r5, 3;\n@%p1 bra LATE;\n" + meet +
          "bra END;\n"
          "LATE: bar.sync 1, 64;\n" +
          meet + "END:",
      FindingKind::Deadlock,
      "waits at the barrier of its cluster for threads that never come: 224 of 256 are here; thread 32 of block "
      "1 is not",
      sharedWords, {4, 1, 1}, {64, 1, 1});
  expectFinding("waits without having arrived", wait, FindingKind::DivergentBarrier, "without having arrived");
  expectFinding("arrives twice", arrive + arrive + wait, FindingKind::DivergentBarrier, "arrives at the barrier");
  expectFinding("half a warp",
                "setp.lt.u32 %p1, %r1, 16;\n@%p1 barrier.cluster.arrive.aligned;\n"
                "@!%p1 barrier.cluster.arrive.aligned;\n" +
                    wait,
                FindingKind::DivergentBarrier, "which .aligned does not allow");
  // What has ended is not waited for; half warps may come apart where nothing says that they do not.
  const std::string result = "mov.u32 %r7, 3;\n" + storeResult;
  expectWords("a block that ends",
              result + "setp.eq.u32 %p1, %r3, 1;\n@%p1 bra END;\n" + meet + "END:", std::vector<uint32_t>(256, 3));
  expectWords("half a warp",
              result + "setp.lt.u32 %p1, %r1, 16;\n@%p1 barrier.cluster.arrive;\n@!%p1 barrier.cluster.arrive;\n"
                       "barrier.cluster.wait;\n",
              std::vector<uint32_t>(256, 3));
  expectWords("ends without waiting", result + arrive, std::vector<uint32_t>(256, 3));
}

TEST_CASE("clusters: a sum over a cluster") {
  // Each block sums up its threads' numbers in its own word, then rank 0 reads them all and tells them the sum.
  auto sum = [](const std::string &before, const std::string &after, const std::string &end) {
    return "mov.u32 %r21, s;\nsetp.ne.u32 %p1, %r1, 0;\n@!%p1 st.shared.u32 [%r21], 0;\nbar.sync 0;\n"
           "red.shared.add.u32 [%r21], %r2;\n" +
           before +
           "mov.u32 %r25, %cluster_ctarank;\nsetp.ne.u32 %p2, %r25, 0;\nor.pred %p3, %p1, %p2;\n@%p3 bra TOLD;\n"
           "mov.u32 %r7, 0;\nmov.u32 %r26, 0;\n"
           "SUM: mapa.shared::cluster.u32 %r23, %r21, %r26;\nld.shared::cluster.u32 %r8, [%r23];\n"
           "add.u32 %r7, %r7, %r8;\nadd.u32 %r26, %r26, 1;\nsetp.lt.u32 %p4, %r26, 4;\n@%p4 bra SUM;\n"
           "mov.u32 %r26, 0;\n"
           "TELL: mapa.shared::cluster.u32 %r23, %r21, %r26;\nst.shared::cluster.u32 [%r23+4], %r7;\n"
           "add.u32 %r26, %r26, 1;\nsetp.lt.u32 %p4, %r26, 4;\n@%p4 bra TELL;\nTOLD:\n" +
           after + "ld.shared.u32 %r7, [%r21+4];\n" + end + storeResult;
  };
  const std::vector<uint32_t> sums = wordsBy(8, 64, [](uint32_t b, uint32_t) {
    const uint32_t first = b / 4 * 256;
    return first * 256 + 255 * 256 / 2;
  });
  auto right = [&](const std::string &a, const std::string &b, const std::string &c) {
    expectWords("sum", sum(a, b, c), sums, sharedWords, {4, 1, 1}, {64, 1, 1});
  };
  auto wrong = [&](const char *what, const std::string &a, const std::string &b, FindingKind kind) {
    expectFinding(what, sum(a, b, ""), kind, "of block", sharedWords, {4, 1, 1}, {64, 1, 1});
  };
  right(meet, meet, "");
  right(arrive + wait, arrive + wait, meet);
  wrong("a barrier of the block only", "bar.sync 0;\n", meet, FindingKind::AbsentBlock);
  wrong("nobody waits for the telling", meet, arrive + "bar.sync 0;\n", FindingKind::SharedRace);
}

TEST_CASE("clusters: a histogram spread over the blocks, by remote atomics") {
  // Bin n of 128 is word n / 4 of the block of rank n % 4; each bin is met by threads of two blocks, twice by each.
  auto histogram = [](const std::string &begin, const std::string &scope, const std::string &end) {
    return "mov.u32 %r21, s;\nshl.b32 %r22, %r1, 2;\nadd.s32 %r20, %r21, %r22;\nst.shared.u32 [%r20], 0;\n" + begin +
           "mul.lo.u32 %r5, %r2, 37;\nand.b32 %r5, %r5, 127;\nand.b32 %r6, %r5, 3;\nshr.u32 %r5, %r5, 2;\n"
           "shl.b32 %r5, %r5, 2;\nadd.u32 %r5, %r21, %r5;\nmapa.shared::cluster.u32 %r23, %r5, %r6;\n"
           "red" +
           scope +
           ".shared::cluster.add.u32 [%r23], 1;\n"
           "mov.u32 %r8, 1;\natom" +
           scope + ".shared::cluster.add.u32 %r9, [%r23], %r8;\n" + end + "ld.shared.u32 %r7, [%r20];\n" + storeResult;
  };
  const std::vector<uint32_t> counts = wordsBy(8, 64, [](uint32_t, uint32_t t) { return t < 32 ? 4u : 0u; });
  expectWords("histogram", histogram(meet, ".relaxed.cluster", meet), counts, sharedWords, {4, 1, 1}, {64, 1, 1});
  expectWords("of the device", histogram(meet, "", meet), counts, sharedWords, {4, 1, 1}, {64, 1, 1});
  expectFinding("of the block", histogram(meet, ".relaxed.cta", meet), FindingKind::SharedRace, "of block", sharedWords,
                {4, 1, 1}, {64, 1, 1});
  expectFinding("the zeros may come later", histogram("bar.sync 0;\n", "", meet), FindingKind::SharedRace, "of block",
                sharedWords, {4, 1, 1}, {64, 1, 1});
  expectFinding("the counts may come later", histogram(meet, "", "bar.sync 0;\n"), FindingKind::SharedRace, "of block",
                sharedWords, {4, 1, 1}, {64, 1, 1});
}

TEST_CASE("clusters: flags between blocks have scopes") {
  // Rank 0 stores a word to the next block, then its flag; that waits for the flag.
  auto handOver = [](const std::string &store, const std::string &load, Dim3 size) {
    return ownAnd("1") + "st.shared.v2.u32 [%r21+8], {0, 0};\nmov.u32 %r7, 0;\n" + meet +
           "mov.u32 %r25, %cluster_ctarank;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\nsetp.eq.u32 %p2, %r25, 0;\n"
           "@%p2 bra GIVE;\nsetp.ne.u32 %p3, %r25, 1;\n@%p3 bra END;\n"
           "WAIT: " +
           load +
           "setp.eq.u32 %p4, %r8, 0;\n@%p4 bra WAIT;\nld.shared.u32 %r7, [%r21+8];\nbra END;\n"
           "GIVE: mapa.shared::cluster.u32 %r24, %r21, 1;\nst.shared::cluster.u32 [%r24+8], 7;\n" +
           store + "END:\n" + meet + storeResult;
  };
  const std::vector<uint32_t> handed =
      wordsBy(8, 32, [](uint32_t b, uint32_t t) { return b % 4 == 1 && t == 0 ? 7u : 0u; });
  // One lane of the warp of 32 stores the zeros.
  auto good = [&](const char *what, const std::string &store, const std::string &load) {
    expectWords(what, handOver(store, load, {4, 1, 1}), handed);
  };
  auto bad = [&](const char *what, const std::string &store, const std::string &load) {
    expectFinding(what, handOver(store, load, {4, 1, 1}), FindingKind::SharedRace, "of block");
  };
  good("cluster", "st.release.cluster.shared::cluster.u32 [%r24+12], 1;\n",
       "ld.acquire.cluster.shared.u32 %r8, [%r21+12];\n");
  good("device", "st.release.gpu.shared::cluster.u32 [%r24+12], 1;\n", "ld.acquire.gpu.shared.u32 %r8, [%r21+12];\n");
  good("fences", "fence.acq_rel.cluster;\nst.relaxed.cluster.shared::cluster.u32 [%r24+12], 1;\n",
       "ld.relaxed.cluster.shared.u32 %r8, [%r21+12];\nfence.acq_rel.cluster;\n");
  bad("released to the block only", "st.release.cta.shared::cluster.u32 [%r24+12], 1;\n",
      "ld.acquire.cluster.shared.u32 %r8, [%r21+12];\n");
  bad("acquired from the block only", "st.release.cluster.shared::cluster.u32 [%r24+12], 1;\n",
      "ld.acquire.cta.shared.u32 %r8, [%r21+12];\n");
  bad("relaxed", "st.relaxed.cluster.shared::cluster.u32 [%r24+12], 1;\n",
      "ld.acquire.cluster.shared.u32 %r8, [%r21+12];\n");
  bad("a fence of the block", "fence.acq_rel.cta;\nst.relaxed.cluster.shared::cluster.u32 [%r24+12], 1;\n",
      "ld.acquire.cluster.shared.u32 %r8, [%r21+12];\n");
}

TEST_CASE("clusters: what is for a cluster means nothing to another one") {
  // Block 0 hands a word of global memory to block 1, in its own cluster or in the next one.
  auto run = [](Dim3 size, const std::string &scope) {
    Harness h;
    h.grid = {2, 1, 1};
    h.cluster = size;
    h.runOnThree("setp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra GIVE;\n"
                 "WAIT: ld.acquire." +
                 scope +
                 ".global.u32 %r8, [%d1];\nsetp.eq.u32 %p4, %r8, 0;\n@%p4 bra WAIT;\n"
                 "ld.global.u32 %r7, [%d1+4];\nst.global.u32 [%d3], %r7;\nbra END;\n"
                 "GIVE: st.global.u32 [%d1+4], 5;\nst.release." +
                 scope + ".global.u32 [%d1], 1;\nEND:");
    INFO(h.messages());
    if (h.silent())
      CHECK(h.read<uint32_t>(2)[0] == 5);
    else
      CHECK(h.find(FindingKind::GlobalRace));
    return h.silent();
  };
  CHECK(run({2, 1, 1}, "cluster"));
  CHECK(run({2, 1, 1}, "gpu"));
  CHECK_FALSE(run({2, 1, 1}, "cta"));
  CHECK(run({1, 1, 1}, "gpu"));
  CHECK_FALSE(run({1, 1, 1}, "cluster"));
}

TEST_CASE("clusters: without checks they run on several host threads") {
  for (unsigned threads : {1u, 3u}) {
    Cluster c({4, 1, 1}, {64, 1, 1});
    c.options.checkRaces = false;
    c.options.numThreads = threads;
    c.run(nextRank + ownAnd("%r25") + "st.shared.u32 [%r20], %r2;\n" + meet + "ld.shared::cluster.u32 %r7, [%r23];\n" +
          meet + storeResult);
    INFO(c.messages());
    REQUIRE(c.silent());
    CHECK(c.words() == wordsBy(64, 32, [](uint32_t b, uint32_t t) { return (b / 4 * 4 + (b + 1) % 4) * 32 + t; }));
  }
}
