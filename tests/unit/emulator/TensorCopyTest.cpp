// Bulk copies of boxes through the whole emulator: operands, addresses, places where they may not go.
#include "Harness.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

TensorMapRecipe words(std::vector<uint64_t> dims, std::vector<uint32_t> box) {
  TensorMapRecipe r;
  r.type = TensorMapType::U32;
  r.dims = dims;
  uint64_t stride = dims[0] * 4;
  for (size_t i = 1; i < dims.size(); stride *= dims[i++])
    r.strides.push_back(stride);
  r.box = std::move(box);
  return r;
}

/// A kernel of a map m, a pointer p0 (in %d1) to 256 words, and 4 KiB of shared memory; %d2 is the address of the map,
/// %r5 that of shared memory, %r6 that of an mbarrier. Thread 0 expects `bytes` and does `issue`; all wait for them,
/// and do `body`.
std::string mapKernel(const std::string &issue, const std::string &body, uint32_t bytes = 0) {
  const std::string expect =
      bytes ? "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], " + std::to_string(bytes) + ";\n" : "";
  const std::string wait =
      bytes ? "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p8, [%r6], 0;\n@!%p8 bra AGAIN;\n" : "";
  return R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 p0) {
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<40>;
.reg .b64 %d<40>;
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b64 barrier;
ld.param.u64 %d1, [p0];
mov.b64 %d3, m;
cvta.param.u64 %d2, %d3;
mov.u32 %r1, %tid.x;
mov.u32 %r5, tile;
mov.u32 %r6, barrier;
mul.wide.u32 %d0, %r1, 4;
shl.b32 %r7, %r1, 2;
add.s32 %r7, %r7, %r5;
add.s64 %d4, %d1, %d0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra WAIT;
mbarrier.init.shared::cta.b64 [%r6], 1;
)" + expect +
         issue + "\nWAIT:\nbar.sync 0;\n" + wait + body + "\nret;\n}\n";
}

struct MapHarness : Harness {
  BufferId tensor = 0, out = 0;

  /// The tensor is `count` words 1, 2, 3, ..., behind 16 bytes of others.
  MapHarness &run(const TensorMapRecipe &recipe, uint64_t count, const std::string &text, bool written = false) {
    load(text);
    std::vector<uint32_t> values(count + 8, 0xdead);
    for (uint32_t i = 0; i < count; ++i)
      values[i + 4] = i + 1;
    tensor = input("tensor", values, written);
    arguments[0] = TensorMapArgument{{tensor, 16, count * 4, written}, recipe};
    block = {256, 1, 1};
    out = output("out", 1024);
    launch();
    return *this;
  }
};

const std::string storeOut = "ld.shared.u32 %r8, [%r7];\nst.global.u32 [%d4], %r8;";

std::string load2d(const std::string &coordinates) {
  return "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d2, {" + coordinates +
         "}], [%r6];";
}

} // namespace

TEST_CASE("a box of a tensor comes to shared memory", "[emulator][tensor-copy]") {
  MapHarness h;
  h.run(words({20, 12}, {32, 8}), 240, mapKernel("mov.u32 %r9, -4;\n" + load2d("%r9, 10"), storeOut, 1024));
  INFO(h.messages());
  REQUIRE(h.silent());
  auto got = h.read<uint32_t>(h.out);
  for (uint32_t i = 0; i < 256; ++i) {
    const int column = int(i % 32) - 4, row = int(i / 32) + 10;
    CHECK(got[i] == (column >= 0 && column < 20 && row < 12 ? uint32_t(row * 20 + column + 1) : 0));
  }
}

TEST_CASE("the map may lie in global memory, with an offset", "[emulator][tensor-copy]") {
  MapHarness h;
  const TensorMapRecipe recipe = words({64}, {256});
  h.run(recipe, 64,
        mapKernel("cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                  "[%r5+512], [%d2+0, {-8}], [%r6], 0;",
                  "add.s32 %r7, %r7, 512;\n" + storeOut, 1024));
  INFO(h.messages());
  REQUIRE(h.silent());
  auto got = h.read<uint32_t>(h.out);
  CHECK(got[7] == 0);
  CHECK(got[8] == 1);
  CHECK(got[71] == 64);
  CHECK(got[72] == 0);
}

