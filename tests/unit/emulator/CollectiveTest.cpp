// Cross-lane and rare instructions against what the ISA's text gives by hand.
#include "Harness.h"

#include "emulator/Floats.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

/// Runs `body`, which leaves a word in %r20; its value per lane. %r10 is lane * 7 % 13, %r1 the lane.
std::vector<uint32_t> wordsOf(const std::string &body) {
  Harness h;
  h.load(Harness::kernel("mul.lo.s32 %r10, %r1, 7;\nrem.u32 %r10, %r10, 13;\n" + body +
                             "\nadd.s64 %d10, %d1, %d0;\nst.global.u32 [%d10], %r20;",
                         1));
  BufferId out = h.output("out", 128);
  h.launch();
  INFO(h.messages());
  REQUIRE(h.silent());
  return h.read<uint32_t>(out);
}

uint32_t sample(unsigned lane) { return lane * 7 % 13; }

/// One value, the same in all lanes.
uint32_t wordOf(const std::string &body) {
  const auto words = wordsOf(body);
  for (uint32_t word : words)
    REQUIRE(word == words[0]);
  return words[0];
}

} // namespace

TEST_CASE("collective: shuffles of segments, with predicate") {
  for (unsigned width : {32u, 16u, 8u, 4u})
    for (const char *mode : {"up", "down", "bfly", "idx"})
      for (unsigned by : {0u, 1u, 3u, 5u, 9u}) {
        const std::string name = mode;
        const unsigned clamp = name == "up" ? 0 : 31, c = (32 - width) << 8 | clamp;
        INFO(name << ' ' << by << " of " << width);
        const auto words = wordsOf("shfl.sync." + name + ".b32 %r20|%p1, %r10, " + std::to_string(by) + ", " +
                                   std::to_string(c) + ", -1;\n@%p1 add.u32 %r20, %r20, 100;");
        for (unsigned lane = 0; lane < 32; ++lane) {
          const int first = int(lane / width * width), last = first + int(width) - 1, self = int(lane);
          int from = name == "up"     ? self - int(by)
                     : name == "down" ? self + int(by)
                     : name == "bfly" ? int(lane ^ by)
                                      : first + int(by % width);
          // bfly may reach lower segments: only the upper bound is checked
          const bool inside = from <= last && (name == "bfly" || from >= first);
          REQUIRE(words[lane] == (inside ? sample(unsigned(from)) + 100 : sample(lane)));
        }
      }
}

TEST_CASE("collective: match, elect, reductions") {
  const auto any = wordsOf("match.any.sync.b32 %r20, %r10, -1;");
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint32_t same = 0;
    for (unsigned other = 0; other < 32; ++other)
      same |= uint32_t(sample(other) == sample(lane)) << other;
    CHECK(any[lane] == same);
  }
  CHECK(wordOf("match.all.sync.b32 %r20|%p1, %r10, -1;\n@%p1 mov.u32 %r20, 77;") == 0);
  CHECK(wordOf("mov.u64 %d5, 9;\nmatch.all.sync.b64 %r20|%p1, %d5, -1;\n@!%p1 mov.u32 %r20, 77;") == 0xffffffff);
  const auto elected = wordsOf("elect.sync %r20|%p1, -1;\n@%p1 add.u32 %r20, %r20, 5;");
  CHECK(elected[0] == 5);
  CHECK(elected[1] == 0);
  CHECK(wordOf("sub.s32 %r11, %r10, 5;\nredux.sync.min.s32 %r20, %r11, -1;") == uint32_t(-5));
  CHECK(wordOf("sub.s32 %r11, %r10, 5;\nredux.sync.min.u32 %r20, %r11, -1;") == 0);
  CHECK(wordOf("cvt.rn.f32.u32 %f1, %r1;\nneg.f32 %f1, %f1;\nredux.sync.min.f32 %f2, %f1, -1;\nmov.b32 %r20, %f2;") ==
        0xc1f80000); // -31
  CHECK(wordOf("cvt.rn.f32.u32 %f1, %r1;\nneg.f32 %f1, %f1;\nredux.sync.max.abs.f32 %f2, %f1, -1;\n"
               "mov.b32 %r20, %f2;") == 0x41f80000);
}

