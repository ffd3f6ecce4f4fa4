// Blocks, warps, barriers, memory and launches of the emulator.
#include "Harness.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;
using Catch::Matchers::Contains;

namespace {

/// Runs `body` once, with p0 an output of `words` words; %d10 is the address of the thread's own word of the grid.
std::vector<uint32_t> runToWords(const std::string &body, size_t words, Dim3 grid, Dim3 block,
                                 const std::string &variables = "", uint32_t dynamicShared = 0) {
  Harness h;
  h.grid = grid;
  h.block = block;
  h.dynamicShared = dynamicShared;
  h.load(Harness::kernel("add.s64 %d10, %d1, %d0;\n" + body, 1, variables));
  BufferId out = h.output("out", 4 * words);
  h.launch();
  INFO(h.messages());
  CHECK(h.silent());
  return h.read<uint32_t>(out);
}

/// The launch must be refused with a diagnostic that says `message`.
void expectRefusal(const std::string &text, LaunchRequest request, const char *message,
                   std::vector<uint64_t> bufferBytes = {}) {
  Harness h;
  h.load(text);
  for (uint64_t bytes : bufferBytes)
    h.emulator->allocate("b", bytes, Emulator::Contents::Written);
  CHECK(failed(h.emulator->launch(request, h.diagnostics)));
  CHECK(h.emulator->findings().empty());
  REQUIRE(h.diagnostics.numErrors() == 1);
  CHECK(h.diagnostics.diagnostics()[0].kind == DiagnosticKind::BadLaunch);
  CHECK_THAT(h.diagnostics.diagnostics()[0].message, Contains(message));
}

} // namespace

TEST_CASE("machine: threads of three dimensions are numbered x fastest, and partial warps end where the block does") {
  Dim3 grid{2, 3, 2}, block{5, 3, 3}; // 45 threads: a warp and 13 lanes
  std::string body = "mov.u32 %r5, %tid.y;\nmov.u32 %r6, %tid.z;\nmov.u32 %r7, %ctaid.y;\nmov.u32 %r8, %ctaid.z;\n"
                     "mad.lo.u32 %r10, %r6, 3, %r5;\nmad.lo.u32 %r10, %r10, 5, %r1;\n" // thread in block
                     "mad.lo.u32 %r11, %r8, 3, %r7;\nmad.lo.u32 %r11, %r11, 2, %r3;\n" // block in grid
                     "mad.lo.u32 %r12, %r11, 45, %r10;\nmul.wide.u32 %d6, %r12, 4;\nadd.s64 %d7, %d1, %d6;\n"
                     "mov.u32 %r13, %laneid;\nshl.b32 %r14, %r12, 8;\nor.b32 %r14, %r14, %r13;\n"
                     "st.global.u32 [%d7], %r14;";
  std::vector<uint32_t> words = runToWords(body, 45 * 12, grid, block);
  for (uint32_t i = 0; i < words.size(); ++i)
    REQUIRE(words[i] == (i << 8 | (i % 45) % 32));
}

TEST_CASE("machine: a reset leaves the code, and nothing of buffers, findings and variables") {
  Harness h;
  h.block = {1, 1, 1};
  h.load(Harness::kernel("ld.global.u32 %r5, [count];\nadd.s32 %r5, %r5, 1;\nst.global.u32 [count], %r5;\n"
                         "st.global.u32 [%d1], %r5;\nld.global.u32 %r6, [%d1+4];",
                         1, ".global .align 4 .u32 count = 5;"));
  for (int run = 0; run < 2; ++run) {
    BufferId out = h.output("out", 8);
    CHECK(out == 0);
    CHECK_FALSE(h.launch().succeeded); // the second word is nobody's
    CHECK(h.emulator->findings().size() == 1);
    CHECK(h.read<uint32_t>(out)[0] == 6);
    h.emulator->reset();
    h.arguments.clear();
    CHECK(h.emulator->findings().empty());
  }
}

TEST_CASE("machine: a grid of the largest size costs no memory, and can be stopped") {
  Harness h;
  h.options.timeLimitSeconds = 0.1;
  h.grid = {0x7fffffff, 65535, 65535};
  h.load(Harness::kernel("L: add.u32 %r5, %r5, 1;\nbra L;", 0));
  h.launch();
  CHECK(h.only(FindingKind::TimeLimit));
}

