#include "hloc/fusion/OutputMaps.h"
#include "hloc/fusion/PlanCounts.h"
#include "hloc/fusion/ScorePlaces.h"

#include "unit/fusion/PlannedEntry.h"

#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Planned : test::PlannedEntry {
  explicit Planned(const std::string &entry, const char *target = "sm_90") : PlannedEntry(entry, {}, target) {}
  bool isAttention() const { return plan.steps.size() == 1 && std::holds_alternative<AttentionPlan>(kernel().plan); }
  const AttentionPlan &attention() const { return std::get<AttentionPlan>(kernel().plan); }
  std::string rejection() const { return PlannedEntry::rejection("attention"); }
};

/// Text in which $ is the type of operands, %Q the rows, %K the keys, %T the terms.
std::string filled(std::string text, int64_t rows, int64_t keys, int64_t terms, const std::string &type) {
  const std::pair<std::string, std::string> names[] = {
      {"%Q", std::to_string(rows)}, {"%K", std::to_string(keys)}, {"%T", std::to_string(terms)}, {"$", type}};
  for (const auto &[name, value] : names)
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  return text;
}

const std::string operands = "q = $[2,%Q,%T] parameter(0) k = $[2,%K,%T] parameter(1) v = $[2,%K,%T] parameter(2)\n";
const std::string scores =
    "s = f32[2,%Q,%K] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
    "rhs_contracting_dims={2}\n";
const std::string softmax =
    "least = f32[] constant(-inf) zero = f32[] constant(0)\n"
    "m = f32[2,%Q] reduce(s, least), dimensions={2}, to_apply=max\n"
    "mb = f32[2,%Q,%K] broadcast(m), dimensions={0,1} d = f32[2,%Q,%K] subtract(s, mb)\n"
    "e = f32[2,%Q,%K] exponential(d) l = f32[2,%Q] reduce(e, zero), dimensions={2}, to_apply=add\n"
    "lb = f32[2,%Q,%K] broadcast(l), dimensions={0,1} p = f32[2,%Q,%K] divide(e, lb)\n";
const std::string weights = "w = $[2,%Q,%K] convert(p)\n";
const std::string product =
    "o = $[2,%Q,%T] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
    "rhs_contracting_dims={1}\n";

std::string attention(int64_t rows, int64_t keys, int64_t terms, const std::string &type = "bf16",
                      const std::string &end = "ROOT r = $[2,%Q,%T] negate(o)") {
  return filled(operands + scores + softmax + weights + product + end, rows, keys, terms, type);
}

} // namespace

TEST_CASE("what is between two dots is made of scores in registers") {
  const Planned planned(attention(512, 512, 64));
  REQUIRE(planned.isAttention());
  const AttentionPlan &plan = planned.attention();
  CHECK(plan.scores.rows.size == 512);
  CHECK(plan.keys() == 512);
  CHECK(plan.terms() == 64);
  CHECK(plan.columns() == 64);
  CHECK(plan.stages.size() == 2);
  CHECK(plan.blocks() == 2 * plan.rowTiles());
  CHECK(plan.sharedBytes() == planned.kernel().launch.sharedBytes);
  CHECK(planned.kernel().launch.block.count() == uint64_t(plan.scores.tile.rows() / AttentionPlan::rowsOfWarp * 32));
  // Scores of 512 keys do not fit into registers: they are multiplied for the maximum and the sum, and for the product.
  CHECK_FALSE(plan.holdsScores);
  CHECK(plan.joinsFirstStages());
  CHECK(plan.passes() == 2);
}

