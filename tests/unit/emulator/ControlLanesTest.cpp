// Lanes that part and meet again: every control flow must give each lane what it would compute alone.
#include "LaneProgram.h"

using namespace hloc::emulator::test;

namespace {
Inputs counts() {
  Inputs inputs;
  for (uint64_t i = 0; i < 200; ++i) // 200 = 2 blocks of 96 and 8 lanes of a third
    inputs.push_back({i * 7 % 23, i * 5 % 11, i});
  return inputs;
}
} // namespace

TEST_CASE("control: nested ifs") {
  checkLanes(R"(
    mov.u32 %r0, 1;
    setp.lt.u32 %p0, %a, 10;
    @!%p0 bra ELSE;
    setp.lt.u32 %p1, %b, 4;
    @%p1 bra INNER;
    add.u32 %r0, %r0, 100;
    bra JOIN;
    INNER: mul.lo.u32 %r0, %a, 3;
    bra.uni JOIN;
    ELSE: add.u32 %r0, %b, 1000;
    JOIN: add.u32 %r0, %r0, 1;)",
             32, counts(),
             [](uint64_t a, uint64_t b, uint64_t) { return (a < 10 ? (b < 4 ? a * 3 : 101) : b + 1000) + 1; });
}

TEST_CASE("control: what is laid out behind the end of the code") {
  checkLanes(R"(
    mov.u32 %r0, 1;
    setp.lt.u32 %p0, %a, 10;
    @%p0 bra RARE;
    bra JOIN;
    JOIN: add.u32 %r0, %r0, 1;
    mov.u32 %r1, 0;
    bra LOOP;
    LATCH: add.u32 %r1, %r1, 1;
    LOOP: add.u32 %r0, %r0, 5;
    setp.lt.u32 %p0, %r1, %b;
    @%p0 bra LATCH;
    bra END;
    RARE: mul.lo.u32 %r0, %a, 3;
    setp.lt.u32 %p0, %b, 3;
    @%p0 bra RARER;
    bra JOIN;
    RARER: add.u32 %r0, %r0, 1000;
    bra JOIN;
    END: add.u32 %r0, %r0, 0;)",
             32, counts(), [](uint64_t a, uint64_t b, uint64_t) {
               return (a < 10 ? a * 3 + (b < 3 ? 1000 : 0) : 1) + 1 + 5 * (b + 1);
             });
}

TEST_CASE("control: loops with a trip count per lane, values used after them") {
  checkLanes(R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
    mov.u32 %r2, 77;
    setp.eq.u32 %p0, %a, 0;
    @%p0 bra AFTER;
    LOOP: mul.lo.u32 %r2, %r1, %r1;
    add.u32 %r0, %r0, %r2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, %a;
    @%p0 bra LOOP;
    AFTER: mad.lo.u32 %r0, %r2, 1000, %r0;)",
             32, counts(), [](uint64_t a, uint64_t, uint64_t) {
               uint32_t sum = 0, last = 77;
               for (uint32_t i = 0; i < a; ++i)
                 sum += last = i * i;
               return sum + 1000 * last;
             });
}

TEST_CASE("control: a loop in a loop, left early by some") {
  checkLanes(R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
    OUTER: mov.u32 %r2, 0;
    INNER: mad.lo.u32 %r0, %r0, 3, %r2;
    add.u32 %r2, %r2, 1;
    xor.b32 %r3, %r0, %b;
    and.b32 %r3, %r3, 31;
    setp.eq.u32 %p2, %r3, 5;
    @%p2 bra OUT;
    setp.lt.u32 %p0, %r2, %b;
    @%p0 bra INNER;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, %a;
    @%p1 bra OUTER;
    add.u32 %r0, %r0, 1000;
    OUT: add.u32 %r0, %r0, %r1;)",
             32, counts(), [](uint64_t a, uint64_t b, uint64_t) {
               uint32_t r0 = 0, r1 = 0;
               do {
                 uint32_t r2 = 0;
                 do {
                   r0 = r0 * 3 + r2++;
                   if (((r0 ^ b) & 31) == 5)
                     return r0 + r1;
                 } while (r2 < b);
               } while (++r1 < a);
               return r0 + 1000 + r1;
             });
}