TEST_CASE("machine: a long grid of short blocks keeps to the time limit") {
  Harness h;
  h.options.timeLimitSeconds = 0.1;
  h.grid = {0x7fffffff, 65535, 65535};
  h.load(Harness::kernel("", 0));
  h.launch();
  CHECK(h.only(FindingKind::TimeLimit));
}

TEST_CASE("machine: vectors of every width, lanes with gaps") {
  for (unsigned count : {1u, 2u, 4u})
    for (unsigned width : {8u, 16u, 32u, 64u}) {
      if (count * width > 128)
        continue;
      for (const char *guard : {"", "@%p1 "}) {
        std::string vector = count == 1 ? "" : ".v" + std::to_string(count);
        std::string type = ".b" + std::to_string(width);
        std::string reg = width == 64 ? "%d" : width == 32 ? "%r" : "%h";
        unsigned first = width == 64 ? 20 : width == 32 ? 20 : 1;
        std::string list;
        for (unsigned i = 0; i < count; ++i)
          list += (i ? "," : "") + reg + std::to_string(first + i);
        list = count == 1 ? list : "{" + list + "}";
        unsigned bytes = count * width / 8;
        Harness h;
        h.load(Harness::kernel("mul.wide.u32 %d6, %r1, " + std::to_string(bytes) + ";\nadd.s64 %d10, %d1, %d6;\n" +
                                   "add.s64 %d11, %d2, %d6;\nsetp.ne.u32 %p1, %r1, 5;\n" + guard + "ld.global" +
                                   vector + type + " " + list + ", [%d11];\n" + guard + "st.global" + vector + type +
                                   " [%d10], " + list + ";",
                               2));
        std::vector<uint8_t> values(32 * bytes);
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = uint8_t(i * 7 + 1);
        BufferId to = h.input("to", std::vector<uint8_t>(values.size()), true);
        h.input("from", values);
        h.launch();
        INFO(h.messages() << vector << type << guard);
        CHECK(h.silent());
        if (*guard)
          std::fill(values.begin() + 5 * bytes, values.begin() + 6 * bytes, 0);
        CHECK(h.read<uint8_t>(to) == values);
      }
    }
}

TEST_CASE("machine: shared and local memory by their own and by generic addresses") {
  std::string body = ".local .align 8 .b8 l[24];\nmov.u32 %r5, s;\nshl.b32 %r6, %r1, 2;\nadd.u32 %r5, %r5, %r6;\n"
                     "cvt.u64.u32 %d6, %r5;\ncvta.shared.u64 %d7, %d6;\nst.u32 [%d7], %r1;\nld.shared.u32 %r7, [%r5];\n"
                     "mov.u64 %d8, l;\nst.local.u32 [%d8+20], %r7;\ncvta.local.u64 %d9, %d8;\nld.u32 %r8, [%d9+20];\n"
                     "add.u32 %r8, %r8, 100;\nst.global.u32 [%d10], %r8;";
  std::vector<uint32_t> words = runToWords(body, 80, {2, 1, 1}, {40, 1, 1}, ".shared .align 4 .b32 s[40];");
  for (uint32_t i = 0; i < 80; ++i)
    CHECK(words[i] == i % 40 + 100);
}

TEST_CASE("machine: dynamic shared memory, reversed across warps by a barrier") {
  std::string body =
      "mov.u32 %r5, s;\nshl.b32 %r6, %r1, 2;\nadd.u32 %r7, %r5, %r6;\nst.shared.u32 [%r7], %r2;\nbar.sync 0;\n"
      "sub.u32 %r8, 508, %r6;\nadd.u32 %r8, %r5, %r8;\nld.shared.u32 %r9, [%r8];\nst.global.u32 [%d10], %r9;";
  std::vector<uint32_t> words =
      runToWords(body, 256, {2, 1, 1}, {128, 1, 1}, ".extern .shared .align 16 .b8 s[];", 512);
  for (uint32_t i = 0; i < 256; ++i)
    CHECK(words[i] == i / 128 * 128 + 127 - i % 128);
}