TEST_CASE("on sm_90a one warpgroup copies keys and terms into a ring for those that multiply them") {
  const Planned planned(attention(2048, 2048, 128), "sm_90a");
  REQUIRE(planned.isAttention());
  const AttentionPlan &plan = planned.attention();
  INFO(planned.text());
  CHECK(plan.inRing());
  CHECK(plan.scores.tile.ofWarpgroups);
  CHECK(plan.product.tile.hasProducer);
  CHECK(plan.stagesInShared() >= 2);
  CHECK(planned.kernel().launch.block.count() == uint64_t(plan.scores.tile.threads() + 128));
  CHECK(plan.sharedBytes() == planned.kernel().launch.sharedBytes);
  // What those that multiply want they have when the producer has given its own away.
  CHECK(plan.wantedRegisters() <= plan.registersOfConsumers());
  CHECK(int64_t(planned.kernel().plannedRegisters()) < plan.registersOfConsumers());
  const auto maps = tensorMapsOf(planned.kernel().plan);
  REQUIRE(maps.size() == 2);
  CHECK(maps[0]->parameter == 1);
  CHECK(maps[1]->parameter == 2);
  // Tensor maps copy what is stored: keys that are computed come through threads' registers.
  std::string computed = operands + scores + softmax + weights + product + "ROOT r = $[2,%Q,%T] negate(o)";
  computed.replace(computed.find("k = $[2,%K,%T] parameter(1)"), 27,
                   "k0 = $[2,%K,%T] parameter(1) k = $[2,%K,%T] negate(k0)");
  const Planned negated(filled(computed, 2048, 2048, 128, "bf16"), "sm_90a");
  REQUIRE(negated.isAttention());
  CHECK_FALSE(negated.attention().inRing());
  CHECK(tensorMapsOf(negated.kernel().plan).empty());
  // Rows of 34 bytes are where no tensor map reaches.
  const Planned odd(attention(2048, 2048, 17), "sm_90a");
  REQUIRE(odd.isAttention());
  CHECK_FALSE(odd.attention().inRing());
}

TEST_CASE("scores of few keys are multiplied once") {
  const Planned planned(attention(64, 96, 64));
  REQUIRE(planned.isAttention());
  CHECK(planned.attention().holdsScores);
  CHECK(planned.attention().passes() == 1);
  CHECK(planned.attention().workOfScore() == planned.attention().workHeld);
  CHECK_FALSE(planned.attention().joinsFirstStages()); // exponentials are there once, for the sum and the weights
}

TEST_CASE("scores of as many keys as registers hold beside either the rows or the results") {
  const auto holds = [](int64_t keys, int64_t terms) {
    const Planned planned(attention(512, keys, terms));
    REQUIRE(planned.isAttention());
    return planned.attention().holdsScores;
  };
  CHECK(holds(256, 128)); // 128 registers of scores, of which 64 are left when 64 of results begin
  CHECK(holds(300, 80));
  CHECK_FALSE(holds(512, 32));
}

TEST_CASE("keys and terms are copied where they are stored as they are multiplied") {
  const Planned plain(attention(256, 256, 64));
  REQUIRE(plain.isAttention());
  CHECK(plain.attention().scores.rows.copied);
  CHECK(plain.attention().scores.columns.copied);
  CHECK(plain.attention().product.columns.copied);
  // Rows of 34 bytes begin anywhere.
  const Planned odd(attention(256, 256, 17));
  REQUIRE(odd.isAttention());
  CHECK_FALSE(odd.attention().scores.columns.copied);
  std::string computed = operands + scores + softmax + weights + product + "ROOT r = $[2,%Q,%T] negate(o)";
  computed.replace(computed.find("k = $[2,%K,%T] parameter(1)"), 27,
                   "k0 = $[2,%K,%T] parameter(1) k = $[2,%K,%T] negate(k0)");
  const Planned negated(filled(computed, 256, 256, 64, "bf16"));
  REQUIRE(negated.isAttention());
  CHECK_FALSE(negated.attention().scores.columns.copied);
  CHECK(negated.attention().product.columns.copied);
}

namespace {

/// Softmax of scores that are `shown`, a predicate made of iotas `i` of rows and `j` of keys.
std::string masked(const std::string &shown) {
  std::string text = operands + scores +
                     "i = s32[2,%Q,%K] iota(), iota_dimension=1 j = s32[2,%Q,%K] iota(), iota_dimension=2\n" + shown +
                     "no = f32[] constant(-1e30) nob = f32[2,%Q,%K] broadcast(no), dimensions={}\n"
                     "x = f32[2,%Q,%K] select(shown, s, nob)\n" +
                     softmax + weights + product + "ROOT r = $[2,%Q,%T] negate(o)";
  for (const char *read : {"reduce(s, least)", "subtract(s, mb)"})
    text.replace(text.find(read) + std::string(read).find('(') + 1, 1, "x");
  return filled(text, 512, 512, 64, "bf16");
}

} // namespace

