// Integer instructions against scalar definitions from the PTX manual.
#include "LaneProgram.h"

#include <bit>

using namespace hloc::emulator::test;

namespace {

const std::vector<uint64_t> words = {0,          1,          2,          3,          7,          31,
                                     32,         33,         0x7f,       0x80,       0xff,       0x100,
                                     0x7fff,     0x8000,     0xffff,     0x10000,    0x7ffffffe, 0x7fffffff,
                                     0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x12345678, 0xdeadbeef};
const std::vector<uint64_t> longs = {0,
                                     1,
                                     2,
                                     5,
                                     63,
                                     64,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x100000000,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0x8000000000000001,
                                     0xffffffffffffffff,
                                     0x123456789abcdef0};
const std::vector<uint64_t> amounts = {0, 1, 5, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000000, 0xffffffff};

using u128 = unsigned __int128;
using s128 = __int128;

} // namespace

TEST_CASE("lanes: 32-bit arithmetic") {
  Inputs pairs = triples(words, words);
  checkLanes("add.s32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) { return a + b; });
  checkLanes("sub.u32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) { return a - b; });
  checkLanes("add.sat.s32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) {
    return std::clamp<int64_t>(int64_t(int32_t(a)) + int32_t(b), INT32_MIN, INT32_MAX);
  });
  checkLanes("sub.sat.s32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) {
    return std::clamp<int64_t>(int64_t(int32_t(a)) - int32_t(b), INT32_MIN, INT32_MAX);
  });
  checkLanes("mul.lo.s32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) { return a * b; });
  checkLanes("mul.hi.s32 %r0, %a, %b;", 32, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return uint64_t(int64_t(int32_t(a)) * int32_t(b)) >> 32; });
  checkLanes("mul.hi.u32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) { return a * b >> 32; });
  checkLanes("mul.wide.s32 %l0, %a, %b;", 64, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return int64_t(int32_t(a)) * int32_t(b); });
  checkLanes("mul.wide.u32 %l0, %a, %b;", 64, pairs, [](uint64_t a, uint64_t b, uint64_t) { return a * b; });
  checkLanes("mul.wide.s16 %r0, %ha, %hb;", 32, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return int16_t(a) * int16_t(b); });
  checkLanes("min.s32 %r0, %a, %b;", 32, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return std::min(int32_t(a), int32_t(b)); });
  checkLanes("max.u32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) { return std::max(a, b); });
  checkLanes("abs.s32 %r0, %a;", 32, pairs, [](uint64_t a, uint64_t, uint64_t) { return int32_t(a) < 0 ? 0 - a : a; });
  checkLanes("neg.s32 %r0, %a;", 32, pairs, [](uint64_t a, uint64_t, uint64_t) { return 0 - a; });
  checkLanes("xor.b32 %r1, %a, %b;\nnot.b32 %r0, %r1;", 32, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return ~(a ^ b); });
  Inputs all = triples(words, {0, 3, 0x80000000, 0xffffffff}, {1, 0x7fffffff, 0xfffffff0});
  checkLanes("mad.lo.s32 %r0, %a, %b, %c;", 32, all, [](uint64_t a, uint64_t b, uint64_t c) { return a * b + c; });
  checkLanes("mad.hi.u32 %r0, %a, %b, %c;", 32, all,
             [](uint64_t a, uint64_t b, uint64_t c) { return (a * b >> 32) + c; });
  checkLanes("mad.wide.s32 %l0, %a, %b, %lc;", 64, all,
             [](uint64_t a, uint64_t b, uint64_t c) { return uint64_t(int64_t(int32_t(a)) * int32_t(b)) + c; });
}

