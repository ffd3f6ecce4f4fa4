#pragma once
// Random maps over small domains and brute force over their points, for property tests.

#include "hloc/indexing/IndexingMap.h"
#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>
#include <random>

namespace hloc::testing {

inline IndexingMap parseMap(llvm::StringRef text, mlir::MLIRContext *context) {
  std::string error;
  std::optional<IndexingMap> map = parseIndexingMap(text, context, error);
  INFO(text.str() << ": " << error);
  REQUIRE(map);
  return *map;
}

/// The text of `text` parsed and simplified.
inline std::string simplified(llvm::StringRef text) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  IndexingMap map = parseMap(text, &context);
  map.simplify();
  return map.toString();
}

inline llvm::SmallVector<IndexingVariable> symbolVariables(const IndexingMap &map) {
  llvm::SmallVector<IndexingVariable> result(map.ranges());
  result.append(map.runtimes().begin(), map.runtimes().end());
  return result;
}

/// Calls visit(dims, symbols) for every point within the bounds of the variables.
template <typename Visit>
void forEachPoint(llvm::ArrayRef<IndexingVariable> dims, llvm::ArrayRef<IndexingVariable> symbols, Visit visit) {
  llvm::SmallVector<IndexingVariable> all(dims);
  all.append(symbols.begin(), symbols.end());
  llvm::SmallVector<int64_t> point;
  for (const IndexingVariable &variable : all) {
    if (variable.bounds.isEmpty())
      return;
    point.push_back(variable.bounds.lower);
  }
  while (true) {
    llvm::ArrayRef<int64_t> values = point;
    visit(values.take_front(dims.size()), values.drop_front(dims.size()));
    size_t i = 0;
    while (i < point.size() && point[i] == all[i].bounds.upper)
      point[i] = all[i].bounds.lower, ++i;
    if (i == point.size())
      return;
    ++point[i];
  }
}

template <typename Visit> void forEachPoint(const IndexingMap &map, Visit visit) {
  forEachPoint(map.dims(), symbolVariables(map), visit);
}

class RandomMaps {
public:
  RandomMaps(mlir::MLIRContext *context, unsigned seed) : context(context), random(seed) {}

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  llvm::SmallVector<IndexingVariable> variables(int64_t count, int64_t lowest, int64_t maxSize) {
    llvm::SmallVector<IndexingVariable> result;
    for (int64_t i = 0; i < count; ++i) {
      int64_t low = number(lowest, 0) + (number(0, 5) == 0 ? number(-12, 12) : 0);
      result.push_back({{low, low + number(0, maxSize - 1)}, ""});
    }
    return result;
  }

  mlir::AffineExpr expression(unsigned numDims, unsigned numSymbols, int depth) {
    static constexpr int64_t factors[] = {-4, -1, 2, 3, 4, 6, 8, 12, 16};
    static constexpr int64_t divisors[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24};
    int64_t kind = depth <= 0 ? 0 : number(0, 7);
    auto inner = [&] { return expression(numDims, numSymbols, depth - 1); };
    switch (kind) {
    case 0: {
      int64_t which = number(0, numDims + numSymbols);
      if (which == numDims + numSymbols)
        return mlir::getAffineConstantExpr(number(-9, 30), context);
      return which < numDims ? mlir::getAffineDimExpr(which, context)
                             : mlir::getAffineSymbolExpr(which - numDims, context);
    }
    case 1:
    case 2:
    case 3: {
      mlir::AffineExpr left = inner();
      return left + inner();
    }
    case 4:
      return inner() * factors[number(0, std::size(factors) - 1)];
    case 5:
      return inner() % divisors[number(0, std::size(divisors) - 1)];
    case 6:
      return inner().floorDiv(divisors[number(0, std::size(divisors) - 1)]);
    default:
      return number(0, 4) == 0 ? inner().ceilDiv(divisors[number(0, std::size(divisors) - 1)]) : inner();
    }
  }

  IndexingMap map(unsigned numDims, unsigned numResults, int depth, int64_t numConstraints) {
    auto dims = variables(numDims, -2, 6), ranges = variables(number(0, 2), -1, 4),
         runtimes = variables(number(0, 1), -1, 4);
    unsigned numSymbols = ranges.size() + runtimes.size();
    llvm::SmallVector<mlir::AffineExpr> results;
    for (unsigned i = 0; i < numResults; ++i)
      results.push_back(expression(numDims, numSymbols, depth));
    llvm::SmallVector<IndexingMap::Constraint> constraints;
    for (int64_t i = 0; i < numConstraints; ++i) {
      int64_t low = number(-12, 4);
      constraints.push_back({expression(numDims, numSymbols, depth - 1), {low, low + number(0, 24)}});
    }
    return IndexingMap(mlir::AffineMap::get(numDims, numSymbols, results, context), dims, ranges, runtimes,
                       constraints);
  }

private:
  mlir::MLIRContext *context;
  std::mt19937 random;
};

} // namespace hloc::testing