TEST_CASE("a mask is asked for in pieces that rows have not all of, if it says which these are") {
  const Planned causal(masked("shown = pred[2,%Q,%K] compare(j, i), direction=LE\n"));
  REQUIRE(causal.isAttention());
  CHECK(causal.attention().masksLogits);
  CHECK(causal.attention().hiddenLogit() == double(-1e30f));
  const Planned both(masked("le = pred[2,%Q,%K] compare(j, i), direction=LE some = pred[2,%Q,%K] parameter(3)\n"
                            "shown = pred[2,%Q,%K] and(le, some)\n"));
  REQUIRE(both.isAttention());
  CHECK(both.attention().skipsPieces);
  CHECK_FALSE(both.attention().masksLogits);

  mlir::MLIRContext context;
  auto at = [](mlir::AffineExpr key, int64_t tile) {
    return llvm::cast<mlir::AffineConstantExpr>(key.replaceDims({mlir::getAffineConstantExpr(tile, key.getContext())}))
        .getValue();
  };
  const KeptKeys kept = causal.attention().keysOfRows(&context);
  CHECK(kept.isAll);
  CHECK(at(kept.ofTile(64).last, 2) == 191);
  CHECK(at(kept.ofEachIn(64)->last, 2) == 128); // the first row of the third tile has keys up to its own
  CHECK_FALSE(both.attention().keysOfRows(&context).isAll);
  CHECK_FALSE(both.attention().keysOfRows(&context).ofEachIn(64));
}

TEST_CASE("the greatest score makes the greatest logit where that is a multiple") {
  const auto scaleIs = [](const std::string &factor) {
    std::string text = operands + scores + "c = f32[] constant(" + factor +
                       ") cb = f32[2,%Q,%K] broadcast(c), dimensions={} x = f32[2,%Q,%K] multiply(cb, s)\n" + softmax +
                       weights + product + "ROOT r = $[2,%Q,%T] negate(o)";
    for (const char *read : {"reduce(s, least)", "subtract(s, mb)"})
      text.replace(text.find(read) + std::string(read).find('(') + 1, 1, "x");
    const Planned planned(filled(text, 512, 512, 64, "bf16"));
    REQUIRE(planned.isAttention());
    return planned.attention().scale;
  };
  CHECK(scaleIs("0.125") == 0.125);
  CHECK(scaleIs("-0.125") == 0);
  CHECK(scaleIs("inf") == 0);
  CHECK(scaleIs("0") == 0);
}

TEST_CASE("a softmax is told from what is made of one") {
  const Planned plain(attention(512, 512, 64));
  REQUIRE(plain.isAttention());
  CHECK(plain.attention().isSoftmax);
  std::string dropped = operands + scores + softmax + weights + product + "ROOT r = $[2,%Q,%T] negate(o)";
  dropped.replace(dropped.find("convert(p)"), 10, "convert(pd)");
  dropped.insert(dropped.find("w = "), "kept = f32[2,%Q,%K] parameter(3) pd = f32[2,%Q,%K] multiply(p, kept)\n");
  const Planned planned(filled(dropped, 512, 512, 64, "bf16"));
  REQUIRE(planned.isAttention());
  CHECK_FALSE(planned.attention().isSoftmax);
  CHECK(planned.attention().joinsFirstStages());
}

TEST_CASE("terms and columns are rounded up to fragments, not to tiles") {
  const Planned planned(attention(128, 300, 80));
  REQUIRE(planned.isAttention());
  CHECK(planned.attention().terms() == 80);
  CHECK(planned.attention().columns() == 80);
  CHECK(planned.attention().scores.tile.depth == 128);
}

