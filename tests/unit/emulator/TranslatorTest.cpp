// Control flow of translated code: every lane goes its own way and ends with what it would compute alone. Each kernel
// runs as it is, and with so many instructions between its own that it becomes several host functions.
#include "Harness.h"

#include <functional>
#include <sstream>

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

/// `count` instructions after each line. They count in %r39 how often the lane came by.
std::string spread(const std::string &body, unsigned count) {
  std::istringstream lines(body);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    text += line + "\n";
    for (unsigned i = 0; i < count; ++i)
      text += "add.u32 %r39, %r39, 1;\n";
  }
  return text;
}

/// The body leaves the result of thread %r1 in %r10; `expected` computes it.
void check(const std::string &body, const std::function<uint32_t(uint32_t)> &expected,
           const std::string &functions = "") {
  for (unsigned filling : {0u, 1u, 40u, 300u}) {
    Harness h;
    h.block = {40, 1, 1}; // the second warp is partial
    h.runOnThree("add.s64 %d10, %d1, %d0;\nmov.u32 %r10, 0;\nmov.u32 %r39, 0;\n" + spread(body, filling) +
                     "\nst.global.u32 [%d10], %r10;",
                 functions);
    INFO(filling << " instructions between\n" << h.messages());
    REQUIRE(h.silent());
    std::vector<uint32_t> results = h.read<uint32_t>(0);
    for (uint32_t thread = 0; thread < 40; ++thread) {
      INFO("thread " << thread);
      CHECK(results[thread] == expected(thread));
    }
  }
}

} // namespace

TEST_CASE("translator: lanes part and meet again") {
  check(
      "and.b32 %r5, %r1, 3;\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra ZERO;\nsetp.eq.u32 %p2, %r5, 1;\n@%p2 bra ONE;\n"
      "mul.lo.u32 %r10, %r1, 7;\nbra MEET;\nONE:\nadd.u32 %r10, %r1, 100;\nbra MEET;\nZERO:\nmov.u32 %r10, 5;\nMEET:\n"
      "add.u32 %r10, %r10, %r5;",
      [](uint32_t t) {
        uint32_t r = t & 3;
        return (r == 0 ? 5 : r == 1 ? t + 100 : t * 7) + r;
      });
}

TEST_CASE("translator: nested loops with trip counts of their own") {
  check("mov.u32 %r11, 0;\nOUTER:\nand.b32 %r13, %r1, 3;\nadd.u32 %r13, %r13, %r11;\nmov.u32 %r12, 0;\nINNER:\n"
        "mad.lo.u32 %r10, %r10, 3, %r12;\nadd.u32 %r12, %r12, 1;\nsetp.lt.u32 %p1, %r12, %r13;\n@%p1 bra INNER;\n"
        "add.u32 %r11, %r11, 1;\nand.b32 %r14, %r1, 7;\nsetp.le.u32 %p2, %r11, %r14;\n@%p2 bra OUTER;",
        [](uint32_t t) {
          uint32_t sum = 0, i = 0;
          do {
            uint32_t end = (t & 3) + i, j = 0;
            do
              sum = sum * 3 + j;
            while (++j < end);
          } while (++i <= (t & 7));
          return sum;
        });
}

TEST_CASE("translator: continue and break") {
  check("mov.u32 %r11, 0;\nLOOP:\nsetp.ge.u32 %p1, %r11, 20;\n@%p1 bra DONE;\nadd.u32 %r11, %r11, 1;\n"
        "add.u32 %r12, %r11, %r1;\nrem.u32 %r13, %r12, 3;\nsetp.eq.u32 %p2, %r13, 0;\n@%p2 bra LOOP;\n"
        "add.u32 %r10, %r10, %r11;\nrem.u32 %r13, %r12, 17;\nsetp.eq.u32 %p3, %r13, 5;\n@!%p3 bra LOOP;\n"
        "add.u32 %r10, %r10, 1000;\nDONE:\nadd.u32 %r10, %r10, %r12;",
        [](uint32_t t) {
          uint32_t sum = 0, x = 0;
          for (uint32_t i = 0; i < 20;) {
            x = ++i + t;
            if (x % 3 == 0)
              continue;
            sum += i;
            if (x % 17 == 5) {
              sum += 1000;
              break;
            }
          }
          return sum + x;
        });
}

TEST_CASE("translator: calls, of some lanes only, in a loop") {
  const std::string functions = ".func (.reg .b32 result) twice(.reg .b32 x) {\n.reg .pred %p<2>;\n"
                                "setp.gt.u32 %p1, x, 50;\n@%p1 bra BIG;\nadd.u32 result, x, x;\nret;\nBIG:\n"
                                "sub.u32 result, x, 49;\nret;\n}\n"
                                ".func (.reg .b32 result) more(.reg .b32 x) {\n.reg .b32 %y;\n"
                                "call (%y), twice, (x);\nadd.u32 result, %y, 1;\nret;\n}\n";
  check(
      "mov.u32 %r11, 0;\nmov.u32 %r10, %r1;\nLOOP:\nand.b32 %r12, %r10, 1;\nsetp.eq.u32 %p1, %r12, 0;\n"
      "@%p1 call (%r10), more, (%r10);\n@!%p1 call (%r10), twice, (%r10);\nadd.u32 %r10, %r10, %r11;\n"
      "add.u32 %r11, %r11, 1;\nand.b32 %r13, %r1, 15;\nsetp.le.u32 %p2, %r11, %r13;\n@%p2 bra LOOP;",
      [](uint32_t t) {
        auto twice = [](uint32_t x) { return x > 50 ? x - 49 : x + x; };
        uint32_t x = t;
        for (uint32_t i = 0; i <= (t & 15); ++i) {
          bool even = x % 2 == 0; // the second call asks what was true before the first
          x = even ? twice(x) + 1 : twice(x);
          x += i;
        }
        return x;
      },
      functions);
}

