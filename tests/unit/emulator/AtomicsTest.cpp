// Sums by atom and red: where subnormal numbers become zero.
#include "Harness.h"

using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

using Words = std::vector<uint32_t>;

/// What is in memory, what is added, and what that gives with zeros for subnormal numbers, and without.
const Words before{0x00000001, 0x80000123, 0x00800000, 0x80800000, 0x3f800000, 0x007fffff, 0x80000001, 0x00800001};
const Words added{0x00000002, 0x80000000, 0x80000001, 0x00c00000, 0x80000005, 0x00000001, 0x3f800000, 0x80800000};
const Words withZeros{0x00000000, 0x80000000, 0x00800000, 0x00000000, 0x3f800000, 0x00000000, 0x3f800000, 0x00000000};
const Words asTheyAre{0x00000003, 0x80000123, 0x007fffff, 0x00400000, 0x3f800000, 0x00800000, 0x3f800000, 0x00000001};

/// Eight threads run `body`: %r10 is what one adds to what is at %d10; %r11 is what is there afterwards, at %d11.
Words sumsOf(const std::string &body, const std::string &variables = "") {
  Harness h;
  h.block = {8, 1, 1};
  h.load(Harness::kernel("add.s64 %d10, %d1, %d0;\nadd.s64 %d12, %d2, %d0;\nld.global.u32 %r10, [%d12];\n" + body, 2,
                         variables));
  BufferId sums = h.input("sums", before, true);
  h.input("added", added);
  h.launch();
  INFO(body << h.messages());
  CHECK(h.silent());
  return h.read<uint32_t>(sums);
}

} // namespace

TEST_CASE("atomics: in global memory sums of f32 have zeros for subnormal numbers") {
  CHECK(sumsOf("red.global.add.f32 [%d10], %r10;") == withZeros);
  CHECK(sumsOf("red.relaxed.gpu.global.add.f32 [%d10], %r10;") == withZeros);
  CHECK(sumsOf("red.add.f32 [%d10], %r10;") == withZeros);
  CHECK(sumsOf("atom.add.f32 %r12, [%d10], %r10;") == withZeros);
  // What an atom returns is what was there.
  CHECK(sumsOf("atom.global.add.f32 %r12, [%d10], %r10;\nst.global.u32 [%d10], %r12;") == before);
}

TEST_CASE("atomics: so have several sums at once") {
  for (unsigned count : {2u, 4u}) {
    const std::string width = std::to_string(count), bytes = std::to_string(4 * count);
    std::string loads, list;
    for (unsigned i = 0; i < count; ++i) {
      const std::string name = "%r" + std::to_string(11 + i);
      loads += "ld.global.u32 " + name + ", [%d15+" + std::to_string(4 * i) + "];\n";
      list += (i ? ", " : "{") + name;
    }
    const std::string places = "mul.wide.u32 %d13, %r1, " + bytes +
                               ";\nadd.s64 %d14, %d1, %d13;\nadd.s64 %d15, %d2, %d13;\nsetp.ge.u32 %p1, %r1, " +
                               std::to_string(8 / count) + ";\n@%p1 bra END;\n" + loads;
    CHECK(sumsOf(places + "red.global.add.v" + width + ".f32 [%d14], " + list + "};\nEND:") == withZeros);
  }
}

TEST_CASE("atomics: in shared memory sums have subnormal numbers") {
  const std::string place = "mov.u32 %r13, s;\nmad.lo.u32 %r13, %r1, 4, %r13;\nld.global.u32 %r11, [%d10];\n"
                            "st.shared.u32 [%r13], %r11;\n",
                    result = "ld.shared.u32 %r11, [%r13];\nst.global.u32 [%d10], %r11;";
  const std::string variables = ".shared .align 4 .b8 s[32];\n";
  CHECK(sumsOf(place + "red.shared.add.f32 [%r13], %r10;\n" + result, variables) == asTheyAre);
  CHECK(sumsOf(place + "atom.shared.add.f32 %r12, [%r13], %r10;\n" + result, variables) == asTheyAre);
  CHECK(sumsOf(place + "cvt.u64.u32 %d16, %r13;\ncvta.shared.u64 %d16, %d16;\nred.add.f32 [%d16], %r10;\n" + result,
               variables) == asTheyAre);
}

TEST_CASE("atomics: sums of 16 bits have subnormal numbers, in global memory too") {
  for (const char *type : {"f16x2", "bf16x2"}) {
    Harness h;
    h.block = {1, 1, 1};
    h.load(Harness::kernel("red.global.add.noftz." + std::string(type) + " [%d1], 0x80010002;", 1));
    BufferId sums = h.input("sums", Words{0x80020001}, true);
    CHECK(h.launch().silent());
    CHECK(h.read<uint32_t>(sums) == Words{0x80030003});
  }
}