TEST_CASE("a maximum and the sum of exponentials go through the keys together, other reductions do not") {
  const std::string end = "ROOT r = $[2,%Q,%T] negate(o)";
  const auto stages = [&](std::string between) {
    const Planned planned(filled(operands + scores + between + weights + product + end, 512, 512, 64, "bf16"));
    REQUIRE(planned.isAttention());
    return planned.attention();
  };
  CHECK(stages(softmax).passes() == 2);
  // A maximum that begins with a number; a sum of something else.
  std::string begun = softmax;
  begun.replace(begun.find("-inf"), 4, "-3");
  CHECK(stages(begun).passes() == 3);
  std::string squares = softmax;
  squares.replace(squares.find("exponential(d)"), 14, "multiply(d, d)");
  CHECK(stages(squares).passes() == 3);
  // No reduction at all.
  const AttentionPlan plain = stages("p = f32[2,%Q,%K] logistic(s)\n");
  CHECK(plain.stages.empty());
  CHECK(plain.passes() == 1);
}

TEST_CASE("outputs with one element a row beside outputs that are elsewhere") {
  const Planned planned(attention(64, 64, 32, "f16",
                                  "n = f32[2,%Q] log(l) t = $[%Q,2,%T] transpose(o), dimensions={1,0,2}\n"
                                  "ROOT r = ($[%Q,2,%T], f32[2,%Q]) tuple(t, n)"));
  REQUIRE(planned.isAttention());
  CHECK(planned.attention().product.roots == llvm::SmallVector<unsigned>{0});
  CHECK(planned.attention().resultRoots == llvm::SmallVector<unsigned>{1});
  mlir::MLIRContext context;
  const IndexingMap place = outputMaps(*planned.graph, *planned.attention().product.hero, {0}, &context).front();
  CHECK(place.evaluate({1, 5, 7}, {}) == llvm::SmallVector<int64_t>{5, 1, 7});
  CHECK(neighboursKept(place, planned.graph->roots()[0].shape, 2, 8) == 8);
  CHECK(neighboursKept(place, planned.graph->roots()[0].shape, 1, 8) == 1);
}

TEST_CASE("what is no attention says why") {
  const auto rejection = [](const std::string &entry, const char *target = "sm_90") {
    const Planned planned(entry, target);
    CHECK_FALSE(planned.isAttention());
    return planned.rejection();
  };
  CHECK(rejection(attention(64, 64, 32, "f32")) == "`s` is not multiplied by fragments of 16 bits");
  CHECK(rejection(attention(64, 64, 32), "sm_75") == "`s` is not multiplied by fragments of 16 bits");
  CHECK(rejection(attention(64, 64, 32, "bf16", "ROOT r = ($[2,%Q,%T], f32[2,%Q,%K]) tuple(o, p)")) ==
        "output 1 is made neither of `o` nor of rows of scores");
  CHECK(rejection(attention(64, 64, 32, "bf16", "ROOT r = $[%Q,%T,2] transpose(o), dimensions={1,2,0}")) ==
        "output 0 has other neighbours than `o`");
  // Weights of other rows than their scores'.
  std::string reversed = operands + scores + softmax +
                         "pr = f32[2,%Q,%K] reverse(p), dimensions={1} w = $[2,%Q,%K] convert(pr)\n" + product +
                         "ROOT r = $[2,%Q,%T] negate(o)";
  CHECK(rejection(filled(reversed, 64, 64, 32, "bf16")) == "elements of `s` are not those of `w`, one for each");
  // Of sums of other rows than the maximum's.
  std::string other = softmax;
  other.replace(other.find("lb = f32[2,%Q,%K] broadcast(l)"), 30,
                "lr = f32[2,%Q] reverse(l), dimensions={1} lb = f32[2,%Q,%K] broadcast(lr)");
  CHECK(rejection(filled(operands + scores + other + weights + product + "ROOT r = $[2,%Q,%T] negate(o)", 64, 64, 32,
                         "bf16")) == "`l` reads scores, or what rows come to, at other places than its own");
}

