// The shadows of global memory: whole lines judge as granules one by one do. And what numbers that run out leave.
#include "emulator/Shadow.h"
#include "Harness.h"

#include <atomic>
#include <random>
#include <thread>

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

constexpr unsigned numGranules = 128;

/// Both ways of keeping the record of global memory.
struct Shadows {
  std::vector<Owners<false>> lines = std::vector<Owners<false>>(numGranules / Lines::granulesOfLine);
  std::vector<Owners<false>> granules = std::vector<Owners<false>>(numGranules);
  std::vector<Owners<false>> plain = std::vector<Owners<false>>(numGranules);

  Lines shadow() { return {lines.data(), granules.data()}; }
  /// One thread, one granule; whether the two agree about it.
  bool enter(uint64_t granule, uint64_t now, bool reads) {
    auto expected = plain[granule].enter(now, reads);
    return Lines::Held(shadow(), granule / Lines::granulesOfLine).at(granule).enter(now, reads) == expected;
  }
  /// `lanes` threads share a line.
  bool enterLine(uint64_t line, uint64_t first, unsigned lanes, bool reads) {
    bool whole = Lines::Held(shadow(), line).enterWhole(first, lanes, reads);
    bool agree = true;
    for (unsigned g = 0; g < Lines::granulesOfLine; ++g) {
      uint64_t granule = line * Lines::granulesOfLine + g, now = first + g * lanes / Lines::granulesOfLine;
      if (!whole)
        agree &= enter(granule, now, reads);
      else
        agree &= plain[granule].enter(now, reads) == Owners<false>::Verdict::Fine;
    }
    return agree;
  }
};

} // namespace

TEST_CASE("shadow: lines and granules find the same races") {
  unsigned wholes = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Shadows shadows;
    std::mt19937 random(seed);
    auto below = [&](uint32_t n) { return uint32_t(random() % n); };
    for (unsigned step = 0; step < 40; ++step) {
      bool reads = below(2), atomic = below(8) == 0;
      uint32_t warp = 32 * below(2), block = below(8) == 0, epoch = step / 8;
      auto owner = [&](uint32_t lane) { return Owner<false>::make(warp + lane, block, epoch, atomic); };
      if (below(4) == 0) {
        REQUIRE(shadows.enter(below(numGranules), owner(below(32)), reads));
        continue;
      }
      unsigned lanes = 2u << below(5), line = below(4);
      bool before = shadows.lines[line].writer == Owner<false>::set;
      INFO("seed " << seed << " step " << step);
      REQUIRE(shadows.enterLine(line, owner(lanes * below(32 / lanes)), lanes, reads));
      wholes += !before;
    }
  }
  CHECK(wholes > 1000); // else this compares granules with granules
}

TEST_CASE("shadow: a line that is spelled out names the lane of each granule") {
  Shadows shadows;
  Lines shadow = shadows.shadow();
  Lines::Held held(shadow, 1);
  auto owner = Owner<false>::make(72, 5, 0, false);
  REQUIRE(held.enterWhole(owner, 8, false));
  for (unsigned g = 0; g < 32; ++g)
    CHECK(held.at(32 + g).writer == owner + g / 4);
  CHECK(held.at(32).reader == 0);
  CHECK(!held.enterWhole(owner, 8, true));
}

namespace {

const std::string sharedWords = ".shared .align 16 .b32 s[256];";

/// Runs on two warps, or on many blocks of one.
void expect(bool finds, FindingKind kind, const std::string &body, Dim3 grid, Dim3 block) {
  Harness h;
  h.options.numThreads = 1; // one core has all the numbers
  h.grid = grid;
  h.block = block;
  h.runOnThree("mov.u32 %r21, s;\nshl.b32 %r22, %r1, 2;\nadd.s32 %r20, %r21, %r22;\n" + body, sharedWords);
  INFO(body << h.messages());
  CHECK((finds ? h.find(kind) != nullptr : h.silent()));
}

} // namespace

