// Ops with run-time positions (hlo-text 6.3, 6.4): dynamic slices, gather, scatter; and the sorts.
#include "ShapeInferenceContext.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

// dynamic_slice_c1, dynamic_slice_c2: start indices are operands [first, end)
bool checkStartIndices(InferenceContext &c, unsigned first) {
  unsigned rank = c.operand(0).rank(), count = c.numOperands() - first;
  bool oneVector = count == 1 && c.operand(first).rank() == 1;
  bool fits = oneVector ? c.operand(first).dim(0) == rank : count == rank;
  for (unsigned i = first; i < c.numOperands() && !oneVector; ++i)
    fits = fits && c.operand(i).isScalar();
  if (!fits) {
    c.fail(VerifierRule::dynamic_slice_c1, "expects one scalar start index for each of the " + llvm::Twine(rank) +
                                               " dimensions of " + show(c.operand(0)) + ", but has " +
                                               llvm::Twine(count) +
                                               (count ? ", the first " + show(c.operand(first)) : std::string()));
    return false;
  }
  for (unsigned i = first; i < c.numOperands(); ++i)
    if (!isInteger(c.operand(i).elementType()) || c.operand(i).elementType() != c.operand(first).elementType()) {
      c.fail(VerifierRule::dynamic_slice_c2,
             "start index " + show(c.operand(i)) + " is no integer, or of another type than " + show(c.operand(first)));
      return false;
    }
  return true;
}

/// The dimension numbers that gather and scatter share, under one set of names: gather's.
struct IndexingDims {
  Dims windowDims;   ///< offset_dims, update_window_dims: positions in the gathered array
  Dims collapsed;    ///< collapsed_slice_dims, inserted_window_dims
  Dims map;          ///< start_index_map, scatter_dims_to_operand_dims
  Dims operandBatch; ///< operand_batching_dims, input_batching_dims
  Dims indicesBatch; ///< start_indices_batching_dims, scatter_indices_batching_dims
  int64_t vectorDim = 0;
};

/// Labels of the rules that differ only in the attribute's names.
struct IndexingRules {
  VerifierRule indices, vectorDim, map, collapsed, batch, disjoint;
};

bool failIndexing(InferenceContext &c, VerifierRule rule, const llvm::Twine &message) {
  c.fail(rule, message);
  return false;
}

/// The rules about indices and operand that gather and scatter share. On success `indexDims` holds the dimensions of
/// `indices` without the index vector.
bool checkIndexing(InferenceContext &c, const Shape &operand, const Shape &indices, const IndexingDims &dims,
                   const IndexingRules &rules, DimVector &indexDims) {
  if (!isInteger(indices.elementType()))
    return failIndexing(c, rules.indices, "the indices are " + show(indices) + ", not integers");
  int64_t rank = indices.rank();
  if (dims.vectorDim < 0 || dims.vectorDim > rank)
    return failIndexing(c, rules.vectorDim,
                        "index_vector_dim=" + llvm::Twine(dims.vectorDim) + " does not fit indices " + show(indices));
  int64_t vectorSize = dims.vectorDim == rank ? 1 : indices.dim(dims.vectorDim);
  if (static_cast<int64_t>(dims.map.size()) != vectorSize || !distinctInRange(dims.map, operand.rank()))
    return failIndexing(c, rules.map,
                        "the index map " + show(dims.map) + " does not send " + llvm::Twine(vectorSize) +
                            " indices to distinct dimensions of " + show(operand));
  DimVector removed(dims.collapsed);
  llvm::append_range(removed, dims.operandBatch);
  if (!ascendingInRange(dims.collapsed, operand.rank()) || !distinctInRange(removed, operand.rank()))
    return failIndexing(c, rules.collapsed,
                        "dimensions " + show(dims.collapsed) + " and " + show(dims.operandBatch) +
                            " are not disjoint dimensions of " + show(operand) + ", the first of them ascending");
  if (llvm::any_of(dims.map, [&](int64_t dim) { return llvm::is_contained(dims.operandBatch, dim); }))
    return failIndexing(c, rules.disjoint,
                        "the index map " + show(dims.map) + " meets the batching dimensions " +
                            show(dims.operandBatch));
  bool batchFits = dims.indicesBatch.size() == dims.operandBatch.size() && distinctInRange(dims.indicesBatch, rank);
  for (unsigned i = 0; batchFits && i < dims.indicesBatch.size(); ++i)
    batchFits = dims.indicesBatch[i] != dims.vectorDim &&
                indices.dim(dims.indicesBatch[i]) == operand.dim(dims.operandBatch[i]);
  if (!batchFits)
    return failIndexing(c, rules.batch,
                        "batching dimensions " + show(dims.indicesBatch) + " of indices " + show(indices) +
                            " do not match " + show(dims.operandBatch) + " of " + show(operand));
  for (int64_t i = 0; i < rank; ++i)
    if (i != dims.vectorDim)
      indexDims.push_back(indices.dim(i));
  return true;
}