TEST_CASE("outputs of rows have all that they are made of at their own row") {
  const auto planned = [](const std::string &end) {
    return Planned(attention(64, 64, 32, "bf16", end + "ROOT r = ($[2,%Q,%T], f32[2,%Q]) tuple(o, n)"));
  };
  CHECK(planned("c = f32[2,%Q] add(m, l) n = f32[2,%Q] multiply(c, m)\n").isAttention());
  CHECK(planned("c = f32[2,%Q] reverse(m), dimensions={1} n = f32[2,%Q] add(m, c)\n").rejection() ==
        "`c` reads scores, or what rows come to, at other places than its own");
  CHECK(planned("c = f32[2,%Q,1] slice(s), slice={[0:2], [0:%Q], [0:1]} u = f32[2,%Q] reshape(c)\n"
                "n = f32[2,%Q] add(m, u)\n")
            .rejection() == "`c` reads scores, or what rows come to, at other places than its own");
  // What is reduced for an output alone.
  const Planned squares =
      planned("c = f32[2,%Q,%K] multiply(s, s) n = f32[2,%Q] reduce(c, zero), dimensions={2}, to_apply=add\n");
  REQUIRE(squares.isAttention());
  CHECK(squares.attention().resultRoots == llvm::SmallVector<unsigned>{1});
}

TEST_CASE("outputs may have neighbours of a column side by side") {
  const Planned planned(attention(64, 64, 32, "bf16", "ROOT r = $[2,%T,%Q] transpose(o), dimensions={0,2,1}"));
  REQUIRE(planned.isAttention());
  CHECK(planned.attention().product.storesColumns);
  CHECK(planned.attention().product.outputVector == 8);
  const Planned odd(attention(66, 64, 32, "bf16", "ROOT r = $[2,%T,%Q] transpose(o), dimensions={0,2,1}"));
  REQUIRE(odd.isAttention());
  CHECK(odd.attention().product.outputVector == 2);
}

TEST_CASE("rows of scores may be in another order than those of weights") {
  // Of each key's head, rows t of three heads g: [h,t,g] in the scores, [g,h,t] in the weights, h and (g,t) in results.
  const Planned planned(
      R"(q = bf16[2,32,3,16] parameter(0) k = bf16[2,64,16] parameter(1) v = bf16[2,64,16] parameter(2)
    s = f32[2,32,3,64] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_batch_dims={0}, rhs_contracting_dims={2}
    t = f32[3,2,32,64] transpose(s), dimensions={2,0,1,3}
    least = f32[] constant(-inf) zero = f32[] constant(0)
    m = f32[3,2,32] reduce(t, least), dimensions={3}, to_apply=max
    mb = f32[3,2,32,64] broadcast(m), dimensions={0,1,2} d = f32[3,2,32,64] subtract(t, mb)
    e = f32[3,2,32,64] exponential(d) l = f32[3,2,32] reduce(e, zero), dimensions={3}, to_apply=add
    lb = f32[3,2,32,64] broadcast(l), dimensions={0,1,2} p = f32[3,2,32,64] divide(e, lb)
    w = bf16[3,2,32,64] convert(p)
    o = bf16[2,16,3,32] dot(v, w), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={1}, rhs_contracting_dims={3}
    n = f32[3,2,32] log(l)
    ROOT r = (bf16[2,16,3,32], f32[3,2,32]) tuple(o, n))");
  REQUIRE(planned.isAttention());
  const AttentionPlan &plan = planned.attention();
  CHECK(plan.scores.batchSize == 2);
  CHECK(plan.scores.rows.dims == llvm::SmallVector<unsigned>{2, 1});
  CHECK(plan.product.rows.dims == llvm::SmallVector<unsigned>{2, 3});
  CHECK(plan.product.storesColumns);
  mlir::MLIRContext context;
  const ScorePlaces places(plan, &context);
  // Row 37 is the fifth of the second head.
  CHECK(places.ofThread(*places.at(*plan.scores.hero)).evaluate({1, 37, 9}, {}) ==
        llvm::SmallVector<int64_t>{1, 5, 1, 9});
  CHECK(places.ofThread(*places.at(plan.weights())).evaluate({1, 37, 9}, {}) == llvm::SmallVector<int64_t>{1, 1, 5, 9});
  const FusionRoot &logarithms = planned.graph->roots()[1];
  const IndexingMap ofRow = places.follow(*planned.graph, {}).at(*logarithms.instr)->map;
  CHECK(places.ofThreadsRow(ofRow).evaluate({1, 37}, {}) == llvm::SmallVector<int64_t>{1, 1, 5});
}

