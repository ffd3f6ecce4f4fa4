// Models with smaller dimensions: which sizes they get, and that what they are made into is a module.
#include "hloc/transforms/ShrinkModule.h"

#include "RunPasses.h"
#include "transforms/ShrinkSizes.h"

using namespace hloc;
using namespace hloc::test;

namespace {

using Sizes = std::map<int64_t, int64_t>;

/// The module shrunk to 16, printed; the verifier has seen it.
std::string shrink(const std::string &body, int64_t target = 16) {
  Parsed parsed("HloModule m\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
                "ENTRY e {\n" +
                body + "}\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  DiagnosticEngine diagnostics;
  ShrunkModule small = shrinkModule(*parsed.module, target, diagnostics);
  INFO((diagnostics.diagnostics().empty() ? "" : diagnostics.diagnostics().front().message));
  REQUIRE(small.module);
  return print(*small.module);
}

bool has(const std::string &text, const std::string &part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("shrink: sizes are divided until they fit; small ones stay") {
  SizeRelations relations;
  relations.sizes = {1, 3, 4, 16, 100, 1024, 6912};
  CHECK(shrinkSizes(relations, 16) == Sizes{{1, 1}, {3, 3}, {4, 4}, {16, 16}, {100, 4}, {1024, 16}, {6912, 16}});
}

TEST_CASE("shrink: products and sums stay true") {
  SizeRelations relations;
  relations.sizes = {12, 64, 768, 128, 100, 28};
  relations.products = {{{768}, {12, 64}}};
  relations.sums = {{{28, 100}, 128}};
  Sizes small = shrinkSizes(relations, 16);
  CHECK(small[768] == small[12] * small[64]);
  CHECK(small[768] < 768);
  CHECK(small[28] + small[100] == small[128]);
  CHECK(small[128] < 128);
}

TEST_CASE("shrink: a prime in no relation is replaced; one in a sum stays, and what is fixed") {
  SizeRelations relations;
  relations.sizes = {1009, 1022, 1023, 2, 64};
  relations.sums = {{{1, 1022}, 1023}};
  relations.fixed = {64};
  CHECK(shrinkSizes(relations, 16) == Sizes{{2, 2}, {64, 64}, {1009, 15}, {1022, 1022}, {1023, 1023}});
}

TEST_CASE("shrink: a slice fits into what it is a slice of") {
  SizeRelations relations;
  relations.sizes = {25, 1024};
  relations.fits = {{25, 1024, 3}};
  Sizes small = shrinkSizes(relations, 16);
  CHECK((small[25] - 1) * 3 + 1 <= small[1024]);
  CHECK(small[1024] <= 32);
}

TEST_CASE("shrink: reshapes, dots, broadcasts and reductions") {
  std::string small = shrink("x = f32[8,768] parameter(0)\n w = f32[64,100] parameter(1)\n"
                             "r = f32[8,12,64] reshape(x)\n"
                             "d = f32[8,12,100] dot(r, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"
                             "z = f32[] constant(0)\n s = f32[8,12] reduce(d, z), dimensions={2}, to_apply=sum\n"
                             "ROOT b = f32[8,12,64] broadcast(s), dimensions={0,1}\n");
  CHECK(has(small, "f32[8,4,4]{2,1,0} reshape("));
  CHECK(has(small, "f32[8,4,4]{2,1,0} dot("));
}

TEST_CASE("shrink: slices keep the end that they touch, paddings and windows make the result they have to") {
  std::string small = shrink(
      "x = f32[128] parameter(0)\n a = f32[64] slice(x), slice={[0:64]}\n b = f32[64] slice(x), slice={[64:128]}\n"
      "c = f32[128] concatenate(b, a), dimensions={0}\n z = f32[] constant(0)\n"
      "p = f32[256] pad(c, z), padding=100_28\n"
      "w = f32[256] reduce-window(p, z), window={size=256 pad=255_0}, to_apply=sum\n"
      "ROOT m = f32[128] reduce-window(w, z), window={size=3 stride=2 pad=0_1}, to_apply=sum\n");
  CHECK(has(small, "slice={[0:8]}"));
  CHECK(has(small, "slice={[8:16]}"));
  CHECK(has(small, "f32[16]{0} pad("));
  CHECK(has(small, "window={size=16 pad=15_0}"));
  CHECK(has(small, "window={size=3 stride=2 pad=0_17}"));
}

TEST_CASE("shrink: constants keep their first elements") {
  std::string small = shrink("ROOT c = s32[2,6] constant({{1,2,3,4,5,6},{7,8,9,10,11,12}})\n", 3);
  CHECK(has(small, "s32[2,2]{1,0} constant({ { 1, 2 }, { 7, 8 } })"));
}