TEST_CASE("collective: rare integer instructions") {
  for (auto [body, value] : {
           std::pair("mov.u32 %r5, 0x00f0;\nbfind.u32 %r20, %r5;", 7u),
           {"mov.u32 %r5, -16;\nbfind.s32 %r20, %r5;", 3},
           {"mov.u32 %r5, 0x00f0;\nbfind.shiftamt.u32 %r20, %r5;", 24},
           {"bfind.u32 %r20, 0;", 0xffffffff},
           {"bmsk.clamp.b32 %r20, 4, 8;", 0xff0},
           {"bmsk.clamp.b32 %r20, 40, 8;", 0},
           {"bmsk.wrap.b32 %r20, 36, 8;", 0xff0},
           {"szext.clamp.s32 %r20, 0xfc, 8;", 0xfffffffc},
           {"szext.wrap.u32 %r20, 0x1fc, 8;", 0xfc},
           {"fns.b32 %r20, 0xb0, 0, 2;", 5},
           {"fns.b32 %r20, 0xb0, 31, -1;", 7},
           {"fns.b32 %r20, 0xb0, 5, 9;", 0xffffffff},
           {"dp4a.u32.s32 %r20, 0x01020304, 0xff010101, 10;", 10 + 4 + 3 + 2 - 1},
           {"dp2a.lo.s32.u32 %r20, 0xffff0003, 0x05060708, 1;", uint32_t(1 + 3 * 8 - 7)},
           {"mul24.lo.u32 %r20, 0xff000003, 5;", 15},
           {"mul24.hi.u32 %r20, 0x800000, 0x800000;", 0x40000000},
           {"mad24.lo.s32 %r20, 0xffffff, 5, 7;", 2},
           {"sad.s32 %r20, -3, 4, 10;", 17},
           {"sad.u32 %r20, 3, 9, 10;", 16},
           {"slct.b32.s32 %r20, 1, 2, -1;", 2},
           {"slct.b32.f32 %r20, 1, 2, 0f80000000;", 1},
           {"slct.b32.f32 %r20, 1, 2, 0f7FC00000;", 2},
           {"cnot.b32 %r20, 0;", 1},
           {"prmt.b32.f4e %r20, 0x33221100, 0x77665544, 2;", 0x55443322},
           {"prmt.b32.b4e %r20, 0x33221100, 0x77665544, 0;", 0x55667700},
           {"prmt.b32.rc8 %r20, 0x33221100, 0, 2;", 0x22222222},
           {"prmt.b32.ecl %r20, 0x33221100, 0, 1;", 0x33221111},
           {"prmt.b32.ecr %r20, 0x33221100, 0, 1;", 0x11111100},
           {"prmt.b32.rc16 %r20, 0x33221100, 0, 1;", 0x33223322},
           {"testp.subnormal.f32 %p1, 0f00000001;\nselp.u32 %r20, 1, 0, %p1;", 1},
           {"testp.number.f32 %p1, 0f7FC00000;\nselp.u32 %r20, 1, 0, %p1;", 0},
           {"set.lt.u32.f32 %r20, 0f3F800000, 0f40000000;", 0xffffffff},
           {"set.lt.f32.s32 %f1, 3, 4;\nmov.b32 %r20, %f1;", 0x3f800000},
           {"set.gt.u32.f16x2 %r20, 0x3c004000, 0x40003c00;", 0x0000ffff},
           {"set.gt.f16x2.f16x2 %r20, 0x40003c00, 0x3c004000;", 0x3c000000},
           {"cvt.pack.sat.u8.s32.b32 %r20, 300, -4, 0x1234;", 0x1234ff00},
           {"cvt.pack.sat.s16.s32 %r20, 40000, -4;", 0x7ffffffc},
       }) {
    INFO(body);
    CHECK(wordOf(body) == value);
  }
}

TEST_CASE("collective: conversions to small floats") {
  for (auto [body, value] : {
           std::pair("cvt.rn.satfinite.e4m3x2.f32 %h1, 0f43F00000, 0f3F800000;\ncvt.u32.u16 %r20, %h1;", 0x7e38u),
           {"cvt.rn.satfinite.e5m2x2.f32 %h1, 0fBF800000, 0f7F800000;\ncvt.u32.u16 %r20, %h1;", 0xbc7b},
           {"mov.b16 %h1, 0x387e;\ncvt.rn.f16x2.e4m3x2 %r20, %h1;", 0x3c005f00},
           {"mov.b16 %h1, 0x387e;\ncvt.rn.bf16x2.e4m3x2 %r20, %h1;", 0x3f8043e0},
           {"mov.b16 %h1, 0xbc7b;\ncvt.rn.bf16x2.e5m2x2 %r20, %h1;", 0xbf804760},
           {"cvt.rn.satfinite.e4m3x2.bf16x2 %h1, 0x43f03f80;\ncvt.u32.u16 %r20, %h1;", 0x7e38},
           {"cvt.rn.satfinite.e5m2x2.bf16x2 %h1, 0xbf807f80;\ncvt.u32.u16 %r20, %h1;", 0xbc7b},
           {"mov.b16 %h1, 0x3c01;\ncvt.bf16.f16 %h1, %h1;\ncvt.u32.u16 %r20, %h1;", 0x3f80},
           {"cvt.rna.tf32.f32 %r20, 0f3F801000;", 0x3f802000},
           {"cvt.rn.tf32.f32 %r20, 0f3F801000;", 0x3f800000},
           {"cvt.rn.relu.f16x2.f32 %r20, 0fBF800000, 0f3F800000;", 0x00003c00},
           {"cvt.rn.satfinite.f16x2.f32 %r20, 0f7F800000, 0fFF800000;", 0x7bfffbff},
           {"fma.rn.relu.f16x2 %r20, 0x3c003c00, 0xc0004000, 0x3c003c00;", 0x00004200},
           {"max.xorsign.abs.f32 %f1, 0fC0000000, 0f3F800000;\nmov.b32 %r20, %f1;", 0xc0000000},
       }) {
    INFO(body);
    CHECK(wordOf(body) == value);
  }
}

