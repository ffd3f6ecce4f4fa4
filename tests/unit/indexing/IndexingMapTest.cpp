#include "hloc/indexing/ShapeMaps.h"
#include "unit/indexing/MapTesting.h"

#include <limits>

using namespace hloc;
using namespace hloc::testing;

static constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
static constexpr int64_t largest = std::numeric_limits<int64_t>::max();

TEST_CASE("interval arithmetic saturates and stays saturated") {
  Interval all{smallest, largest};
  CHECK(all + Interval{1, 1} == all);
  CHECK(all + Interval{-1, -1} == all);
  CHECK(-all == all);
  CHECK(all * Interval{0, 0} == Interval{0, 0});
  CHECK(Interval{1, largest} * Interval{-2, -2} == Interval{smallest, -2});
  CHECK(Interval{int64_t(1) << 40, int64_t(1) << 40} * Interval{int64_t(1) << 40, int64_t(1) << 40} ==
        Interval{largest, largest});
  CHECK(all.size() == largest);
  CHECK(Interval{3, 2}.size() == 0);
  CHECK(Interval{-2, 2}.size() == 5);
  CHECK(Interval{0, 3}.intersect({2, 9}) == Interval{2, 3});
  CHECK(Interval{0, 3}.unite({7, 9}) == Interval{0, 9});
  CHECK(Interval{}.unite({7, 9}) == Interval{7, 9});
  CHECK((Interval{} + Interval{7, 9}).isEmpty());
}

TEST_CASE("a slice after a transpose") {
  // p = f32[16,3]; t = transpose(p) = f32[3,16]; r = slice(t), {[0:3], [2:10:2]} = f32[3,4]
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  IndexingMap slice = parseMap("(d0, d1) -> (d0, d1 * 2 + 2), domain: d0 in [0, 2], d1 in [0, 3]", &context);
  IndexingMap transpose = permutationMap({1, 0}, {3, 16}, &context);
  IndexingMap map = compose(slice, transpose);
  CHECK(map.toString() == "(d0, d1) -> (d1 * 2 + 2, d0), domain: d0 in [0, 2], d1 in [0, 3]");
  CHECK(*map.evaluate({2, 3}, {}) == llvm::SmallVector<int64_t>{8, 2});
  CHECK_FALSE(map.evaluate({3, 0}, {}));
}

TEST_CASE("constraints go where they belong") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  IndexingMap map = parseMap("(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9]", &context);
  mlir::AffineExpr d0 = mlir::getAffineDimExpr(0, &context), d1 = mlir::getAffineDimExpr(1, &context);
  map.addConstraint(d0, {2, 20});
  CHECK(map.dims()[0].bounds == Interval{2, 9});
  map.addConstraint(d0 + d1, {3, 10});
  map.addConstraint(d0 + d1, {0, 8});
  REQUIRE(map.constraints().size() == 1);
  CHECK(map.constraints()[0].second == Interval{3, 8});
  map.addConstraint(mlir::getAffineConstantExpr(4, &context), {0, 4});
  CHECK_FALSE(map.isKnownEmpty());
  SECTION("a constant outside") { map.addConstraint(mlir::getAffineConstantExpr(5, &context), {0, 4}); }
  SECTION("a variable outside") { map.addConstraint(d1, {10, 12}); }
  SECTION("an empty intersection") { map.addConstraint(d0 + d1, {9, 12}); }
  SECTION("an impossible sum") {
    map.addConstraint(d0 * 2 + d1, {40, 50});
    map.simplify();
  }
  CHECK(map.isKnownEmpty());
  CHECK(map.toString() == "KNOWN EMPTY");
  CHECK_FALSE(map.evaluate({2, 2}, {}));
}

TEST_CASE("constraints simplify") {
  CHECK(simplified("(d0) -> (d0), domain: d0 in [0, 99], d0 * 2 + 1 in [3, 10]") ==
        "(d0) -> (d0), domain: d0 in [1, 4]");
  CHECK(simplified("(d0) -> (d0), domain: d0 in [0, 99], -d0 in [-7, 5]") == "(d0) -> (d0), domain: d0 in [0, 7]");
  CHECK(simplified("(d0) -> (d0), domain: d0 in [0, 99], d0 / 8 in [1, 2]") == "(d0) -> (d0), domain: d0 in [8, 23]");
  CHECK(simplified("(d0)[s0] -> (d0), domain: d0 in [0, 99], s0 in [0, 3], d0 * 4 + s0 in [0, 39]") ==
        "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3]");
  CHECK(simplified("(d0)[s0] -> (d0), domain: d0 in [0, 99], s0 in [0, 3], d0 * 4 + s0 in [0, 38]") ==
        "(d0)[s0] -> (d0), domain: d0 in [0, 99], s0 in [0, 3], d0 * 4 + s0 in [0, 38]");
  CHECK(
      simplified("(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [0, 12], d0 + d1 + 3 in [0, 18]") ==
      "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [0, 12]");
}

