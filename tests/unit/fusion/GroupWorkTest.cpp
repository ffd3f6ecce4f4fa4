#include "hloc/fusion/GroupWork.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloModule.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

#include "fmt/format.h"

#include <memory>

using namespace hloc;

namespace {

struct Entry {
  test::Parsed parsed;
  llvm::SmallVector<const HloInstruction *> members, roots;
  HloComputation &computation() { return *parsed.module->entry(); }
  const HloInstruction *find(llvm::StringRef name) {
    return *llvm::find_if(members, [&](auto *member) { return member->name() == name; });
  }
};

/// All instructions but parameters, as one kernel. `body` ends with the root `r`.
std::unique_ptr<Entry> parse(const std::string &body) {
  auto entry = std::make_unique<Entry>(
      Entry{test::Parsed(
                "HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
                "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = pred[] compare(x, y), direction=LT }\n"
                "ENTRY e {\n" +
                body + "\n}\n"),
            {},
            {}});
  INFO(entry->parsed.firstReport());
  REQUIRE(entry->parsed.module);
  for (const HloInstruction *instr : entry->computation().instructions())
    if (instr->opcode() != Opcode::Parameter && instr->opcode() != Opcode::Tuple)
      entry->members.push_back(instr);
  const HloInstruction *root = entry->computation().root();
  if (root->opcode() == Opcode::Tuple)
    llvm::append_range(entry->roots, root->operands());
  else
    entry->roots.push_back(root);
  return entry;
}

GroupWork workOf(Entry &entry, const PlanSummary &plan) {
  return GroupCounter(entry.computation().instructions().size()).count(entry.members, entry.roots, plan);
}

/// By its hero or as a loop.
GroupWork workOf(const std::string &body, bool asksHero = false) {
  std::unique_ptr<Entry> entry = parse(body);
  PlanSummary summary;
  if (asksHero) {
    DiagnosticEngine diagnostics;
    FusionGraph graph = *FusionGraph::build(entry->computation(), diagnostics);
    summary = summarize(graph, *planFusion(graph, {}, *findTarget("sm_90"), diagnostics));
  }
  return workOf(*entry, summary);
}

/// Of a kernel of `hero`, which makes `kept`.
GroupWork workOf(const std::string &body, Hero hero, std::initializer_list<const char *> kept,
                 PlanSummary summary = {}) {
  std::unique_ptr<Entry> entry = parse(body);
  summary.hero = hero;
  for (const char *name : kept)
    summary.kept.push_back(entry->find(name));
  return workOf(*entry, summary);
}

} // namespace

TEST_CASE("elementwise work reads and writes each sector once", "[search]") {
  GroupWork work = workOf("p = f32[4096] parameter(0)  q = f32[4096] parameter(1)  s = f32[4096] add(p, q)\n"
                          "ROOT r = f32[4096] multiply(s, p)");
  CHECK(work.sectors == 3 * 4096 * 4 / 32);
  CHECK(work.memoryBytes == 3 * 4096 * 4);
  CHECK(work.buffers == 3);
  CHECK(work.streams == 3);
  CHECK(work.work == 2 * 4096);
  CHECK(work.chain.memoryRoundTrips == 1);
}

TEST_CASE("lanes that are apart read sectors of their own", "[search]") {
  // A transpose as a loop: neighbours of the result are 64 elements apart; a sector has two of them, of two rows, of
  // each of which 16 lanes have four.
  CHECK(workOf("p = f32[64,64] parameter(0)  ROOT r = f32[64,64] transpose(p), dimensions={1,0}").sectors ==
        64 * 64 / 2 + 64 * 64 * 4 / 32);
  // Every other element: all sectors of what they lie in.
  CHECK(workOf("p = f32[8192] parameter(0)  ROOT r = f32[4096] slice(p), slice={[0:8192:2]}").sectors ==
        8192 * 4 / 32 + 4096 * 4 / 32);
  // A row for all: one sector for each 32 lanes that read 4 neighbours each.
  CHECK(workOf("p = f32[64] parameter(0)  ROOT r = f32[64,4096] broadcast(p), dimensions={0}").sectors ==
        64 * 4096 / 4 / 32 + 64 * 4096 * 4 / 32);
}

