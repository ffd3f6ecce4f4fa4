// Properties that hold for any map, on random maps over domains small enough to visit every point.

#include "hloc/indexing/Divisibility.h"
#include "unit/indexing/MapTesting.h"

#include <map>
#include <set>

using namespace hloc;
using namespace hloc::testing;

static constexpr unsigned mapCount = 3000;

TEST_CASE("a simplified map equals the original on every point, and simplifying is idempotent") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  RandomMaps random(&context, 1);
  unsigned changedCount = 0;
  for (unsigned i = 0; i < mapCount; ++i) {
    IndexingMap original = random.map(random.number(1, 3), 2, 4, random.number(0, 3));
    IndexingMap map = original;
    bool changed = map.simplify();
    changedCount += changed;
    INFO(original.toString() << "\n  simplified: " << map.toString());
    CHECK(changed == !(map == original));
    CHECK_FALSE(map.simplify());
    if (!map.isKnownEmpty()) { // built anew, so that nothing remembers that it is simplified
      IndexingMap again(map.affine(), map.dims(), map.ranges(), map.runtimes(), map.constraints());
      CHECK_FALSE(again.simplify());
    }
    unsigned failures = 0;
    forEachPoint(original, [&](auto dims, auto symbols) {
      failures += original.evaluate(dims, symbols) != map.evaluate(dims, symbols);
    });
    REQUIRE(failures == 0);
  }
  CHECK(changedCount > mapCount / 2);
}

TEST_CASE("rules hold at their edges") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  const char *results[] = {"(d0 * 8 + d1) mod 16",
                           "(d0 * 8 + d1) / 16",
                           "(d0 * 8 - d1) mod 16",
                           "(d0 * 4 + d1 + 3) / 8",
                           "((d0 mod 3) * 4 + s0) / 6",
                           "((d0 mod 3) * 4 + s0 - 1) / 6",
                           "((d0 mod 3) * 4 + s0 + 1) / 6",
                           "((d0 mod 3) * 4 - s0) / 6",
                           "(d0 mod 6) * 5 + (d0 / 6) * 30",
                           "(d0 mod 6) * 5 + (d0 / 6) * 25",
                           "d0 * 3 - (d0 / 4) * 12",
                           "d0 * 3 - (d0 / 4) * 8",
                           "((d0 / 4) mod 3) * 4 + d0 mod 4",
                           "((d0 / 4 + d1) mod 3) * 8 + (d0 mod 4) * 2",
                           "((d0 / 4) mod 3) * 4 + d1 mod 4",
                           "(d0 / 3 + d1) / 4",
                           "(d0 / 3 + d1 / 2) / 4",
                           "(d0 / 3 - d1) / 4",
                           "((d0 / 3) * 2 + d1) / 4",
                           "(d0 mod 12 + d1 * 6) mod 4",
                           "(d0 mod 12 + d1 * 6) mod 5",
                           "(d0 mod 6) * 2 mod 12",
                           "(d0 mod 6) * 2 mod 8",
                           "(d0 ceildiv 3) * 3 - d0",
                           "(d0 * -4 + s0 + 11) / 8",
                           "(d0 * -4 + s0 + 11) mod 8"};
  const char *domains[] = {
      "d0 in [0, 40], d1 in [0, 7], s0 in [0, 3]",
      "d0 in [-20, 20], d1 in [8, 15], s0 in [0, 3]",
      "d0 in [-9, 30], d1 in [-8, -1], s0 in [2, 3]",
      "d0 in [3, 29], d1 in [-3, 12], s0 in [-1, 2], d0 * 4 + d1 in [10, 60]",
      "d0 in [0, 40], d1 in [0, 9], s0 in [0, 3], d0 / 3 + d1 in [2, 9]",
      "d0 in [0, 40], d1 in [0, 9], s0 in [0, 3], d0 * 8 + d1 * 2 + s0 in [17, 90], d0 mod 4 in [1, 2]",
      "d0 in [-9, 30], d1 in [-8, 9], s0 in [0, 3], (d0 - d1) / 4 in [-2, 1], d0 * 4 + s0 in [-9, 49]"};
  for (const char *result : results) {
    for (const char *domain : domains) {
      IndexingMap original =
          parseMap(("(d0, d1)[s0] -> (" + llvm::Twine(result) + "), domain: " + domain).str(), &context);
      IndexingMap map = original;
      map.simplify();
      INFO(original.toString() << "\n  simplified: " << map.toString());
      unsigned failures = 0, inside = 0;
      forEachPoint(original, [&](auto dims, auto symbols) {
        auto expected = original.evaluate(dims, symbols);
        inside += expected.has_value();
        failures += expected != map.evaluate(dims, symbols);
      });
      REQUIRE(inside > 0);
      REQUIRE(failures == 0);
    }
  }
}

TEST_CASE("range contains every value an expression takes") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  RandomMaps random(&context, 2);
  for (unsigned i = 0; i < mapCount; ++i) {
    IndexingMap map = random.map(2, 2, 4, random.number(0, 2));
    if (i % 2)
      map.simplify();
    llvm::SmallVector<Interval> ranges;
    for (unsigned k = 0; k < map.numResults(); ++k)
      ranges.push_back(map.range(map.result(k)));
    INFO(map.toString());
    unsigned failures = 0;
    forEachPoint(map, [&](auto dims, auto symbols) {
      if (auto values = map.evaluate(dims, symbols))
        for (auto [range, value] : llvm::zip(ranges, *values))
          failures += !range.contains(value);
    });
    REQUIRE(failures == 0);
  }
}