TEST_CASE("composition orders ranges and runtimes second's first, and renumbers both") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  // A dynamic-update-slice's update read through a dynamic-slice, both inside a window.
  IndexingMap first =
      parseMap("(d0)[w0]{r0, r1} -> (d0 * 10 + w0 * 100 + r0 * 1000 + r1 * 10000), domain: d0 in [0, 9], "
               "w0 in [0, 3], r0 in [0, 4], r1 in [0, 5]",
               &context);
  IndexingMap second =
      parseMap("(d0)[v0, v1]{t0} -> (d0 - t0, v0 * 2 + v1 * 3), domain: d0 in [0, 99999], v0 in [0, 6], "
               "v1 in [0, 7], t0 in [0, 8], d0 + v1 - t0 in [0, 50000]",
               &context);
  CHECK(compose(first, second).toString() ==
        "(d0)[v0, v1, w0]{t0, r0, r1} -> (d0 * 10 + w0 * 100 + r0 * 1000 + r1 * 10000 - t0, v0 * 2 + v1 * 3), domain: "
        "d0 in [0, 9], v0 in [0, 6], v1 in [0, 7], w0 in [0, 3], t0 in [0, 8], r0 in [0, 4], r1 in [0, 5], "
        "d0 * 10 + w0 * 100 + r0 * 1000 + r1 * 10000 + v1 - t0 in [0, 50000]");
}

TEST_CASE("composition adds a bounds check only where one is needed") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  IndexingMap first = parseMap("(d0, d1) -> (d0 + d1, d0), domain: d0 in [0, 9], d1 in [0, 9]", &context);
  IndexingMap second = IndexingMap::identity(&context, {15, 10});
  CHECK(compose(first, second).toString() ==
        "(d0, d1) -> (d0 + d1, d0), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [0, 14]");
  CHECK(compose(first, IndexingMap::identity(&context, {0, 10})).isKnownEmpty());
}

TEST_CASE("unused symbols go, with constraints that can always be met") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto cleaned = [&](llvm::StringRef text) {
    IndexingMap map = parseMap(text, &context);
    map.removeUnusedSymbols();
    return map.toString();
  };
  CHECK(cleaned("(d0)[s0, s1]{rt0} -> (s1), domain: d0 in [0, 9], s0 in [0, 3], s1 in [0, 4], rt0 in [0, 1]") ==
        "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 4]");
  // s0 = 0 meets the constraint for every d0 ...
  CHECK(cleaned("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], d0 + s0 * 10 in [0, 20]") ==
        "(d0) -> (d0), domain: d0 in [0, 9]");
  // ... but here no s0 does for d0 = 9.
  std::string needed = "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], d0 + s0 in [0, 8]";
  CHECK(cleaned(needed) == needed);
  // Only s0 = 2 does, which is no corner.
  CHECK(cleaned("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], s0 mod 3 in [2, 2]") ==
        "(d0) -> (d0), domain: d0 in [0, 9]");
  CHECK(cleaned("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], s0 mod 8 in [5, 6]") == "KNOWN EMPTY");
  IndexingMap map = parseMap("(d0)[s0, s1] -> (s1), domain: d0 in [0, 9], s0 in [0, 3], s1 in [0, 4]", &context);
  CHECK(map.removeUnusedSymbols() == llvm::SmallVector<bool>{true, false});
  CHECK(map.removeUnusedDims() == llvm::SmallVector<bool>{true});
}

TEST_CASE("symbols become trailing dims, ranges before runtimes") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  IndexingMap map =
      parseMap("(d0)[s0]{rt0} -> (d0 + s0 * 2 + rt0 * 3), domain: d0 in [0, 9], s0 in [0, 3], rt0 in [0, 4], "
               "d0 + rt0 in [0, 5]",
               &context);
  CHECK(map.symbolsToDims().toString() == "(d0, d1, d2) -> (d0 + d1 * 2 + d2 * 3), domain: d0 in [0, 9], d1 in [0, 3], "
                                          "d2 in [0, 4], d0 + d2 in [0, 5]");
}

TEST_CASE("coefficients that leave int64 leave the expression alone") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::AffineExpr d0 = mlir::getAffineDimExpr(0, &context);
  mlir::AffineExpr huge = (d0.floorDiv(3) * largest + d0 * 5) % 7;
  IndexingMap map(mlir::AffineMap::get(1, 0, (d0 + huge) * 3 + huge * 2), {{{0, 1000}, ""}}, {}, {});
  map.simplify();
  CHECK_FALSE(map.range(map.result(0)).isEmpty());
  IndexingMap unbounded(mlir::AffineMap::get(1, 0, (d0 * 4 + 1).floorDiv(2) % 5), {{{smallest, largest}, ""}}, {}, {});
  unbounded.simplify();
  CHECK(unbounded.range(unbounded.result(0)) == Interval{0, 4});
}