TEST_CASE("a dot as a loop reads both factors in each step", "[search]") {
  // Of the left one all lanes read the same element, four terms at once; of the right one neighbours.
  GroupWork work = workOf("p = f32[128,32] parameter(0)  q = f32[32,128] parameter(1)\n"
                          "ROOT r = f32[128,128] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  const double steps = 128.0 * 128 * 32;
  CHECK(work.sectors == steps / 4 / 32 + steps * 4 / 32 + 128 * 128 * 4 / 32);
  // The right one transposed: lanes are 32 elements apart, and load four terms at once, unless rows begin anywhere.
  work = workOf("p = f32[128,32] parameter(0)  q = f32[128,32] parameter(1)\n"
                "ROOT r = f32[128,128] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}");
  CHECK(work.sectors == steps / 4 / 32 + steps / 4 + 128 * 128 * 4 / 32);
  work = workOf("p = f32[128,33] parameter(0)  q = f32[128,33] parameter(1)\n"
                "ROOT r = f32[128,128] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}");
  const double odd = 128.0 * 128 * 33;
  CHECK(work.sectors == odd / 32 + odd + 128 * 128 * 4 / 32);
  // Features of a window's elements, four at once.
  work = workOf("p = f32[2,24,24,4] parameter(0)  w = f32[4,4,8,4] parameter(1)\n"
                "ROOT r = f32[2,12,12,8] convolution(p, w), window={size=4x4 stride=2x2 pad=1_1x1_1}, "
                "dim_labels=b01f_01oi->b01f");
  const double terms = 2.0 * 12 * 12 * 8 * 64;
  CHECK(work.sectors < (terms / 4 / 32 + 2 * terms / 32) * 4);
}

TEST_CASE("elements of a window that may lie in the padding are tested for", "[search]") {
  auto work = [](const char *window) {
    return workOf("p = f32[64,32] parameter(0)  z = f32[] constant(0)\n"
                  "ROOT r = f32[64,32] reduce-window(p, z), window={" +
                  std::string(window) + "}, to_apply=add")
               .work /
           (64 * 32);
  };
  CHECK(work("size=1x5 pad=0_0x4_0") == Approx(5 + 4 * 4).margin(0.2));
  CHECK(work("size=3x3 pad=1_1x1_1") == Approx(9 + 4 * 8).margin(0.2)); // all but the middle
}

TEST_CASE("what loops compute for one element no neighbour shares", "[search]") {
  // The row's sum is read by all of its elements: of four elements a thread once, if threads compute four.
  auto broadcast = [](int terms) {
    return workOf(fmt::format("p = f32[64,{0}] parameter(0)  z = f32[] constant(0)\n"
                              "s = f32[64,1] reduce-window(p, z), window={{size=1x{0}}}, to_apply=add\n"
                              "t = f32[64] reshape(s)  ROOT r = f32[64,256] broadcast(t), dimensions={{0}}",
                              terms));
  };
  CHECK_FALSE(broadcast(16).isOneByOne);
  CHECK(broadcast(17).isOneByOne);
  CHECK(broadcast(17).sectors / broadcast(16).sectors > 2);
}

TEST_CASE("a hero's dot reads its factors once a tile", "[search]") {
  GroupWork loop = workOf("p = f32[512,512] parameter(0)  q = f32[512,512] parameter(1)\n"
                          "ROOT r = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  GroupWork tiles = workOf("p = f32[512,512] parameter(0)  q = f32[512,512] parameter(1)\n"
                           "ROOT r = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                           /*asksHero=*/true);
  CHECK(tiles.sectors < loop.sectors / 10);
  CHECK(tiles.sectors > 3 * 512 * 512 * 4 / 32);
  CHECK(tiles.chain.memoryRoundTrips == 0); // all of them are the plan's
}

TEST_CASE("what is read at points of its own is computed for each of them", "[search]") {
  // The sum of a row for each of its elements, in a loop of 64 steps.
  const std::string body = "p = f32[64,64] parameter(0)  z = f32[] constant(0)\n"
                           "s = f32[64] reduce(p, z), dimensions={1}, to_apply=add\n"
                           "b = f32[64,64] broadcast(s), dimensions={0}  ROOT r = f32[64,64] add(p, b)";
  CHECK(workOf(body).work > 64 * 64 * 64 / 4);
  CHECK(workOf(body, /*asksHero=*/true).work < 4 * 64 * 64);
}

TEST_CASE("broadcasts of values of different types read the same element", "[search]") {
  const GroupWork work =
      workOf("p = f32[100] parameter(0) t = f32[100] tanh(p) z = f32[100] broadcast(f32[] constant(0)), dimensions={}\n"
             "l = pred[100] compare(t, z), direction=LT bl = pred[100,10] broadcast(l), dimensions={0}\n"
             "bt = f32[100,10] broadcast(t), dimensions={0} ROOT r = f32[100,10] select(bl, bt, bt)");
  const GroupWork other =
      workOf("p = f32[100] parameter(0) t = f32[100] tanh(p) z = f32[100] broadcast(f32[] constant(0)), dimensions={}\n"
             "l = f32[100] add(t, z) bl = f32[100,10] broadcast(l), dimensions={0}\n"
             "bt = f32[100,10] broadcast(t), dimensions={0} ROOT r = f32[100,10] add(bl, bt)");
  CHECK(work.codeSize == other.codeSize);
}

TEST_CASE("what is the same for all terms of a loop is computed and read before it", "[search]") {
  auto scaled = [](const char *dims) {
    return workOf(fmt::format("p = f32[64,256,32] parameter(0)  s = f32[{}] parameter(1)  z = f32[] constant(0)\n"
                              "e = f32[{}] exponential(s)  b = f32[64,256,32] broadcast(e), dimensions={{{}}}\n"
                              "m = f32[64,256,32] multiply(p, b)\n"
                              "ROOT r = f32[64,32] reduce(m, z), dimensions={{1}}, to_apply=add",
                              *dims == '1' ? "256" : "64,32", *dims == '1' ? "256" : "64,32", dims));
  };
  const GroupWork kept = scaled("0,2"), summed = scaled("1");
  CHECK(kept.work < 64 * 32 * (256 * 3 + 20));
  CHECK(summed.work > 64 * 32 * 256 * 3);
  CHECK(kept.sectors == (64 * 256 * 32 + 3 * 64 * 32) * 4 / 32 - 64 * 32 * 4 / 32);
}

TEST_CASE("what is the same for a thread's neighbours is computed once", "[search]") {
  // Blocks of random bits: one for four elements, or for two.
  auto work = [](int bits) {
    return workOf(fmt::format("i = u32[1024] iota(), iota_dimension=0  c = u32[] constant({})\n"
                              "b = u32[1024] broadcast(c), dimensions={{}}  s = u32[1024] shift-right-logical(i, b)\n"
                              "d = u32[1024] multiply(s, s)  e = u32[1024] xor(d, s)  f = u32[1024] multiply(e, e)\n"
                              "ROOT r = u32[1024] add(f, i)",
                              bits))
        .work;
  };
  CHECK(work(1) - work(2) == 4 * 1024 * (1 - 1 / 4.0));
}

TEST_CASE("where elements come from is tested once for terms that come from one operand", "[search]") {
  auto work = [](int dim) {
    return workOf(fmt::format("p = f32[64,256] parameter(0)  q = f32[64,256] parameter(1)  z = f32[] constant(0)\n"
                              "c = f32[{}] concatenate(p, q), dimensions={{{}}}\n"
                              "ROOT r = f32[{}] reduce(c, z), dimensions={{1}}, to_apply=add",
                              dim ? "64,512" : "128,256", dim, dim ? "64" : "128"))
        .work;
  };
  CHECK(work(0) < 64 * 512 * 2);
  CHECK(work(1) > 64 * 512 * 4);
}

TEST_CASE("what is read at many different points counts as often, in code a dozen times", "[search]") {
  // 20 slices of one array, each element of which is computed for each.
  std::string body = "p = f32[65536] parameter(0)  e = f32[65536] negate(p)\n", last;
  for (int i = 0; i < 20; ++i) {
    body += fmt::format("part{0} = f32[1024] slice(e), slice={{[{1}:{2}]}}\n", i, i * 1024, i * 1024 + 1024);
    body += i ? fmt::format("sum{0} = f32[1024] add({1}, part{0})\n", i, last) : "";
    last = i ? fmt::format("sum{}", i) : "part0";
  }
  GroupWork work = workOf(body + "ROOT r = f32[1024] negate(" + last + ")");
  CHECK(work.work == 20 * 1024 * (1 + 0.25) + 19 * 1024 + 1024);
  CHECK(work.codeSize == 12 + 20 + 19 + 1);
}

TEST_CASE("of an array that little is read of, only that is moved", "[search]") {
  GroupWork work = workOf("t = f32[65536,64] parameter(0)  i = s32[128] parameter(1)\n"
                          "ROOT r = f32[128,64] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, "
                          "start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}");
  CHECK(work.memoryBytes == 128 * 64 * 4 + 128 * 4 + 128 * 64 * 4);
  CHECK(work.chain.memoryRoundTrips == 2); // where from, comes from memory too
  // Single elements: a sector each.
  work = workOf("t = f32[65536] parameter(0)  i = s32[4096] parameter(1)\n"
                "ROOT r = f32[4096] gather(t, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
                "index_vector_dim=1, slice_sizes={1}");
  CHECK(work.sectors == 4096 + 4096 * 4 / 32 + 4096 * 4 / 32);
  // Lanes that read anywhere in a row lie in that row: of 16 rows of 16 bytes, each element by itself. (All indices are
  // one sector, of which four are loaded at once.)
  work = workOf("t = f32[512,4] parameter(0)  i = s32[8] parameter(1)\n"
                "ROOT r = f32[512,8] gather(t, i), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, "
                "index_vector_dim=1, slice_sizes={512,1}");
  CHECK(work.sectors == 512 * 8 * 4 / 32 + 512 * 8 / 32 * 8 + 512 * 8 / 4 / 32);
}

TEST_CASE("a warp reads no more sectors of an array than it has", "[search]") {
  // All lanes read somewhere in two sectors.
  GroupWork work = workOf("t = f32[16] parameter(0)  i = s32[4096] parameter(1)\n"
                          "ROOT r = f32[4096] gather(t, i), offset_dims={}, collapsed_slice_dims={0}, "
                          "start_index_map={0}, index_vector_dim=1, slice_sizes={1}");
  CHECK(work.sectors <= 2 * 4096 / 32 + 2 * 4096 * 4 / 32);
}

TEST_CASE("half bytes lie in sectors too", "[search]") {
  // 64 of them in a sector; a transpose as a loop touches one for each two.
  GroupWork work = workOf("p = s4[64,64] parameter(0)  ROOT r = s4[64,64] transpose(p), dimensions={1,0}");
  CHECK(work.sectors == 64 * 64 / 2 + 64 * 64 / 64);
}

TEST_CASE("lanes behind the end of a short dimension go on beside where they began", "[search]") {
  GroupWork work = workOf("p = f32[2,4096] parameter(0)  ROOT r = f32[4096,2] transpose(p), dimensions={1,0}");
  CHECK(work.sectors == 2 * (2 * 4096 * 4 / 32));
  // What they go on to may be the same again: of eight columns, four rows' lanes.
  work = workOf("p = f32[8,64] parameter(0)  s = f32[8] slice(p), slice={[0:8], [0:1]}\n"
                "ROOT r = f32[4096,8] broadcast(s), dimensions={1}");
  CHECK(work.sectors == 4096 * 8 * 4 / 32 + 8 * 4096 / 4 / 32 * 8);
}

TEST_CASE("passes read operands again: of rows what caches still have", "[search]") {
  const std::string body = "p = f32[512,1024] parameter(0)  z = f32[] constant(0)\n"
                           "ROOT r = f32[512] reduce(p, z), dimensions={1}, to_apply=add";
  const double input = 512 * 1024 * 4, output = 512 * 4;
  PlanSummary plan;
  plan.passes = 3;
  GroupWork rows = workOf(body, Hero::Rows, {"r"}, plan), columns = workOf(body, Hero::Columns, {"r"}, plan);
  CHECK(rows.memoryBytes == input + output);
  CHECK(columns.memoryBytes == 3 * input + output);
  CHECK(rows.sectors == (3 * input + output) / 32);
  CHECK(columns.sectors == rows.sectors);
  // A sort writes what it reads in each.
  GroupWork sort = workOf("p = f32[65536] parameter(0)\nROOT r = f32[65536] sort(p), dimensions={0}, to_apply=less",
                          Hero::Sort, {"r"}, plan);
  CHECK(sort.memoryBytes == 3 * 2 * 65536 * 4);
}

TEST_CASE("of what is updated in place only what changes is moved and computed", "[search]") {
  const std::string body = "p = f32[65536] parameter(0)  u = f32[1024] parameter(1)  i = s32[] parameter(2)\n"
                           "ROOT r = f32[65536] dynamic-update-slice(p, u, i)";
  PlanSummary plan;
  plan.inPlace = true;
  GroupWork inPlace = workOf(body, Hero::DynamicUpdateSlice, {"r"}, plan),
            copied = workOf(body, Hero::DynamicUpdateSlice, {"r"});
  CHECK(inPlace.memoryBytes == 2 * 1024 * 4 + 4);
  CHECK(copied.memoryBytes >= 2 * 65536 * 4);
  CHECK(inPlace.work == 1024 * 4);
  CHECK(copied.work == 65536 * 4);
}

TEST_CASE("what a hero counts itself is not counted again", "[search]") {
  const char *dot = "p = f32[64,64] parameter(0)  q = f32[64,64] parameter(1)\n"
                    "ROOT r = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  // Which operand an element comes from blocks decide, not elements.
  const std::string halves = "p = f32[4096] parameter(0)  q = f32[4096] parameter(1)\n"
                             "ROOT r = f32[8192] concatenate(p, q), dimensions={0}";
  CHECK(workOf(halves, Hero::Concatenate, {"r"}).work == 8192);
  CHECK(workOf(halves).work == 8192 * 2 * 2);
  // Products of a dot are in its tiles' counts (PlanCounts).
  CHECK(workOf(dot, Hero::Contraction, {"r"}).work == 0);
  CHECK(workOf(dot).work == 64 * 64 * 64 * 3);
}