TEST_CASE("boxes go back to global memory, but for what lies outside", "[emulator][tensor-copy]") {
  const std::string fill = "st.shared.u32 [%r7], %r1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n@%p1 bra END;\n";
  auto kernel = [&](const std::string &copy) {
    return mapKernel(
        "", fill + copy + "\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND: st.global.u32 [%d4], %r1;");
  };
  MapHarness h;
  h.run(words({20, 12}, {32, 8}), 240,
        kernel("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {4, 9}], [%r5];"), true);
  INFO(h.messages());
  REQUIRE(h.silent());
  auto got = h.read<uint32_t>(h.tensor);
  for (uint32_t i = 0; i < 240; ++i) {
    const uint32_t column = i % 20, row = i / 20;
    CHECK(got[i + 4] == (column >= 4 && row >= 9 ? (row - 9) * 32 + column - 4 : i + 1));
  }
  CHECK(got[3] == 0xdead);
  CHECK(got[244] == 0xdead);

  MapHarness sums;
  sums.run(words({20, 12}, {32, 8}), 240,
           kernel("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%d2, {4, 9}], [%r5];"), true);
  INFO(sums.messages());
  REQUIRE(sums.silent());
  got = sums.read<uint32_t>(sums.tensor);
  for (uint32_t i = 0; i < 240; ++i) {
    const uint32_t column = i % 20, row = i / 20;
    CHECK(got[i + 4] == i + 1 + (column >= 4 && row >= 9 ? (row - 9) * 32 + column - 4 : 0));
  }
}

TEST_CASE("loads round to tf32, stores do not, and sums of f32 have subnormal numbers", "[emulator][tensor-copy]") {
  TensorMapRecipe r = words({20, 12}, {32, 8});
  r.type = TensorMapType::Tf32;
  r.fill = TensorMapFill::Nan;
  MapHarness loaded; // words 1 to 240 are subnormal
  loaded.run(r, 240, mapKernel(load2d("4, 10"), storeOut, 1024));
  INFO(loaded.messages());
  REQUIRE(loaded.silent());
  auto got = loaded.read<uint32_t>(loaded.out);
  for (uint32_t i = 0; i < 256; ++i)
    CHECK(got[i] == (i % 32 < 16 && i < 64 ? 0 : 0x7ff77ff7u));

  auto reduced = [&](TensorMapType type, const std::string &copy) {
    r.type = type;
    MapHarness h;
    h.run(
        r, 240,
        mapKernel("", "st.shared.u32 [%r7], %r1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n@%p1 bra END;\n" + copy +
                          "\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND: st.global.u32 [%d4], %r1;"),
        true);
    INFO(h.messages());
    REQUIRE(h.silent());
    return h.read<uint32_t>(h.tensor)[4 + 19]; // 20, and 19 of shared memory
  };
  const std::string sum = ".async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d2, {0, 0}], [%r5];";
  CHECK(reduced(TensorMapType::F32, "cp.reduce" + sum) == 39);
  CHECK(reduced(TensorMapType::F32Ftz, "cp.reduce" + sum) == 0);
  const std::string store = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {0, 0}], [%r5];";
  CHECK(reduced(TensorMapType::Tf32, store) == 19);
  CHECK(reduced(TensorMapType::F32Ftz, store) == 19);
}

TEST_CASE("pixels come with their offsets", "[emulator][tensor-copy]") {
  TensorMapRecipe r = words({4, 5, 3}, {});
  r.im2col = TensorMapPixels{{-1}, {-1}, 4, 64};
  MapHarness h;
  h.run(r, 60,
        mapKernel("mov.u16 %h1, 2;\ncp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                  "[%r5], [%d2, {0, 1, 1}], [%r6], {%h1};",
                  storeOut, 1024));
  INFO(h.messages());
  REQUIRE(h.silent());
  auto got = h.read<uint32_t>(h.out);
  // Corners run from -1 to 3 along W: the first pixel is 1 + 2 of image 1, the fourth -1 + 2 of image 2.
  CHECK(got[0] == (5 + 3) * 4 + 1);
  CHECK(got[3] == (5 + 3) * 4 + 4);
  CHECK(got[8] == 0);
  CHECK(got[12] == (10 + 1) * 4 + 1);
}