TEST_CASE("translator: parameters of functions are read by the text that reads the kernel's") {
  const std::string functions = ".func (.param .b64 out) next(.param .b64 in) {\n.reg .b64 %x<3>;\n"
                                "ld.param.u64 %x1, [in];\nadd.u64 %x2, %x1, 3;\nst.param.u64 [out], %x2;\nret;\n}\n";
  check(
      "{\n.param .b64 in;\n.param .b64 out;\ncvt.u64.u32 %d11, %r1;\nst.param.u64 [in], %d11;\n"
      "call (out), next, (in);\nld.param.u64 %d12, [out];\n}\ncvt.u32.u64 %r10, %d12;",
      [](uint32_t t) { return t + 3; }, functions);
}

TEST_CASE("translator: lanes that exit early, and in a loop") {
  check("mov.u32 %r10, 1;\nsetp.eq.u32 %p1, %r1, 7;\nst.global.u32 [%d10], 77;\n@%p1 exit;\nmov.u32 %r11, 0;\nLOOP:\n"
        "setp.eq.u32 %p2, %r11, %r1;\nst.global.u32 [%d10], %r10;\n@%p2 ret;\nmad.lo.u32 %r10, %r10, 5, %r11;\n"
        "add.u32 %r11, %r11, 1;\nsetp.lt.u32 %p3, %r11, 12;\n@%p3 bra LOOP;",
        [](uint32_t t) {
          uint32_t x = 1;
          for (uint32_t i = 0; t != 7 && i < 12 && i != t; ++i)
            x = x * 5 + i;
          return t == 7 ? 77 : x;
        });
}

TEST_CASE("translator: a loop with two entrances") {
  // Odd threads begin at B, even ones at A; both go A, B, A, B, ...
  check("mov.u32 %r11, 0;\nand.b32 %r12, %r1, 1;\nsetp.eq.u32 %p1, %r12, 1;\n@%p1 bra B;\nA:\n"
        "mad.lo.u32 %r10, %r10, 3, 1;\nadd.u32 %r11, %r11, 1;\nsetp.gt.u32 %p2, %r11, %r1;\n@%p2 bra OUT;\nB:\n"
        "mad.lo.u32 %r10, %r10, 2, %r1;\nadd.u32 %r11, %r11, 1;\nsetp.le.u32 %p3, %r11, 9;\n@%p3 bra A;\nOUT:\n"
        "add.u32 %r10, %r10, %r11;",
        [](uint32_t t) {
          uint32_t x = 0, i = 0;
          for (bool first = true;; first = false) {
            if (!first || t % 2 == 0) {
              x = x * 3 + 1;
              if (++i > t)
                break;
            }
            x = x * 2 + t;
            if (++i > 9)
              break;
          }
          return x + i;
        });
}

TEST_CASE("translator: jumps back over code that other lanes wait in") {
  // Thread t goes BACK t % 4 times from behind LATE, where the others wait.
  check("mov.u32 %r11, 0;\nand.b32 %r12, %r1, 3;\nBACK:\nadd.u32 %r10, %r10, 10;\nsetp.ge.u32 %p1, %r11, %r12;\n"
        "@%p1 bra LATE;\nadd.u32 %r11, %r11, 1;\nmul.lo.u32 %r10, %r10, 2;\nbra BACK;\nLATE:\n"
        "add.u32 %r10, %r10, %r12;\nadd.u32 %r12, %r12, 4;\nsetp.lt.u32 %p2, %r12, 10;\n@%p2 bra BACK;",
        [](uint32_t t) {
          uint32_t x = 0, i = 0, end = t & 3;
          do {
            for (x += 10; i < end; x += 10) {
              ++i;
              x *= 2;
            }
            x += end;
            end += 4;
          } while (end < 10);
          return x;
        });
}

TEST_CASE("translator: the number of instructions each lane passes") {
  // With n instructions after each line, %r39 is n times the lines the lane executed.
  const std::string loop = "mov.u32 %r11, 0;\nLOOP:\nadd.u32 %r11, %r11, 1;\nsetp.le.u32 %p1, %r11, %r1;\n"
                           "@%p1 bra LOOP;";
  for (unsigned filling : {1u, 250u, 700u}) {
    Harness h;
    h.runOnThree("add.s64 %d10, %d1, %d0;\nmov.u32 %r39, 0;\n" + spread(loop, filling) + "st.global.u32 [%d10], %r39;");
    INFO(filling << h.messages());
    REQUIRE(h.silent());
    for (uint32_t t = 0; t < 32; ++t)
      CHECK(h.read<uint32_t>(0)[t] == filling * (2 + 3 * (t + 1)));
  }
}

TEST_CASE("translator: one block of very many instructions") {
  constexpr unsigned count = 5000, registers = 30;
  std::string body = "mov.u32 %r5, %r1;\n";
  for (unsigned i = 0; i < count; ++i) {
    auto name = [](unsigned index) { return "%r" + std::to_string(5 + index % registers); };
    body += "mad.lo.u32 " + name(i + 1) + ", " + name(i) + ", 5, %r1;\n";
  }
  body += "add.s64 %d10, %d1, %d0;\nst.global.u32 [%d10], %r" + std::to_string(5 + count % registers) + ";";
  Harness h;
  h.runOnThree(body);
  INFO(h.messages());
  REQUIRE(h.silent());
  for (uint32_t t = 0; t < 32; ++t) {
    uint32_t x = t;
    for (unsigned i = 0; i < count; ++i)
      x = x * 5 + t;
    CHECK(h.read<uint32_t>(0)[t] == x);
  }
}
