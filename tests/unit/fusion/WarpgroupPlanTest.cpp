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

TEST_CASE("warpgroups: blocks that are alone go on to other tiles, without their ring running empty") {
  const int64_t multiprocessors = findTarget("sm_90a")->multiprocessors;
  for (auto [m, n, k, rounds] :
       {std::array<int64_t, 4>{4096, 4096, 4096, 4}, {8192, 8192, 1024, 16}, {2048, 2048, 2048, 1}}) {
    Planned planned(product(m, n, k));
    INFO(planned.text());
    const ContractionPlan &plan = planned.contraction();
    REQUIRE(plan.tile.hasProducer);
    CHECK(plan.rounds == rounds);
    // Each tile is some block's, and no block is without.
    CHECK(plan.blocks() * rounds >= plan.tiles());
    CHECK(plan.blocks() * (rounds - 1) < plan.tiles());
    CHECK(plan.blocks() <= multiprocessors);
    CHECK(plan.blocks() % plan.tile.cluster == 0);
    CHECK(int64_t(planned.kernel().launch.grid.x) == plan.blocks());
  }
  // Batches are tiles, too; parts of sums are not.
  Planned batch(
      "a = bf16[32,1024,1024] parameter(0) b = bf16[32,1024,1024] parameter(1) ROOT d = bf16[32,1024,1024] dot(a, b), "
      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}");
  CHECK(batch.contraction().rounds == 8);
  CHECK(batch.contraction().blocks() == 128);
  CHECK(batch.text().find("8 tiles a block") != std::string::npos);
  Planned parts(product(128, 128, 65536));
  REQUIRE(parts.contraction().splits > 1);
  CHECK(parts.contraction().rounds == 1);
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
  // Of bytes, one side has to lie along its sums; f64 has none.
  CHECK(mayHave(product(256, 256, 512, false, true, "s8", "s32"), By::Ring));
  CHECK(mayHave(product(256, 256, 512, false, false, "s8", "s32"), By::Ring));
  CHECK(mayHave(product(256, 256, 512, true, true, "s8", "s32"), By::Ring));
  for (By by : {By::Groups, By::Ring, By::RingOfTwo})
    CHECK_FALSE(mayHave(product(256, 256, 512, true, false, "s8", "s32"), by));
  CHECK_FALSE(mayHave(product(256, 256, 512, false, true, "f64", "f64"), By::Groups));
  // Blocks that do not come in pairs copy for themselves.
  CHECK(mayHave(product(64, 256, 512), By::RingOfTwo));
  CHECK_FALSE(mayHave(product(64, 128, 512), By::RingOfTwo));
}

TEST_CASE("warpgroups: two blocks share the larger side, if the other one's tiles come in pairs") {
  struct Case {
    int64_t m, n, rows, columns;
    bool sharesRows;
  };
  for (const Case &one :
       {Case{512, 512, 128, 256, false}, Case{512, 512, 256, 128, true}, Case{384, 512, 128, 256, true},
        Case{512, 384, 256, 128, false}, Case{512, 512, 128, 128, false}}) {
    INFO(one.m << " by " << one.n << ", " << one.rows << "x" << one.columns);
    const Planned entry(product(one.m, one.n, 1024));
    PlanContext plans;
    plans.choices.tile = TileSizes{one.rows, one.columns, 64, 3, TileSizes::By::RingOfTwo};
    DiagnosticEngine diagnostics;
    const auto made = planFusion(*entry.graph, {}, *findTarget("sm_90a"), diagnostics, plans);
    REQUIRE(succeeded(made));
    const auto &plan = std::get<ContractionPlan>(std::get<KernelPlan>(made->steps.front()).plan);
    REQUIRE(plan.tile.cluster == 2);
    CHECK(plan.tile.sharesRows == one.sharesRows);
    CHECK(plan.copiersOf(plan.rows) == (one.sharesRows ? 2 : 1));
    CHECK(plan.copiersOf(plan.columns) == (one.sharesRows ? 1 : 2));
    // Of what is shared, each copies half: of rows that lie along their sums half of the rows.
    CHECK(plan.rows.map->recipe.box[1] == uint32_t(one.sharesRows ? one.rows / 2 : one.rows));
  }
}

