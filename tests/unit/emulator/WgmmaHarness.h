#pragma once
// Kernels of one warpgroup with wgmmas of m64n16k16, bf16, for tests of what is checked.
//
// Sums are %w0 to %w7 and %v0 to %v7, factors in registers %a0 to %a3, descriptors of a and b %d20 and %d21. p0 gets
// what a thread stores.

#include "Harness.h"

namespace hloc::emulator::testing {

inline std::string listOf(const std::string &prefix, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "{") + prefix + std::to_string(i);
  return text + "}";
}

struct Wgmmas {
  const std::string fence = "wgmma.fence.sync.aligned;\n", commit = "wgmma.commit_group.sync.aligned;\n";
  std::string wait(unsigned groups = 0) const {
    return "wgmma.wait_group.sync.aligned " + std::to_string(groups) + ";\n";
  }
  /// Of sums %w or %v, with a from shared memory or from registers.
  std::string multiply(char sums = 'w', bool listed = false) const {
    return "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " + listOf(std::string("%") + sums, 8) + ", " +
           (listed ? listOf("%a", 4) : "%d20") + ", %d21, 1, 1, 1, 0" + (listed ? "" : ", 0") + ";\n";
  }
  const std::string store = "add.s64 %d22, %d1, %d0;\nst.global.b32 [%d22], %w0;\n";

  /// Descriptors of zeros in shared memory: a of 64 rows at 0, b of 16 rows at 8192, swizzled by 128 bytes.
  uint64_t a = uint64_t(64) << 32 | uint64_t(1) << 62, b = a | 8192 >> 4;

  static constexpr unsigned sharedBytes = 16384;
  std::string prologue() const {
    std::string text = ".reg .b32 %w<8>, %v<8>, %a<4>;\nmov.u32 %r10, %r1;\nmov.u32 %r11, image;\nmov.b32 %r12, 0;\n"
                       "shl.b32 %r10, %r1, 2;\nLOOP: add.s32 %r13, %r11, %r10;\nst.shared.b32 [%r13], %r12;\n"
                       "add.s32 %r10, %r10, " +
                       std::to_string(4 * threads) +
                       ";\nsetp.lt.u32 %p1, %r10, 16384;\n@%p1 bra LOOP;\n"
                       "fence.proxy.async;\nbar.sync 0;\n";
    for (const char *prefix : {"%w", "%v"})
      for (unsigned i = 0; i < 8; ++i)
        text += std::string("mov.b32 ") + prefix + std::to_string(i) + ", 0;\n";
    for (unsigned i = 0; i < 4; ++i)
      text += "mov.b32 %a" + std::to_string(i) + ", 0;\n";
    return text + "mov.b64 %d20, " + std::to_string(a) + ";\nmov.b64 %d21, " + std::to_string(b) + ";\n" +
           "shr.u32 %r20, %r1, 5;\nsetp.eq.u32 %p2, %r20, 0;\nsetp.eq.u32 %p3, %r1, 5;\n";
  }

  unsigned threads = 128;
  EmulatorOptions options = {};
  /// Runs the prologue and the body.
  std::unique_ptr<Harness> run(const std::string &body, const std::string &directives = "") const {
    auto h = std::make_unique<Harness>();
    h->options = options;
    h->block = {threads, 1, 1};
    std::string text =
        Harness::kernel(prologue() + body, 1, ".shared .align 1024 .b8 image[" + std::to_string(sharedBytes) + "];");
    text.replace(text.find("sm_100a"), 7, "sm_90a");
    text.insert(text.find(") {") + 1, " " + directives);
    h->load(text);
    h->output("out", 4 * threads);
    h->launch();
    return h;
  }
};

} // namespace hloc::emulator::testing
