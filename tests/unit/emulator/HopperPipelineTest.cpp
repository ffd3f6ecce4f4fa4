// A whole kernel of sm_90a as the fastest ones are made: one warp copies tiles of a and b by tensor maps into a ring,
// four multiply them by wgmma out of it, and what they made goes back by a tensor map. Then the same with a line
// broken.
#include "Harness.h"
#include "WgmmaHarness.h"

#include "llvm/Support/FormatVariadic.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

constexpr uint32_t rows = 128, columns = 192, depth = 320, tile = 64;

/// Tiles of 64 x 64 x 64: block (x, y) makes rows 64 y and columns 64 x of d = a b^T.
///   0, 16384: two places each for tiles of a and b, rows of 128 bytes, swizzled; 32768: the tile of d; 49152: full[2],
///   empty[2]
std::string gemm() {
  std::string text = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .align 64 .b8 md[128])
.reqntid 160
{
.reg .pred %p<9>;
.reg .b32 %r<40>;
.reg .f32 %w<32>;
.reg .b64 %d<40>;
.shared .align 1024 .b8 memory[49184];
mov.b64 %d1, ma;
cvta.param.u64 %d1, %d1;
mov.b64 %d2, mb;
cvta.param.u64 %d2, %d2;
mov.b64 %d3, md;
cvta.param.u64 %d3, %d3;
mov.u32 %r0, memory;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
shl.b32 %r2, %r2, 6;
mov.u32 %r3, %ctaid.y;
shl.b32 %r3, %r3, 6;
setp.eq.u32 %p1, %r1, 0;
@!%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r0+49152], 1;
mbarrier.init.shared::cta.b64 [%r0+49160], 1;
mbarrier.init.shared::cta.b64 [%r0+49168], 1;
mbarrier.init.shared::cta.b64 [%r0+49176], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
mov.u32 %r10, 0;
setp.lt.u32 %p2, %r1, 128;
@%p2 bra CONSUMER;
setp.ne.u32 %p3, %r1, 128;
@%p3 bra DONE;
PRODUCER:
and.b32 %r11, %r10, 1;
shr.u32 %r12, %r10, 1;
and.b32 %r12, %r12, 1;
xor.b32 %r12, %r12, 1;
shl.b32 %r13, %r11, 3;
add.s32 %r13, %r13, %r0;
EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13+49168], %r12;
@!%p4 bra EMPTY;
add.s32 %r14, %r13, 49152;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14], 16384;
shl.b32 %r15, %r11, 13;
add.s32 %r15, %r15, %r0;
add.s32 %r16, %r15, 16384;
shl.b32 %r17, %r10, 6;
cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r15], [%d1, {%r17, %r3}], [%r14];
cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r16], [%d2, {%r17, %r2}], [%r14];
add.u32 %r10, %r10, 1;
setp.lt.u32 %p5, %r10, 5;
@%p5 bra PRODUCER;
bra DONE;
CONSUMER:
)";
  for (unsigned i = 0; i < 32; ++i)
    text += llvm::formatv("mov.f32 %w{0}, 0f00000000;\n", i);
  text += R"(LOOP:
and.b32 %r11, %r10, 1;
shr.u32 %r12, %r10, 1;
and.b32 %r12, %r12, 1;
shl.b32 %r13, %r11, 3;
add.s32 %r13, %r13, %r0;
FULL: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13+49152], %r12;
@!%p4 bra FULL;
shl.b32 %r15, %r11, 13;
add.s32 %r15, %r15, %r0;
shr.u32 %r15, %r15, 4;
cvt.u64.u32 %d10, %r15;
or.b64 %d10, %d10, 4611686293305294848;
wgmma.fence.sync.aligned;
)";
  for (unsigned k = 0; k < 4; ++k) // 32 bytes along k each; b lies 16384 bytes behind a
    text += llvm::formatv("add.s64 %d11, %d10, {0};\nadd.s64 %d12, %d10, {1};\n", 2 * k, 1024 + 2 * k).str() +
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " + listOf("%w", 32) +
            ", %d11, %d12, 1, 1, 1, 0, 0;\n";
  text += R"(wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.s32 %r14, %r13, 49168;
