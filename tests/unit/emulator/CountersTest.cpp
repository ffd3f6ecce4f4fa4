// Counters of kernels small enough to count by hand.
#include "Harness.h"

#include "llvm/Support/JSON.h"

using namespace hloc;
using namespace hloc::emulator;
using namespace hloc::emulator::testing;

namespace {

/// One warp; %d10 is p1 plus `scale` bytes times the thread, %r20 shared memory likewise.
Counters count(const std::string &body, unsigned scale = 4, Dim3 grid = {1, 1, 1}, Dim3 block = {32, 1, 1}) {
  Harness h;
  h.grid = grid;
  h.block = block;
  h.options.countEvents = true;
  h.load(Harness::kernel("mul.wide.u32 %d6, %r1, " + std::to_string(scale) + ";\nadd.s64 %d10, %d2, %d6;\n" +
                             "mul.lo.u32 %r20, %r1, " + std::to_string(scale) +
                             ";\nmov.u32 %r21, s;\nadd.u32 %r20, %r20, %r21;\n" + body,
                         2, ".shared .align 16 .b8 s[8192];"));
  h.input("zeros", std::vector<uint32_t>(1024), true);
  h.input("words", std::vector<uint32_t>(1024), true);
  h.launch();
  INFO(h.messages());
  CHECK(h.silent());
  return h.emulator->counters();
}

} // namespace

TEST_CASE("counters: sectors of global requests") {
  struct Case {
    const char *load;
    unsigned scale;
    uint64_t sectors, ideal, bytes;
  };
  for (const Case &c :
       {Case{"ld.global.u32 %r5, [%d10];", 4, 4, 4, 128}, Case{"ld.global.u32 %r5, [%d10];", 8, 8, 4, 128},
        Case{"ld.global.u32 %r5, [%d10];", 32, 32, 4, 128}, Case{"ld.global.u32 %r5, [%d10];", 0, 1, 1, 128},
        Case{"ld.global.u8 %r5, [%d10];", 1, 1, 1, 32}, Case{"ld.global.u32 %r5, [%d10+4];", 4, 5, 4, 128},
        Case{"ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%d10];", 16, 16, 16, 512}}) {
    INFO(c.load << " every " << c.scale);
    Counters counters = count(c.load, c.scale);
    CHECK(counters.globalLoadRequests == 1);
    CHECK(counters.globalLoadSectors == c.sectors);
    CHECK(counters.globalLoadIdealSectors == c.ideal);
    REQUIRE(counters.buffers.size() == 3);
    CHECK(counters.buffers[2].name == "words");
    CHECK(counters.buffers[2].bytesRead == c.bytes);
    CHECK(counters.buffers[2].bytesWritten == 0);
  }
}

TEST_CASE("counters: passes over the banks of shared memory") {
  struct Case {
    const char *store;
    unsigned scale;
    uint64_t passes, ideal;
  };
  for (const Case &c :
       {Case{"st.shared.u32 [%r20], %r1;", 4, 1, 1}, Case{"st.shared.u32 [%r20], %r1;", 8, 2, 1},
        Case{"st.shared.u32 [%r20], %r1;", 128, 32, 1}, Case{"st.shared.u32 [%r20], %r1;", 132, 1, 1},
        Case{"st.shared.u32 [%r20], 7;", 0, 1, 1}, Case{"st.shared.u64 [%r20], %d0;", 8, 2, 2},
        Case{"st.shared.v4.u32 [%r20], {%r1,%r1,%r1,%r1};", 16, 4, 4}, Case{"st.shared.u8 [%r20], %r1;", 1, 1, 1}}) {
    INFO(c.store << " every " << c.scale);
    Counters counters = count(c.store, c.scale);
    CHECK(counters.sharedStoreRequests == 1);
    CHECK(counters.sharedStoreWavefronts == c.passes);
    CHECK(counters.sharedStoreIdealWavefronts == c.ideal);
  }
}

