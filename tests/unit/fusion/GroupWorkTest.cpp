#include "hloc/fusion/GroupWork.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloModule.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// All instructions of the entry but its parameters as one kernel, by its hero or as a loop. `body` ends with the root
/// `r`.
GroupWork workOf(const std::string &body, bool asksHero = false) {
  test::Parsed parsed("HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
                      "ENTRY e {\n" +
                      body + "\n}\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  const HloComputation &entry = *parsed.module->entry();
  llvm::SmallVector<const HloInstruction *> members, roots;
  for (const HloInstruction *instr : entry.instructions())
    if (instr->opcode() != Opcode::Parameter && instr->opcode() != Opcode::Tuple)
      members.push_back(instr);
  if (entry.root()->opcode() == Opcode::Tuple)
    llvm::append_range(roots, entry.root()->operands());
  else
    roots.push_back(entry.root());
  PlanSummary summary;
  if (asksHero) {
    DiagnosticEngine diagnostics;
    FusionGraph graph = *FusionGraph::build(entry, diagnostics);
    summary = summarize(graph, *planFusion(graph, {}, *findTarget("sm_90"), diagnostics));
  }
  return GroupCounter(entry.instructions().size()).count(members, roots, summary);
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
  CHECK(work.longestChain(4096).waits == 0);
}

TEST_CASE("lanes that are apart read sectors of their own", "[search]") {
  // A transpose as a loop: neighbours of the result are 64 elements apart, so a sector has one of them.
  CHECK(workOf("p = f32[64,64] parameter(0)  ROOT r = f32[64,64] transpose(p), dimensions={1,0}").sectors ==
        64 * 64 + 64 * 64 * 4 / 32);
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
}

TEST_CASE("a hero's dot reads its factors once a tile", "[search]") {
  GroupWork loop = workOf("p = f32[512,512] parameter(0)  q = f32[512,512] parameter(1)\n"
                          "ROOT r = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  GroupWork tiles = workOf("p = f32[512,512] parameter(0)  q = f32[512,512] parameter(1)\n"
                           "ROOT r = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                           /*asksHero=*/true);
  CHECK(tiles.sectors < loop.sectors / 10);
  CHECK(tiles.sectors > 3 * 512 * 512 * 4 / 32);
  CHECK(tiles.longestChain(4096).waits == 0);
}

TEST_CASE("what is read at points of its own is computed for each of them", "[search]") {
  // The sum of a row for each of its elements, in a loop of 64 steps.
  const std::string body = "p = f32[64,64] parameter(0)  z = f32[] constant(0)\n"
                           "s = f32[64] reduce(p, z), dimensions={1}, to_apply=add\n"
                           "b = f32[64,64] broadcast(s), dimensions={0}  ROOT r = f32[64,64] add(p, b)";
  CHECK(workOf(body).work > 64 * 64 * 64 / 4);
  CHECK(workOf(body, /*asksHero=*/true).work < 4 * 64 * 64);
}

TEST_CASE("few long loops are as long beside many short ones", "[search]") {
  // 64 sums of 4096 terms, one thread each, beside an array that has all threads: rounds of 32 loads.
  GroupWork work = workOf("p = f32[4096,64] parameter(0)  q = f32[65536] parameter(1)  z = f32[] constant(0)\n"
                          "s = f32[64] reduce(p, z), dimensions={0}, to_apply=add  n = f32[65536] negate(q)\n"
                          "ROOT r = (f32[64], f32[65536]) tuple(s, n)");
  CHECK(work.longestChain(65536).waits >= 4096 / 32);
  CHECK(work.longestChain(65536).work >= 4096);
}