namespace {

/// ds = w (g v - sum(w g v)), made of scores and of what is beside them, with what rows of scores came to from memory.
const std::string gradient =
    "q = $[2,%Q,%T] parameter(0) k = $[2,%K,%T] parameter(1) v = $[2,%K,%T] parameter(2) g = $[2,%Q,%T] parameter(3)\n"
    "m = f32[2,%Q] parameter(4) l = f32[2,%Q] parameter(5)\n" +
    scores +
    "mb = f32[2,%Q,%K] broadcast(m), dimensions={0,1} d = f32[2,%Q,%K] subtract(s, mb)\n"
    "e = f32[2,%Q,%K] exponential(d) lb = f32[2,%Q,%K] broadcast(l), dimensions={0,1} p = f32[2,%Q,%K] divide(e, lb)\n"
    "x = $[2,%Q,%K] dot(g, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
    "rhs_contracting_dims={2}\n"
    "xf = f32[2,%Q,%K] convert(x)\n";
const std::string ofRows =
    "zero = f32[] constant(0) px = f32[2,%Q,%K] multiply(p, xf)\n"
    "r = f32[2,%Q] reduce(px, zero), dimensions={2}, to_apply=add rb = f32[2,%Q,%K] broadcast(r), dimensions={0,1}\n"
    "less = f32[2,%Q,%K] subtract(xf, rb) ds = f32[2,%Q,%K] multiply(less, p)\n";
const std::string fromMemory = "r = f32[2,%Q] parameter(6) rb = f32[2,%Q,%K] broadcast(r), dimensions={0,1}\n"
                               "less = f32[2,%Q,%K] subtract(xf, rb) ds = f32[2,%Q,%K] multiply(less, p)\n";

} // namespace

TEST_CASE("a gradient's factor is made of two dots, and multiplied by the keys of one") {
  const std::string ofQueries = "kf = f32[2,%K,%T] convert(k)\n"
                                "o = f32[2,%Q,%T] dot(ds, kf), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                                "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n";
  const Planned planned(
      filled(gradient + ofRows + ofQueries + "ROOT t = (f32[2,%Q,%T], f32[2,%Q]) tuple(o, r)", 256, 128, 64, "bf16"));
  REQUIRE(planned.isAttention());
  const AttentionPlan &plan = planned.attention();
  REQUIRE(plan.beside);
  CHECK(plan.scores.hero->name() == "s");
  CHECK(plan.beside->hero->name() == "x");
  CHECK(plan.stagesBeside == llvm::SmallVector<bool, 2>{true});
  CHECK(plan.passes() == 2);
  CHECK(plan.passesOfBeside() == 2);
  CHECK(plan.piecesOfWeight() == 3);
  CHECK_FALSE(plan.holdsScores);
  CHECK(plan.resultRoots == llvm::SmallVector<unsigned>{1});
  CHECK(plan.sharedBytes() == planned.kernel().launch.sharedBytes);
  // Two tiles of rows, two stages of keys and one of those beside.
  CHECK(int64_t(plan.sharedBytes()) >= 2 * (2 * plan.scores.tile.rows() + 3 * plan.piece()) * 64);
}