TEST_CASE("lanes: division never traps") {
  Inputs pairs = triples(words, words);
  checkLanes("div.u32 %r0, %a, %b;", 32, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return b ? a / b : 0xffffffff; });
  checkLanes("rem.u32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) { return b ? a % b : a; });
  checkLanes("div.s32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) {
    return int32_t(b) ? int64_t(int32_t(a)) / int32_t(b) : -1; // INT_MIN / -1 wraps
  });
  checkLanes("rem.s32 %r0, %a, %b;", 32, pairs, [](uint64_t a, uint64_t b, uint64_t) {
    return int32_t(b) ? int64_t(int32_t(a)) % int32_t(b) : int32_t(a);
  });
  Inputs many;
  uint32_t state = 9;
  for (int i = 0; i < 20000; ++i) { // quotients just below whole numbers are the hard ones
    auto next = [&] { return state = state * 1664525 + 1013904223; };
    uint32_t b = next() >> next() % 32, q = next() >> next() % 32;
    many.push_back({uint32_t(b * q - 1), b, 0});
  }
  checkLanes("div.u32 %r0, %a, %b;", 32, many, [](uint64_t a, uint64_t b, uint64_t) { return b ? a / b : 0xffffffff; });
  Inputs wide = triples(longs, longs);
  checkLanes("div.u64 %l0, %la, %lb;", 64, wide,
             [](uint64_t a, uint64_t b, uint64_t) { return b ? a / b : ~uint64_t(0); });
  checkLanes("rem.s64 %l0, %la, %lb;", 64, wide,
             [](uint64_t a, uint64_t b, uint64_t) { return b ? uint64_t(s128(int64_t(a)) % int64_t(b)) : a; });
  checkLanes("div.s16 %h0, %ha, %hb;", 16, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return int16_t(b) ? int16_t(a) / int16_t(b) : -1; });
  checkLanes("div.s32 %r0, %a, 7;\nrem.u32 %r1, %b, 10;\nadd.u32 %r0, %r0, %r1;", 32, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return int32_t(a) / 7 + b % 10; });
}

TEST_CASE("lanes: 64-bit arithmetic") {
  Inputs pairs = triples(longs, longs);
  checkLanes("add.s64 %l0, %la, %lb;", 64, pairs, [](uint64_t a, uint64_t b, uint64_t) { return a + b; });
  checkLanes("mul.lo.u64 %l0, %la, %lb;", 64, pairs, [](uint64_t a, uint64_t b, uint64_t) { return a * b; });
  checkLanes("mul.hi.u64 %l0, %la, %lb;", 64, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return uint64_t(u128(a) * b >> 64); });
  checkLanes("mul.hi.s64 %l0, %la, %lb;", 64, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return uint64_t(s128(int64_t(a)) * int64_t(b) >> 64); });
  checkLanes("max.s64 %l0, %la, %lb;", 64, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return std::max(int64_t(a), int64_t(b)); });
}

TEST_CASE("lanes: shift amounts clamp at the width") {
  Inputs inputs = triples(words, amounts);
  checkLanes("shl.b32 %r0, %a, %b;", 32, inputs, [](uint64_t a, uint64_t b, uint64_t) { return b >= 32 ? 0 : a << b; });
  checkLanes("shr.u32 %r0, %a, %b;", 32, inputs, [](uint64_t a, uint64_t b, uint64_t) { return b >= 32 ? 0 : a >> b; });
  checkLanes("shr.s32 %r0, %a, %b;", 32, inputs,
             [](uint64_t a, uint64_t b, uint64_t) { return int32_t(a) >> std::min<uint64_t>(b, 31); });
  checkLanes("shl.b16 %h0, %ha, %b;", 16, inputs,
             [](uint64_t a, uint64_t b, uint64_t) { return b >= 16 ? 0 : a << b; });
  checkLanes("shr.s16 %h0, %ha, %b;", 16, inputs,
             [](uint64_t a, uint64_t b, uint64_t) { return int16_t(a) >> std::min<uint64_t>(b, 15); });
  Inputs wide = triples(longs, amounts);
  checkLanes("shl.b64 %l0, %la, %b;", 64, wide, [](uint64_t a, uint64_t b, uint64_t) { return b >= 64 ? 0 : a << b; });
  checkLanes("shr.s64 %l0, %la, %b;", 64, wide,
             [](uint64_t a, uint64_t b, uint64_t) { return int64_t(a) >> std::min<uint64_t>(b, 63); });
  Inputs funnels = triples({0, 0x80000001, 0x12345678, 0xffffffff}, {0, 0xdeadbeef, 0x80000000}, amounts);
  auto pair = [](uint64_t a, uint64_t b) { return b << 32 | (a & 0xffffffff); };
  checkLanes("shf.l.wrap.b32 %r0, %a, %b, %c;", 32, funnels,
             [&](uint64_t a, uint64_t b, uint64_t c) { return pair(a, b) << (c & 31) >> 32; });
  checkLanes("shf.r.wrap.b32 %r0, %a, %b, %c;", 32, funnels,
             [&](uint64_t a, uint64_t b, uint64_t c) { return pair(a, b) >> (c & 31); });
  checkLanes("shf.l.clamp.b32 %r0, %a, %b, %c;", 32, funnels,
             [&](uint64_t a, uint64_t b, uint64_t c) { return pair(a, b) << std::min<uint64_t>(c, 32) >> 32; });
  checkLanes("shf.r.clamp.b32 %r0, %a, %b, %c;", 32, funnels,
             [&](uint64_t a, uint64_t b, uint64_t c) { return pair(a, b) >> std::min<uint64_t>(c, 32); });
}