TEST_CASE("machine: the system's part of shared memory is zero for every block, and apart from all variables") {
  // Each thread adds to a word behind _1, and is told what was there, how large the block's own memory is, and what
  // lies at the last byte of its variable and at the first of its dynamic memory.
  Dim3 grid{3, 1, 1}, block{64, 1, 1};
  std::string body = "mov.u32 %r5, %reserved_smem_offset_1;\nmov.u32 %r6, %reserved_smem_offset_begin;\n"
                     "mov.u32 %r7, %reserved_smem_offset_end;\nmov.u32 %r8, %reserved_smem_offset_cap;\n"
                     "mov.u32 %r9, %total_smem_size;\nmov.u32 %r10, %reserved_smem_offset_0;\n"
                     "mov.u32 %r11, own;\nmov.u32 %r12, dynamic;\n"
                     "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra REST;\n"
                     "st.shared.u32 [own+96], 7;\nst.shared.u32 [dynamic], 9;\nREST: bar.sync 0;\n"
                     "and.b32 %r13, %r1, 31;\nshl.b32 %r13, %r13, 2;\nadd.u32 %r14, %r5, %r13;\n"
                     "atom.shared.add.u32 %r15, [%r14], 1;\nbar.sync 0;\nld.shared.u32 %r16, [%r14];\n" // 2
                     "ld.shared.u32 %r17, [%r6+1020];\nadd.u32 %r16, %r16, %r17;\n"                     // + 0
                     "ld.shared.u32 %r17, [own+96];\nmad.lo.u32 %r16, %r17, 10, %r16;\n"                // + 70
                     "ld.shared.u32 %r17, [dynamic];\nmad.lo.u32 %r16, %r17, 100, %r16;\n"              // + 900
                     "sub.u32 %r17, %r7, %r6;\nsub.u32 %r17, %r17, %r8;\nadd.u32 %r16, %r16, %r17;\n"   // + 0
                     "sub.u32 %r17, %r10, %r6;\nadd.u32 %r16, %r16, %r17;\n"                            // + 0
                     "setp.lt.u32 %p2, %r6, 100;\nsetp.lt.u32 %p3, %r12, %r7;\nor.pred %p2, %p2, %p3;\n"
                     "selp.u32 %r17, 100000, 0, %p2;\nadd.u32 %r16, %r16, %r17;\n" // + 0: they do not overlap
                     "mad.lo.u32 %r16, %r9, 1000, %r16;\nst.global.u32 [%d10], %r16;";
  const std::string variables = ".shared .align 4 .b8 own[100];\n.extern .shared .align 4 .b8 dynamic[];";
  std::vector<uint32_t> words = runToWords(body, 192, grid, block, variables, 32);
  CHECK(words == std::vector<uint32_t>(192, (128 + 32) * 1000 + 972)); // what is reserved begins at a multiple of 128
}

TEST_CASE("machine: the system's part of shared memory is checked as all other") {
  const std::string address = "mov.u32 %r5, %reserved_smem_offset_1;\n";
  Harness races;
  races.block = {64, 1, 1};
  races.runOnThree(address + "st.shared.u32 [%r5], %r1;");
  CHECK(races.only(FindingKind::SharedRace));
  Harness variable; // only what is reserved is zero
  variable.runOnThree(address + "ld.shared.u32 %r6, [%r5];\nld.shared.u32 %r6, [own];",
                      ".shared .align 4 .b8 own[128];");
  CHECK(variable.only(FindingKind::UninitializedRead));
}

TEST_CASE("machine: producers arrive at a barrier and go on, consumers wait") {
  // Warp 1 produces into s[lane]; warp 0 waits at barrier 1 for 64 threads and reads. Warp 1 does not wait.
  std::string body = "mov.u32 %r5, s;\nand.b32 %r6, %r1, 31;\nshl.b32 %r6, %r6, 2;\nadd.u32 %r5, %r5, %r6;\n"
                     "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra P;\nbar.sync 1, 64;\nld.shared.u32 %r9, [%r5];\nbra E;\n"
                     "P: st.shared.u32 [%r5], %r1;\nbar.arrive 1, 64;\nmov.u32 %r9, 5;\nE: st.global.u32 [%d10], %r9;";
  std::vector<uint32_t> words = runToWords(body, 64, {1, 1, 1}, {64, 1, 1}, ".shared .align 4 .b32 s[32];");
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(words[i] == (i < 32 ? i + 32 : 5));
}

