// Random chains of shape operations behind a thread map: composed and simplified they must be what the operations do
// one after the other, at every thread, lane and runtime offset.

#include "hloc/indexing/Divisibility.h"
#include "unit/indexing/KernelMaps.h"

#include <algorithm>
#include <vector>

using namespace hloc;
using namespace hloc::testing;

namespace {

/// Draws operations as maps from the index of the current array to the index of its operand.
class ChainMaker {
public:
  ChainMaker(mlir::MLIRContext *context, unsigned seed) : context(context), random(context, seed), shuffler(seed) {}

  Sizes startShape() {
    static const Sizes shapes[] = {{4, 6, 8}, {5, 12}, {3, 4, 20}, {2, 3, 4, 8}, {7, 9}, {10, 10}, {96}, {2, 50, 3}};
    return shapes[random.number(0, std::size(shapes) - 1)];
  }

  IndexingMap next(Sizes &shape) {
    switch (random.number(0, 5)) {
    case 0:
      return reshapeTo(shape, factors(elementCount(shape)));
    case 1:
      return transpose(shape);
    case 2:
      return offsets(shape, /*stride=*/random.number(1, 2), /*isDynamic=*/false);
    case 3:
      return offsets(shape, 1, /*isDynamic=*/true);
    case 4:
      return update(shape);
    default:
      return pad(shape);
    }
  }

private:
  Sizes factors(int64_t count) {
    Sizes sizes;
    while (count > 1) {
      int64_t factor = std::min(count, random.number(2, 12));
      for (; count % factor != 0; ++factor) {
      }
      sizes.push_back(factor);
      count /= factor;
    }
    std::shuffle(sizes.begin(), sizes.end(), shuffler);
    return sizes;
  }

  IndexingMap reshapeTo(Sizes &shape, const Sizes &from) {
    IndexingMap map = reshapeMap(shape, from, context);
    shape = from;
    return map;
  }

  IndexingMap transpose(Sizes &shape) {
    Sizes permutation(shape.size()), operand;
    std::iota(permutation.begin(), permutation.end(), 0);
    std::shuffle(permutation.begin(), permutation.end(), shuffler);
    IndexingMap map = permutationMap(permutation, shape, context);
    for (int64_t dim : permutation)
      operand.push_back(shape[dim]);
    shape = operand;
    return map;
  }

  mlir::AffineExpr dim(size_t i) { return mlir::getAffineDimExpr(i, context); }

  IndexingMap mapOver(const Sizes &shape, llvm::ArrayRef<mlir::AffineExpr> results,
                      llvm::ArrayRef<IndexingVariable> runtimes = {},
                      llvm::ArrayRef<IndexingMap::Constraint> constraints = {}) {
    llvm::SmallVector<IndexingVariable> dims;
    for (int64_t size : shape)
      dims.push_back({{0, size - 1}, ""});
    return IndexingMap(mlir::AffineMap::get(shape.size(), runtimes.size(), results, context), dims, {}, runtimes,
                       constraints);
  }

  /// A slice or a dynamic-slice; a slice may reverse a dimension.
  IndexingMap offsets(Sizes &shape, int64_t stride, bool isDynamic) {
    llvm::SmallVector<mlir::AffineExpr> results;
    llvm::SmallVector<IndexingVariable> runtimes;
    Sizes operand;
    for (auto [i, size] : llvm::enumerate(shape)) {
      int64_t slack = random.number(0, 2);
      if (isDynamic && slack > 0) {
        results.push_back(dim(i) + mlir::getAffineSymbolExpr(runtimes.size(), context));
        runtimes.push_back({{0, slack}, ""});
      } else if (random.number(0, 3) == 0) {
        results.push_back(dim(i) * -stride + ((size - 1) * stride + slack));
      } else {
        results.push_back(dim(i) * stride + slack);
      }
      operand.push_back((size - 1) * stride + 1 + slack + random.number(0, 1));
    }
    IndexingMap map = mapOver(shape, results, runtimes);
    shape = operand;
    return map;
  }

  /// The update of a dynamic-update-slice.
  IndexingMap update(Sizes &shape) {
    llvm::SmallVector<mlir::AffineExpr> results;
    llvm::SmallVector<IndexingVariable> runtimes;
    Sizes operand;
    for (auto [i, size] : llvm::enumerate(shape)) {
      int64_t slack = std::min(size - 1, random.number(0, 2));
      results.push_back(dim(i) - mlir::getAffineSymbolExpr(i, context));
      runtimes.push_back({{0, slack}, ""});
      operand.push_back(size - slack);
    }
    IndexingMap map = mapOver(shape, results, runtimes);
    shape = operand;
    return map;
  }