TEST_CASE("the gradient of keys has keys as rows") {
  const std::string ofKeys = "dn = $[2,%Q,%K] convert(ds)\n"
                             "o = $[2,%K,%T] dot(dn, q), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                             "lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
                             "ROOT n = $[2,%K,%T] negate(o)";
  const Planned planned(filled(gradient + fromMemory + ofKeys, 256, 128, 64, "bf16"));
  REQUIRE(planned.isAttention());
  const AttentionPlan &plan = planned.attention();
  REQUIRE(plan.beside);
  CHECK(plan.scores.rows.size == 128);
  CHECK(plan.keys() == 256);
  CHECK(plan.scores.rows.operand == 1);
  CHECK(plan.stages.empty());
  CHECK(plan.piecesOfWeight() == 1);
  // What rows come to is not known where keys are rows.
  const Planned reduced(filled(gradient + ofRows + ofKeys, 256, 128, 64, "bf16"));
  CHECK(reduced.rejection() == "`r` reads scores, or what rows come to, at other places than its own");
  // Keys that were rounded are not what the last dot multiplies.
  const std::string whole = "s = f32[2,%Q,%K] dot(q, k)";
  std::string rounded = gradient;
  rounded.replace(rounded.find(whole), whole.size(),
                  "q8 = f8e5m2[2,%Q,%T] convert(q) k8 = f8e5m2[2,%K,%T] convert(k) s = f32[2,%Q,%K] dot(q8, k8)");
  const Planned unlike(filled(rounded + fromMemory + ofKeys, 256, 128, 64, "f16"));
  CHECK(unlike.rejection() == "terms of `o` are factors neither of `s` nor of `x`");
  // Terms that are no keys would be a third tile.
  std::string third = ofKeys;
  third.replace(third.find("dot(dn, q)"), 10, "dot(dn, z)");
  const Planned other(filled("z = $[2,%Q,%T] parameter(7)\n" + gradient + fromMemory + third, 256, 128, 64, "bf16"));
  CHECK(other.rejection() == "terms of `o` are factors neither of `s` nor of `x`");
}

TEST_CASE("on sm_90a a gradient's two tiles of keys come by one ring") {
  const std::string ofQueries = "kf = f32[2,%K,%T] convert(k)\n"
                                "o = f32[2,%Q,%T] dot(ds, kf), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                                "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n";
  const std::string text = gradient + ofRows + ofQueries + "ROOT t = (f32[2,%Q,%T], f32[2,%Q]) tuple(o, r)";
  // Also where weights of f32 are three pieces of registers beside 64 sums.
  for (int64_t terms : {64, 128}) {
    const Planned planned(filled(text, 16384, 2048, terms, "bf16"), "sm_90a");
    REQUIRE(planned.isAttention());
    const AttentionPlan &plan = planned.attention();
    INFO(planned.text());
    REQUIRE(plan.beside);
    REQUIRE(plan.inRing());
    CHECK(&plan.secondInRing() == &*plan.beside);
    CHECK(plan.beside->tile.hasProducer);
    CHECK(plan.wantedRegisters() <= plan.registersOfConsumers());
    CHECK(plan.sharedBytes() == planned.kernel().launch.sharedBytes);
    // Keys of both dots are copied: terms are those of the first.
    const auto maps = tensorMapsOf(planned.kernel().plan);
    REQUIRE(maps.size() == 2);
    CHECK(maps[0]->parameter == 1);
    CHECK(maps[1]->parameter == 2);
  }
  const Planned elsewhere(filled(text, 16384, 2048, 64, "bf16"));
  REQUIRE(elsewhere.isAttention());
  CHECK_FALSE(elsewhere.attention().inRing());
}

TEST_CASE("attention counts the scores of each pass") {
  const auto countsAt = [](int64_t keys) { return countsOf(Planned(attention(512, keys, 64)).attention()); };
  const PlanCounts some = countsAt(512), twice = countsAt(1024);
  // Two passes of scores and one of weights: rows x keys x 64 each, of two batches.
  CHECK(some.products == 3.0 * 2 * 512 * 512 * 64);
  CHECK(twice.products == 2 * some.products);
  CHECK(twice.memoryRoundTrips > some.memoryRoundTrips);
}