TEST_CASE("boxes go to the blocks of a cluster that a mask names", "[emulator][tensor-copy]") {
  const std::string multicast =
      "mov.u16 %h1, 1;\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      ".L2::cache_hint [%r5], [%d2, {0, 0}], [%r6], %h1, %d1;";
  MapHarness h;
  h.run(words({20, 12}, {32, 8}), 240, mapKernel(multicast, storeOut, 1024));
  INFO(h.messages());
  REQUIRE(h.silent());
  CHECK(h.read<uint32_t>(h.out)[32] == 21);

  MapHarness beyond;
  std::string text = mapKernel(multicast, storeOut, 1024);
  text.replace(text.find("%h1, 1;"), 7, "%h1, 5;");
  beyond.run(words({20, 12}, {32, 8}), 240, text);
  const Finding *found = beyond.find(FindingKind::OutOfBounds);
  REQUIRE(found);
  CHECK(found->message == "copies to the blocks of mask 0x5 of a cluster of 1");
}

TEST_CASE("boxes in flight are looked at in every schedule", "[emulator][tensor-copy]") {
  const std::string barrier = "bar.sync 0;\n", fence = "fence.proxy.async.shared::cta;\n";
  const Schedule schedules[] = {{Schedule::Order::Ascending, 0},
                                {Schedule::Order::Reversed, 0},
                                {Schedule::Order::Shuffled, 1},
                                {Schedule::Order::Shuffled, 2}};
  auto finds = [&](FindingKind kind, const std::string &message, const std::string &text) {
    for (const Schedule &schedule : schedules) {
      MapHarness h;
      h.options.schedule = schedule;
      TensorMapRecipe swizzled = words({20, 12}, {32, 8});
      swizzled.swizzle = TensorMapSwizzle::Bytes128;
      h.run(swizzled, 240, text, true);
      INFO(schedule.name() << "\n" << h.messages());
      const Finding *found = h.find(kind);
      REQUIRE(found);
      CHECK(found->message.find(message) != std::string::npos);
    }
  };
  const std::string expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 1024;\n",
                    wait = "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p8, [%r6], 0;\n@!%p8 bra AGAIN;\n",
                    store = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {0, 0}], [%r5];\n"
                            "cp.async.bulk.commit_group;\n",
                    waitStore = "cp.async.bulk.wait_group 0;\n", first = "@%p1 bra END;\n", end = "END:\n";
  finds(FindingKind::SharedRace, "copy of thread 0", mapKernel(expect + load2d("0, 0"), storeOut + wait));
  finds(FindingKind::OpenCopy, "may still write shared memory", mapKernel(expect + load2d("0, 0"), ""));
  finds(FindingKind::SharedRace, "no fence.proxy.async between",
        mapKernel("", "st.shared.u32 [%r7], %r1;\n" + barrier + first + store + waitStore + end));
  finds(FindingKind::OpenCopy, "may still read shared memory",
        mapKernel("", "st.shared.u32 [%r7], %r1;\n" + fence + barrier + first + store + end));
  finds(FindingKind::SharedRace, "copy of thread 0",
        mapKernel("", "st.shared.u32 [%r7], %r1;\n" + fence + barrier + first + store + "st.shared.u32 [%r5], 7;\n" +
                          waitStore + end));
  finds(FindingKind::UninitializedRead, "", mapKernel("", first + store + waitStore + end));
}