  IndexingMap pad(Sizes &shape) {
    llvm::SmallVector<mlir::AffineExpr> results;
    llvm::SmallVector<IndexingMap::Constraint> constraints;
    Sizes operand;
    for (auto [i, size] : llvm::enumerate(shape)) {
      int64_t low = std::min(size - 1, random.number(0, 2)), step = random.number(1, 2);
      results.push_back((dim(i) - low).floorDiv(step));
      constraints.push_back({(dim(i) - low) % step, {0, 0}});
      operand.push_back((size - low - 1) / step + 1);
    }
    IndexingMap map = mapOver(shape, results, {}, constraints);
    shape = operand;
    return map;
  }

  mlir::MLIRContext *context;
  RandomMaps random;
  std::mt19937 shuffler;
};

unsigned divisionCount(const IndexingMap &map) {
  unsigned count = 0;
  for (mlir::AffineExpr result : map.affine().getResults())
    result.walk([&](mlir::AffineExpr inner) {
      count += inner.getKind() == mlir::AffineExprKind::Mod || inner.getKind() == mlir::AffineExprKind::FloorDiv;
    });
  return count;
}

/// Runs the maps one by one; the composition's runtimes are those of the last map first.
std::optional<llvm::SmallVector<int64_t>> runStepwise(llvm::ArrayRef<IndexingMap> steps, llvm::ArrayRef<int64_t> dims,
                                                      llvm::ArrayRef<int64_t> ranges,
                                                      llvm::ArrayRef<int64_t> runtimes) {
  auto index = steps.front().evaluate(dims, ranges);
  size_t end = runtimes.size();
  for (const IndexingMap &step : steps.drop_front()) {
    size_t count = step.runtimes().size();
    if (index)
      index = step.evaluate(*index, runtimes.slice(end - count, count));
    end -= count;
  }
  return index;
}

} // namespace

TEST_CASE("chains of shape operations compose and simplify to what they do") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  unsigned divisionsBefore = 0, divisionsAfter = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    ChainMaker maker(&context, seed);
    Sizes shape = maker.startShape();
    int64_t blocks = (elementCount(shape) + 31) / 32;
    mlir::AffineExpr linear = (mlir::getAffineDimExpr(1, &context) * 8 + mlir::getAffineDimExpr(0, &context)) * 4 +
                              mlir::getAffineSymbolExpr(0, &context);
    std::vector<IndexingMap> steps;
    steps.push_back(IndexingMap::fromSizes(mlir::AffineMap::get(2, 1, delinearize(linear, shape, &context), &context),
                                           {8, blocks}, {4}));
    steps.back().addConstraint(linear, {0, elementCount(shape) - 1});
    IndexingMap composed = steps.front(), plain = steps.front();
    for (unsigned length = 1 + seed % 4; length > 0; --length) {
      steps.push_back(maker.next(shape));
      // A runtime variable each costs a factor of up to three points.
      if (composed.runtimes().size() + steps.back().runtimes().size() > 4) {
        steps.pop_back();
        break;
      }
      composed = compose(composed, steps.back());
      composed.simplify();
      plain = compose(plain, steps.back());
    }
    if (shape.empty()) // sliced down to a scalar: there is no index to look at
      continue;
    divisionsBefore += divisionCount(plain);
    divisionsAfter += divisionCount(composed);
    INFO("seed " << seed << "\n plain " << plain.toString() << "\n simplified " << composed.toString());
    unsigned failures = 0, inside = 0;
    mlir::AffineExpr lane = mlir::getAffineSymbolExpr(0, &context), last = plain.result(plain.numResults() - 1);
    std::optional<int64_t> stride = strideOf(last, lane, composed.isKnownEmpty() ? plain : composed);
    forEachPoint(plain, [&](llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> symbols) {
      auto expected = runStepwise(steps, dims, symbols.take_front(1), symbols.drop_front(1));
      inside += expected.has_value();
      failures += composed.evaluate(dims, symbols) != expected || plain.evaluate(dims, symbols) != expected;
      if (!stride || !expected)
        return;
      llvm::SmallVector<int64_t> nextLane(symbols);
      ++nextLane[0];
      auto next = runStepwise(steps, dims, llvm::ArrayRef<int64_t>(nextLane).take_front(1), symbols.drop_front(1));
      failures += next && next->back() != expected->back() + *stride;
    });
    REQUIRE(failures == 0);
    if (inside == 0)
      CHECK((composed.isKnownEmpty() || !composed.constraints().empty()));
  }
  INFO("divisions before " << divisionsBefore << ", after " << divisionsAfter);
  CHECK(divisionsAfter * 3 < divisionsBefore * 2);
}