@%p1 mbarrier.arrive.shared::cta.b64 _, [%r14];
add.u32 %r10, %r10, 1;
setp.lt.u32 %p5, %r10, 5;
@%p5 bra LOOP;
shr.u32 %r20, %r1, 5;
shl.b32 %r20, %r20, 4;
and.b32 %r21, %r1, 31;
shr.u32 %r22, %r21, 2;
add.s32 %r20, %r20, %r22;
shl.b32 %r20, %r20, 8;
and.b32 %r21, %r21, 3;
shl.b32 %r21, %r21, 3;
add.s32 %r20, %r20, %r21;
add.s32 %r20, %r20, %r0;
)";
  for (unsigned i = 0; i < 32; i += 2) // columns 8 (i / 4) + 2 (lane % 4), 8 rows further on for every second pair
    text += llvm::formatv("st.shared.v2.f32 [%r20+{0}], {{%w{1}, %w{2}};\n", 32768 + i / 4 * 32 + i / 2 % 2 * 8 * 256,
                          i, i + 1);
  return text + R"(fence.proxy.async.shared::cta;
bar.sync 1, 128;
@!%p1 bra DONE;
add.s32 %r23, %r0, 32768;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d3, {%r2, %r3}], [%r23];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
DONE:
ret;
}
)";
}

struct Gemm : Harness {
  BufferId d = 0;

  static TensorMapRecipe recipe(TensorMapType type, uint64_t inner, uint64_t outer, TensorMapSwizzle swizzle) {
    TensorMapRecipe r;
    r.type = type;
    r.dims = {inner, outer};
    r.strides = {inner * bytesOf(type)};
    r.box = {tile, tile};
    r.swizzle = swizzle;
    return r;
  }

  /// Small whole numbers, whose sums are exact in any order.
  static int valueOf(uint32_t matrix, uint32_t i) { return int((i * 2654435761u >> (11 + matrix)) % 7) - 3; }

  Gemm &run(const std::string &text, const Schedule &schedule) {
    options.schedule = schedule;
    options.maxFindings = 3;
    load(text);
    auto matrix = [&](uint32_t number, uint32_t count) {
      std::vector<uint16_t> values(count);
      for (uint32_t i = 0; i < count; ++i) {
        const float value = float(valueOf(number, i));
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        values[i] = uint16_t(bits >> 16);
      }
      return input(number ? "b" : "a", values);
    };
    const BufferId a = matrix(0, rows * depth), b = matrix(1, columns * depth);
    d = output("d", uint64_t(rows) * columns * 4);
    const auto bf16 = TensorMapType::Bf16;
    arguments[0] =
        TensorMapArgument{{a, 0, rows * depth * 2, false}, recipe(bf16, depth, rows, TensorMapSwizzle::Bytes128)};
    arguments[1] =
        TensorMapArgument{{b, 0, columns * depth * 2, false}, recipe(bf16, depth, columns, TensorMapSwizzle::Bytes128)};
    arguments[2] = TensorMapArgument{{d, 0, uint64_t(rows) * columns * 4, true},
                                     recipe(TensorMapType::F32, columns, rows, TensorMapSwizzle::None)};
    grid = {columns / tile, rows / tile, 1};
    block = {160, 1, 1};
    launch();
    return *this;
  }

  /// How many elements are not what they should be.
  uint32_t wrong() {
    const std::vector<float> out = read<float>(d);
    uint32_t count = 0;
    for (uint32_t m = 0; m < rows; ++m)
      for (uint32_t n = 0; n < columns; ++n) {
        int sum = 0;
        for (uint32_t k = 0; k < depth; ++k)
          sum += valueOf(0, m * depth + k) * valueOf(1, n * depth + k);
        count += out[m * columns + n] != float(sum);
      }
    return count;
  }
};

const Schedule schedules[] = {
    {Schedule::Order::Ascending, 0}, {Schedule::Order::Reversed, 0}, {Schedule::Order::Shuffled, 7}};