TEST_CASE("shadow: more barriers than scopes of shared memory have numbers") {
  // The word is written before barriers whose number brings the first scope back, and read by another warp after them.
  for (unsigned barriers : {(1u << 14) - 3, (1u << 14) - 2, (1u << 14) - 1, 1u << 14}) {
    std::string count = std::to_string(barriers);
    std::string loop = "mov.u32 %r10, 0;\nL: bar.sync 0;\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p1, %r10, " + count +
                       ";\n@%p1 bra L;\nxor.b32 %r11, %r22, 128;\nadd.u32 %r11, %r21, %r11;\n";
    expect(false, FindingKind::SharedRace, "st.shared.u32 [%r20], 1;\n" + loop + "ld.shared.u32 %r5, [%r11];",
           {1, 1, 1}, {64, 1, 1});
    expect(true, FindingKind::SharedRace,
           "st.shared.u32 [%r20], 1;\n" + loop + "st.shared.u32 [%r20], 2;\nld.shared.u32 %r5, [%r11];", {1, 1, 1},
           {64, 1, 1});
  }
}

TEST_CASE("shadow: more blocks than serial numbers") {
  std::string write = "setp.eq.u32 %p1, %r3, 0;\n@%p1 st.shared.u32 [%r20], 1;\n";
  for (const char *reader : {"254", "255", "256", "510"})
    expect(true, FindingKind::UninitializedRead,
           write + "setp.eq.u32 %p2, %r3, " + reader + ";\n@%p2 ld.shared.u32 %r5, [%r20];", {511, 1, 1}, {32, 1, 1});
}

TEST_CASE("shadow: accesses of different widths in one line") {
  // Thread t writes words 2t and 2t + 1, then reads word t: the other half of the warp's.
  std::string own = "mul.wide.u32 %d6, %r1, 8;\nadd.s64 %d10, %d1, %d6;\nmul.wide.u32 %d7, %r1, 4;\n"
                    "add.s64 %d11, %d1, %d7;\nst.global.v2.u32 [%d10], {%r1, %r1};\n";
  expect(true, FindingKind::GlobalRace, own + "ld.global.u32 %r5, [%d11];", {1, 1, 1}, {32, 1, 1});
  expect(false, FindingKind::GlobalRace, own + "bar.warp.sync -1;\nld.global.u32 %r5, [%d11];", {1, 1, 1}, {32, 1, 1});
  expect(false, FindingKind::GlobalRace, own + "ld.global.v2.u32 {%r5, %r6}, [%d10];\nld.global.u32 %r5, [%d10+4];",
         {1, 1, 1}, {32, 1, 1});
  // A run that does not begin where a line does: words 1..32, then word 0 and 31 are another thread's.
  std::string shifted = "mul.wide.u32 %d6, %r1, 4;\nadd.s64 %d10, %d1, %d6;\nst.global.u32 [%d10+4], 1;\n";
  expect(true, FindingKind::GlobalRace, shifted + "ld.global.u32 %r5, [%d10];", {1, 1, 1}, {32, 1, 1});
  expect(false, FindingKind::GlobalRace, shifted + "ld.global.u32 %r5, [%d10+4];", {1, 1, 1}, {32, 1, 1});
}

TEST_CASE("shadow: blocks on two host threads that share lines neither seem to race nor hide a race") {
  // Each host thread writes half of every line, and one granule of each line that belongs to both.
  constexpr unsigned numLines = 1 << 14, rounds = 30, common = 15;
  unsigned falseAlarms = 0, races = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<Owners<false>> lines(numLines), granules(numLines * Lines::granulesOfLine);
    Lines shadow{lines.data(), granules.data()};
    std::atomic<unsigned> ready = 0, wrong = 0, found = 0;
    auto write = [&](unsigned block) {
      ++ready;
      while (ready < 2)
        ;
      for (unsigned line = 0; line < numLines; ++line)
        for (unsigned lane = 0; lane < 4; ++lane) {
          unsigned inLine = lane == 0 ? common : lane - 1 + 16 * block;
          auto owner = Owner<false>::make(lane, block, 0, false);
          auto verdict = Lines::Held(shadow, line).at(line * Lines::granulesOfLine + inLine).enter(owner, false);
          (inLine == common ? found : wrong) += verdict != Owners<false>::Verdict::Fine;
        }
    };
    std::thread other(write, 1);
    write(0);
    other.join();
    falseAlarms += wrong;
    races += found;
  }
  CHECK(falseAlarms == 0);
  CHECK(races == rounds * numLines);
}