namespace {

/// A softmax whose results are divided, marked as one that may be rounded at any scale or not.
std::string undivided(int64_t rows, int64_t keys, int64_t terms, bool isMarked, const std::string &mask = "",
                      const std::string &end = "ROOT r = $[2,%Q,%T] convert(q2)") {
  const std::string mark = isMarked ? ", frontend_attributes={hloc_softmax=\"online\"}" : "";
  std::string powers = softmax.substr(0, softmax.find("lb ="));
  if (!mask.empty())
    for (const char *read : {"reduce(s,", "subtract(s,"})
      powers.insert(powers.find(read) + std::string(read).size() - 1, "x");
  return filled(operands + scores + mask + powers + "w = $[2,%Q,%K] convert(e)" + mark +
                    "\no = f32[2,%Q,%T] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                    "rhs_contracting_dims={1}" +
                    mark + "\nlb = f32[2,%Q,%T] broadcast(l), dimensions={0,1}\nq2 = f32[2,%Q,%T] divide(o, lb)\n" +
                    end,
                rows, keys, terms, "bf16");
}

const std::string causal = "i = s32[2,%Q,%K] iota(), iota_dimension=1 j = s32[2,%Q,%K] iota(), iota_dimension=2\n"
                           "kept = pred[2,%Q,%K] compare(j, i), direction=LE no = f32[] constant(%H)\n"
                           "nos = f32[2,%Q,%K] broadcast(no), dimensions={} sx = f32[2,%Q,%K] select(kept, s, nos)\n";

std::string causalBehind(const std::string &hidden) {
  std::string mask = causal;
  return mask.replace(mask.find("%H"), 2, hidden);
}

} // namespace

TEST_CASE("a softmax that is divided behind its dot goes through the keys once if it may") {
  for (bool isMarked : {true, false}) {
    const Planned planned(undivided(512, 512, 64, isMarked));
    INFO(planned.text());
    REQUIRE(planned.isAttention());
    const AttentionPlan &plan = planned.attention();
    CHECK(plan.isOnline == isMarked);
    CHECK(plan.isSoftmax == isMarked);
    CHECK(plan.passes() == (isMarked ? 1 : 2));
    CHECK_FALSE(plan.holdsScores);
    CHECK(plan.quotient->name() == "q2");
    CHECK(plan.finished->name() == "r");
    CHECK(plan.divisor == 1);
    CHECK(plan.storesInRowTile());
    CHECK(plan.sharedBytes() == planned.kernel().launch.sharedBytes);
  }
  const PlanCounts once = countsOf(Planned(undivided(512, 512, 64, true)).attention()),
                   twice = countsOf(Planned(attention(512, 512, 64)).attention());
  CHECK(once.products == 2.0 * 2 * 512 * 512 * 64);
  CHECK(3 * once.products == 2 * twice.products);
  CHECK(once.instructions < twice.instructions);
}

TEST_CASE("few keys of a softmax that is divided behind its dot are in registers") {
  const Planned planned(undivided(64, 96, 64, true));
  REQUIRE(planned.isAttention());
  CHECK(planned.attention().isOnline);
  CHECK(planned.attention().holdsScores);
}

TEST_CASE("an online softmax leaves out what a mask hides") {
  const Planned infinite(undivided(1024, 1024, 64, true, causalBehind("-inf"))),
      finite(undivided(1024, 1024, 64, true, causalBehind("-1e30")));
  for (const Planned *planned : {&infinite, &finite}) {
    REQUIRE(planned->isAttention());
    const AttentionPlan &plan = planned->attention();
    CHECK(plan.isOnline);
    CHECK(plan.skipsPieces);
    CHECK(plan.masksLogits);
    CHECK(plan.keptTerms() == plan.keptPieces);
    CHECK(plan.keptPieces < 0.6);
  }
  // Rows that have nothing but what is hidden have its weights, unless these are no numbers.
  CHECK_FALSE(infinite.attention().mayWeighHidden());
  CHECK(finite.attention().mayWeighHidden());
}

TEST_CASE("what is divided by something else, or is read before, is no quotient of a softmax") {
  const std::string root = "ROOT r = $[2,%Q,%T] convert(q2)";
  std::string other = undivided(64, 64, 32, true);
  other.replace(other.find("broadcast(l)"), 12, "broadcast(m)");
  const Planned byMaximum(other);
  REQUIRE(byMaximum.isAttention());
  CHECK_FALSE(byMaximum.attention().isOnline);
  CHECK(byMaximum.attention().divisor == 0);
  const Planned readBefore(undivided(64, 64, 32, true, "", "ROOT r = (f32[2,%Q,%T], f32[2,%Q,%T]) tuple(q2, o)"));
  CHECK_FALSE(readBefore.isAttention());
  CHECK(readBefore.rejection() == "`lb` reads scores, or what rows come to, at other places than its own");
}