namespace {

/// Is any of its tiles one whose sums are promoted? (Of f8 as f16 the steps are shorter.)
bool mayPromote(const std::string &entry, std::optional<TileSizes::By> by = std::nullopt) {
  const Planned planned(entry);
  PlanContext plans;
  for (const TileCandidate &one : tileCandidates(*planned.graph, *findTarget("sm_90a"), plans))
    if (one.tile.by != TileSizes::By::Warps && one.tile.depth == 128 && (!by || one.tile.by == *by))
      return true;
  return false;
}

} // namespace

TEST_CASE("warpgroups: f8 is multiplied as it is, and sums are promoted after each step") {
  using By = TileSizes::By;
  for (const char *type : {"f8e4m3fn", "f8e5m2"})
    for (const char *result : {"f32", "bf16"}) {
      Planned planned(product(4096, 4096, 4096, false, true, type, result));
      INFO(planned.text());
      const ContractionPlan &plan = planned.contraction();
      REQUIRE(planned.tile().promotes);
      CHECK(planned.tile().hasProducer);
      CHECK(planned.tile().depth == 128);
      CHECK(plan.factorBits() == 8);
      CHECK(plan.rows.map->recipe.type == TensorMapType::U8);
      CHECK(plan.rows.map->recipe.swizzle == TensorMapSwizzle::Bytes128);
      // Registers for sums, and for those of at most 64 rows by 128 columns that are added to them.
      CHECK(plan.wantedRegisters() >= plan.sums() + plan.columnsPromoted() / 2);
      CHECK(plan.columnsPromoted() <= 128);
      CHECK(plan.registersOfConsumers() >= plan.wantedRegisters());
    }
  const std::string mixed = "a = f8e5m2[256,512] parameter(0) b = f8e4m3fn[256,512] parameter(1) ROOT d = f32[256,256] "
                            "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}";
  for (By by : {By::Groups, By::Ring, By::RingOfTwo})
    CHECK(mayPromote(mixed, by));
  CHECK(mayPromote(mixed + ", algorithm=dot_any_f8_any_f8_f32"));
  CHECK(mayPromote(mixed + ", operand_precision={highest,highest}"));
  // Rows that no tensor map copies, and what is computed on the way of bytes; wider values have too many registers
  // there.
  const std::string odd = product(100, 257, 340, false, true, "f8e4m3fn", "f32"),
                    computed = "[256,512] parameter(0) a = f8e5m2[256,512] NAME(p) b = f8e4m3fn[256,512] parameter(1) "
                               "ROOT d = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}";
  auto of = [&](const std::string &type, const std::string &name) {
    std::string text = "p = " + type + computed;
    return text.replace(text.find("NAME"), 4, name);
  };
  CHECK(mayPromote(odd, By::Groups));
  CHECK_FALSE(mayPromote(odd, By::Ring));
  CHECK_FALSE(mayPromote(product(100, 257, 333, false, true, "f8e4m3fn", "f32"))); // a register for each byte
  CHECK(mayPromote(of("f8e5m2", "negate"), By::Groups));
  CHECK_FALSE(mayPromote(of("f8e5m2", "negate"), By::Ring));
  CHECK(mayPromote(of("bf16", "convert"), By::Groups));
  CHECK_FALSE(mayPromote(of("f32", "convert")));
}