TEST_CASE("counters: an asynchronous copy is a load and a store") {
  struct Case {
    std::string copy;
    unsigned scale;
    uint64_t sectors, bytes, passes, ideal;
  };
  const std::string wait = "\ncp.async.wait_all;";
  for (const Case &c :
       {Case{"cp.async.cg.shared.global [%r20], [%d10], 16;", 16, 16, 512, 4, 4},
        Case{"cp.async.ca.shared.global [%r20], [%d10], 4;", 4, 4, 128, 1, 1},
        // What comes of a line of 128 bytes is written at once where it goes to one line.
        Case{"cp.async.ca.shared.global [%r20], [%d10], 4;", 64, 32, 128, 16, 16},
        Case{"mad.lo.u32 %r9, %r1, 128, %r20;\ncp.async.cg.shared.global [%r9], [%d10], 16;", 16, 16, 512, 32, 4},
        Case{"xor.b32 %r9, %r20, 112;\ncp.async.cg.shared.global [%r9], [%d10], 16;", 16, 16, 512, 4, 4},
        Case{"cp.async.ca.shared.global [%r20], [%d10], 8;", 8, 8, 256, 2, 2},
        // Of the rest zeros are written.
        Case{"cp.async.cg.shared.global [%r20], [%d10], 16, 4;", 16, 16, 128, 4, 4},
        Case{"cp.async.cg.shared.global [%r20], [%d10], 16, 0;", 16, 0, 0, 4, 4},
        Case{"setp.lt.u32 %p1, %r1, 8;\nselp.u32 %r9, 16, 0, %p1;\n"
             "cp.async.cg.shared.global [%r20], [%d10], 16, %r9;",
             16, 4, 128, 4, 4},
        Case{"setp.lt.u32 %p1, %r1, 8;\n@%p1 cp.async.cg.shared.global [%r20], [%d10], 16;", 16, 4, 128, 1, 1}}) {
    INFO(c.copy << " every " << c.scale);
    Counters counters = count(c.copy + wait, c.scale);
    CHECK(counters.globalLoadRequests == (c.sectors != 0));
    CHECK(counters.globalLoadSectors == c.sectors);
    CHECK(counters.buffers[2].bytesRead == c.bytes);
    CHECK(counters.sharedStoreRequests == 1);
    CHECK(counters.sharedStoreWavefronts == c.passes);
    CHECK(counters.sharedStoreIdealWavefronts == c.ideal);
  }
}

TEST_CASE("counters: a pass for each matrix whose rows lie in different banks") {
  struct Case {
    const char *count;
    unsigned pitch; ///< bytes between rows
    uint64_t passes, ideal;
  };
  const std::string fill = "mov.u32 %r22, 0;\nmov.u32 %r23, %r1;\n"
                           "L: mad.lo.s32 %r24, %r23, 4, %r21;\nst.shared.u32 [%r24], 0;\nadd.s32 %r23, %r23, 32;\n"
                           "setp.lt.u32 %p1, %r23, 2048;\n@%p1 bra L;\nbar.sync 0;\n";
  for (const Case &c : {Case{"1", 16, 1, 1}, Case{"2", 16, 2, 2}, Case{"4", 16, 4, 4}, Case{"4", 128, 32, 4},
                        Case{"4", 144, 4, 4}, Case{"4", 64, 16, 4}, Case{"4", 32, 8, 4}, Case{"2", 64, 8, 2}}) {
    INFO("x" << c.count << " every " << c.pitch);
    const std::string words = *c.count == '1' ? "{%r5}" : *c.count == '2' ? "{%r5, %r6}" : "{%r5, %r6, %r7, %r8}";
    const std::string form = std::string("matrix.sync.aligned.m8n8.x") + c.count + ".shared.b16 ";
    const Counters before = count(fill, c.pitch), load = count(fill + "ld" + form + words + ", [%r20];", c.pitch),
                   store = count(fill + "st" + form + "[%r20], " + words + ";", c.pitch);
    CHECK(load.sharedLoadRequests == 1);
    CHECK(load.sharedLoadWavefronts == c.passes);
    CHECK(load.sharedLoadIdealWavefronts == c.ideal);
    CHECK(store.sharedStoreRequests - before.sharedStoreRequests == 1);
    CHECK(store.sharedStoreWavefronts - before.sharedStoreWavefronts == c.passes);
    CHECK(store.sharedStoreIdealWavefronts - before.sharedStoreIdealWavefronts == c.ideal);
  }
}