/// Operand dimensions that remain in the window: neither collapsed nor batching.
DimVector windowOperandDims(const Shape &operand, const IndexingDims &dims) {
  DimVector kept;
  for (int64_t i = 0; i < operand.rank(); ++i)
    if (!llvm::is_contained(dims.collapsed, i) && !llvm::is_contained(dims.operandBatch, i))
      kept.push_back(i);
  return kept;
}

// gather_c5, gather_c6
bool checkSliceSizes(InferenceContext &c, const Shape &operand, Dims sizes, const IndexingDims &dims) {
  bool fits = sizes.size() == operand.rank();
  for (unsigned i = 0; fits && i < sizes.size(); ++i)
    fits = sizes[i] >= 0 && sizes[i] <= operand.dim(i);
  if (!fits)
    return failIndexing(c, VerifierRule::gather_c5, "slice_sizes " + show(sizes) + " do not fit " + show(operand));
  for (Dims removed : {dims.collapsed, dims.operandBatch})
    for (int64_t dim : removed)
      if (sizes[dim] > 1)
        return failIndexing(c, VerifierRule::gather_c6,
                            "slice_sizes " + show(sizes) + " exceed 1 in dimension " + llvm::Twine(dim) +
                                ", which is collapsed or batching");
  return true;
}

// scatter_c6, scatter_c7, scatter_c8
bool checkUpdates(InferenceContext &c, const Shape &operand, const Shape &updates, const IndexingDims &dims,
                  Dims indexDims) {
  DimVector window = windowOperandDims(operand, dims);
  if (dims.windowDims.size() != window.size() || !ascendingInRange(dims.windowDims, updates.rank()))
    return failIndexing(c, VerifierRule::scatter_c6,
                        "update_window_dims " + show(dims.windowDims) + " are not " + llvm::Twine(window.size()) +
                            " ascending dimensions of " + show(updates));
  for (unsigned i = 0; i < window.size(); ++i)
    if (updates.dim(dims.windowDims[i]) > operand.dim(window[i]))
      return failIndexing(c, VerifierRule::scatter_c7,
                          "updates " + show(updates) + " exceed operand " + show(operand) + " in update dimension " +
                              llvm::Twine(dims.windowDims[i]));
  DimVector scatterDims;
  for (int64_t i = 0; i < updates.rank(); ++i)
    if (!llvm::is_contained(dims.windowDims, i))
      scatterDims.push_back(updates.dim(i));
  if (Dims(scatterDims) != indexDims)
    return failIndexing(c, VerifierRule::scatter_c8,
                        "the scatter dimensions " + show(Dims(scatterDims)) + " of updates " + show(updates) +
                            " differ from those of the indices, " + show(indexDims));
  return true;
}