TEST_CASE("warpgroups: sums of f8 are not promoted where more bits are asked for, or there is nothing to win") {
  auto dot = [](const std::string &factors, const std::string &more = "") {
    return factors + " ROOT d = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}" + more;
  };
  const std::string b = " b = f8e4m3fn[256,512] parameter(1)";
  CHECK(mayPromote(dot("a = f8e4m3fn[256,512] parameter(0)" + b)));
  // Widened first, as which f8 have all their bits; so have integers.
  CHECK_FALSE(mayPromote(dot("p = f8e4m3fn[256,512] parameter(0) a = bf16[256,512] convert(p) q = f8e4m3fn[256,512] "
                             "parameter(1) b = bf16[256,512] convert(q)")));
  CHECK_FALSE(mayPromote(dot("p = s8[256,512] parameter(0) a = f8e4m3fn[256,512] convert(p)" + b)));
  CHECK_FALSE(mayPromote(dot("a = f16[256,512] parameter(0)" + b)));
  CHECK_FALSE(mayPromote(dot("a = f8e4m3fn[256,512] parameter(0)" + b, ", algorithm=dot_f32_f32_f32")));
  // Other floats of a byte.
  CHECK_FALSE(mayPromote(product(256, 256, 512, false, true, "f8e4m3fnuz", "f32")));
  CHECK_FALSE(mayPromote(product(256, 256, 512, false, true, "f8e3m4", "f32")));
  // Both across sums, and short ones.
  CHECK(mayPromote(product(256, 256, 512, false, false, "f8e4m3fn", "f32")));
  CHECK_FALSE(mayPromote(product(256, 256, 512, true, false, "f8e4m3fn", "f32")));
  CHECK_FALSE(mayPromote(product(256, 256, 64, false, true, "f8e4m3fn", "f32")));
  CHECK(mayPromote(product(256, 256, 80, false, true, "f8e4m3fn", "f32")));
  for (const char *target : {"sm_89", "sm_90", "sm_100a"})
    CHECK_FALSE(Planned(product(4096, 4096, 4096, false, true, "f8e4m3fn", "f32"), target).tile().promotes);
}

TEST_CASE("warpgroups: bytes that lie across their sums are held, as rows") {
  for (const char *type : {"s8", "f8e4m3fn"}) {
    const bool isFloat = type[0] == 'f';
    const std::string result = isFloat ? "f32" : "s32";
    Planned right(product(2048, 4096, 1024, false, false, type, result));
    INFO(right.text());
    // What lies side by side in the result is rows, whose results are stored in pairs.
    const ContractionPlan &plan = right.contraction();
    REQUIRE(plan.holdsRows());
    CHECK(right.tile().hasProducer);
    CHECK(plan.rows.operand == 1);
    CHECK(plan.rows.size == 4096);
    CHECK(plan.columns.alongDepth);
    CHECK(plan.storesColumns);
    CHECK(plan.areColumnsOfOutputs());
    CHECK(plan.outputVector == 0);
    // 128 bytes of neighbours for each term.
    CHECK(plan.rows.map->recipe.box == std::vector<uint32_t>{uint32_t(plan.panelOf(plan.rows)), 128});
    CHECK(plan.wordsOfHeld() == 16);
    CHECK(plan.wantedRegisters() >= plan.sums() + plan.wordsOfHeld());
    CHECK(plan.registersOfConsumers() >= plan.wantedRegisters());
    CHECK(plan.columnsPromoted() <= (plan.results() >= 128 ? 64 : 128));
    // The left side's are rows anyway.
    Planned left(product(2048, 4096, 1024, true, true, type, result));
    REQUIRE(left.contraction().holdsRows());
    CHECK(left.contraction().rows.operand == 0);
    CHECK_FALSE(left.contraction().storesColumns);
    // Along their sums, nothing is held.
    CHECK_FALSE(Planned(product(2048, 4096, 1024, false, true, type, result)).contraction().holdsRows());
    for (const char *target : {"sm_90", "sm_120"})
      CHECK_FALSE(Planned(product(2048, 4096, 1024, false, false, type, result), target).contraction().holdsRows());
  }
  CHECK_FALSE(Planned(product(2048, 4096, 1024)).contraction().holdsRows());
  // No more than 36 KiB of results are in shared memory at a time, of columns.
  Planned narrow(product(2048, 4096, 1024, false, false, "f8e4m3fn", "bf16"));
  const ContractionPlan &plan = narrow.contraction();
  REQUIRE(plan.areColumnsOfOutputs());
  CHECK(plan.outputVector == 8);
  CHECK(plan.outputStride() == narrow.tile().rows() + 8);
  CHECK(plan.outputElements() == plan.outputStride() * 4 * plan.outputLinesOfThread());
  CHECK(2 * plan.outputElements() <= 36 << 10);
}