TEST_CASE("a composition is the one map after the other on every point") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  RandomMaps random(&context, 3);
  for (unsigned i = 0; i < mapCount; ++i) {
    IndexingMap first = random.map(2, 2, 3, random.number(0, 1));
    IndexingMap second = random.map(2, 2, 3, random.number(0, 1));
    IndexingMap both = compose(first, second);
    if (i % 2)
      both.simplify();
    INFO(first.toString() << "\n then " << second.toString() << "\n is   " << both.toString());
    if (first.isKnownEmpty() || second.isKnownEmpty()) {
      CHECK(both.isKnownEmpty());
      continue;
    }
    size_t firstRanges = first.ranges().size(), secondRanges = second.ranges().size();
    size_t secondRuntimes = second.runtimes().size();
    REQUIRE(both.ranges().size() == firstRanges + secondRanges);
    llvm::SmallVector<IndexingVariable> symbols(second.ranges());
    symbols.append(first.ranges().begin(), first.ranges().end());
    symbols.append(second.runtimes().begin(), second.runtimes().end());
    symbols.append(first.runtimes().begin(), first.runtimes().end());
    unsigned failures = 0;
    forEachPoint(first.dims(), symbols, [&](auto dims, llvm::ArrayRef<int64_t> values) {
      llvm::SmallVector<int64_t> ofSecond(values.take_front(secondRanges));
      llvm::SmallVector<int64_t> ofFirst(values.slice(secondRanges, firstRanges));
      llvm::ArrayRef<int64_t> runtimes = values.drop_front(secondRanges + firstRanges);
      llvm::append_range(ofSecond, runtimes.take_front(secondRuntimes));
      llvm::append_range(ofFirst, runtimes.drop_front(secondRuntimes));
      auto middle = first.evaluate(dims, ofFirst);
      auto expected = middle ? second.evaluate(*middle, ofSecond) : std::nullopt;
      failures += expected != both.evaluate(dims, values);
    });
    REQUIRE(failures == 0);
  }
}

TEST_CASE("printing and parsing is a round trip") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  RandomMaps random(&context, 4);
  for (unsigned i = 0; i < mapCount; ++i) {
    IndexingMap map = random.map(random.number(0, 3), random.number(0, 3), 4, random.number(0, 3));
    if (i % 2)
      map.simplify();
    if (map.isKnownEmpty())
      continue;
    IndexingMap parsed = parseMap(map.toString(), &context);
    INFO(map.toString() << "\n parsed: " << parsed.toString());
    REQUIRE(parsed == map);
    REQUIRE(hash_value(parsed) == hash_value(map));
    REQUIRE(parsed.toString() == map.toString());
  }
}

/// The set of (values of the variables that stay, results) over the domain.
static std::set<std::vector<int64_t>> images(const IndexingMap &map, llvm::ArrayRef<bool> droppedDims,
                                             llvm::ArrayRef<bool> droppedSymbols) {
  std::set<std::vector<int64_t>> result;
  forEachPoint(map, [&](llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> symbols) {
    auto values = map.evaluate(dims, symbols);
    if (!values)
      return;
    std::vector<int64_t> image;
    for (size_t i = 0; i < dims.size(); ++i)
      if (droppedDims.empty() || !droppedDims[i])
        image.push_back(dims[i]);
    for (size_t i = 0; i < symbols.size(); ++i)
      if (droppedSymbols.empty() || !droppedSymbols[i])
        image.push_back(symbols[i]);
    image.insert(image.end(), values->begin(), values->end());
    result.insert(image);
  });
  return result;
}

TEST_CASE("removing unused variables keeps what the others can reach") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  RandomMaps random(&context, 5);
  unsigned droppedCount = 0;
  for (unsigned i = 0; i < mapCount; ++i) {
    IndexingMap original = random.map(2, 1, random.number(0, 2), random.number(0, 3));
    if (i % 2)
      original.simplify();
    IndexingMap map = original;
    llvm::SmallVector<bool> dims, symbols;
    if (i % 3)
      symbols = map.removeUnusedSymbols();
    else
      dims = map.removeUnusedDims();
    droppedCount += llvm::count(dims, true) + llvm::count(symbols, true);
    INFO(original.toString() << "\n became " << map.toString());
    REQUIRE(images(original, dims, symbols) == images(map, {}, {}));
  }
  CHECK(droppedCount > mapCount / 10);
}

TEST_CASE("known divisors divide and strides are strides") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  RandomMaps random(&context, 6);
  unsigned strideCount = 0;
  for (unsigned i = 0; i < mapCount; ++i) {
    IndexingMap map = random.map(2, 1, 4, random.number(0, 1));
    if (map.isKnownEmpty())
      continue;
    mlir::AffineExpr result = map.result(0), variable = mlir::getAffineDimExpr(1, &context);
    int64_t divisor = knownDivisor(result, map);
    std::optional<int64_t> stride = strideOf(result, variable, map);
    strideCount += stride.has_value();
    INFO(map.toString() << " divisor " << divisor << " stride " << (stride ? std::to_string(*stride) : "none"));
    unsigned failures = 0;
    std::map<std::vector<int64_t>, int64_t> base; // result - stride * d1 for the rest of the point
    forEachPoint(map, [&](llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> symbols) {
      auto values = map.evaluate(dims, symbols);
      if (!values)
        return;
      int64_t value = (*values)[0];
      failures += divisor == 0 ? value != 0 : value % divisor != 0;
      if (!stride)
        return;
      std::vector<int64_t> rest(symbols.begin(), symbols.end());
      rest.push_back(dims[0]);
      int64_t start = value - *stride * dims[1];
      failures += base.try_emplace(rest, start).first->second != start;
    });
    REQUIRE(failures == 0);
  }
  CHECK(strideCount > mapCount / 3);
}