struct Mutant {
  const char *from, *to;
};
/// The first place of `from` in the kernel.
const Mutant mutants[] = {
    {"[%r0+49176], 1;", "[%r0+49176], 2;"},                // an arrival too many is waited for
    {"mbarrier.init.shared::cta.b64 [%r0+49160], 1;", ""}, // a barrier that is none
    {"bar.sync 0;", ""},                                   // others before the barriers are there
    {"xor.b32 %r12, %r12, 1;", ""},                        // the producer waits for the wrong phase
    {"EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13+49168], %r12;\n@!%p4 bra EMPTY;", ""},
    {"_, [%r14], 16384;", "_, [%r14], 8192;"}, // one of the two copies
    {"_, [%r14], 16384;", "_, [%r14], 16400;"},
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14], 16384;", ""},
    {"[%r16], [%d2, {%r17, %r2}]", "[%r15], [%d2, {%r17, %r2}]"}, // one copy over the other
    {"[%d1, {%r17, %r3}]", "[%d1, {%r3, %r17}]"},
    {"add.s32 %r16, %r15, 16384;", "add.s32 %r16, %r15, 16400;"}, // not where a box may begin
    {"setp.lt.u32 %p5, %r10, 5;", "setp.lt.u32 %p5, %r10, 4;"},
    {"setp.lt.u32 %p5, %r10, 5;", "setp.lt.u32 %p5, %r10, 6;"},
    {"FULL: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13+49152], %r12;\n@!%p4 bra FULL;", ""},
    {"@!%p4 bra FULL;", "@%p4 bra FULL;"},
    {"FULL: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13+49152], %r12;",
     "FULL: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p4, [%r13+49152], %r12;"}, // learns nothing
    {"or.b64 %d10, %d10, 4611686293305294848;", "or.b64 %d10, %d10, 9223372311732682752;"},  // 64 bytes of swizzle
    {"wgmma.fence.sync.aligned;", ""},
    {"add.s64 %d12, %d10, 1026;", "add.s64 %d12, %d10, 1027;"},
    {"add.s64 %d11, %d10, 4;", "add.s64 %d11, %d10, 0;"},
    {"%d11, %d12, 1, 1, 1, 0, 0;", "%d11, %d12, 0, 1, 1, 0, 0;"}, // sums from new, once
    {"%d11, %d12, 1, 1, 1, 0, 0;", "%d11, %d12, 1, -1, 1, 0, 0;"},
    {"wgmma.commit_group.sync.aligned;", ""},
    {"wgmma.wait_group.sync.aligned 0;", ""},
    {"wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;"},
    {"@%p1 mbarrier.arrive.shared::cta.b64 _, [%r14];", ""},
    {"@%p1 mbarrier.arrive.shared::cta.b64 _, [%r14];", "mbarrier.arrive.shared::cta.b64 _, [%r14];"},
    {"wgmma.wait_group.sync.aligned 0;\nadd.s32 %r14, %r13, 49168;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [%r14];",
     "add.s32 %r14, %r13, 49168;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [%r14];\nwgmma.wait_group.sync.aligned 0;"},
    {"fence.proxy.async.shared::cta;", ""},
    {"bar.sync 1, 128;", ""},
    {"[%d3, {%r2, %r3}]", "[%d3, {%r3, %r2}]"},
    {"cp.async.bulk.commit_group;", ""},
    {"cp.async.bulk.wait_group.read 0;", ""},
    {"cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group.read 1;"},
};

} // namespace

TEST_CASE("a pipeline of copies and products", "[emulator][hopper]") {
  for (const Schedule &schedule : schedules) {
    Gemm h;
    h.run(gemm(), schedule);
    INFO(schedule.name() << "\n" << h.messages());
    REQUIRE(h.silent());
    CHECK(h.wrong() == 0);
  }
}

TEST_CASE("the thread that issues a store may be the one that fences", "[emulator][hopper]") {
  const std::string fence = "fence.proxy.async.shared::cta;\n", rest = "bar.sync 1, 128;\n@!%p1 bra DONE;\n";
  std::string text = gemm();
  text.replace(text.find(fence + rest), (fence + rest).size(), rest + fence);
  Gemm h;
  h.run(text, schedules[0]);
  INFO(h.messages());
  CHECK(h.silent());
}

TEST_CASE("a pipeline with a line broken", "[emulator][hopper]") {
  for (const Mutant &mutant : mutants) {
    std::string text = gemm();
    const size_t at = text.find(mutant.from);
    INFO(mutant.from);
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string(mutant.from).size(), mutant.to);
    for (const Schedule &schedule : schedules) {
      Gemm h;
      h.run(text, schedule);
      INFO(mutant.to << "\n" << schedule.name());
      CHECK((!h.silent() || h.wrong() != 0));
    }
  }
}
