#include "hloc/indexing/Divisibility.h"
#include "unit/indexing/KernelMaps.h"

using namespace hloc;
using namespace hloc::testing;

namespace {

struct Fixture {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::AffineExpr s0 = mlir::getAffineSymbolExpr(0, &context);

  /// Stride in s0 and alignment of the rest, of result 0 of the map.
  std::pair<std::optional<int64_t>, int64_t> vectorFacts(const IndexingMap &map) {
    mlir::AffineExpr start = map.result(0).replace(s0, mlir::getAffineConstantExpr(0, &context));
    return {strideOf(map.result(0), s0, map), knownDivisor(start, map)};
  }
  std::pair<std::optional<int64_t>, int64_t> vectorFacts(const std::string &expression) {
    return vectorFacts(parseMap(
        "(th, bl)[s0] -> (" + expression + "), domain: th in [0, 127], bl in [0, 63], s0 in [0, 3]", &context));
  }
};

using Facts = std::pair<std::optional<int64_t>, int64_t>;

} // namespace

TEST_CASE_METHOD(Fixture, "strides through floordiv and mod that do not wrap within a vector") {
  CHECK(vectorFacts("th * 4 + s0") == Facts{1, 4});
  CHECK(vectorFacts("(th * 4 + s0) mod 64") == Facts{1, 4});
  CHECK(vectorFacts("(th * 4 + s0) / 4 + s0 * 2") == Facts{2, 1});
  CHECK(vectorFacts("((th * 4 + bl * 12 + s0) mod 300) + (bl * 8)") == Facts{1, 4});
  CHECK(vectorFacts("(th * 8 + s0 * 2 + 1) mod 24").first == 2);
  CHECK(vectorFacts("(th * 4 + 3 - s0) mod 20").first == -1);
  CHECK(vectorFacts("th * 16 + s0 * 0") == Facts{0, 16});
  CHECK(vectorFacts("s0 * 0 + th / 200") == Facts{0, 0});
}

TEST_CASE_METHOD(Fixture, "strides that wrap are not strides") {
  CHECK(vectorFacts("(th * 3 + s0) mod 64").first == std::nullopt);
  CHECK(vectorFacts("(th * 4 + s0 + 1) mod 64").first == std::nullopt);
  CHECK(vectorFacts("(th * 4 + s0) mod 30").first == std::nullopt);
  CHECK(vectorFacts("(th * 4 + s0) / 2").first == std::nullopt);
  CHECK(vectorFacts("(th * 4 + s0) mod 2").first == std::nullopt);
}

TEST_CASE_METHOD(Fixture, "a vector is on one side of a bound that is a multiple of its length") {
  auto sameSide = [&](const std::string &expression, int64_t bound) {
    IndexingMap map =
        parseMap("(th, bl)[s0] -> (" + expression + "), domain: th in [0, 127], bl in [0, 63], s0 in [0, 3]", &context);
    return isSameSide(map.result(0), bound, s0, map);
  };
  CHECK(sameSide("(th * 4 + s0) mod 64", 32));
  CHECK_FALSE(sameSide("(th * 4 + s0) mod 64", 33));
  CHECK_FALSE(sameSide("(th * 4 + s0) mod 64", 31));
  CHECK(sameSide("(th * 4 + s0) mod 64", 64)); // below it everywhere
  CHECK(sameSide("th * 4 + s0 - 8", 0));
  CHECK_FALSE(sameSide("th * 4 + s0 - 9", 0));
  CHECK(sameSide("th * 4 + s0 - 9", -9));
  CHECK(sameSide("th * 12 - s0 + 3", 8));
  CHECK_FALSE(sameSide("th * 12 - s0", 8));
  CHECK_FALSE(sameSide("th * 3 + s0", 6));
  CHECK(sameSide("th", 5));
}

