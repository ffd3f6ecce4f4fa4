// One idea: a warp has 16 rows, so that each fragment of keys is multiplied once.

#include "emitters/heroes/ScoreProduct.h"

#include "emitters/heroes/WarpgroupProduct.h"
#include "hloc/dialect/XlaGpu.h"

using namespace mlir;

namespace hloc {

SmallVector<Value> sumsTogether(FragmentTiles &dot, ArrayRef<Value> sums) {
  ArrayRef<Value> upper = sums.take_front(sums.size() / 2), lower = sums.drop_front(upper.size());
  SmallVector<Value> products;
  for (size_t i = 0; i < upper.size(); i += 2)
    products.push_back(dot.together({upper[i], upper[i + 1], lower[i], lower[i + 1]}));
  return products;
}

SmallVector<Value> sumsOneByOne(FragmentTiles &dot, ArrayRef<Value> products) {
  SmallVector<Value> upper, lower;
  for (Value product : products) {
    std::array<Value, 4> sums = dot.oneByOne(product);
    upper.append({sums[0], sums[1]});
    lower.append({sums[2], sums[3]});
  }
  upper.append(lower);
  return upper;
}

ScoreProduct::ScoreProduct(const ContractionPlan &dot, const AttentionPlan &plan, KernelBuilder &kernel,
                           const TilePlace &ofRows, const TilePlace &ofKeys)
    : rows(dot, dot.rows, kernel, ofRows), keys(dot, dot.columns, kernel, ofKeys), dot(dot), plan(plan), kernel(kernel),
      values(kernel.code(), dot) {}

void ScoreProduct::allocateRows() {
  CodeBuilder &b = kernel.code();
  const bool isFirst = &dot == &plan.scores;
  const int64_t elements = isFirst ? plan.rowElements() : dot.tileElements(dot.rows);
  const IntegerAttr alignment =
      dot.tile.ofWarpgroups ? b.getI64IntegerAttr(ContractionPlan::alignmentOfTiles) : IntegerAttr();
  rowTile = xla_gpu::AllocateSharedOp::create(b, RankedTensorType::get({elements}, factorType()), alignment);
}

void ScoreProduct::bringRows() {
  CodeBuilder &b = kernel.code();
  if (!rowTile)
    allocateRows();
  rowTile = rows.isCopied() ? rows.copy(b.index(0), rowTile) : rows.fill(rows.load(b.index(0)), rowTile);
}

void ScoreProduct::holdRows() {
  FragmentTiles ofRows(dot, kernel, factorType());
  for (int64_t term = 0; term < plan.termsOf(dot); term += AttentionPlan::fragmentDepth)
    rowFragments.push_back(ofRows.loadRows(rowTile, 0, term));
}

SmallVector<Value> ScoreProduct::start(Value tiles, Value stage) {
  const SmallVector<Value> none(size_t(2 * dot.tile.threadColumns), values.zero());
  return WarpgroupProduct(dot, kernel, factorType(), {}, stage).add(rowTile, tiles, none, plan.termsOf(dot));
}

SmallVector<Value> ScoreProduct::known(ArrayRef<Value> started, uint64_t open) {
  return stored(awaitProducts(kernel.code(), started, open));
}

SmallVector<Value> ScoreProduct::stored(ArrayRef<Value> sums) {
  return llvm::map_to_vector(sums, [&](Value sum) { return values.stored(sum); });
}

SmallVector<Value> ScoreProduct::multiply(Value tiles, Value stage) {
  if (dot.tile.ofWarpgroups)
    return known(start(tiles, stage), 0);
  SmallVector<Value> scores(size_t(2 * dot.tile.threadColumns), values.zero());
  FragmentTiles ofRows(dot, kernel, factorType()), ofKeys(dot, kernel, factorType(), stage);
  SmallVector<Value> products = sumsTogether(ofKeys, scores);
  for (int64_t term = 0; term < plan.termsOf(dot); term += AttentionPlan::fragmentDepth) {
    Value fragments = rowFragments.empty() ? ofRows.loadRows(rowTile, 0, term)
                                           : rowFragments[size_t(term / AttentionPlan::fragmentDepth)];
    for (int64_t pair = 0; pair < dot.tile.threadColumns / 4; ++pair)
      for (auto [half, columns] : llvm::enumerate(ofKeys.loadColumns(tiles, pair, term))) {
        Value &sums = products[size_t(2 * pair) + half];
        sums = ofKeys.addProducts(fragments, columns, sums);
      }
  }
  scores = sumsOneByOne(ofKeys, products);
  for (Value &score : scores)
    score = values.stored(score);
  return scores;
}

} // namespace hloc
