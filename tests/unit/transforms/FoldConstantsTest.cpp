#include "RunPasses.h"
#include "SameResults.h"

using namespace hloc;
using namespace hloc::test;

namespace {

/// The root's literal as text after folding; empty if the root is no constant.
std::string folded(const std::string &body) {
  PassRun p(entry(body));
  bool changed = p.run(foldConstants) == PassResult::Changed;
  CHECK(p.run(foldConstants) == PassResult::Unchanged);
  CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  const HloInstruction *root = p.module->entry()->root();
  CHECK(root->shape() == p.parsed.module->entry()->root()->shape());
  CHECK(changed == (root->opcode() == Opcode::Constant));
  if (root->opcode() != Opcode::Constant)
    return "";
  std::string text = print(*p.module);
  llvm::StringRef line = llvm::StringRef(text).split("ROOT ").second.split("constant(").second;
  return line.split(")\n").first.str();
}

} // namespace

TEST_CASE("chains of constants fold in one walk") {
  CHECK(folded("a = s32[] constant(3)\n b = s32[] constant(4)\n c = s32[] multiply(a, b)\n d = s32[] add(c, b)\n"
               "ROOT r = pred[] compare(d, a), direction=GT") == "true");
}

TEST_CASE("what is computed to the same bits everywhere") {
  CHECK(folded("a = f32[2] constant({1,3})\n b = f32[2] constant({3,7})\n ROOT r = f32[2] divide(a, b)") ==
        "{0.333333343, 0.428571433}");
  CHECK(folded("a = f64[] constant(0.1)\n ROOT r = f32[] convert(a)") == "0.1");
  CHECK(
      folded("a = s32[2,3]{0,1} constant({{1,2,3},{4,5,6}})\n ROOT r = s32[3,2]{1,0} transpose(a), dimensions={1,0}") ==
      "{ { 1, 4 }, { 2, 5 }, { 3, 6 } }");
  CHECK(folded("a = u8[3] constant({200,100,7})\n ROOT r = s8[3] bitcast-convert(a)") == "{-56, 100, 7}");
  CHECK(folded("a = f32[3] constant({1,2,3})\n ROOT r = f32[2] slice(a), slice={[1:3]}") == "{2, 3}");
  CHECK(folded("a = s32[] constant(7)\n z = s32[] constant(0)\n ROOT r = s32[] divide(a, z)") == "-1");
}

TEST_CASE("reductions of integers") {
  PassRun p("HloModule m\nsum {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b)\n}\n"
            "ENTRY e {\n x = s32[3] constant({1,2,3})\n z = s32[] constant(0)\n"
            "ROOT r = s32[] reduce(x, z), dimensions={0}, to_apply=sum\n}\n");
  CHECK(p.run(foldConstants) == PassResult::Changed);
  CHECK(p.module->entry()->root()->literal().getInt(0) == 6);
}

TEST_CASE("what stays") {
  CHECK(folded("a = f32[] constant(1)\n ROOT r = f32[] exponential(a)") == "");               // not the same everywhere
  CHECK(folded("a = f32[] constant(1)\n ROOT r = f32[4] broadcast(a), dimensions={}") == ""); // larger
  CHECK(folded("ROOT r = f32[4] iota(), iota_dimension=0") == "");
  CHECK(folded("a = f32[300] constant({...})\n ROOT r = f32[300] negate(a)") == "");
  CHECK(folded("a = f32[2] constant({...})\n ROOT r = f32[2] negate(a)") == "");
  CHECK(folded("a = c64[] constant((1,2))\n ROOT r = c64[] multiply(a, a)") == "");
  CHECK(folded("x = f32[] parameter(0)\n a = f32[] constant(1)\n ROOT r = f32[] add(a, x)") == "");
  std::string many = "{";
  for (int i = 0; i < 300; ++i)
    many += std::to_string(i) + (i < 299 ? "," : "}");
  CHECK(folded("a = f32[300] constant(" + many + ")\n ROOT r = f32[300] negate(a)") == ""); // over 1 KiB
}

TEST_CASE("equal elements become a broadcast, and folding leaves that alone") {
  PassRun p(entry("a = f32[3] constant({1,1,1})\n b = f32[3] constant({2,2,2})\n c = f32[3] add(a, b)\n"
                  "ROOT r = f32[6] concatenate(c, c), dimensions={0}"));
  CHECK(p.run(simplify) == PassResult::Changed);
  CHECK(p.run(simplify) == PassResult::Unchanged);
  CHECK(resultDifference(*p.parsed.module, *p.module) == "");
}
