#include "hloc/fusion/KernelPlan.h"
#include "hloc/hlo/HloBuilder.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Program {
  HloModule module{"m"};
  HloComputation *body = module.addComputation("f");
  HloBuilder b{*body};
  DiagnosticEngine diagnostics;

  HloInstruction *transpose(HloInstruction *x, llvm::ArrayRef<int64_t> dims) {
    llvm::SmallVector<int64_t> sizes;
    for (int64_t dim : dims)
      sizes.push_back(x->shape().dim(dim));
    return b.add(Opcode::Transpose, Shape::array(x->shape().elementType(), sizes), {x},
                 {b.ints(AttributeKey::Dimensions, dims)});
  }
};

std::string planText(Program &p, HloInstruction *root, const char *target = "sm_90") {
  p.body->setRoot(root);
  FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
  HeroChoice choice = selectHero(graph, *findTarget(target));
  return choice.hero == Hero::Loop ? std::get<LoopPlan>(choice.plan).toString()
                                   : std::get<TransposePlan>(choice.plan).toString();
}

std::string negatePlan(ElementType type, llvm::ArrayRef<int64_t> dims, const char *target = "sm_90") {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(type, dims), "x");
  return planText(p, p.b.add(Opcode::Negate, x->shape(), {x}), target);
}

} // namespace

TEST_CASE("elements per thread fill one access of the narrowest stream") {
  CHECK(negatePlan(ElementType::BF16, {6, 512, 4096}) ==
        "loop: roots 0, 12582912 elements, 8 per thread; grid 12288, block 128");
  CHECK(negatePlan(ElementType::F32, {1 << 24}) ==
        "loop: roots 0, 16777216 elements, 4 per thread; grid 32768, block 128");
  CHECK(negatePlan(ElementType::F32, {1 << 24}, "sm_100") ==
        "loop: roots 0, 16777216 elements, 8 per thread; grid 16384, block 128");
  CHECK(negatePlan(ElementType::S8, {1 << 24}) ==
        "loop: roots 0, 16777216 elements, 16 per thread; grid 8192, block 128");
  CHECK(negatePlan(ElementType::S4, {1 << 24}) ==
        "loop: roots 0, 16777216 elements, 32 per thread; grid 4096, block 128");
}

TEST_CASE("small and odd sizes") {
  CHECK(negatePlan(ElementType::F32, {}) == "loop: roots 0, 1 elements, 1 per thread; grid 1, block 1");
  CHECK(negatePlan(ElementType::F32, {31}) == "loop: roots 0, 31 elements, 1 per thread; grid 1, block 31");
  CHECK(negatePlan(ElementType::F32, {7, 0, 3}) == "loop: grid 0, block 1");
  CHECK(negatePlan(ElementType::S4, {33}) == "loop: roots 0, 33 elements, 2 per thread; grid 1, block 17");
  CHECK(negatePlan(ElementType::F32, {16777213}) ==
        "loop: roots 0, 16777213 elements, 4 per thread; grid 32768, block 128");
  CHECK(negatePlan(ElementType::S8, {1LL << 33}) ==
        "loop: roots 0, 8589934592 elements, 16 per thread; grid 4194304, block 128");
}

TEST_CASE("outputs of different sizes get nests of their own") {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(ElementType::F32, {1 << 20}), "x");
  auto *y = p.b.parameter(1, Shape::array(ElementType::F32, {10}), "y");
  auto *z = p.b.parameter(2, Shape::array(ElementType::F32, {1024, 1024}), "z");
  auto negate = [&](HloInstruction *v) { return p.b.add(Opcode::Negate, v->shape(), {v}); };
  CHECK(planText(p, p.b.tuple({negate(x), negate(y), negate(z)})) ==
        "loop: roots 0,2, 1048576 elements, 4 per thread; roots 1, 10 elements, 1 per thread; grid 2048, block 128");
}

TEST_CASE("tiled transpositions") {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(ElementType::F32, {20, 160, 170}), "x");
  auto *t = p.transpose(x, {0, 2, 1});
  CHECK(planText(p, p.b.add(Opcode::Abs, t->shape(), {t})) ==
        "transpose: [20,160,170] by {0,2,1}, 1 tile of 32x32, 1 per thread; roots 0; grid 600, block 128, shared 4224");

  Program merged;
  auto *y = merged.b.parameter(0, Shape::array(ElementType::BF16, {1, 64, 32, 2048}), "y");
  CHECK(planText(merged, merged.transpose(y, {3, 0, 1, 2})) ==
        "transpose: [2048,2048] by {1,0}, 1 tile of 64x64, 2 per thread; roots 0; grid 1024, block 256, shared 8320");

  Program layout;
  Shape rows = Shape::array(ElementType::F32, {256, 512});
  auto *z = layout.b.parameter(0, rows, "z");
  CHECK(planText(layout, layout.b.add(Opcode::Copy, rows.withLayout({0, 1}), {z})) ==
        "transpose: [256,512] by {1,0}, 1 tile of 32x32, 1 per thread; roots 0; grid 128, block 128, shared 4224");
}

TEST_CASE("transpositions that stay loops") {
  Program small;
  auto *x = small.b.parameter(0, Shape::array(ElementType::F32, {3, 1000}), "x");
  CHECK(planText(small, small.transpose(x, {1, 0})).substr(0, 5) == "loop:");

  Program outer; // the minor dimension stays
  auto *y = outer.b.parameter(0, Shape::array(ElementType::F32, {64, 32, 128}), "y");
  CHECK(planText(outer, outer.transpose(y, {1, 0, 2})).substr(0, 5) == "loop:");

  Program twice; // read transposed and reversed
  auto *z = twice.b.parameter(0, Shape::array(ElementType::F32, {64, 64}), "z");
  auto *t = twice.transpose(z, {1, 0});
  auto *r = twice.b.add(Opcode::Reverse, t->shape(), {t}, {twice.b.ints(AttributeKey::Dimensions, {0})});
  CHECK(planText(twice, twice.b.add(Opcode::Add, t->shape(), {t, r})).substr(0, 5) == "loop:");
}
