// Which instructions become a kernel: small graphs, the groups that are right for an H100, and why.

#include "hloc/search/FusionPolicy.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloModule.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

const char *const reducers =
    "HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
    "max { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] maximum(x, y) }\n";

/// "a b: loop; c: rows": members of each kernel that compute something, by name, and the hero.
std::string groupsOf(const std::string &body, const char *target = "sm_90") {
  test::Parsed parsed(std::string(reducers) + "ENTRY e {\n" + body + "\n}\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  FusionExplanation explanation;
  GroupedByCost found = groupByCost(*parsed.module->entry(), "e", *findTarget(target), &explanation);
  REQUIRE(found.groups.size() == explanation.kernels.size());
  std::string text;
  for (size_t i = 0; i < found.groups.size(); ++i) {
    text += text.empty() ? "" : "; ";
    for (const HloInstruction *member : found.groups[i].members)
      if (member->numOperands() > 0 && member->opcode() != Opcode::Broadcast)
        text += member->name().str() + " ";
    text.back() = ':';
    text += " " + explanation.kernels[i].hero.str();
  }
  return text;
}

struct Graph {
  const char *why, *body, *groups;
};

const Graph graphs[] = {
    {"what is read by one reader alone is computed where it is read",
     "p = f32[1048576] parameter(0)  n = f32[1048576] negate(p)  ROOT r = f32[1048576] exponential(n)", "n r: loop"},
    {"two readers of one array are one kernel of two results: it is read once",
     "p = f32[1048576] parameter(0)  a = f32[1048576] negate(p)  b = f32[1048576] exponential(p)\n"
     "ROOT r = (f32[1048576], f32[1048576]) tuple(a, b)",
     "a b: loop"},
    {"a softmax is read and written once, by rows",
     "p = f32[4096,1024] parameter(0)  z = f32[] constant(0)  l = f32[] constant(-inf)\n"
     "m = f32[4096] reduce(p, l), dimensions={1}, to_apply=max  mb = f32[4096,1024] broadcast(m), dimensions={0}\n"
     "s = f32[4096,1024] subtract(p, mb)  e = f32[4096,1024] exponential(s)\n"
     "t = f32[4096] reduce(e, z), dimensions={1}, to_apply=add  tb = f32[4096,1024] broadcast(t), dimensions={0}\n"
     "ROOT r = f32[4096,1024] divide(e, tb)",
     "m s e t r: rows"},
    {"a mean's epilogue is part of the reduction",
     "p = f32[4096,1024] parameter(0)  z = f32[] constant(0)  k = f32[] constant(1024)\n"
     "s = f32[4096] reduce(p, z), dimensions={1}, to_apply=add  kb = f32[4096] broadcast(k), dimensions={}\n"
     "ROOT r = f32[4096] divide(s, kb)",
     "s r: row-reduction"},
    {"a dot's operand and result are computed in its kernel",
     "p = f32[512,512] parameter(0)  q = f32[512,512] parameter(1)  n = f32[512,512] negate(p)\n"
     "d = f32[512,512] dot(n, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "ROOT r = f32[512,512] tanh(d)",
     "n d r: contraction"},
    {"scores are no part of the softmax: rows would compute each in a loop of one thread",
     "q = f32[1024,64] parameter(0)  k = f32[1024,64] parameter(1)  z = f32[] constant(0)  l = f32[] constant(-inf)\n"
     "d = f32[1024,1024] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
     "m = f32[1024] reduce(d, l), dimensions={1}, to_apply=max  mb = f32[1024,1024] broadcast(m), dimensions={0}\n"
     "s = f32[1024,1024] subtract(d, mb)  e = f32[1024,1024] exponential(s)\n"
     "t = f32[1024] reduce(e, z), dimensions={1}, to_apply=add  tb = f32[1024,1024] broadcast(t), dimensions={0}\n"
     "ROOT r = f32[1024,1024] divide(e, tb)",
     "d: contraction; m s e t r: rows"},
    {"nor is the product of softmax and values: its operand would be computed again for each column",
     "p = f32[1024,1024] parameter(0)  v = f32[1024,64] parameter(1)  z = f32[] constant(0)\n"
     "e = f32[1024,1024] exponential(p)  t = f32[1024] reduce(e, z), dimensions={1}, to_apply=add\n"
     "tb = f32[1024,1024] broadcast(t), dimensions={0}  s = f32[1024,1024] divide(e, tb)\n"
     "ROOT r = f32[1024,64] dot(s, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "e t s: rows; r: contraction"},
    {"a gradient's dot does not become a loop for the update that reads it",
     "a = f32[1024,768] parameter(0)  b = f32[1024,768] parameter(1)  w = f32[768,768] parameter(2)\n"
     "k = f32[] constant(0.1)  kb = f32[768,768] broadcast(k), dimensions={}\n"
     "d = f32[768,768] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
     "s = f32[768,768] multiply(d, kb)  ROOT r = f32[768,768] subtract(w, s)",
     "d s r: contraction"},
    {"few long sums are not done by single threads of a large kernel",
     "g = f32[1024,768] parameter(0)  w = f32[768,3072] parameter(1)  b = f32[768] parameter(2)  z = f32[] "
     "constant(0)\n"
     "s = f32[768] reduce(g, z), dimensions={0}, to_apply=add  nb = f32[768] subtract(b, s)\n"
     "nw = f32[768,3072] negate(w)  ROOT r = (f32[768], f32[768,3072]) tuple(nb, nw)",
     "s nb: column-reduction; nw: loop"},
    {"small arrays that have nothing to do with each other are worth one launch",
     "p = f32[128] parameter(0)  q = f32[64] parameter(1)  a = f32[128] negate(p)  b = f32[64] negate(q)\n"
     "ROOT r = (f32[128], f32[64]) tuple(a, b)",
     "a b: loop"},
    {"large ones are not",
     "p = f32[16777216] parameter(0)  q = f32[8388608] parameter(1)  a = f32[16777216] negate(p)\n"
     "b = f32[8388608] negate(q)  ROOT r = (f32[16777216], f32[8388608]) tuple(a, b)",
     "a: loop; b: loop"},
    {"what hides behind memory is computed again rather than stored",
     "p = f32[2048] parameter(0)  z = f32[] constant(0)  e = f32[2048] tanh(p)\n"
     "eb = f32[2048,2048] broadcast(e), dimensions={1}  q = f32[2048,2048] parameter(1)\n"
     "ROOT r = f32[2048,2048] multiply(eb, q)",
     "e r: loop"},
    {"a transpose of what is computed is one kernel",
     "p = f32[2048,2048] parameter(0)  n = f32[2048,2048] negate(p)\n"
     "ROOT r = f32[2048,2048] transpose(n), dimensions={1,0}",
     "n r: transpose"},
    {"sums over rows and over columns of one array are one pass",
     "p = f32[512,1024] parameter(0)  z = f32[] constant(0)  e = f32[512,1024] exponential(p)\n"
     "a = f32[512] reduce(e, z), dimensions={1}, to_apply=add  b = f32[1024] reduce(e, z), dimensions={0}, "
     "to_apply=add\n"
     "ROOT r = (f32[512], f32[1024]) tuple(a, b)",
     "e a b: column-reduction"},
    {"a chain of two dots is two kernels",
     "a = f32[256,256] parameter(0)  b = f32[256,256] parameter(1)  c = f32[256,256] parameter(2)\n"
     "d = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "ROOT r = f32[256,256] dot(d, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "d: contraction; r: contraction"},
};

} // namespace

TEST_CASE("groups of small graphs", "[search]") {
  for (const Graph &graph : graphs) {
    INFO(graph.why);
    CHECK(groupsOf(graph.body) == graph.groups);
  }
}

TEST_CASE("kernels are those of the target", "[search]") {
  // An L4 has 58 multiprocessors, a T4 40: what is worth a kernel of its own differs; the results of both are complete.
  for (const char *target : {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"})
    CHECK(groupsOf("p = f32[4096,1024] parameter(0)  z = f32[] constant(0)\n"
                   "ROOT r = f32[4096] reduce(p, z), dimensions={1}, to_apply=add",
                   target) == "r: row-reduction");
}
