#include "hloc/fusion/GroupChain.h"

#include "hloc/fusion/GroupWork.h"
#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloModule.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

#include "fmt/format.h"

using namespace hloc;

namespace {

/// All instructions but parameters, as one kernel. `body` ends with the root `r`.
GroupChain chainOf(const std::string &body, const PlanSummary &plan = {}) {
  test::Parsed parsed(
      "HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
      "greater { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = pred[] compare(x, y), direction=GE }\n"
      "ENTRY e {\n" +
      body + "\n}\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  const HloComputation &entry = *parsed.module->entry();
  llvm::SmallVector<const HloInstruction *> members, roots = {entry.root()};
  for (const HloInstruction *instr : entry.instructions())
    if (instr->opcode() != Opcode::Parameter && instr->opcode() != Opcode::Tuple)
      members.push_back(instr);
  if (entry.root()->opcode() == Opcode::Tuple)
    roots.assign(entry.root()->operands().begin(), entry.root()->operands().end());
  return GroupCounter(entry.instructions().size()).count(members, roots, plan).chain;
}
double loadsOf(const std::string &body) { return chainOf(body).memoryRoundTrips; }

/// f32[64,terms] by f32[terms,64].
std::string dotOf(int terms) {
  return fmt::format("p = f32[64,{0}] parameter(0)  q = f32[{0},64] parameter(1)\n"
                     "ROOT r = f32[64,64] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                     terms);
}

/// f32[1,16,16,features] by windows of 3x3 or another size.
std::string convolutionOf(int features, const std::string &window, int size) {
  return fmt::format("p = f32[1,16,16,{0}] parameter(0)  w = f32[3,3,{0},8] parameter(1)\n"
                     "ROOT r = f32[1,{2},{2},8] convolution(p, w), window={{size=3x3{1}}}, dim_labels=b01f_01io->b01f",
                     features, window, size);
}

} // namespace

TEST_CASE("loads wait for those that say where", "[fusion]") {
  CHECK(loadsOf("p = f32[64] parameter(0)  q = f32[64] parameter(1)  ROOT r = f32[64] add(p, q)") == 1);
  const std::string gather = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
                             "slice_sizes={1}";
  CHECK(loadsOf("t = f32[64] parameter(0)  i = s32[32] parameter(1)  ROOT r = f32[32] gather(t, i), " + gather) == 2);
  CHECK(loadsOf("t = s32[64] parameter(0)  i = s32[32] parameter(1)  j = s32[32] gather(t, i), " + gather +
                "  u = f32[64] parameter(2)  ROOT r = f32[32] gather(u, j), " + gather) == 3);
  CHECK(loadsOf("i = f32[64] iota(), iota_dimension=0  ROOT r = f32[64] negate(i)") == 0);
}

TEST_CASE("the longest way from memory to a result counts, not all that is computed", "[fusion]") {
  const std::string deep = "p = f32[64] parameter(0)  a = f32[64] negate(p)  b = f32[64] abs(a)  c = f32[64] ceil(b)\n";
  const double three = chainOf(deep + "ROOT r = f32[64] floor(c)").instructions;
  CHECK(chainOf(deep + "d = f32[64] negate(p)  e = f32[64] abs(p)  f = f32[64] add(d, e)  g = f32[64] add(f, d)\n"
                       "ROOT r = f32[64] maximum(c, g)")
            .instructions == three);
}

TEST_CASE("loops of few cheap terms are straight code", "[fusion]") {
  CHECK(unrolled(1, {}).isGone);
  CHECK(unrolled(8, {200, 0, 200}).isGone); // up to 8 rounds, of 2,000 operations
  CHECK_FALSE(unrolled(8, {300, 0, 300}).isGone);
  CHECK(unrolled(64, {7, 2, 4}).isGone); // LLVM's threshold
  const UnrolledLoop dot = unrolled(80, {7, 2, 4});
  CHECK_FALSE(dot.isGone);
  CHECK(dot.rounds == 5);                      // 32 loads at once, of 16 terms
  CHECK(unrolled(127, {7, 2, 4}).rounds == 7); // what is left of the last is straight code
  CHECK(unrolled(100, {7, 2, 4, true}).rounds == 100);
}

TEST_CASE("loops around one that only LLVM unrolls are left to it", "[fusion]") {
  CHECK(unrolled(64, {7, 2, 4}).isLate);
  CHECK_FALSE(unrolled(8, {7, 2, 4}).isLate);
  CHECK(unrolled(6, {400, 60, 40, false, true}).isGone);
  CHECK(unrolled(6, {400, 60, 240, false, true}).rounds == 6); // without it, straight code
  // Sums over the rows and columns of nine images: the loop over images is late.
  auto images = [](const char *more) {
    return loadsOf(
        fmt::format("p = f32[9,6,6,4] parameter(0)  w = f32[9,6,6,8] parameter(1)\n"
                    "a = f32[9,6,6,4] parameter(2)  b = f32[9,6,6,4] parameter(3)  c = f32[9,6,6,4] parameter(4)\n"
                    "d = f32[9,6,6,4] parameter(5)  e = f32[9,6,6,4] add(p, a)  {}\n"
                    "ROOT r = f32[3,3,4,8] convolution(h, w), window={{size=6x6 pad=1_1x1_1}}, "
                    "dim_labels=f01b_i01o->01bf",
                    more));
  };
  CHECK(images("h = f32[9,6,6,4] add(e, b)") == 6 * 3); // the rows in the middle are alike
  CHECK(images("f = f32[9,6,6,4] add(e, b)  g = f32[9,6,6,4] add(f, c)  h = f32[9,6,6,4] add(g, d)") == 6 * 6);
  // A row of 30 is loaded as a vector, which is unrolled before: one of 34 is too long.
  auto nested = [](int terms) {
    return loadsOf(fmt::format("p = f32[64,6,{0}] parameter(0)  q = f32[64,6,{0}] parameter(1)  z = f32[] constant(0)\n"
                               "m = f32[64,6,{0}] multiply(p, q)\n"
                               "s = f32[64,6] reduce(m, z), dimensions={{2}}, to_apply=add\n"
                               "ROOT r = f32[64] reduce(s, z), dimensions={{1}}, to_apply=add",
                               terms));
  };
  CHECK(nested(30) == 1);
  CHECK(nested(34) == 6);
}

TEST_CASE("loops wait for memory once a round", "[fusion]") {
  CHECK(loadsOf(dotOf(64)) == 1);
  CHECK(loadsOf(dotOf(80)) == 5);
  CHECK(loadsOf(dotOf(128)) == 8);
  // 100 operations of code in a term: 4 at a time.
  const std::string powers = "p = f32[4096,64] parameter(0)  q = f32[4096,64] parameter(1)  z = f32[] constant(0)\n"
                             "e = f32[4096,64] power(p, q)\n"
                             "ROOT r = f32[4096] reduce(e, z), dimensions={1}, to_apply=add";
  CHECK(loadsOf(powers) == 64 / 2);
  // A loop in a loop of which one is unrolled, and of which none is.
  auto nested = [](int inner) {
    return loadsOf(fmt::format("p = f32[64,64,{0}] parameter(0)  z = f32[] constant(0)\n"
                               "s = f32[64,64] reduce(p, z), dimensions={{2}}, to_apply=add\n"
                               "ROOT r = f32[64] reduce(s, z), dimensions={{1}}, to_apply=add",
                               inner));
  };
  CHECK(nested(8) == 64 / 8); // 16 loads of half of a term each, together
  CHECK(nested(1024) == 64 * 32);
}

TEST_CASE("rounds of a reduction are one behind the other where there is much to do in each", "[fusion]") {
  auto trips = [](const char *function) {
    test::Parsed parsed(fmt::format("HloModule m\nadd {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] "
                                    "add(x, y) }}\nENTRY e {{ p = f32[64,512] parameter(0)  z = f32[] constant(0)\n"
                                    "a = f32[64,512] {0}(p)  b = f32[64,512] {0}(a)  c = f32[64,512] {0}(b)\n"
                                    "ROOT r = f32[64] reduce(c, z), dimensions={{1}}, to_apply=add }}",
                                    function));
    REQUIRE(parsed.module);
    const HloComputation &entry = *parsed.module->entry();
    llvm::SmallVector<const HloInstruction *> members;
    for (const HloInstruction *instr : entry.instructions())
      if (instr->opcode() != Opcode::Parameter)
        members.push_back(instr);
    PlanSummary plan;
    plan.hero = Hero::RowReduction;
    plan.kept = {entry.root()};
    plan.counts.memoryRoundTrips = 2;
    plan.counts.rounds = 16;
    plan.counts.elementsOfRound = 4;
    const GroupWork work = GroupCounter(entry.instructions().size()).count(members, {entry.root()}, plan);
    return countsOf(work, plan).memoryRoundTrips;
  };
  CHECK(trips("negate") == 2);
  CHECK(trips("sine") >= 15);
}

TEST_CASE("what is the same for all terms is loaded before them", "[fusion]") {
  auto scaled = [](const char *dims) {
    return loadsOf(fmt::format("p = f32[64,48] parameter(0)  q = s8[48,64] parameter(1)  s = f32[{}] parameter(2)\n"
                               "c = f32[48,64] convert(q)  b = f32[48,64] broadcast(s), dimensions={{{}}}\n"
                               "m = f32[48,64] multiply(c, b)\n"
                               "ROOT r = f32[64,64] dot(p, m), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                               *dims == '0' ? 48 : 64, dims));
  };
  CHECK(scaled("1") == 1); // two loads a term
  CHECK(scaled("0") == 6); // three: 8 terms at once
}

TEST_CASE("loads behind branches wait one after the other", "[fusion]") {
  auto loads = [](int terms) {
    return loadsOf(
        fmt::format("p = f32[64,{0}] parameter(0)  s = f32[64,{0}] parameter(1)  q = f32[{1},64] parameter(2)\n"
                    "e = f32[64,{0}] exponential(p)  f = f32[64,{0}] cosine(s)\n"
                    "c = f32[64,{1}] concatenate(e, f), dimensions={{1}}\n"
                    "ROOT r = f32[64,64] dot(c, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                    terms / 2, terms));
  };
  CHECK(loads(8) == 1);       // of few terms it is known which way they go
  CHECK(loads(64) == 2 * 64); // of the other factor, too
  // Two of them after each other, and then what reads both; those with a load and little else are predicates.
  auto padded = [](const char *function) {
    return loadsOf(fmt::format("p = f32[60] parameter(0)  z = f32[] constant(0)\n"
                               "a = f32[60] {0}(p)  b = f32[64] pad(a, z), padding=4_0\n"
                               "c = f32[64] pad(a, z), padding=0_4  ROOT r = f32[64] add(b, c)",
                               function));
  };
  CHECK(padded("tanh") == 2);
  CHECK(padded("negate") == 1);
  // Of two halves lanes are in one, unless they lie along what is halved.
  auto halves = [](const char *first, const char *second, bool isAlongLanes = false) {
    return loadsOf(fmt::format("p = f32[32,64] parameter(0)  q = f32[64,32] parameter(1)  z = f32[] constant(0)\n"
                               "a = f32[32,64] tanh(p)  d = f32[64,32] tanh(q)\n"
                               "b = f32[64,64] pad({}, z), padding={}  c = f32[64,64] pad({}, z), padding={}\n"
                               "ROOT r = f32[64,64] add(b, c)",
                               isAlongLanes ? "d" : "a", first, isAlongLanes ? "d" : "a", second));
  };
  CHECK(halves("32_0x0_0", "0_32x0_0") == 1);
  CHECK(halves("31_1x0_0", "0_32x0_0") == 2);
  CHECK(halves("0_0x32_0", "0_0x0_32", true) == 2);
  // Where a window begins is not known, however few terms it has.
  CHECK(loadsOf("p = f32[60] parameter(0)  z = f32[] constant(0)  a = f32[60] tanh(p)\n"
                "b = f32[62] pad(a, z), padding=1_1\n"
                "ROOT r = f32[60] reduce-window(b, z), window={size=3}, to_apply=add") == 3);
}

TEST_CASE("windows that reach over the edge are tested where they do", "[fusion]") {
  CHECK(loadsOf(convolutionOf(4, "", 14)) == 1);
  CHECK(loadsOf(convolutionOf(4, " pad=1_1x1_1", 16)) == 9); // all but the middle; features together
  // Of vectors in both operands there are two loads a tap, which are under its predicate.
  CHECK(loadsOf("p = f32[1,16,16,4] parameter(0)  w = f32[3,3,8,4] parameter(1)\n"
                "ROOT r = f32[1,16,16,8] convolution(p, w), window={size=3x3 pad=1_1x1_1}, "
                "dim_labels=b01f_01oi->b01f") == 3);
  // Of eight by eight all rows have a first, a last, and what is between them, though only two rows are tested.
  CHECK(loadsOf("p = f32[2,8,8,4] parameter(0)  w = f32[2,8,8,16] parameter(1)\n"
                "ROOT r = f32[3,3,4,16] convolution(p, w), window={size=8x8 pad=1_1x1_1}, "
                "dim_labels=f01b_i01o->01bf") == 8 * 3);
}

TEST_CASE("outputs of different sizes follow each other", "[fusion]") {
  const std::string body = "p = f32[64] parameter(0)  q = f32[96] parameter(1)\n";
  CHECK(loadsOf(body + "a = f32[64] tanh(p)  b = f32[96] tanh(q)  ROOT r = (f32[64], f32[96]) tuple(a, b)") == 2);
  // What all of them load, too, is loaded once.
  CHECK(loadsOf(
            "p = f32[] parameter(0)  b = f32[64] broadcast(p), dimensions={}  c = f32[96] broadcast(p), dimensions={}\n"
            "a = f32[64] tanh(b)  d = f32[96] tanh(c)  ROOT r = (f32[64], f32[96]) tuple(a, d)") == 1);
  CHECK(loadsOf(body + "a = f32[64] negate(p)  b = f32[96] negate(q)  ROOT r = (f32[64], f32[96]) tuple(a, b)") == 1);
  CHECK(loadsOf("p = f32[64] parameter(0)  q = f32[64] parameter(1)  a = f32[64] tanh(p)  b = f32[64] tanh(q)\n"
                "ROOT r = (f32[64], f32[64]) tuple(a, b)") == 1);
}

TEST_CASE("whether an element was selected is tested in each window that it is in", "[fusion]") {
  auto scattered = [](const char *window, int size) {
    return chainOf(fmt::format("p = f32[64,64] parameter(0)  s = f32[{1},{1}] parameter(1)  z = f32[] constant(0)\n"
                               "ROOT r = f32[64,64] select-and-scatter(p, s, z), window={{{0}}}, select=greater, "
                               "scatter=add",
                               window, size));
  };
  // The source's element is loaded when the window's are known.
  CHECK(scattered("size=2x2 stride=2x2", 32).memoryRoundTrips == 2);
  CHECK(scattered("size=3x3 stride=2x2 pad=0_1x0_1", 32).memoryRoundTrips == 2 * 4);
}