TEST_CASE_METHOD(Fixture, "elements some distance apart begin in a vector that has several of them") {
  auto offset = [&](const std::string &expression, int64_t spacing, unsigned bits, int64_t elements = 1 << 20) {
    IndexingMap map = parseMap("(th) -> (" + expression + "), domain: th in [0, 127]", &context);
    return offsetInWideVectors(map.result(0), map, spacing, 4 * spacing, bits, elements);
  };
  CHECK(offset("th * 8", 2, 32) == 0);
  CHECK(offset("th * 8 + 1", 2, 32) == 1);
  CHECK(offset("th * 12 + 2", 3, 16) == std::nullopt); // twelve elements are no vectors of eight
  CHECK(offset("th * 8 + 9", 2, 16) == 1);
  CHECK(offset("th * 6", 2, 32) == std::nullopt);  // pairs, with one element each
  CHECK(offset("th * 16", 4, 32) == std::nullopt); // four to an element
  CHECK(offset("th * 8", 2, 64) == std::nullopt);
  // The array must end with a vector, as long as they may become.
  CHECK(offset("th * 8", 2, 32, 1024 + 8) == 0);
  CHECK(offset("th * 8", 2, 32, 1024 + 4) == std::nullopt);
  CHECK(offset("th * 4", 2, 32, 1024 + 4) == 0);
}

TEST_CASE_METHOD(Fixture, "accesses of a loop kernel are vectors exactly where rows keep them together") {
  Sizes shape{20, 40, 300}, odd{20, 40, 301};
  CHECK(vectorFacts(chain({threadMap(shape, 4, &context), flattenMap(shape, &context)})) == Facts{1, 4});
  std::string domain = ", domain: d0 in [0, 19], d1 in [0, 39], d2 in [0, 299]";
  auto sliced = [&](std::string results, Sizes from) {
    return vectorFacts(chain({threadMap(shape, 4, &context), parseMap("(d0, d1, d2) -> " + results + domain, &context),
                              flattenMap(from, &context)}));
  };
  CHECK(sliced("(d0, d1, d2 + 4)", {20, 40, 304}) == Facts{1, 4});
  CHECK(sliced("(d0, d1, d2 + 2)", {20, 40, 304}) == Facts{1, 2});
  CHECK(sliced("(d0, d1, d2)", odd) == Facts{1, 1});
  // A broadcast along the rows reads one element a vector.
  CHECK(vectorFacts(chain({threadMap(shape, 4, &context), parseMap("(d0, d1, d2) -> (d1)" + domain, &context)})) ==
        Facts{0, 1});
  CHECK(vectorFacts(chain({threadMap(odd, 4, &context), flattenMap(odd, &context)})) == Facts{1, 4});
}

TEST_CASE_METHOD(Fixture, "divisors come from constraints and constants too") {
  IndexingMap map =
      parseMap("(d0, d1) -> (d0, d0 * 6 + d1 * 4, (d0 * 24) / 4, (d1 * 12) mod 8), domain: d0 in [0, 99], "
               "d1 in [0, 99], d0 mod 6 in [0, 0]",
               &context);
  CHECK(knownDivisor(map.result(0), map) == 6);
  CHECK(knownDivisor(map.result(1), map) == 4);
  CHECK(knownDivisor(map.result(2), map) == 36);
  CHECK(knownDivisor(map.result(3), map) == 4);
  CHECK(knownDivisor(mlir::getAffineConstantExpr(-12, &context), map) == 12);
  CHECK(knownDivisor(mlir::getAffineConstantExpr(0, &context), map) == 0);
}

TEST_CASE_METHOD(Fixture, "what is left without the rest of a division is a multiple") {
  IndexingMap map = parseMap("(d0, d1) -> (d0 * 4097 + d1 * 4 + 3 - ((d0 * 4097 + 3) mod 4), d0 - (d0 mod 6) * 2, "
                             "d0 * 5 - d0 mod 4, d0 - (d0 + 1) mod 4, ((d0 - d0 mod 8) floordiv 4) * 3 - 6, "
                             "d0 mod 7 + d1 * 8 - (d0 mod 7 + 3) mod 4 + 3), "
                             "domain: d0 in [0, 99], d1 in [0, 99]",
                             &context);
  CHECK(knownDivisor(map.result(0), map) == 4);
  CHECK(knownDivisor(map.result(1), map) == 1); // of -d0, give or take multiples of 12
  CHECK(knownDivisor(map.result(2), map) == 4);
  CHECK(knownDivisor(map.result(3), map) == 1); // -1, or 3
  CHECK(knownDivisor(map.result(4), map) == 6);
  CHECK(knownDivisor(map.result(5), map) == 4); // without the second mod, not without the first
}