TEST_CASE("copies of boxes that may not be", "[emulator][tensor-copy]") {
  auto finds = [](FindingKind kind, const std::string &message, const TensorMapRecipe &recipe, const std::string &issue,
                  bool written = false) {
    MapHarness h;
    h.run(recipe, 240, mapKernel(issue, ""), written);
    INFO(issue);
    INFO(h.messages());
    const Finding *found = h.find(kind);
    REQUIRE(found);
    CHECK(found->message.find(message) != std::string::npos);
  };
  const TensorMapRecipe tiles = words({20, 12}, {32, 8});
  finds(FindingKind::Misaligned, "no multiple of 128", tiles, "add.s32 %r5, %r5, 64;\n" + load2d("0, 0"));
  finds(FindingKind::OutOfBounds, "writes 1024 bytes at byte 3584 of shared memory", tiles,
        "add.s32 %r5, %r5, 3584;\n" + load2d("0, 0"));
  finds(FindingKind::OutOfBounds, "reads 80 bytes at byte 976 of `tensor`, which has 992", words({20, 13}, {32, 8}),
        load2d("0, 6"));
  finds(FindingKind::ReadOnlyWrite, "which the kernel may only read", tiles,
        "st.shared.u32 [%r5], 1;\ncp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {0, 0}], [%r5];");
  finds(FindingKind::BadTensorMap, "it has 2 dimensions, the instruction 1", tiles,
        "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%d2, {0}], [%r6];");
  finds(FindingKind::BadTensorMap, "it was never made", tiles, "mov.b64 %d2, %d1;\n" + load2d("0, 0"));
  finds(FindingKind::Misaligned, "no multiple of 64", tiles, "add.s64 %d2, %d2, 8;\n" + load2d("0, 0"));
  const std::string fill = "st.shared.u32 [%r5], 1;\n";
  finds(FindingKind::BadBox, "loads a box that begins 8 bytes along dimension 0", tiles, load2d("2, 0"));
  finds(FindingKind::BadBox, "prefetches a box that begins 8 bytes along dimension 0", tiles,
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d2, {2, 0}];");
  finds(FindingKind::BadBox, "stores a box that begins 8 bytes along dimension 0", tiles,
        fill + "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {2, 0}], [%r5];", true);
  finds(FindingKind::BadBox, "stores a box that begins at -4 along dimension 1", tiles,
        fill + "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d2, {4, -4}], [%r5];", true);
  finds(FindingKind::OutOfBounds, "of the kernel's parameters, which have 136", tiles,
        "add.s64 %d2, %d2, 64;\n" + load2d("0, 0"));
  finds(FindingKind::BadTensorMap, "among the parameters", tiles,
        "cvt.u64.u32 %d5, %r5;\ncvta.shared.u64 %d2, %d5;\n" + load2d("0, 0"));
  TensorMapRecipe bytes = tiles;
  bytes.type = TensorMapType::U16;
  finds(FindingKind::BadTensorMap, "reduces elements of type u16", bytes,
        fill + "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d2, {0, 0}], [%r5];", true);
}

namespace {

/// Kernels that make the map themselves, in shared memory, and put it behind the tensor in `tensor` (%d1, byte 1024).
/// Warp 0 does `publish`; then thread 64 copies, by the map at %d8.
std::string makingKernel(const std::string &change, const std::string &publish) {
  return mapKernel("", R"(setp.lt.u32 %p2, %r1, 32;
add.s64 %d8, %d1, 1024;
@%p2 st.shared.u32 [%r7], 0;
bar.warp.sync -1;
@%p1 bra MADE;
cvt.u64.u32 %d9, %r5;
tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%d9], %d1;
tensormap.replace.tile.rank.shared::cta.b1024.b32 [%d9], 1;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d9], 0, 16;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d9], 1, 16;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%d9], 0, 16;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%d9], 1, 16;
mov.b64 %d10, 64;
tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%d9], 0, %d10;
tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d9], 0, 1;
tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d9], 1, 1;
tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%d9], 2;
tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%d9], 0;
tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%d9], 0;
tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%d9], 0;
)" + change + R"(
MADE:
bar.warp.sync -1;
)" + publish + R"(
bar.sync 0;
setp.ne.u32 %p3, %r1, 64;
@%p3 bra DONE;
add.s32 %r5, %r5, 1024;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 1024;
cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%d8, {4, 2}], [%r6];
DONE:
bar.sync 0;
AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p8, [%r6], 0;
@!%p8 bra AGAIN;
ld.shared.u32 %r8, [%r7+1024];
add.s64 %d4, %d4, 2048;
st.global.u32 [%d4], %r8;)");
}

const std::string copyMap = "@%p2 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync."
                            "aligned [%d8], [%d9], 128;\n",
                  shareMap = "cvt.u64.u32 %d9, %r5;\n",
                  acquireMap = "@%p2 fence.proxy.tensormap::generic.acquire.gpu [%d8], 128;\n";

/// Bytes 0 to 1023 are words 1, 2, 3, ..., the map comes to 1024, results to 2048.
struct MakingHarness : Harness {
  BufferId memory = 0;
  MakingHarness &run(const std::string &text) {
    load(text);
    std::vector<uint32_t> values(768);
    for (uint32_t i = 0; i < values.size(); ++i)
      values[i] = i + 1;
    arguments.push_back(BytesArgument{std::vector<uint8_t>(128)});
    memory = input("memory", values, true);
    block = {256, 1, 1};
    launch();
    return *this;
  }
};

} // namespace