TEST_CASE("collective: every e4m3 survives decode and encode") {
  for (uint32_t bits = 0; bits < 256; ++bits)
    if ((bits & 0x7f) != 0x7f)
      REQUIRE(encodeE4m3(decodeE4m3(uint8_t(bits))) == bits);
  CHECK(encodeE4m3(1000) == 0x7e);
  CHECK(encodeE4m3(-464) == 0xfe);
  CHECK(encodeE4m3(0x1p-10) == 0); // a tie goes to even
  CHECK(encodeE4m3(0x1.8p-9) == 2);
  CHECK(encodeE5m2(1e9) == 0x7b);
}

TEST_CASE("collective: mma of integers and doubles, element by element") {
  // a[row][k] = row * 3 + k, b[k][n] = n - k, c = 0; layouts as the ISA draws them for m16n8k16 of s8.
  Harness h;
  h.load(Harness::kernel(R"(
    shr.u32 %r5, %r1, 2;
    and.b32 %r6, %r1, 3;
    shl.b32 %r7, %r6, 2;
    mad.lo.s32 %r8, %r5, 3, %r7;
    mul.lo.u32 %r9, %r8, 0x01010101;
    add.u32 %r9, %r9, 0x03020100;
    add.u32 %r11, %r9, 0x18181818;
    sub.s32 %r12, %r5, %r7;
    and.b32 %r13, %r12, 255;
    sub.s32 %r14, %r12, 1;
    and.b32 %r14, %r14, 255;
    sub.s32 %r15, %r12, 2;
    and.b32 %r15, %r15, 255;
    sub.s32 %r16, %r12, 3;
    and.b32 %r16, %r16, 255;
    shl.b32 %r14, %r14, 8;
    shl.b32 %r15, %r15, 16;
    shl.b32 %r16, %r16, 24;
    or.b32 %r13, %r13, %r14;
    or.b32 %r13, %r13, %r15;
    or.b32 %r13, %r13, %r16;
    mov.u32 %r25, 0;
    mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%r20, %r21, %r22, %r23}, {%r9, %r11}, {%r13}, {%r25, %r25, %r25, %r25};
    mul.wide.u32 %d10, %r1, 16;
    add.s64 %d10, %d10, %d1;
    st.global.v4.u32 [%d10], {%r20, %r21, %r22, %r23};)",
                         1));
  BufferId out = h.output("out", 512);
  h.launch();
  INFO(h.messages());
  REQUIRE(h.silent());
  const auto d = h.read<int32_t>(out);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const int row = int(lane / 4 + i / 2 * 8), column = int(lane % 4 * 2 + i % 2);
      int sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += (row * 3 + k) * (column - k);
      REQUIRE(d[lane * 4 + i] == sum);
    }
}

TEST_CASE("collective: stmatrix undoes ldmatrix, transposed or not") {
  for (const char *transposed : {"", ".trans"}) {
    const std::string t = transposed;
    const auto words = wordsOf("mul.lo.u32 %r11, %r1, 0x00020002;\nadd.u32 %r11, %r11, 0x00010000;\n"
                               "shl.b32 %r12, %r1, 2;\nmov.u32 %r13, tile;\nadd.u32 %r14, %r13, %r12;\n"
                               "and.b32 %r15, %r1, 7;\nshl.b32 %r15, %r15, 4;\nadd.u32 %r15, %r15, %r13;\n"
                               ".shared .align 16 .b8 tile[128];\nst.shared.u32 [%r14], %r11;\nbar.sync 0;\n"
                               "ldmatrix.sync.aligned.m8n8.x1" +
                               t + ".shared.b16 {%r16}, [%r15];\nbar.sync 0;\nstmatrix.sync.aligned.m8n8.x1" + t +
                               ".shared.b16 [%r15], {%r16};\nbar.sync 0;\nld.shared.u32 %r20, [%r14];");
    for (unsigned lane = 0; lane < 32; ++lane)
      REQUIRE(words[lane] == (lane * 2 | (lane * 2 + 1) << 16));
  }
}