TEST_CASE("counters: products, loads and stores of matrices are classes of their own") {
  const Counters counters =
      count("st.shared.v4.u32 [%r20], {%r1, %r1, %r1, %r1};\nbar.sync 0;\n"
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r20];\nmov.f32 %f1, 0f00000000;\n"
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f2, %f3, %f4, %f5}, {%r5, %r6, %r7, %r8}, "
            "{%r5, %r6}, {%f1, %f1, %f1, %f1};\n"
            "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f2, %f3, %f4, %f5}, {%r5, %r6}, {%r5}, "
            "{%f1, %f1, %f1, %f1};\nbar.sync 0;\n"
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r20], {%r5, %r6, %r7, %r8};",
            16);
  auto of = [&](llvm::StringRef name) {
    auto names = instructionClassNames();
    size_t i = size_t(std::find(names.begin(), names.end(), name) - names.begin());
    REQUIRE(i < names.size());
    return counters.warpInstructions[i];
  };
  CHECK(of("mma") == 2);
  CHECK(of("ldmatrix") == 1);
  CHECK(of("stmatrix") == 1);
}

TEST_CASE("counters: warps, blocks, barriers, branches, instructions") {
  Counters counters = count("setp.lt.u32 %p1, %r1, 40;\n@%p1 bra L;\nadd.f32 %f1, %f2, %f3;\nL: bar.sync 0;\n"
                            "shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;\nred.global.add.u32 [%d1], 1;",
                            4, {3, 1, 1}, {64, 1, 1});
  CHECK(counters.blocks == 3);
  CHECK(counters.warps == 6);
  CHECK(counters.barriers == 3);
  CHECK(counters.branches == 6);
  CHECK(counters.divergentBranches == 3); // the second warp of each block
  CHECK(counters.shuffles == 6);
  CHECK(counters.atomics == 192);
  auto of = [&](llvm::StringRef name) {
    auto names = instructionClassNames();
    size_t i = size_t(std::find(names.begin(), names.end(), name) - names.begin());
    REQUIRE(i < names.size());
    return std::pair(counters.warpInstructions[i], counters.threadInstructions[i]);
  };
  CHECK(of("f32") == std::pair<uint64_t, uint64_t>(3, 3 * 24));
  CHECK(of("cross-lane") == std::pair<uint64_t, uint64_t>(6, 192));
  CHECK(of("compare") == std::pair<uint64_t, uint64_t>(6, 192));
}

TEST_CASE("counters: both prints") {
  Counters counters = count("st.shared.u32 [%r20], %r1;\nst.global.u32 [%d10], %r1;", 8);
  std::string table, json;
  llvm::raw_string_ostream tableStream(table), jsonStream(json);
  printTable(counters, tableStream);
  printJson(counters, jsonStream);
  auto value = llvm::json::parse(json);
  REQUIRE(bool(value));
  const llvm::json::Object &object = *value->getAsObject();
  CHECK(object.getInteger("global_store_sectors") == 8);
  CHECK(object.getInteger("shared_store_passes") == 2);
  CHECK(object.getInteger("bank_conflicts") == 1);
  size_t at = table.find("global store, sectors");
  REQUIRE(at != std::string::npos);
  std::string row = table.substr(at, table.find('\n', at) - at);
  CHECK(row.find("8.00") != std::string::npos);
  CHECK(row.find("4.00") != std::string::npos);
}