TEST_CASE("kernels make tensor maps and copy by them", "[emulator][tensor-copy]") {
  MakingHarness h;
  h.run(makingKernel("", shareMap + copyMap + acquireMap));
  INFO(h.messages());
  REQUIRE(h.silent());
  auto got = h.read<uint32_t>(h.memory);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t column = i % 16 + 4, row = i / 16 + 2;
    CHECK(got[512 + i] == (column < 16 && row < 16 ? row * 16 + column + 1 : 0));
  }
}

TEST_CASE("bulk sums of f32 keep subnormal numbers", "[emulator][tensor-copy]") {
  MakingHarness h; // words 1 to 768 are subnormal
  h.run(mapKernel("", "st.shared.u32 [%r7], %r1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n@%p1 bra END;\n"
                      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d1], [%r5], 1024;\n"
                      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:"));
  INFO(h.messages());
  REQUIRE(h.silent());
  const auto got = h.read<uint32_t>(h.memory);
  for (uint32_t i = 0; i < 256; ++i)
    CHECK(got[i] == 2 * i + 1);
}

TEST_CASE("tensor maps that a kernel made badly, or uses too early", "[emulator][tensor-copy]") {
  auto finds = [](FindingKind kind, const std::string &message, const std::string &change, const std::string &publish) {
    MakingHarness h;
    h.run(makingKernel(change, publish));
    INFO(message);
    INFO(h.messages());
    const Finding *found = h.find(kind);
    REQUIRE(found);
    CHECK(found->message.find(message) != std::string::npos);
  };
  const std::string whole = shareMap + copyMap + acquireMap;
  finds(FindingKind::BadTensorMap, "no fence.proxy.tensormap::generic.acquire", "", shareMap + copyMap);
  finds(FindingKind::BadTensorMap, "no fence.proxy.tensormap::generic.acquire", "", acquireMap + shareMap + copyMap);
  finds(FindingKind::BadTensorMap, "the stride of dimension 1 is 72 bytes",
        "mov.b64 %d10, 72;\ntensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%d9], 0, %d10;", whole);
  finds(FindingKind::BadTensorMap, "its swizzle mode is 4",
        "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%d9], 4;", whole);
  finds(FindingKind::BadTensorMap, "it is interleaved, which is not supported",
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%d9], 2;\n"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d9], 2, 1;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%d9], 2, 1;\n"
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d9], 2, 1;\n"
        "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%d9], 1;",
        whole);
  finds(FindingKind::BadTensorMap, "where there is none, nor zeros",
        "st.shared.u32 [%r5], 7;\ntensormap.replace.tile.rank.shared::cta.b1024.b32 [%d9], 1;", whole);
  finds(FindingKind::Misaligned, "128 bytes at byte 1088 of `memory`", "",
        "add.s64 %d8, %d8, 64;\n" + shareMap + copyMap);
}

TEST_CASE("forms of copies by tensor maps that are not there", "[emulator][tensor-copy]") {
  auto refused = [](const std::string &instruction, const std::string &message) {
    Harness h;
    h.diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", mapKernel(instruction, "")));
    CHECK_FALSE(Emulator::load(h.diagnostics, h.options));
    INFO(instruction);
    INFO(h.messages());
    CHECK(h.messages().find(message) != std::string::npos);
  };
  const std::string load = "cp.async.bulk.tensor.2d.shared::cluster.global", to = " [%r5], [%d2, {0, 0}], [%r6];",
                    bytes = ".mbarrier::complete_tx::bytes";
  refused(load + ".tile::gather4" + bytes + " [%r5], [%d2, {0, 0, 0, 0, 0}], [%r6];", "`.tile::gather4`");
  refused(load + ".im2col" + bytes + " [%r5], [%d2, {0, 0}], [%r6], {0};", "`.mbarrier::complete_tx::bytes`");
  refused(load + bytes + ".cta_group::1" + to, "`.cta_group::1`");
  refused(load + bytes + " [%r5], [%d2, {0, 0, 0}], [%r6];", "tensor with 3 coordinates");
  refused(load + bytes + " [%r5], [%d2], [%r6];", "tensor with 0 coordinates");
  refused("ld.global.u32 %r8, [%d1, {0}];", "address");
  refused("tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%d2], 1;", "`.swizzle_atomicity`");
  refused("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d2], 5, 1;", "is not supported");
  refused("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%d2], 4, %d1;", "is not supported");
  refused("fence.proxy.tensormap::generic.acquire.gpu [%d2], 64;", "is not supported");
}
