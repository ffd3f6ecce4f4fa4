#include "hloc/indexing/ShapeMaps.h"
#include "unit/indexing/MapTesting.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>

using namespace hloc;
using namespace hloc::testing;

using Sizes = llvm::SmallVector<int64_t>;

/// Position of an index in memory, by strides computed from the layout: independent of the maps under test.
static int64_t memoryPosition(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> sizes,
                              llvm::ArrayRef<int64_t> minorToMajor) {
  int64_t stride = 1, position = 0;
  for (int64_t dim : minorToMajor) {
    position += index[dim] * stride;
    stride *= sizes[dim];
  }
  return position;
}

static Sizes rowMajor(size_t rank) {
  Sizes layout(rank);
  std::iota(layout.rbegin(), layout.rend(), 0);
  return layout;
}

static void checkBitcast(const IndexingMap &map, const Sizes &to, const Sizes &toLayout, const Sizes &from,
                         const Sizes &fromLayout) {
  INFO(map.toString());
  unsigned failures = 0;
  forEachPoint(map, [&](llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> symbols) {
    auto source = map.evaluate(dims, symbols);
    failures += !source || memoryPosition(*source, from, fromLayout) != memoryPosition(dims, to, toLayout);
    if (source)
      for (auto [value, size] : llvm::zip(*source, from))
        failures += value < 0 || value >= size;
  });
  REQUIRE(failures == 0);
}

/// A random way to write 48 or 60 or 64 as a product, with some ones.
static Sizes randomShape(RandomMaps &random, int64_t elements) {
  Sizes sizes;
  while (elements > 1) {
    int64_t factor = random.number(2, 6);
    if (random.number(0, 3) == 0)
      sizes.push_back(1);
    if (elements % factor == 0) {
      sizes.push_back(factor);
      elements /= factor;
    } else if (elements < 8) {
      sizes.push_back(elements);
      elements = 1;
    }
  }
  return sizes;
}

TEST_CASE("reshape and bitcast maps agree with strides") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  RandomMaps random(&context, 7);
  std::mt19937 shuffler(8);
  for (unsigned i = 0; i < 1000; ++i) {
    int64_t elements = (const int64_t[]){48, 60, 64, 7, 1}[i % 5];
    Sizes to = randomShape(random, elements), from = randomShape(random, elements);
    Sizes toLayout = rowMajor(to.size()), fromLayout = rowMajor(from.size());
    IndexingMap reshape = reshapeMap(to, from, &context);
    checkBitcast(reshape, to, toLayout, from, fromLayout);
    std::shuffle(toLayout.begin(), toLayout.end(), shuffler);
    std::shuffle(fromLayout.begin(), fromLayout.end(), shuffler);
    IndexingMap bitcast = bitcastMap(to, toLayout, from, fromLayout, &context);
    checkBitcast(bitcast, to, toLayout, from, fromLayout);
    bitcast.simplify();
    checkBitcast(bitcast, to, toLayout, from, fromLayout);

    // There and back again is nothing at all.
    IndexingMap back = bitcastMap(from, fromLayout, to, toLayout, &context);
    IndexingMap round = compose(bitcast, back), identity = IndexingMap::identity(&context, to);
    round.simplify();
    identity.simplify();
    INFO(round.toString());
    REQUIRE(round == identity);
  }
}

TEST_CASE("reshapes cut into minimal groups") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto text = [&](Sizes to, Sizes from) { return reshapeMap(to, from, &context).toString(); };
  CHECK(text({4, 8, 3}, {4, 2, 4, 3}) == "(d0, d1, d2) -> (d0, d1 / 4, d1 mod 4, d2), domain: d0 in [0, 3], "
                                         "d1 in [0, 7], d2 in [0, 2]");
  CHECK(text({4, 2, 4, 3}, {4, 8, 3}) == "(d0, d1, d2, d3) -> (d0, d1 * 4 + d2, d3), domain: d0 in [0, 3], "
                                         "d1 in [0, 1], d2 in [0, 3], d3 in [0, 2]");
  CHECK(text({5, 1, 7}, {1, 5, 7}) == "(d0, d1, d2) -> (0, d0, d2), domain: d0 in [0, 4], d1 in [0, 0], d2 in [0, 6]");
  CHECK(text({}, {1, 1}) == "() -> (0, 0)");
  CHECK(reshapeMap({0, 3}, {3, 0}, &context).isKnownEmpty());
}

TEST_CASE("a bitcast that only permutes is a permutation") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  // f32[2,3]{0,1} is the transpose of f32[3,2]{1,0}.
  CHECK(bitcastMap({2, 3}, {0, 1}, {3, 2}, {1, 0}, &context) == permutationMap({1, 0}, {2, 3}, &context));
  CHECK(permutationMap({2, 0, 1}, {2, 3, 4}, &context).toString() ==
        "(d0, d1, d2) -> (d2, d0, d1), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3]");
}

TEST_CASE("the outermost index of a delinearization has no mod") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::AffineExpr d0 = mlir::getAffineDimExpr(0, &context);
  auto indices = delinearize(d0, {1, 6, 1, 5}, &context);
  CHECK(indices[0] == mlir::getAffineConstantExpr(0, &context));
  CHECK(indices[1] == d0.floorDiv(5));
  CHECK(indices[2] == mlir::getAffineConstantExpr(0, &context));
  CHECK(indices[3] == d0 % 5);
}