TEST_CASE("warpgroups: f32 is rounded to tf32 by the copy, and rows that lie across their sums are held") {
  const std::string tf32 = ", algorithm=dot_tf32_tf32_f32";
  auto dot = [&](bool lhsTransposed, bool rhsTransposed) {
    return product(4096, 4096, 4096, lhsTransposed, rhsTransposed, "f32", "f32") + tf32;
  };
  for (auto [lhs, rhs, isHeld] :
       {std::tuple<bool, bool, bool>{false, true, false}, {false, false, true}, {true, true, true}}) {
    Planned planned(dot(lhs, rhs));
    INFO(planned.text());
    const ContractionPlan &plan = planned.contraction();
    REQUIRE(planned.tile().hasProducer);
    CHECK(plan.holdsRows() == isHeld);
    CHECK(plan.rows.alongDepth != isHeld);
    CHECK(plan.columns.alongDepth);
    CHECK(plan.rows.operand == (isHeld && !lhs ? 1 : 0));
    for (const ContractionSide *side : plan.sides()) {
      REQUIRE(side->map);
      CHECK(side->map->recipe.type == TensorMapType::Tf32);
      CHECK(side->map->recipe.swizzle == TensorMapSwizzle::Bytes128);
    }
    // Half the rate of 16 bits.
    const Planned brain(product(4096, 4096, 4096, lhs, rhs));
    PlanContext plans;
    const double now = tileCandidates(*planned.graph, *findTarget("sm_90a"), plans).front().seconds,
                 narrow = tileCandidates(*brain.graph, *findTarget("sm_90a"), plans).front().seconds;
    CHECK(now < 2.3 * narrow);
    CHECK(now > 1.7 * narrow);
  }
  // One has to lie along its sums; pieces of factors are made in registers; f32 as it is has no tensor cores at all.
  using By = TileSizes::By;
  for (By by : {By::Groups, By::Ring, By::RingOfTwo}) {
    CHECK_FALSE(mayHave(product(256, 256, 512, true, false, "f32", "f32") + tf32, by));
    CHECK_FALSE(mayHave(product(256, 256, 512, false, false, "f32", "f32") + ", algorithm=dot_tf32_tf32_f32_x3", by));
    CHECK_FALSE(mayHave(product(256, 256, 512, false, true, "f32", "f32"), by));
  }
  CHECK_FALSE(
      mayHave(product(256, 256, 512, false, true, "f32", "f32") + ", algorithm=dot_tf32_tf32_f32_x3", By::Ring));
  CHECK(mayHave(product(256, 256, 512, false, false, "f32", "f32") + tf32, By::RingOfTwo));
  // Rows that no tensor map copies are rounded on their way through registers.
  CHECK_FALSE(mayHave(product(256, 257, 513, false, true, "f32", "f32") + tf32, By::Ring));
  CHECK(mayHave(product(256, 257, 513, false, true, "f32", "f32") + tf32, By::Groups));
}

TEST_CASE("warpgroups: f8 takes about half the time of 16 bits, and wider tiles hide what is added") {
  auto fastest = [](const std::string &type) {
    const Planned planned(product(4096, 4096, 4096, false, true, type));
    PlanContext plans;
    const std::vector<TileCandidate> all = tileCandidates(*planned.graph, *findTarget("sm_90a"), plans);
    REQUIRE_FALSE(all.empty());
    return all.front();
  };
  const TileCandidate bytes = fastest("f8e4m3fn"), brain = fastest("bf16");
  CHECK(bytes.tile.depth == 128);
  CHECK(bytes.tile.by >= TileSizes::By::Ring); // alone or of two
  CHECK(bytes.tile.rows * bytes.tile.columns == 128 * 256);
  CHECK(bytes.seconds < 0.65 * brain.seconds);
  CHECK(bytes.seconds > 0.45 * brain.seconds);
}