// scatter_c11
bool checkCombiner(InferenceContext &c, unsigned n) {
  const HloComputation *combiner = c.callee(AttributeKey::ToApply);
  bool fits = combiner && combiner->numParameters() == 2 * n && results(*combiner).size() == n;
  for (unsigned i = 0; fits && i < 2 * n; ++i)
    fits = combiner->parameters()[i] && scalarLike(combiner->parameters()[i]->shape(), c.operand(i % n).elementType());
  for (unsigned i = 0; fits && i < n; ++i)
    fits = givesWhatItTakes(*combiner, i) && scalarLike(results(*combiner)[i], c.operand(i).elementType());
  if (!fits)
    c.fail(VerifierRule::scatter_c11, "cannot combine " + llvm::Twine(n) + " operands, the first " +
                                          show(c.operand(0)) + ", with " +
                                          (combiner ? signature(*combiner) : std::string("nothing")));
  return fits;
}

} // namespace

std::optional<Shape> inferDynamicSlice(InferenceContext &c) {
  if (!checkStartIndices(c, 1))
    return std::nullopt;
  const Shape &x = c.operand(0);
  Dims sizes = c.ints(AttributeKey::DynamicSliceSizes);
  bool fits = sizes.size() == x.rank();
  for (unsigned i = 0; fits && i < x.rank(); ++i)
    fits = sizes[i] >= 0 && sizes[i] <= x.dim(i);
  if (!fits)
    return c.fail(VerifierRule::dynamic_slice_c3, "dynamic_slice_sizes " + show(sizes) + " do not fit " + show(x));
  return c.array(x.elementType(), sizes);
}

std::optional<Shape> inferDynamicUpdateSlice(InferenceContext &c) {
  if (!checkStartIndices(c, 2))
    return std::nullopt;
  const Shape &x = c.operand(0), &update = c.operand(1);
  bool fits = update.rank() == x.rank();
  for (unsigned i = 0; fits && i < x.rank(); ++i)
    fits = update.dim(i) <= x.dim(i);
  if (!fits)
    return c.fail(VerifierRule::dynamic_update_slice_c1,
                  "the update " + show(update) + " does not fit into " + show(x));
  if (update.elementType() != x.elementType())
    return c.fail(VerifierRule::dynamic_update_slice_c2,
                  "the update " + show(update) + " differs in type from " + show(x));
  return x;
}

std::optional<Shape> inferGather(InferenceContext &c) {
  const Shape &operand = c.operand(0), &indices = c.operand(1);
  IndexingDims dims{c.ints(AttributeKey::OffsetDims),
                    c.ints(AttributeKey::CollapsedSliceDims),
                    c.ints(AttributeKey::StartIndexMap),
                    c.ints(AttributeKey::OperandBatchingDims),
                    c.ints(AttributeKey::StartIndicesBatchingDims),
                    c.integer(AttributeKey::IndexVectorDim, -1)};
  constexpr IndexingRules rules{VerifierRule::gather_c1, VerifierRule::gather_c2, VerifierRule::gather_c3,
                                VerifierRule::gather_c4, VerifierRule::gather_c8, VerifierRule::gather_c9};
  Dims sizes = c.ints(AttributeKey::SliceSizes);
  DimVector indexDims;
  if (!checkIndexing(c, operand, indices, dims, rules, indexDims) || !checkSliceSizes(c, operand, sizes, dims))
    return std::nullopt;
  DimVector window = windowOperandDims(operand, dims);
  int64_t resultRank = window.size() + indexDims.size();
  if (dims.windowDims.size() != window.size() || !ascendingInRange(dims.windowDims, resultRank))
    return c.fail(VerifierRule::gather_c7, "offset_dims " + show(dims.windowDims) + " are not " +
                                               llvm::Twine(window.size()) +
                                               " ascending dimensions of a result of rank " + llvm::Twine(resultRank));
  DimVector result;
  unsigned nextWindow = 0, nextIndex = 0;
  for (int64_t i = 0; i < resultRank; ++i)
    result.push_back(llvm::is_contained(dims.windowDims, i) ? sizes[window[nextWindow++]] : indexDims[nextIndex++]);
  return c.array(operand.elementType(), result);
}