TEST_CASE("machine: barriers that reduce") {
  std::string body = "setp.lt.u32 %p1, %r1, 40;\nsetp.lt.u32 %p4, %r1, 48;\nbar.red.popc.u32 %r5, 0, %p1;\n"
                     "bar.red.and.pred %p2, 0, %p1;\nbar.red.or.pred %p3, 0, %p1;\nbar.red.and.pred %p5, 0, %p4;\n"
                     "selp.u32 %r6, 256, 0, %p2;\nselp.u32 %r7, 512, 0, %p3;\nselp.u32 %r8, 1024, 0, %p5;\n"
                     "or.b32 %r5, %r5, %r6;\nor.b32 %r5, %r5, %r7;\nor.b32 %r5, %r5, %r8;\nst.global.u32 [%d10], %r5;";
  for (uint32_t word : runToWords(body, 48, {1, 1, 1}, {48, 1, 1}))
    CHECK(word == 40 + 512 + 1024);
}

TEST_CASE("machine: a barrier counts threads that left as arrived, whenever they leave") {
  std::string body = "setp.ge.u32 %p1, %r1, 64;\n@%p1 bra L;\nbar.sync 0;\nst.global.u32 [%d10], 1;\nret;\n"
                     "L: st.global.u32 [%d10], 2;";
  std::vector<uint32_t> words = runToWords(body, 100, {1, 1, 1}, {100, 1, 1});
  for (uint32_t i = 0; i < 100; ++i)
    CHECK(words[i] == (i < 64 ? 1u : 2u));
}

TEST_CASE("machine: lanes in code behind the end meet the others before the barrier") {
  std::string body = "mov.u32 %r10, s;\nmov.u32 %r9, %r1;\nsetp.lt.u32 %p1, %r1, 7;\n@%p1 bra RARE;\nbra JOIN;\n"
                     "JOIN: shl.b32 %r5, %r1, 2;\nadd.u32 %r6, %r10, 252;\nsub.u32 %r6, %r6, %r5;\nadd.u32 %r5, %r10, "
                     "%r5;\nst.shared.u32 [%r5], %r9;\nbar.sync 0;\n"
                     "ld.shared.u32 %r7, [%r6];\nst.global.u32 [%d10], %r7;\nret;\n"
                     "RARE: add.u32 %r9, %r9, 100;\nbra JOIN;";
  std::vector<uint32_t> words = runToWords(body, 64, {1, 1, 1}, {64, 1, 1}, ".shared .align 4 .b32 s[64];");
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(words[i] == (63 - i < 7 ? 163 - i : 63 - i));
}

TEST_CASE("machine: lanes that part in a loop that begins in its middle meet before its barrier") {
  std::string body =
      "mov.u32 %r10, s;\nmov.u32 %r8, 0;\nmov.u32 %r7, 0;\nbra.uni BEGIN;\n"
      "JOIN: shl.b32 %r5, %r1, 2;\nadd.u32 %r6, %r10, 252;\nsub.u32 %r6, %r6, %r5;\nadd.u32 %r5, %r10, "
      "%r5;\nst.shared.u32 [%r5], %r9;\nbar.sync 0;\nld.shared.u32 %r6, [%r6];\nadd.u32 %r7, %r7, "
      "%r6;\nbar.sync 0;\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p1, %r8, 3;\n@%p1 bra BEGIN;\nbra.uni END;\n"
      "BEGIN: add.u32 %r9, %r1, %r8;\nsetp.gt.u32 %p2, %r1, 6;\n@%p2 bra JOIN;\n"
      "add.u32 %r9, %r9, 100;\nbra.uni JOIN;\n"
      "END: st.global.u32 [%d10], %r7;";
  std::vector<uint32_t> words = runToWords(body, 64, {1, 1, 1}, {64, 1, 1}, ".shared .align 4 .b32 s[64];");
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(words[i] == 3 * (63 - i) + 3 + (63 - i < 7 ? 300 : 0));
}

