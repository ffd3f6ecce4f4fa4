// What contractions have on sm_90a: tiles that warpgroups multiply, and rings that tensor maps fill.
#include "hloc/fusion/TileCandidates.h"

#include "unit/fusion/PlannedEntry.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Planned : test::PlannedEntry {
  explicit Planned(const std::string &entry, const char *target = "sm_90a") : PlannedEntry(entry, {}, target) {}
  const ContractionPlan &contraction() const { return std::get<ContractionPlan>(kernel().plan); }
  const ContractionTile &tile() const { return contraction().tile; }
};

/// dot of bf16[m,k] by bf16[k,n], each of which may be transposed.
std::string product(int64_t m, int64_t n, int64_t k, bool lhsTransposed = false, bool rhsTransposed = false,
                    const std::string &type = "bf16", const std::string &result = "bf16") {
  auto shape = [](const std::string &of, int64_t a, int64_t b) {
    return of + "[" + std::to_string(a) + "," + std::to_string(b) + "]";
  };
  return "a = " + (lhsTransposed ? shape(type, k, m) : shape(type, m, k)) +
         " parameter(0) b = " + (rhsTransposed ? shape(type, n, k) : shape(type, k, n)) +
         " parameter(1) ROOT d = " + shape(result, m, n) + " dot(a, b), lhs_contracting_dims={" +
         (lhsTransposed ? "0" : "1") + "}, rhs_contracting_dims={" + (rhsTransposed ? "1" : "0") + "}";
}

/// Kinds of tiles among all that it may have.
bool mayHave(const std::string &entry, TileSizes::By by) {
  const Planned planned(entry);
  PlanContext plans;
  for (const TileCandidate &one : tileCandidates(*planned.graph, *findTarget("sm_90a"), plans))
    if (one.tile.by == by)
      return true;
  return false;
}

} // namespace

TEST_CASE("warpgroups: who multiplies is part of a tile's name") {
  using By = TileSizes::By;
  CHECK(TileSizes::parse("128x256x64/4-ring") == TileSizes{128, 256, 64, 4, By::Ring});
  CHECK(TileSizes::parse("128x256x64/4-ring2") == TileSizes{128, 256, 64, 4, By::RingOfTwo});
  CHECK(TileSizes::parse("64x64x32/1-groups") == TileSizes{64, 64, 32, 1, By::Groups});
  CHECK(TileSizes{128, 256, 64, 4, By::RingOfTwo}.toString() == "128x256x64/4-ring2");
  for (const char *text : {"128x256x64/4-rings", "128x256x64/4-ring3", "128x256x64/4-", "128x256x64-ring/4"})
    CHECK_FALSE(TileSizes::parse(text));
}

TEST_CASE("warpgroups: large products come through a ring, and blocks share what they copy") {
  Planned planned(product(4096, 4096, 4096));
  INFO(planned.text());
  CHECK(planned.tile().hasProducer);
  CHECK(planned.tile().cluster == 2);
  CHECK(planned.kernel().launch.cluster == 2);
  CHECK(planned.kernel().launch.block.x == planned.tile().threads() + 128);
  // Registers are exchanged: those of all threads at the start are those of all threads then.
  const ContractionPlan &plan = planned.contraction();
  CHECK(plan.exchangesRegisters());
  CHECK(plan.registersOfConsumers() * plan.tile.threads() +
            ContractionPlan::registersOfProducer * (plan.tile.threadsOfBlock() - plan.tile.threads()) <=
        int64_t(planned.kernel().plannedRegisters()) * plan.tile.threadsOfBlock());
  CHECK(plan.registersOfConsumers() >= plan.wantedRegisters());
  // The target without an `a` has none of it, nor has any older one.
  for (const char *target : {"sm_80", "sm_90", "sm_100a", "sm_120a"})
    CHECK_FALSE(Planned(product(4096, 4096, 4096), target).tile().ofWarpgroups);
}

TEST_CASE("warpgroups: tensor maps say how both sides lie") {
  for (bool lhs : {false, true})
    for (bool rhs : {false, true}) {
      Planned planned(product(512, 1024, 768, lhs, rhs));
      INFO(planned.text());
      REQUIRE(planned.tile().hasProducer);
      const ContractionPlan &plan = planned.contraction();
      auto check = [&](const ContractionSide &side, bool isAcross, uint64_t size) {
        REQUIRE(side.map);
        const TensorMapRecipe &recipe = side.map->recipe;
        CHECK(side.alongDepth != isAcross);
        CHECK(recipe.dims == (isAcross ? std::vector<uint64_t>{size, 768} : std::vector<uint64_t>{768, size}));
        CHECK(recipe.strides == std::vector<uint64_t>{2 * (isAcross ? size : 768)});
        CHECK(recipe.box.front() * 2 == spanOf(recipe.swizzle));
        CHECK(findTensorMapError(recipe, 0).empty());
      };
      check(plan.rows, lhs, 512);
      check(plan.columns, !rhs, 1024);
    }
  // A batch is one more dimension of the map.
  Planned batch("a = bf16[6,256,512] parameter(0) b = bf16[6,512,256] parameter(1) ROOT d = bf16[6,256,256] dot(a, b), "
                "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}");
  REQUIRE(batch.contraction().rows.map);
  CHECK(batch.contraction().rows.map->recipe.dims == std::vector<uint64_t>{512, 256, 6});
}

TEST_CASE("warpgroups: what tensor maps cannot copy, threads do") {
  using By = TileSizes::By;
  CHECK(mayHave(product(256, 256, 512), By::Ring));
  CHECK(mayHave(product(256, 256, 512), By::RingOfTwo));
  // Rows that are no multiples of 16 bytes apart.
  CHECK_FALSE(mayHave(product(256, 257, 513), By::Ring));
  CHECK(mayHave(product(256, 257, 513), By::Groups));
  // What is computed on the way.
  const std::string converted = "p = f32[256,512] parameter(0) a = bf16[256,512] convert(p) b = bf16[512,256] "
                                "parameter(1) ROOT d = bf16[256,256] dot(a, b), lhs_contracting_dims={1}, "
                                "rhs_contracting_dims={0}";
  CHECK_FALSE(mayHave(converted, By::Ring));
  CHECK(mayHave(converted, By::Groups));
  // Of bytes, both sides have to lie along their sums; f64 has none.
  CHECK(mayHave(product(256, 256, 512, false, true, "s8", "s32"), By::Ring));
  CHECK_FALSE(mayHave(product(256, 256, 512, false, false, "s8", "s32"), By::Groups));
  CHECK_FALSE(mayHave(product(256, 256, 512, false, true, "f64", "f64"), By::Groups));
  // Blocks of rows that do not come in pairs copy for themselves.
  CHECK_FALSE(mayHave(product(64, 256, 512), By::RingOfTwo));
}