std::optional<Shape> inferScatter(InferenceContext &c) {
  if (c.numOperands() % 2 == 0)
    return c.fail(VerifierRule::scatter_c1,
                  "expects an odd number of operands, but has " + llvm::Twine(c.numOperands()));
  unsigned n = c.numOperands() / 2;
  const Shape &operand = c.operand(0), &indices = c.operand(n), &updates = c.operand(n + 1);
  for (unsigned i = 0; i < n; ++i) {
    if (!c.operand(i).sameDims(operand) || !c.operand(n + 1 + i).sameDims(updates))
      return c.fail(VerifierRule::scatter_c10, "operand or update " + llvm::Twine(i) + ", " + show(c.operand(i)) +
                                                   " and " + show(c.operand(n + 1 + i)) +
                                                   ", differs in dimensions from the first");
    if (c.operand(i).elementType() != c.operand(n + 1 + i).elementType())
      return c.fail(VerifierRule::scatter_c12,
                    "updates " + show(c.operand(n + 1 + i)) + " differ in element type from " + show(c.operand(i)));
  }
  IndexingDims dims{c.ints(AttributeKey::UpdateWindowDims),           c.ints(AttributeKey::InsertedWindowDims),
                    c.ints(AttributeKey::ScatterDimsToOperandDims),   c.ints(AttributeKey::InputBatchingDims),
                    c.ints(AttributeKey::ScatterIndicesBatchingDims), c.integer(AttributeKey::IndexVectorDim, -1)};
  constexpr IndexingRules rules{VerifierRule::scatter_c2, VerifierRule::scatter_c3, VerifierRule::scatter_c4,
                                VerifierRule::scatter_c5, VerifierRule::scatter_c9, VerifierRule::scatter_c13};
  DimVector indexDims;
  if (!checkIndexing(c, operand, indices, dims, rules, indexDims) ||
      !checkUpdates(c, operand, updates, dims, indexDims) || !checkCombiner(c, n))
    return std::nullopt;
  return InferenceContext::oneOrTuple(c.operandShapes(0, n));
}

std::optional<Shape> inferSort(InferenceContext &c) {
  const Shape &first = c.operand(0);
  Dims dims = c.ints(AttributeKey::Dimensions);
  if (dims.size() != 1 || dims[0] < 0 || dims[0] >= first.rank())
    return c.fail(VerifierRule::sort_c1, "dimensions " + show(dims) + " must name one dimension of " + show(first));
  llvm::SmallVector<Shape, 4> scalars;
  for (unsigned i = 0; i < c.numOperands(); ++i) {
    if (!c.operand(i).sameDims(first))
      return c.fail(VerifierRule::sort_c2,
                    "operands " + show(first) + " and " + show(c.operand(i)) + " differ in their dimensions");
    scalars.append(2, Shape::scalar(c.operand(i).elementType()));
  }
  const HloComputation *comparator = c.callee(AttributeKey::ToApply);
  if (!comparator || !takes(*comparator, scalars, /*looseFloats=*/true) ||
      !comparator->root()->shape().compatible(Shape::scalar(ElementType::Pred)))
    return c.fail(VerifierRule::sort_c3, "cannot compare " + llvm::Twine(c.numOperands()) + " operands, the first " +
                                             show(first) + ", with " +
                                             (comparator ? signature(*comparator) : std::string("nothing")));
  return InferenceContext::oneOrTuple(c.operandShapes());
}

std::optional<Shape> inferTopK(InferenceContext &c) {
  const Shape &x = c.operand(0);
  int64_t k = c.integer(AttributeKey::K, -1);
  if (x.rank() == 0 || k < 0 || k > x.dims().back())
    return c.fail(VerifierRule::topk_c1, "k=" + llvm::Twine(k) + " does not fit the last dimension of " + show(x));
  DimVector dims(x.dims());
  dims.back() = k;
  std::optional<Shape> values = c.array(x.elementType(), dims);
  std::optional<Shape> positions = c.array(ElementType::S32, dims);
  if (!values || !positions)
    return std::nullopt;
  return Shape::tuple({*values, *positions});
}

} // namespace hloc
