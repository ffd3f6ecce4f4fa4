// Which instructions become a kernel: small graphs, the groups that are right for an H100, and why.

#include "hloc/search/FusionPolicy.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloModule.h"
#include "search/FusionCost.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace hloc;

namespace {

const char *const reducers =
    "HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
    "max { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] maximum(x, y) }\n"
    "addb { x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT a = bf16[] add(x, y) }\n"
    "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = pred[] compare(x, y), direction=LT }\n";

/// "a b: loop; c: rows": members of each kernel that compute something, by name, and the hero.
std::string groupsOf(const HloComputation &computation, const char *target = "sm_90") {
  FusionExplanation explanation;
  GroupedByCost found = groupByCost(computation, "e", *findTarget(target), &explanation);
  REQUIRE(found.groups.size() == explanation.kernels.size());
  std::string text;
  for (size_t i = 0; i < found.groups.size(); ++i) {
    text += text.empty() ? "" : "; ";
    for (const HloInstruction *member : found.groups[i].members)
      if (member->numOperands() > 0 && member->opcode() != Opcode::Broadcast)
        text += member->name().str() + " ";
    if (text.ends_with(' '))
      text.back() = ':';
    text += " " + explanation.kernels[i].hero.str();
  }
  return text;
}

std::string groupsOf(const std::string &body, const char *target = "sm_90") {
  test::Parsed parsed(std::string(reducers) + "ENTRY e {\n" + body + "\n}\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  return groupsOf(*parsed.module->entry(), target);
}

struct Graph {
  const char *why, *body, *groups;
};

const Graph graphs[] = {
    {"short dots of few elements are one kernel, one of what another gives too",
     "p = f32[6,3] parameter(0)  q = f32[6,5] parameter(1)  k = f32[3,5] "
     "constant({{1,2,3,4,5},{6,7,8,9,1},{2,3,4,5,6}})\n"
     "a = f32[6,5] dot(p, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "b = f32[6,3] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
     "c = f32[6,6] dot(a, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
     "ROOT r = (f32[6,3], f32[6,6]) tuple(b, c)",
     "a b c: loop"},
    {"two dots of one array are one kernel, as long as no hero makes each of them faster",
     "p = f32[16,64] parameter(0)  q = f32[64,16] parameter(1)  k = f32[64,16] parameter(2)\n"
     "a = f32[16,16] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "b = f32[16,16] dot(p, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "ROOT r = (f32[16,16], f32[16,16]) tuple(a, b)",
     "a b: loop"},
    {"each round of a dot would compute a sum again: they are two kernels",
     "p = f32[24,32] parameter(0)  q = f32[32,12] parameter(1)\n"
     "a = f32[24,12] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}  e = f32[24,12] exponential(a)\n"
     "ROOT r = f32[24,24] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     "a e: loop; r: loop"},
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
    {"a dot's results are stored where a transpose puts them, if their neighbours stay neighbours",
     "a = bf16[8,512,256] parameter(0)  b = bf16[8,256,512] parameter(1)\n"
     "d = bf16[8,512,512] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}\n"
     "ROOT r = bf16[512,8,512] transpose(d), dimensions={1,0,2}",
     "d r: contraction"},
    {"and where those of the other side become neighbours, which are columns then",
     "a = bf16[8,512,256] parameter(0)  b = bf16[8,256,512] parameter(1)\n"
     "d = bf16[8,512,512] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}\n"
     "ROOT r = bf16[8,512,512] transpose(d), dimensions={0,2,1}",
     "d r: contraction"},
    {"and not where they are read both ways",
     "a = bf16[8,512,256] parameter(0)  b = bf16[8,256,512] parameter(1)\n"
     "d = bf16[8,512,512] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}\n"
     "t = bf16[8,512,512] transpose(d), dimensions={0,2,1}  ROOT r = bf16[8,512,512] add(d, t)",
     "d: contraction; t r: transpose"},
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
    {"dots of one operand are one kernel, with what is made of all of them",
     "x = bf16[512,256] parameter(0)  g = bf16[256,512] parameter(1)  u = bf16[256,512] parameter(2)\n"
     "a = bf16[512,512] dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "b = bf16[512,512] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "l = bf16[512,512] logistic(a)  m = bf16[512,512] multiply(a, l)  ROOT r = bf16[512,512] multiply(m, b)",
     "a b l m r: contraction"},
    {"also with another of a different width between them",
     "x = bf16[512,256] parameter(0)  k = bf16[256,128] parameter(1)  q = bf16[256,512] parameter(2)\n"
     "v = bf16[256,128] parameter(3)\n"
     "a = bf16[512,128] dot(x, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "b = bf16[512,512] dot(x, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "c = bf16[512,128] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "ROOT r = (bf16[512,128], bf16[512,512], bf16[512,128]) tuple(a, b, c)",
     "b: contraction; a c: contraction"},
    {"a chain of two dots is two kernels",
     "a = f32[256,256] parameter(0)  b = f32[256,256] parameter(1)  c = f32[256,256] parameter(2)\n"
     "d = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "ROOT r = f32[256,256] dot(d, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "d: contraction; r: contraction"},
    {"nor is a chain of two small ones one kernel, which would make the first again for each element of the second",
     "a = f32[24,24] parameter(0)  b = f32[24,24] parameter(1)  c = f32[24,24] parameter(2)\n"
     "d = f32[24,24] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "ROOT r = f32[24,24] dot(d, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "d: loop; r: loop"},
    {"of the smallest it is: a launch costs more than 64 terms of straight code",
     "a = f32[8,8] parameter(0)  b = f32[8,8] parameter(1)  c = f32[8,8] parameter(2)\n"
     "d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     "ROOT r = f32[8,8] dot(d, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "d r: loop"},
    {"a layer norm is one kernel, its mean and its variance of rows that are held",
     "p = f32[4096,768] parameter(0)  g = f32[768] parameter(1)  z = f32[] constant(0)  k = f32[] constant(0.0013)\n"
     "s = f32[4096] reduce(p, z), dimensions={1}, to_apply=add  kb = f32[4096] broadcast(k), dimensions={}\n"
     "m = f32[4096] multiply(s, kb)  mb = f32[4096,768] broadcast(m), dimensions={0}\n"
     "d = f32[4096,768] subtract(p, mb)  q = f32[4096,768] multiply(d, d)\n"
     "v = f32[4096] reduce(q, z), dimensions={1}, to_apply=add  w = f32[4096] multiply(v, kb)  i = f32[4096] rsqrt(w)\n"
     "ib = f32[4096,768] broadcast(i), dimensions={0}  n = f32[4096,768] multiply(d, ib)\n"
     "gb = f32[4096,768] broadcast(g), dimensions={1}  ROOT r = f32[4096,768] multiply(n, gb)",
     "s m d q v w i n r: rows"},
    {"batch statistics and what is made of them are two kernels: columns do not fit into a block",
     "p = f32[65536,64] parameter(0)  z = f32[] constant(0)  s = f32[64] reduce(p, z), dimensions={0}, to_apply=add\n"
     "sb = f32[65536,64] broadcast(s), dimensions={1}  ROOT r = f32[65536,64] subtract(p, sb)",
     "s: column-reduction; r: loop"},
    {"short columns do",
     "p = f32[128,4096] parameter(0)  z = f32[] constant(0)  s = f32[4096] reduce(p, z), dimensions={0}, to_apply=add\n"
     "sb = f32[128,4096] broadcast(s), dimensions={1}  ROOT r = f32[128,4096] subtract(p, sb)",
     "s r: columns"},
    {"an exponential is computed again for each row rather than stored",
     "p = f32[65536] parameter(0)  e = f32[65536] exponential(p)  c = bf16[65536] convert(e)\n"
     "ROOT r = bf16[64,65536] broadcast(c), dimensions={1}",
     "e c: loop"},
    {"a power is stored: 70 instructions for each row do not hide behind 2 bytes",
     "p = f32[65536] parameter(0)  x = f32[65536] parameter(1)  e = f32[65536] power(p, x)\n"
     "c = bf16[65536] convert(e)  ROOT r = bf16[64,65536] broadcast(c), dimensions={1}",
     "e c: loop;: loop"},
    {"a power for some rows is worth less than a launch",
     "p = f32[65536] parameter(0)  x = f32[65536] parameter(1)  e = f32[65536] power(p, x)\n"
     "c = bf16[65536] convert(e)  ROOT r = bf16[8,65536] broadcast(c), dimensions={1}",
     "e c: loop"},
    {"what is read once, across the order in memory, comes from caches where it is needed",
     "p = f32[2048,2048] parameter(0)  q = f32[2048,2048] parameter(1)\n"
     "t = f32[2048,2048] transpose(p), dimensions={1,0}  c = f32[4096,2048] concatenate(t, q), dimensions={0}\n"
     "ROOT r = f32[4096,2048] negate(c)",
     "t c r: concatenate"},
    {"rows that are looked up are part of what reads them",
     "t = f32[32000,768] parameter(0)  i = s32[4096,1] parameter(1)\n"
     "g = f32[4096,768] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=1, slice_sizes={1,768}\n"
     "ROOT r = f32[4096,768] tanh(g)",
     "g r: loop"},
    {"updates are computed where they are scattered",
     "t = f32[32000,768] parameter(0)  i = s32[4096,1] parameter(1)  u = f32[4096,768] parameter(2)\n"
     "n = f32[4096,768] negate(u)\n"
     "ROOT r = f32[32000,768] scatter(t, i, n), update_window_dims={1}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
     "n r: scatter"},
    {"what is scattered is not made and read in one kernel",
     "t = f32[32000,768] parameter(0)  i = s32[4096,1] parameter(1)  u = f32[4096,768] parameter(2)\n"
     "s = f32[32000,768] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n"
     "ROOT r = f32[32000,768] tanh(s)",
     "s: scatter; r: loop"},
    {"nor what is sorted",
     "p = f32[65536] parameter(0)  q = f32[65536] parameter(1)  n = f32[65536] negate(p)\n"
     "s = f32[65536] sort(n), dimensions={0}, to_apply=less  ROOT r = f32[65536] multiply(s, q)",
     "n s: sort; r: loop"},
    {"halves that are computed of other things are one kernel, each by blocks of its own",
     "p = f32[1048576] parameter(0)  q = f32[1048576] parameter(1)  a = f32[1048576] exponential(p)\n"
     "b = f32[1048576] negate(q)  c = f32[2097152] concatenate(a, b), dimensions={0}\n"
     "ROOT r = f32[2097152] tanh(c)",
     "a b c r: concatenate"},
    {"a convolution takes its bias and its relu along",
     "x = f32[8,32,32,64] parameter(0)  w = f32[3,3,64,64] parameter(1)  b = f32[64] parameter(2)  z = f32[] "
     "constant(0)\n"
     "c = f32[8,32,32,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n"
     "bb = f32[8,32,32,64] broadcast(b), dimensions={3}  s = f32[8,32,32,64] add(c, bb)\n"
     "zb = f32[8,32,32,64] broadcast(z), dimensions={}  ROOT r = f32[8,32,32,64] maximum(s, zb)",
     "c s r: contraction"},
    {"a reduction of a transposed array goes along what lies beside each other, and stores little across",
     "p = f32[1024,512] parameter(0)  z = f32[] constant(0)  t = f32[512,1024] transpose(p), dimensions={1,0}\n"
     "ROOT r = f32[512] reduce(t, z), dimensions={1}, to_apply=add",
     "t r: row-reduction"},
    {"sums of rows are not computed in the order of what reads them transposed",
     "p = bf16[16,2048,8,128] parameter(0)  z = bf16[] constant(0)\n"
     "s = bf16[16,2048,8] reduce(p, z), dimensions={3}, to_apply=addb\n"
     "t = bf16[16,8,2048] transpose(s), dimensions={0,2,1}  ROOT r = f32[16,8,2048] convert(t)",
     "s: row-reduction; t r: transpose"},
    {"a dot whose factors come out of branches has tiles, not loops that wait for each term",
     "a = f32[44,128] parameter(0)  b = f32[44,128] parameter(1)  c = f32[11,128] parameter(2)\n"
     "d = f32[11,128] parameter(3)  l = f32[44,256] concatenate(a, b), dimensions={1}\n"
     "m = f32[11,256] concatenate(c, d), dimensions={1}\n"
     "ROOT r = f32[44,11] dot(l, m), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     "l m r: contraction"},
    {"a sum is stored rather than made again by each thread that reads it",
     "p = f32[65536] parameter(0)  q = f32[65536] parameter(1)  z = f32[] constant(0)\n"
     "s = f32[] reduce(p, z), dimensions={0}, to_apply=add  sb = f32[65536] broadcast(s), dimensions={}\n"
     "ROOT r = f32[65536] multiply(q, sb)",
     "s: row-reduction; r: loop"},
    {"rows whose result is read transposed are not one kernel: the transpose is better off with what is computed last",
     "p = f32[4096,1024] parameter(0)  z = f32[] constant(0)\n"
     "s = f32[4096] reduce(p, z), dimensions={1}, to_apply=add  b = f32[4096,1024] broadcast(s), dimensions={0}\n"
     "d = f32[4096,1024] divide(p, b)  ROOT r = f32[1024,4096] transpose(d), dimensions={1,0}",
     "s: row-reduction; d r: transpose"},
    {"tiny ones of any sizes are worth one launch",
     "p = f32[24000] parameter(0)  q = f32[20000] parameter(1)  a = f32[24000] negate(p)  b = f32[20000] negate(q)\n"
     "ROOT r = (f32[24000], f32[20000]) tuple(a, b)",
     "a b: loop"},
    {"larger ones are not",
     "p = f32[48000] parameter(0)  q = f32[40000] parameter(1)  a = f32[48000] negate(p)  b = f32[40000] negate(q)\n"
     "ROOT r = (f32[48000], f32[40000]) tuple(a, b)",
     "a: loop; b: loop"},
    {"unless they have one size",
     "p = f32[98304] parameter(0)  q = f32[98304] parameter(1)  a = f32[98304] negate(p)  b = f32[98304] negate(q)\n"
     "ROOT r = (f32[98304], f32[98304]) tuple(a, b)",
     "a b: loop"},
    {"and are not so large that a launch does not matter",
     "p = f32[196608] parameter(0)  q = f32[196608] parameter(1)  a = f32[196608] negate(p)\n"
     "b = f32[196608] negate(q)  ROOT r = (f32[196608], f32[196608]) tuple(a, b)",
     "a: loop; b: loop"},
    {"parts of one array are one kernel",
     "p = f32[4096,96] parameter(0)  a = f32[4096,32] slice(p), slice={[0:4096],[0:32]}\n"
     "b = f32[4096,64] slice(p), slice={[0:4096],[32:96]}  n = f32[4096,32] negate(a)\n"
     "ROOT r = (f32[4096,32], f32[4096,64]) tuple(n, b)",
     "a b n: loop"},
    {"results of different sizes that are long apart are no kernel",
     "p = f32[16777216] parameter(0)  q = f32[8388608] parameter(1)  a = f32[16777216] tanh(p)\n"
     "b = f32[8388608] tanh(q)  c = f32[8388608] negate(b)\n"
     "ROOT r = (f32[16777216], f32[8388608], f32[8388608]) tuple(a, b, c)",
     "a: loop; b c: loop"},
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

TEST_CASE("one kernel has not too much", "[search]") {
  // 120 outputs of one array each: a launch takes 96 buffers, those of 48.
  std::string many, results, types;
  for (int i = 0; i < 120; ++i) {
    const std::string n = std::to_string(i), type = "f32[" + std::to_string(64 + i) + "]";
    many += "p" + n + " = " + type + " parameter(" + n + ")  n" + n + " = " + type + " negate(p" + n + ")\n";
    results += (i ? ", n" : "n") + n;
    types += (i ? ", " : "") + type;
  }
  const std::string groups = groupsOf(many + "ROOT r = (" + types + ") tuple(" + results + ")");
  llvm::SmallVector<llvm::StringRef> kernels;
  llvm::StringRef(groups).split(kernels, "; ");
  CHECK(kernels.size() >= 3);
  CHECK(kernels.size() < 6);
  for (llvm::StringRef kernel : kernels)
    CHECK(kernel.split(':').first.count('n') <= 48);
  // Sums over so many arrays of one size that a thread's registers do not hold their vectors.
  std::string sums, last;
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    sums += "p" + n + " = f32[262144] parameter(" + n + ")  n" + n + " = f32[262144] add(p" + n + ", p" +
            std::to_string(i ? i - 1 : 0) + ")\n";
    last += (i ? ", n" : "n") + n;
  }
  std::string sizes;
  for (int i = 0; i < 40; ++i)
    sizes += i ? ", f32[262144]" : "f32[262144]";
  const std::string streams = groupsOf(sums + "ROOT r = (" + sizes + ") tuple(" + last + ")");
  CHECK(std::count(streams.begin(), streams.end(), ';') >= 2);
}

TEST_CASE("what is between two dots is made of scores in registers, if nobody else needs it", "[search]") {
  const std::string attention =
      "q = bf16[4,1024,64] parameter(0)  k = bf16[4,1024,64] parameter(1)  v = bf16[4,1024,64] parameter(2)\n"
      "z = f32[] constant(0)  l = f32[] constant(-inf)\n"
      "d = f32[4,1024,1024] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_contracting_dims={2}\n"
      "m = f32[4,1024] reduce(d, l), dimensions={2}, to_apply=max  mb = f32[4,1024,1024] broadcast(m), "
      "dimensions={0,1}\n"
      "s = f32[4,1024,1024] subtract(d, mb)  e = f32[4,1024,1024] exponential(s)\n"
      "t = f32[4,1024] reduce(e, z), dimensions={2}, to_apply=add  tb = f32[4,1024,1024] broadcast(t), "
      "dimensions={0,1}\n"
      "p = f32[4,1024,1024] divide(e, tb)  w = bf16[4,1024,1024] convert(p)\n"
      "o = bf16[4,1024,64] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_contracting_dims={1}\n";
  // The kernel puts heads behind rows, too.
  CHECK(groupsOf(attention + "ROOT r = bf16[1024,4,64] transpose(o), dimensions={1,0,2}") ==
        "d m s e t p w o r: attention");
  // Logarithms of sums are a result beside the others.
  CHECK(groupsOf(attention + "n = f32[4,1024] log(t)  ROOT r = (bf16[4,1024,64], f32[4,1024]) tuple(o, n)") ==
        "d m s e t p w o n: attention");
  // Weights that are needed in memory are made there first.
  CHECK(groupsOf(attention + "ROOT r = (bf16[4,1024,64], bf16[4,1024,1024]) tuple(o, w)") ==
        "d: contraction; m s e t p w: rows; o: contraction");
}

TEST_CASE("gradients of attention make scores again, and read what the first kernel made of rows", "[search]") {
  CHECK(groupsOf(R"(q = bf16[32,2048,64] parameter(0)  k = bf16[32,2048,64] parameter(1)
    v = bf16[32,2048,64] parameter(2)  g = bf16[32,2048,64] parameter(3)  z = f32[] constant(0)  i = f32[] constant(-inf)
    d = f32[32,2048,2048] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
    m = f32[32,2048] reduce(d, i), dimensions={2}, to_apply=max  mb = f32[32,2048,2048] broadcast(m), dimensions={0,1}
    s = f32[32,2048,2048] subtract(d, mb)  e = f32[32,2048,2048] exponential(s)
    t = f32[32,2048] reduce(e, z), dimensions={2}, to_apply=add  tb = f32[32,2048,2048] broadcast(t), dimensions={0,1}
    p = f32[32,2048,2048] divide(e, tb)  w = bf16[32,2048,2048] convert(p)
    x = f32[32,2048,2048] dot(g, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
    y = f32[32,2048,2048] multiply(p, x)  r = f32[32,2048] reduce(y, z), dimensions={2}, to_apply=add
    rb = f32[32,2048,2048] broadcast(r), dimensions={0,1}  u = f32[32,2048,2048] subtract(x, rb)
    h = f32[32,2048,2048] multiply(u, p)  n = bf16[32,2048,2048] convert(h)
    dv = bf16[32,2048,64] dot(w, g), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
    dk = bf16[32,2048,64] dot(n, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
    dq = bf16[32,2048,64] dot(n, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
    ROOT o = (bf16[32,2048,64], bf16[32,2048,64], bf16[32,2048,64]) tuple(dq, dk, dv))") ==
        "d s e p w dv: attention; d s e p x u h n dk: attention; d m s e t p x y r u h n dq: attention");
}

TEST_CASE("a group of attention does not read what is made of its rows", "[search]") {
  const std::string softmax = R"(q = bf16[16,2048,64] parameter(0)  k = bf16[16,2048,64] parameter(1)
    v = bf16[16,2048,64] parameter(2)  z = f32[] constant(0)  i = f32[] constant(-inf)
    d = f32[16,2048,2048] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
    m = f32[16,2048] reduce(d, i), dimensions={2}, to_apply=max  mb = f32[16,2048,2048] broadcast(m), dimensions={0,1}
    s = f32[16,2048,2048] subtract(d, mb)  e = f32[16,2048,2048] exponential(s)
    t = f32[16,2048] reduce(e, z), dimensions={2}, to_apply=add  tb = f32[16,2048,2048] broadcast(t), dimensions={0,1}
    p = f32[16,2048,2048] divide(e, tb)  w = bf16[16,2048,2048] convert(p)
    )";
  // Terms are made of the rows' maxima.
  const std::string own = groupsOf(softmax + R"(a = f32[] reduce(m, z), dimensions={0,1}, to_apply=add
    ab = f32[16,2048,64] broadcast(a), dimensions={}  ac = bf16[16,2048,64] convert(ab)  x = bf16[16,2048,64] add(v, ac)
    ROOT o = f32[16,2048,64] dot(w, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})");
  CHECK(own.find("attention") == std::string::npos);
  // Terms are another group's results, which would read this one's rows.
  const std::string other =
      groupsOf(softmax + R"(a = bf16[16,2048,64] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0},
      lhs_contracting_dims={1}, rhs_contracting_dims={1}
    ROOT o = f32[16,2048,64] dot(w, a), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})");
  CHECK(other.find("attention") == std::string::npos);
}

TEST_CASE("a loop's state is not replaced before it is read", "[search]") {
  // One kernel could make `n` and the sums, and read `p` once; but `n` takes the place of `p`, and the dot reads that.
  auto groups = [](const char *next) {
    test::Parsed parsed(std::string(reducers) + R"(
body {
  a = (s32[], f32[512,512], f32[512,512]) parameter(0)
  i = s32[] get-tuple-element(a), index=0
  p = f32[512,512] get-tuple-element(a), index=1
  z = f32[] constant(0)
  n = f32[512,512] negate(p)
  s = f32[512] reduce(p, z), dimensions={1}, to_apply=add
  b = f32[512,512] broadcast(s), dimensions={0}
  d = f32[512,512] dot(p, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[512,512], f32[512,512]) tuple(i, )" +
                        std::string(next) + R"()
}
done {
  a = (s32[], f32[512,512], f32[512,512]) parameter(0)
  i = s32[] get-tuple-element(a), index=0
  k = s32[] constant(63)
  ROOT r = pred[] compare(i, k), direction=LT
}
ENTRY e {
  s = (s32[], f32[512,512], f32[512,512]) parameter(0)
  ROOT w = (s32[], f32[512,512], f32[512,512]) while(s), condition=done, body=body
}
)");
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
    return groupsOf(*parsed.module->findComputation("body"));
  };
  CHECK(groups("n, d") == "n: loop; s: row-reduction; d: contraction");
  CHECK(groups("d, n") == "n s: row-reduction; d: contraction");
}

namespace {

/// An exponential that `readers` sorts read, each by another order.
std::string sortsOf(int readers) {
  std::string body = "p = f32[65536] parameter(0)  e = f32[65536] exponential(p)\n", names, types;
  for (int i = 0; i < readers; ++i) {
    body += fmt::format("q{0} = f32[65536] parameter({1})  k{0} = f32[65536] add(e, q{0})\n"
                        "r{0} = f32[65536] sort(k{0}), dimensions={{0}}, to_apply=less\n",
                        i, i + 1);
    names += fmt::format("{}r{}", i ? ", " : "", i);
    types += i ? ", f32[65536]" : "f32[65536]";
  }
  return body + "ROOT r = (" + types + ") tuple(" + names + ")";
}

} // namespace

TEST_CASE("a value that many kernels read stays in memory", "[search]") {
  CHECK(groupsOf(sortsOf(20)).starts_with("e k0 r0: sort"));
  CHECK(groupsOf(sortsOf(30)).starts_with("e: loop"));
}

TEST_CASE("limits of a kernel", "[search]") {
  GroupWork work;
  work.buffers = 96;
  work.streams = 28;
  work.codeSize = 1500;
  auto isTooMuch = [&](size_t GroupWork::*field, size_t numRoots = 2) {
    GroupWork more = work;
    ++(more.*field);
    return !KernelLimits().why(more, numRoots).empty();
  };
  CHECK(KernelLimits().why(work, 2).empty());
  CHECK(isTooMuch(&GroupWork::buffers));
  CHECK(isTooMuch(&GroupWork::streams));
  CHECK_FALSE(isTooMuch(&GroupWork::streams, 1)); // a sum of many arrays adds them up one after the other
  CHECK(isTooMuch(&GroupWork::codeSize));
}

TEST_CASE("modules of many instructions are searched once, from groups of rows", "[search]") {
  auto groups = [](int numUnneeded) {
    std::string body = "p = f32[4096,1024] parameter(0)  z = f32[] constant(0)\n"
                       "s = f32[4096] reduce(p, z), dimensions={1}, to_apply=add\n"
                       "b = f32[4096,1024] broadcast(s), dimensions={0}  d = f32[4096,1024] divide(p, b)\n";
    for (int i = 0; i < numUnneeded; ++i)
      body += fmt::format("unread{0} = f32[] constant({0})\n", i);
    return groupsOf(body + "ROOT r = f32[1024,4096] transpose(d), dimensions={1,0}");
  };
  CHECK(groups(1900) == groups(0));
  CHECK(groups(2100) == "s d: rows; r: transpose");
}

TEST_CASE("an array that a loop carries is updated where it lies, by a kernel of its own", "[search]") {
  // As part of the loop that makes what it stores, it would be copied whole.
  test::Parsed parsed(R"(HloModule m
body {
  a = (s32[], f32[1000], f32[12,1000]) parameter(0)
  i = s32[] get-tuple-element(a), index=0
  p = f32[1000] get-tuple-element(a), index=1
  all = f32[12,1000] get-tuple-element(a), index=2
  one = s32[] constant(1)
  z = s32[] constant(0)
  j = s32[] add(i, one)
  n = f32[1000] tanh(p)
  row = f32[1,1000] reshape(n)
  u = f32[12,1000] dynamic-update-slice(all, row, i, z)
  ROOT r = (s32[], f32[1000], f32[12,1000]) tuple(j, n, u)
}
done {
  a = (s32[], f32[1000], f32[12,1000]) parameter(0)
  i = s32[] get-tuple-element(a), index=0
  k = s32[] constant(12)
  ROOT r = pred[] compare(i, k), direction=LT
}
ENTRY e {
  s = (s32[], f32[1000], f32[12,1000]) parameter(0)
  ROOT w = (s32[], f32[1000], f32[12,1000]) while(s), condition=done, body=body
}
)");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  CHECK(groupsOf(*parsed.module->findComputation("body")) == "j: loop; n: loop; row u: dynamic-update-slice");
}

TEST_CASE("what saves less than the model is exact to is left apart", "[search]") {
  constexpr double leastGain = 0.02e-6;
  bool isJustEnough = false, isJustTooLittle = false;
  // A power and other ops again for each of some rows: the more of either, the less is saved, or the more it costs.
  auto saved = [&](int others, int rows) {
    std::string power = "p = f32[3400] parameter(0)  x = f32[3400] parameter(1)  e0 = f32[3400] power(p, x)\n";
    for (int other = 0; other < others; ++other)
      power += fmt::format("e{} = f32[3400] abs(e{})\n", other + 1, other);
    test::Parsed parsed(
        test::entry(power + fmt::format("n = f32[3400] negate(e{})  c = bf16[3400] convert(n)  ROOT r = "
                                        "bf16[{},3400] broadcast(c), dimensions={{1}}",
                                        others, rows)));
    REQUIRE(parsed.module);
    FusionExplanation explanation;
    groupByCost(*parsed.module->entry(), "e", *findTarget("sm_90"), &explanation);
    const auto decision =
        llvm::find_if(explanation.decisions, [](const FusionDecision &each) { return each.producer == "c"; });
    REQUIRE(decision != explanation.decisions.end());
    INFO(others << " ops, " << rows << " rows: " << decision->seconds << " s");
    CHECK(decision->fused == (decision->seconds >= leastGain));
    isJustEnough |= decision->seconds >= leastGain && decision->seconds < 2 * leastGain;
    isJustTooLittle |= decision->seconds < leastGain && decision->seconds >= leastGain / 2;
    return decision->seconds;
  };
  for (int others = 0; others < 40; ++others) {
    int low = 1, high = 2000; // saved in between
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (saved(others, middle) >= leastGain ? low : high) = middle;
    }
    for (int rows = low - 3; rows <= high + 3; ++rows)
      saved(others, rows);
  }
  CHECK(isJustEnough);
  CHECK(isJustTooLittle);
}

TEST_CASE("edges are what they are asked to be, or say why not", "[fusion]") {
  const char *const body = "p = f32[4096,512] parameter(0)  z = f32[] constant(0)  e = f32[4096,512] exponential(p)\n"
                           "s = f32[4096] reduce(e, z), dimensions={1}, to_apply=add\n"
                           "b = f32[4096,512] broadcast(s), dimensions={0}  d = f32[4096,512] divide(e, b)\n"
                           "q = f32[512,64] parameter(1)  n = f32[4096,512] negate(d)\n"
                           "m = f32[4096,64] dot(d, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                           "ROOT r = (f32[4096,512], f32[4096,64], f32[4096,512]) tuple(d, m, n)";
  test::Parsed parsed(std::string(reducers) + "ENTRY e {\n" + body + "\n}\n");
  REQUIRE(parsed.module);
  const HloComputation &entry = *parsed.module->entry();
  auto named = [&](llvm::StringRef name) {
    return *llvm::find_if(entry.instructions(), [&](const HloInstruction *instr) { return instr->name() == name; });
  };
  auto ask = [&](llvm::StringRef producer, llvm::StringRef user, bool fused) {
    const AskedEdge edge{named(producer), named(user), fused};
    GroupedByCost found = groupByCost(entry, "e", *findTarget("sm_90"), nullptr, edge);
    REQUIRE(found.refusals.size() == 1);
    const bool together = llvm::any_of(found.groups, [&](const FusionGroup &group) {
      return llvm::is_contained(group.members, edge.producer) && llvm::is_contained(group.members, edge.user);
    });
    CHECK(found.refusals.front().empty() == (together == fused));
    return found.refusals.front();
  };
  // Each edge of the softmax, and what is computed wherever it is read unless somebody says otherwise.
  CHECK(ask("e", "s", false) == "");
  CHECK(ask("e", "d", false) == "");
  CHECK(ask("s", "b", false) == "");
  CHECK(ask("b", "d", false) == "");
  CHECK(ask("d", "n", false) == "");
  CHECK(ask("z", "s", false) == "`z` is computed wherever it is read");
  // What is not worth it, and what is there anyway.
  CHECK(ask("d", "m", true) == "");
  CHECK(ask("e", "s", true) == "");
}