TEST_CASE("machine: a warp that spins lets the warp it waits for run") {
  std::string body =
      "setp.lt.u32 %p1, %r1, 32;\n@!%p1 bra W;\nL: ld.volatile.shared.u32 %r5, [s];\nsetp.eq.u32 %p2, %r5, 0;\n"
      "@%p2 bra L;\nbra E;\nW: atom.shared.exch.b32 %r5, [s], 7;\nE: bar.sync 0;\nst.global.u32 [%d10], 1;";
  Harness h;
  h.options.checkUninit = h.options.checkRaces = false;
  h.options.timeLimitSeconds = 20;
  h.block = {64, 1, 1};
  h.load(Harness::kernel("add.s64 %d10, %d1, %d0;\n" + body, 1, ".shared .align 4 .b32 s[1];"));
  BufferId out = h.output("out", 256);
  h.launch();
  INFO(h.messages());
  CHECK(h.silent());
  CHECK(h.read<uint32_t>(out) == std::vector<uint32_t>(64, 1));
}

TEST_CASE("machine: sums of floats by atomics do not depend on the number of host threads") {
  std::string text = Harness::kernel("cvt.rn.f32.u32 %f1, %r2;\nmul.f32 %f1, %f1, 0f3DCCCCCD;\n"
                                     "red.global.add.f32 [%d1], %f1;",
                                     1);
  std::vector<float> sums;
  for (unsigned threads : {1u, 2u, 7u}) {
    Harness h;
    h.options.numThreads = threads;
    h.grid = {97, 1, 1};
    h.load(text);
    BufferId sum = h.input("sum", std::vector<float>(1), true);
    CHECK(h.launch().silent());
    sums.push_back(h.read<float>(sum)[0]);
  }
  CHECK(sums[0] > 0);
  CHECK(sums[1] == sums[0]);
  CHECK(sums[2] == sums[0]);
}

TEST_CASE("machine: launches that do not fit are refused") {
  std::string two = Harness::kernel("", 1);
  BufferArgument all{0, 0, 64, false};
  expectRefusal(two, {"nobody", {}, {}, 0, {all}}, "no kernel `nobody`", {64});
  expectRefusal(two, {"k", {}, {}, 0, {}}, "0 arguments for 1 parameters", {64});
  expectRefusal(two, {"k", {}, {}, 0, {ScalarArgument{1, 4}}}, "argument 0 has 4 bytes", {64});
  expectRefusal(two, {"k", {}, {}, 0, {BufferArgument{7, 0, 4, false}}}, "no buffer 7", {64});
  expectRefusal(two, {"k", {}, {}, 0, {BufferArgument{0, 60, 8, false}}}, "beyond buffer `b`", {64});
  expectRefusal(two, {"k", {}, {}, 0, {BufferArgument{0, ~uint64_t(0), 8, false}}}, "beyond buffer `b`", {64});
  expectRefusal(two, {"k", {}, {1025, 1, 1}, 0, {all}}, "1024", {64});
  expectRefusal(two, {"k", {}, {64, 32, 1}, 0, {all}}, "1024", {64});
  expectRefusal(two, {"k", {}, {0, 1, 1}, 0, {all}}, "0x1x1", {64});
  expectRefusal(two, {"k", {1, 65536, 1}, {}, 0, {all}}, "65535", {64});
  expectRefusal(two, {"k", {0, 1, 1}, {}, 0, {all}}, "0x1x1", {64});
  expectRefusal(two, {"k", {}, {}, 1 << 30, {all}}, "shared memory", {64});
  expectRefusal(two, {"k", {}, {}, 0, {BufferArgument{0, 0, 64, false}}}, "no memory for buffer `b`", {~uint64_t(0)});
  expectRefusal(Harness::kernel(".local .b8 l[500000];", 0), {"k", {}, {1024, 1, 1}, 0, {}}, "local memory a block");
}

TEST_CASE("the blocks of a launch are counted, whether they run one by one or together") {
  for (Schedule::Order order : {Schedule::Order::Ascending, Schedule::Order::Shuffled}) {
    WorkProgress work;
    Harness h;
    h.options.progress = &work;
    h.options.schedule = {order, 1};
    h.grid = {700, 1, 1};
    // Shuffled, a kernel with volatile accesses has its blocks side by side.
    h.load(Harness::kernel("add.s64 %d1, %d1, %d0;\nst.volatile.global.u32 [%d1], %r2;", 1));
    h.output("out", 700 * 32 * 4);
    REQUIRE(h.launch().succeeded);
    CHECK(work.all == 700);
    CHECK(work.done == 700);
    h.launch(); // counted anew
    CHECK(work.done == 700);
  }
}