// Lanes wait behind a jump back at a block that belongs to an inner loop; the outer loop's definition of %r3 must not
// reach them. Odd, but legal: both loops end in one place.
TEST_CASE("control: loops that end interleaved") {
  checkLanes(R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    OUTER: mul.lo.u32 %r3, %r1, 17;
    INNER: add.u32 %r0, %r0, %r3;
    add.u32 %r2, %r2, 1;
    and.b32 %r4, %r2, 1;
    setp.eq.u32 %p0, %r4, 0;
    setp.lt.and.u32 %p0, %r1, %a, %p0;
    add.u32 %r5, %r1, 1;
    selp.b32 %r1, %r5, %r1, %p0;
    @%p0 bra OUTER;
    setp.lt.u32 %p1, %r2, %c;
    @%p1 bra INNER;)",
             32, counts(), [](uint64_t a, uint64_t, uint64_t c) {
               uint32_t r0 = 0, r1 = 0, r2 = 0;
               for (;;) {
                 uint32_t r3 = r1 * 17;
                 for (;;) {
                   r0 += r3;
                   ++r2;
                   if (r2 % 2 == 0 && r1 < a)
                     break;
                   if (r2 >= c)
                     return r0;
                 }
                 ++r1;
               }
             });
}

TEST_CASE("control: entry into the middle of a loop, blocks out of order") {
  checkLanes(R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, %a;
    setp.gt.u32 %p0, %b, 5;
    @%p0 bra SECOND;
    FIRST: add.u32 %r0, %r0, 10;
    bra SECOND;
    LAST: add.u32 %r0, %r0, 5;
    bra FINISH;
    SECOND: add.u32 %r0, %r0, 1;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra LAST;
    sub.u32 %r1, %r1, 1;
    bra FIRST;
    FINISH: mov.u32 %r0, %r0;)",
             32, counts(), [](uint64_t a, uint64_t b, uint64_t) { return (b > 5 ? 0 : 10) + 1 + a * 11 + 5; });
}

TEST_CASE("control: lanes that exit early leave the others alone") {
  checkLanes(R"(
    mov.u32 %r0, %a;
    mul.wide.u32 %l1, %index, 8;
    add.s64 %l1, %out, %l1;
    cvt.u64.u32 %l2, %b;
    st.global.u64 [%l1], %l2;
    setp.gt.u32 %p0, %b, 6;
    @%p0 exit;
    setp.gt.u32 %p0, %b, 3;
    @%p0 ret;
    setp.eq.u32 %p0, %b, 2;
    @%p0 bra DONE;
    LOOP: add.u32 %r0, %r0, 3;
    setp.lt.u32 %p0, %r0, 40;
    @%p0 bra LOOP;)",
             32, counts(), [](uint64_t a, uint64_t b, uint64_t) {
               if (b > 3 || b == 2)
                 return b;
               do
                 a += 3;
               while (a < 40);
               return a;
             });
}

TEST_CASE("control: guarded instructions keep the lanes without the guard") {
  checkLanes(R"(
    setp.lt.u32 %p0, %a, 10;
    mov.u32 %r0, 5;
    @%p0 add.u32 %r0, %r0, %b;
    @!%p0 ld.global.u32 %r0, [%in+16];
    @%p0 setp.eq.u32 %p0, %b, 3;
    selp.b32 %r1, 100, 0, %p0;
    add.u32 %r0, %r0, %r1;)",
             32, counts(), [](uint64_t a, uint64_t b, uint64_t) { return a < 10 ? 5 + b + (b == 3 ? 100 : 0) : 0; });
}
