// Instructions that look alike to code that all instructions of a kind share. Every program runs in both ways
// (LaneProgram).
#include "LaneProgram.h"

#include <bit>

namespace hloc::emulator::test {
namespace {

const Inputs numbers = triples({1, 3, 0x7f, 0x80000001, 0xffffffff}, {0, 1, 7, 31, 0x3f800001}, {2, 9});

TEST_CASE("shared code: modifiers make other instructions") {
  checkLanes("add.rn.f32 %r1, %b, 0f33000000;\nadd.rp.f32 %r2, %b, 0f33000000;\nsub.u32 %r0, %r2, %r1;", 32,
             triples({0}, {0x3f800000, 0x3f800001, 0x3f800003}), [](uint64_t, uint64_t b, uint64_t) {
               // 1.0 and its neighbours, and 2^-25: to nearest it is lost, upwards it is one unit.
               return std::bit_cast<float>(uint32_t(b)) >= 1 ? 1 : 0;
             });
  checkLanes("mul.hi.u32 %r1, %a, %b;\nmul.hi.s32 %r2, %a, %b;\nshr.s32 %r3, %a, 1;\nshr.u32 %r4, %a, 1;\n"
             "xor.b32 %r1, %r1, %r2;\nxor.b32 %r3, %r3, %r4;\nadd.u32 %r0, %r1, %r3;",
             32, numbers, [](uint64_t a, uint64_t b, uint64_t) {
               const auto x = uint32_t(a), y = uint32_t(b);
               const uint32_t high = uint32_t(uint64_t(x) * y >> 32) ^
                                     uint32_t(uint64_t(int64_t(int32_t(x)) * int64_t(int32_t(y))) >> 32);
               return high + (uint32_t(int32_t(x) >> 1) ^ x >> 1);
             });
}

TEST_CASE("shared code: approximate instructions of several kinds in one kernel") {
  // Of 2^-127 the reciprocal is 2^127, and infinity where it is flushed; the root of 16 is 4 and its reciprocal 1/4.
  checkLanes("rcp.approx.f32 %r1, %a;\nrcp.approx.ftz.f32 %r2, %a;\nsqrt.approx.f32 %r3, %b;\n"
             "rsqrt.approx.f32 %r4, %b;\nmin.f32 %r5, %r3, %r4;\nmax.f32 %r6, %r3, %r4;\nsub.f32 %r5, %r6, %r5;\n"
             "xor.b32 %r0, %r1, %r2;\nxor.b32 %r0, %r0, %r5;",
             32, triples({0x00400000}, {0x41800000}),
             [](uint64_t, uint64_t, uint64_t) { return 0x7f000000u ^ 0x7f800000u ^ std::bit_cast<uint32_t>(3.75f); });
}

TEST_CASE("shared code: constants and registers are the instruction's own") {
  checkLanes("add.u32 %r1, %a, 5;\nadd.u32 %r2, %a, 77;\nmul.lo.u32 %r3, %r1, %r2;\nmul.lo.u32 %r4, %r3, %r3;\n"
             "mul.lo.u32 %r4, %r4, %b;\nshl.b32 %r5, %a, 3;\nshl.b32 %r6, %a, 4;\nxor.b32 %r5, %r5, %r6;\n"
             "sub.u32 %r0, %r4, %r5;",
             32, numbers, [](uint64_t a, uint64_t b, uint64_t) {
               const auto x = uint32_t(a), product = (x + 5) * (x + 77);
               return product * product * uint32_t(b) - (x << 3 ^ x << 4);
             });
}

TEST_CASE("shared code: lanes that do not execute an instruction keep what they have") {
  checkLanes("mov.u32 %r0, 1000;\nmov.u32 %r1, 1;\nsetp.lt.u32 %p1, %a, 100;\n@%p1 mov.u32 %r0, 5;\n"
             "@!%p1 add.u32 %r1, %r1, %b;\n@%p1 bra OVER;\nadd.u32 %r0, %r0, 7;\nmov.u32 %r1, 3;\nOVER:\n"
             "add.u32 %r0, %r0, %r1;",
             32, numbers, [](uint64_t a, uint64_t, uint64_t) { return a < 100 ? 6 : 1010; });
}

} // namespace
} // namespace hloc::emulator::test
