// One idea: sums of tensor cores lie in registers as their factors have to, so that what is made of scores needs no way
// through shared memory.

#include "emitters/heroes/WeightProduct.h"

#include "emitters/heroes/FactorPieces.h"
#include "emitters/heroes/WarpgroupProduct.h"
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {

WeightFragments weightFragments(CodeBuilder &b, const AttentionPlan &plan,
                                llvm::function_ref<Value(int64_t row, int64_t neighbour)> weight) {
  const auto numPieces = unsigned(plan.piecesOfWeight());
  const ElementType type = plan.product.fragmentType(plan.product.rows);
  std::vector<SmallVector<Value>> factors(numPieces);
  for (int64_t eight = 0; eight < 2; ++eight)
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < 2; ++i) {
        Value whole = weight(row, 2 * eight + i);
        const SmallVector<Value> pieces =
            numPieces == 1 ? SmallVector<Value>{whole} : piecesOfOneSign(b, whole, type, numPieces);
        for (auto [piece, all] : llvm::zip_equal(pieces, factors))
          all.push_back(piece);
      }
  WeightFragments fragments;
  for (const SmallVector<Value> &all : factors) {
    Value together =
        vector::FromElementsOp::create(b, VectorType::get({int64_t(all.size())}, all.front().getType()), all);
    fragments.push_back(
        vector::BitCastOp::create(b, VectorType::get({int64_t(all.size()) / 2}, b.getI32Type()), together));
  }
  return fragments;
}

Value asWeight(CodeBuilder &b, const AttentionPlan &plan, Value weight, ElementType type) {
  const ElementType rounded = plan.weights().shape().elementType(),
                    factor = plan.product.fragmentType(plan.product.rows);
  if (type != rounded)
    weight = convertElement(b, weight, type, rounded);
  return rounded == factor || plan.piecesOfWeight() > 1 ? weight : convertElement(b, weight, rounded, factor);
}

SmallVector<Value> startTerms(const AttentionPlan &plan, KernelBuilder &kernel, const TermTile &terms,
                              ArrayRef<Value> sums, ArrayRef<WeightFragments> weights) {
  return WarpgroupProduct(plan.product, kernel, terms.element, {}, terms.stage)
      .addHeld(weights, terms.tiles, sums, plan.columns());
}

SmallVector<Value> multiplyTerms(const AttentionPlan &plan, KernelBuilder &kernel, const TermTile &terms,
                                 ArrayRef<Value> sums, llvm::function_ref<WeightFragments(int64_t number)> weights) {
  if (plan.product.tile.ofWarpgroups) {
    std::vector<WeightFragments> all;
    for (int64_t first = 0; first < plan.piece(); first += AttentionPlan::fragmentDepth)
      all.push_back(weights(first / AttentionPlan::fragmentDepth));
    return awaitProducts(kernel.code(), startTerms(plan, kernel, terms, sums, all));
  }
  FragmentTiles ofTerms(plan.product, kernel, terms.element, terms.stage);
  SmallVector<Value> products = sumsTogether(ofTerms, sums);
  for (int64_t first = 0; first < plan.piece(); first += AttentionPlan::fragmentDepth) {
    const WeightFragments rows = weights(first / AttentionPlan::fragmentDepth);
    for (int64_t pair = 0; pair < plan.columns() / (2 * ContractionTile::fragmentColumns); ++pair)
      for (auto [half, fragments] : llvm::enumerate(ofTerms.loadColumns(terms.tiles, pair, first))) {
        Value &ofColumns = products[size_t(2 * pair) + half];
        for (Value piece : llvm::reverse(rows))
          ofColumns = ofTerms.addProducts(piece, fragments, ofColumns);
      }
  }
  return sumsOneByOne(ofTerms, products);
}

} // namespace hloc