/// The manual's loop for bfe, bit by bit.
static uint64_t extract(uint64_t a, uint64_t b, uint64_t c, unsigned width, bool isSigned) {
  unsigned position = b & 0xff, length = c & 0xff, last = width - 1;
  bool sign = isSigned && length && (a >> std::min(position + length - 1, last) & 1);
  uint64_t result = 0;
  for (unsigned i = 0; i < width; ++i)
    result |= uint64_t(i < length && position + i <= last ? a >> (position + i) & 1 : sign) << i;
  return result;
}

static uint64_t insert(uint64_t a, uint64_t b, unsigned position, unsigned length, unsigned width) {
  for (unsigned i = 0; i < length && position + i < width; ++i)
    b = (b & ~(uint64_t(1) << (position + i))) | (a >> i & 1) << (position + i);
  return b;
}

TEST_CASE("lanes: bit fields, permutations, counts") {
  std::vector<uint64_t> places = {0, 1, 7, 8, 24, 31, 32, 33, 63, 64, 200, 255, 256 + 4};
  Inputs fields = triples({0, 0x80000000, 0xffffffff, 0x12345678, 0xdeadbeef}, places, places);
  for (bool isSigned : {false, true}) {
    std::string kind = isSigned ? "s" : "u";
    checkLanes("bfe." + kind + "32 %r0, %a, %b, %c;", 32, fields,
               [&](uint64_t a, uint64_t b, uint64_t c) { return extract(a, b, c, 32, isSigned); });
    checkLanes("bfe." + kind + "64 %l0, %la, %b, %c;", 64, triples(longs, places, places),
               [&](uint64_t a, uint64_t b, uint64_t c) { return extract(a, b, c, 64, isSigned); });
  }
  checkLanes("bfi.b32 %r0, %a, 0x5a5a5a5a, %b, %c;", 32, fields,
             [](uint64_t a, uint64_t b, uint64_t c) { return insert(a, 0x5a5a5a5a, b & 0xff, c & 0xff, 32); });
  checkLanes("brev.b32 %r0, %a;", 32, triples(words), [](uint64_t a, uint64_t, uint64_t) {
    uint32_t result = 0;
    for (unsigned i = 0; i < 32; ++i)
      result |= uint32_t(a >> i & 1) << (31 - i);
    return result;
  });
  checkLanes("popc.b32 %r1, %a;\nclz.b32 %r2, %a;\nmad.lo.u32 %r0, %r1, 100, %r2;", 32, triples(words),
             [](uint64_t a, uint64_t, uint64_t) { return std::popcount(a) * 100 + std::countl_zero(uint32_t(a)); });
  checkLanes("popc.b64 %r1, %la;\nclz.b64 %r2, %la;\nmad.lo.u32 %r0, %r1, 100, %r2;", 32, triples(longs),
             [](uint64_t a, uint64_t, uint64_t) { return std::popcount(a) * 100 + std::countl_zero(a); });
  checkLanes("prmt.b32 %r0, %a, %b, %c;", 32,
             triples({0x80c1f203, 0x12345678}, {0x047ffe81, 0}, {0x3210, 0x7654, 0xfedc, 0x0099, 0x5410, 0xabcd8ef0}),
             [](uint64_t a, uint64_t b, uint64_t c) {
               uint64_t pair = b << 32 | a, result = 0;
               for (unsigned i = 0; i < 4; ++i) {
                 uint8_t byte = uint8_t(pair >> (c >> 4 * i & 7) * 8);
                 if (c >> 4 * i & 8)
                   byte = byte & 0x80 ? 0xff : 0;
                 result |= uint64_t(byte) << 8 * i;
               }
               return result;
             });
  for (unsigned table : {0x00, 0x96, 0xe8, 0xca, 0x1b, 0xff})
    checkLanes("lop3.b32 %r0, %a, %b, %c, " + std::to_string(table) + ";", 32,
               triples({0xf0f0f0f0, 0x12345678}, {0xcccccccc, 0xdeadbeef}, {0xaaaaaaaa, 0}),
               [&](uint64_t a, uint64_t b, uint64_t c) {
                 uint32_t result = 0;
                 for (unsigned i = 0; i < 32; ++i)
                   result |= uint32_t(table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
                 return result;
               });
}

TEST_CASE("lanes: integer conversions extend by the source and saturate by the target") {
  Inputs all = triples(longs);
  for (uint64_t w : words)
    all.push_back({w, 0, 0});
  checkLanes("cvt.s32.s8 %r0, %a;", 32, all, [](uint64_t a, uint64_t, uint64_t) { return int8_t(a); });
  checkLanes("cvt.u32.u8 %r0, %a;", 32, all, [](uint64_t a, uint64_t, uint64_t) { return uint8_t(a); });
  checkLanes("cvt.s64.s32 %l0, %a;", 64, all, [](uint64_t a, uint64_t, uint64_t) { return int32_t(a); });
  checkLanes("cvt.u64.s16 %l0, %ha;", 64, all, [](uint64_t a, uint64_t, uint64_t) { return int16_t(a); });
  checkLanes("cvt.s16.s32 %h0, %a;", 16, all, [](uint64_t a, uint64_t, uint64_t) { return a; });
  checkLanes("cvt.s8.s32 %r0, %a;", 32, all, [](uint64_t a, uint64_t, uint64_t) { return int8_t(a); });
  checkLanes("cvt.sat.u8.s32 %r0, %a;", 32, all,
             [](uint64_t a, uint64_t, uint64_t) { return std::clamp(int32_t(a), 0, 255); });
  checkLanes("cvt.sat.s32.s64 %r0, %la;", 32, all,
             [](uint64_t a, uint64_t, uint64_t) { return std::clamp<int64_t>(int64_t(a), INT32_MIN, INT32_MAX); });
  checkLanes("cvt.sat.s32.u32 %r0, %a;", 32, all,
             [](uint64_t a, uint64_t, uint64_t) { return std::min<uint64_t>(uint32_t(a), INT32_MAX); });
}

TEST_CASE("lanes: comparisons, selection, predicates, packing") {
  Inputs pairs = triples(words, words);
  struct {
    const char *name;
    bool (*holds)(uint32_t, uint32_t);
  } comparisons[] = {
      {"eq.s32", [](uint32_t a, uint32_t b) { return a == b; }},
      {"ne.u32", [](uint32_t a, uint32_t b) { return a != b; }},
      {"lt.s32", [](uint32_t a, uint32_t b) { return int32_t(a) < int32_t(b); }},
      {"le.u32", [](uint32_t a, uint32_t b) { return a <= b; }},
      {"gt.s32", [](uint32_t a, uint32_t b) { return int32_t(a) > int32_t(b); }},
      {"hs.u32", [](uint32_t a, uint32_t b) { return a >= b; }},
  };
  for (auto &[name, holds] : comparisons) {
    auto expected = [holds = holds](uint64_t a, uint64_t b, uint64_t) { return holds(uint32_t(a), uint32_t(b)); };
    checkLanes(std::string("setp.") + name + " %p0, %a, %b;\nselp.b32 %r0, 1, 0, %p0;", 32, pairs, expected);
    checkLanes(std::string("setp.") + name + " %p1|%p0, %a, %b;\nselp.b32 %r0, 0, 1, %p0;", 32, pairs, expected);
  }
  checkLanes("setp.ne.u32 %p1, %b, 0;\nsetp.lt.and.s32 %p0|%p2, %a, 5, !%p1;\nselp.b32 %r1, 2, 0, %p2;\n"
             "selp.b32 %r0, 1, 0, %p0;\nor.b32 %r0, %r0, %r1;",
             32, pairs, [](uint64_t a, uint64_t b, uint64_t) {
               bool less = int32_t(a) < 5, c = b == 0;
               return int(less && c) | int(!less && c) << 1;
             });
  checkLanes("setp.lt.u32 %p1, %a, %b;\nsetp.gt.u32 %p2, %a, 31;\nxor.pred %p3, %p1, %p2;\nnot.pred %p4, %p3;\n"
             "mov.u32 %r0, 0;\n@%p4 mov.u32 %r0, 7;\n@!%p1 add.u32 %r0, %r0, 1;",
             32, pairs,
             [](uint64_t a, uint64_t b, uint64_t) { return ((a < b) == (a > 31) ? 7 : 0) + (a < b ? 0 : 1); });
  checkLanes("mov.b32 {%h1, %h2}, %a;\nmov.b32 %r0, {%h2, %h1};", 32, pairs,
             [](uint64_t a, uint64_t, uint64_t) { return a >> 16 | a << 16; });
  checkLanes("mov.b64 %l0, {%a, %b};", 64, pairs, [](uint64_t a, uint64_t b, uint64_t) { return b << 32 | a; });
  checkLanes("add.cc.u32 %r1, %a, %b;\naddc.u32 %r0, %c, 0;", 32, triples(words, words, {0, 0xffffffff}),
             [](uint64_t a, uint64_t b, uint64_t c) { return c + ((a + b) >> 32); });
}
