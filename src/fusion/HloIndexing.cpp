#include "hloc/fusion/HloIndexing.h"

#include "fusion/WindowIndexing.h"
#include "hloc/hlo/OpcodeTable.h"
#include "hloc/indexing/ShapeMaps.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace hloc {
namespace {

SmallVector<AffineExpr> dimExprs(unsigned count, MLIRContext *context) {
  SmallVector<AffineExpr> dims;
  for (unsigned i = 0; i < count; ++i)
    dims.push_back(getAffineDimExpr(i, context));
  return dims;
}

SmallVector<IndexingVariable> boundsOf(ArrayRef<int64_t> sizes) {
  SmallVector<IndexingVariable> variables;
  for (int64_t size : sizes)
    variables.push_back({Interval{0, size - 1}, {}});
  return variables;
}

IndexingMap toScalar(ArrayRef<int64_t> sizes, MLIRContext *context) {
  return IndexingMap::fromSizes(AffineMap::get(sizes.size(), 0, {}, context), sizes);
}

IndexingMap dense(ArrayRef<int64_t> sizes, ArrayRef<AffineExpr> results, MLIRContext *context) {
  return IndexingMap::fromSizes(AffineMap::get(sizes.size(), 0, results, context), sizes);
}

IndexingMap broadcastMap(const HloInstruction &instr, MLIRContext *context) {
  SmallVector<AffineExpr> results;
  for (int64_t dim : instr.ints(AttributeKey::Dimensions))
    results.push_back(getAffineDimExpr(dim, context));
  return dense(instr.shape().dims(), results, context);
}

IndexingMap transposeMap(const HloInstruction &instr, MLIRContext *context) {
  ArrayRef<int64_t> permutation = instr.ints(AttributeKey::Dimensions);
  SmallVector<AffineExpr> results(permutation.size());
  for (auto [position, dim] : llvm::enumerate(permutation))
    results[dim] = getAffineDimExpr(position, context);
  return dense(instr.shape().dims(), results, context);
}

IndexingMap reverseMap(const HloInstruction &instr, MLIRContext *context) {
  SmallVector<AffineExpr> results = dimExprs(instr.shape().rank(), context);
  for (int64_t dim : instr.ints(AttributeKey::Dimensions))
    results[dim] = -results[dim] + (instr.shape().dim(dim) - 1);
  return dense(instr.shape().dims(), results, context);
}

IndexingMap sliceMap(const HloInstruction &instr, MLIRContext *context) {
  SmallVector<AffineExpr> results = dimExprs(instr.shape().rank(), context);
  auto dims = instr.get<ArrayRef<SliceDim>>(AttributeKey::Slice);
  for (auto [i, dim] : llvm::enumerate(dims))
    results[i] = results[i] * dim.stride + dim.start;
  return dense(instr.shape().dims(), results, context);
}

IndexingMap concatenateMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  int64_t dim = instr.ints(AttributeKey::Dimensions).front();
  int64_t offset = 0;
  for (unsigned i = 0; i < operand; ++i)
    offset += instr.operand(i)->shape().dim(dim);
  SmallVector<AffineExpr> results = dimExprs(instr.shape().rank(), context);
  results[dim] = results[dim] - offset;
  SmallVector<IndexingVariable> bounds = boundsOf(instr.shape().dims());
  bounds[dim].bounds = Interval{offset, offset + instr.operand(operand)->shape().dim(dim) - 1};
  return IndexingMap(AffineMap::get(bounds.size(), 0, results, context), bounds, {}, {});
}

IndexingMap padMap(const HloInstruction &instr, MLIRContext *context) {
  const Shape &input = instr.operand(0)->shape();
  SmallVector<AffineExpr> results = dimExprs(instr.shape().rank(), context);
  SmallVector<IndexingVariable> bounds = boundsOf(instr.shape().dims());
  SmallVector<IndexingMap::Constraint> constraints;
  for (auto [i, pad] : llvm::enumerate(instr.get<ArrayRef<PaddingDim>>(AttributeKey::Padding))) {
    int64_t step = pad.interior + 1;
    Interval valid{pad.low, pad.low + (input.dim(i) - 1) * step};
    if (input.dim(i) == 0)
      valid = Interval{};
    bounds[i].bounds = bounds[i].bounds.intersect(valid);
    AffineExpr moved = results[i] - pad.low;
    if (step != 1)
      constraints.push_back({moved % step, Interval{0, 0}});
    results[i] = moved.floorDiv(step);
  }
  return IndexingMap(AffineMap::get(bounds.size(), 0, results, context), bounds, {}, {}, constraints);
}

/// Start operands of dynamic-slice and dynamic-update-slice: one scalar per dimension, or one vector.
RuntimeSource startIndex(const HloInstruction &instr, unsigned firstStart, unsigned dim, MLIRContext *context) {
  ArrayRef<int64_t> sizes = instr.shape().dims();
  const HloInstruction *first = instr.operand(firstStart);
  if (first->shape().rank() == 0)
    return {firstStart + dim, toScalar(sizes, context)};
  return {firstStart, dense(sizes, {getAffineConstantExpr(dim, context)}, context)};
}

OperandIndexing dynamicSlice(const HloInstruction &instr, MLIRContext *context) {
  unsigned rank = instr.shape().rank();
  SmallVector<AffineExpr> results = dimExprs(rank, context);
  SmallVector<IndexingVariable> starts;
  SmallVector<RuntimeSource, 0> sources;
  for (unsigned i = 0; i < rank; ++i) {
    int64_t slack = instr.operand(0)->shape().dim(i) - instr.shape().dim(i);
    if (slack <= 0)
      continue;
    results[i] = results[i] + getAffineSymbolExpr(starts.size(), context);
    starts.push_back({Interval{0, slack}, {}});
    sources.push_back(startIndex(instr, 1, i, context));
  }
  return {
      IndexingMap(AffineMap::get(rank, starts.size(), results, context), boundsOf(instr.shape().dims()), {}, starts),
      std::move(sources)};
}

OperandIndexing dynamicUpdateSliceUpdate(const HloInstruction &instr, MLIRContext *context) {
  unsigned rank = instr.shape().rank();
  const Shape &update = instr.operand(1)->shape();
  SmallVector<AffineExpr> results = dimExprs(rank, context);
  SmallVector<IndexingVariable> starts;
  SmallVector<RuntimeSource, 0> sources;
  SmallVector<IndexingMap::Constraint> constraints;
  for (unsigned i = 0; i < rank; ++i) {
    int64_t slack = instr.shape().dim(i) - update.dim(i);
    if (slack <= 0)
      continue;
    results[i] = results[i] - getAffineSymbolExpr(starts.size(), context);
    constraints.push_back({results[i], Interval{0, update.dim(i) - 1}});
    starts.push_back({Interval{0, slack}, {}});
    sources.push_back(startIndex(instr, 2, i, context));
  }
  return {IndexingMap(AffineMap::get(rank, starts.size(), results, context), boundsOf(instr.shape().dims()), {}, starts,
                      constraints),
          std::move(sources)};
}

/// What gather and scatter call the same things.
struct WindowAttributes {
  AttributeKey windowDims, droppedDims, componentDims, operandBatching, indexBatching;
};

GatherDims windowDims(const HloInstruction &instr, const WindowAttributes &keys, unsigned windowsRank) {
  GatherDims dims;
  dims.indexVectorDim = instr.intOr(AttributeKey::IndexVectorDim, 0);
  ArrayRef<int64_t> windowDims = instr.ints(keys.windowDims);
  for (int64_t i = 0; i < int64_t(windowsRank); ++i)
    if (!llvm::is_contained(windowDims, i))
      dims.batch.push_back(i);

  unsigned rank = instr.operand(0)->shape().rank();
  dims.offset.assign(rank, -1);
  dims.batchOfOperand.assign(rank, -1);
  dims.component.assign(rank, -1);
  for (auto [component, dim] : llvm::enumerate(instr.ints(keys.componentDims)))
    dims.component[dim] = component;
  ArrayRef<int64_t> indexBatching = instr.ints(keys.indexBatching);
  for (auto [k, dim] : llvm::enumerate(instr.ints(keys.operandBatching))) {
    int64_t inIndices = indexBatching[k];
    dims.batchOfOperand[dim] = dims.batch[inIndices > dims.indexVectorDim ? inIndices - 1 : inIndices];
  }
  ArrayRef<int64_t> dropped = instr.ints(keys.droppedDims);
  unsigned nextWindowDim = 0;
  for (unsigned i = 0; i < rank; ++i)
    if (!llvm::is_contained(dropped, i) && dims.batchOfOperand[i] < 0)
      dims.offset[i] = windowDims[nextWindowDim++];
  return dims;
}

/// Index of the windows -> index of component `component` of the vector that says where the window begins.
IndexingMap indexVectorMap(const GatherDims &dims, const Shape &indices, ArrayRef<int64_t> windows,
                           AffineExpr component, ArrayRef<int64_t> ranges, MLIRContext *context) {
  SmallVector<AffineExpr> results;
  for (int64_t dim : dims.batch)
    results.push_back(getAffineDimExpr(dim, context));
  if (dims.indexVectorDim < int64_t(indices.rank()))
    results.insert(results.begin() + dims.indexVectorDim, component);
  return IndexingMap::fromSizes(AffineMap::get(windows.size(), ranges.size(), results, context), windows, ranges);
}

IndexingMap gatherIndexMap(const HloInstruction &instr, const GatherDims &dims, AffineExpr component,
                           ArrayRef<int64_t> ranges, MLIRContext *context) {
  return indexVectorMap(dims, instr.operand(1)->shape(), instr.shape().dims(), component, ranges, context);
}

OperandIndexing gatherOperand(const HloInstruction &instr, MLIRContext *context) {
  GatherDims dims = gatherDims(instr);
  const Shape &operand = instr.operand(0)->shape();
  ArrayRef<int64_t> sliceSizes = instr.ints(AttributeKey::SliceSizes);
  SmallVector<AffineExpr> results;
  SmallVector<IndexingVariable> starts;
  SmallVector<RuntimeSource, 0> sources;
  for (unsigned i = 0; i < operand.rank(); ++i) {
    AffineExpr index = getAffineConstantExpr(0, context);
    int64_t position = std::max(dims.offset[i], dims.batchOfOperand[i]);
    if (position >= 0)
      index = getAffineDimExpr(position, context);
    int64_t slack = operand.dim(i) - sliceSizes[i];
    if (dims.component[i] >= 0 && slack > 0) {
      index = index + getAffineSymbolExpr(starts.size(), context);
      starts.push_back({Interval{0, slack}, {}});
      sources.push_back(
          {1, gatherIndexMap(instr, dims, getAffineConstantExpr(dims.component[i], context), {}, context)});
    }
    results.push_back(index);
  }
  return {IndexingMap(AffineMap::get(instr.shape().rank(), starts.size(), results, context),
                      boundsOf(instr.shape().dims()), {}, starts),
          std::move(sources)};
}

IndexingMap gatherIndices(const HloInstruction &instr, MLIRContext *context) {
  GatherDims dims = gatherDims(instr);
  const Shape &indices = instr.operand(1)->shape();
  bool hasVector = dims.indexVectorDim < int64_t(indices.rank());
  int64_t components = hasVector ? indices.dim(dims.indexVectorDim) : 1;
  if (components == 1)
    return gatherIndexMap(instr, dims, getAffineConstantExpr(0, context), {}, context);
  return gatherIndexMap(instr, dims, getAffineSymbolExpr(0, context), {components}, context);
}

/// Width-changing bitcast-convert appends or drops a minor dimension.
IndexingMap bitcastConvertMap(const HloInstruction &instr, MLIRContext *context) {
  unsigned from = instr.operand(0)->shape().rank();
  unsigned to = instr.shape().rank();
  SmallVector<AffineExpr> results = dimExprs(std::min(from, to), context);
  if (from <= to)
    return dense(instr.shape().dims(), results, context);
  results.push_back(getAffineSymbolExpr(0, context));
  return IndexingMap::fromSizes(AffineMap::get(to, 1, results, context), instr.shape().dims(),
                                {instr.operand(0)->shape().dims().back()});
}

OperandIndexing simplified(IndexingMap map) {
  map.simplify();
  return {std::move(map), {}};
}

/// What is read of an operand, or nothing where no map says it.
using IndexingOf = std::optional<OperandIndexing> (*)(const HloInstruction &, unsigned operand, MLIRContext *);

/// Of the one operand, or of any of them, whose indices depend on nothing but the result's.
template <IndexingMap (*map)(const HloInstruction &, MLIRContext *)>
std::optional<OperandIndexing> fixed(const HloInstruction &instr, unsigned, MLIRContext *context) {
  return simplified(map(instr, context));
}
template <IndexingMap (*map)(const HloInstruction &, unsigned, MLIRContext *)>
std::optional<OperandIndexing> fixedOf(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  return simplified(map(instr, operand, context));
}

std::optional<OperandIndexing> unknown(const HloInstruction &, unsigned, MLIRContext *) { return std::nullopt; }

IndexingMap sameIndices(const HloInstruction &instr, MLIRContext *context) {
  return IndexingMap::identity(context, instr.resultShape().dims());
}
IndexingMap padOperand(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  return operand == 0 ? padMap(instr, context) : toScalar(instr.resultShape().dims(), context);
}
IndexingMap reshapeOperand(const HloInstruction &instr, MLIRContext *context) {
  return reshapeMap(instr.resultShape().dims(), instr.operand(0)->shape().dims(), context);
}
IndexingMap scaledDotMap(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  return operand < 2 ? dotMap(instr, operand, context) : scaleMap(instr, operand, context);
}

std::optional<OperandIndexing> bitcastOperand(const HloInstruction &instr, unsigned, MLIRContext *context) {
  if (instr.shape().numElements() != instr.operand(0)->shape().numElements())
    return std::nullopt;
  return simplified(bitcastIndexing(instr.shape(), instr.operand(0)->shape(), context));
}

/// Which group a row belongs to is found by adding up sizes.
std::optional<OperandIndexing> raggedDotOperand(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  if (operand == 2 || (operand == 1 && !instr.ints(AttributeKey::RhsGroupDims).empty()))
    return std::nullopt;
  return simplified(raggedDotMap(instr, operand, context));
}

/// Of dynamic-slice and dynamic-update-slice.
OperandIndexing startOperand(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  ArrayRef<int64_t> sizes = instr.resultShape().dims();
  const Shape &start = instr.operand(operand)->shape();
  if (start.rank() == 0)
    return {toScalar(sizes, context), {}};
  AffineMap all = AffineMap::get(sizes.size(), 1, getAffineSymbolExpr(0, context));
  return {IndexingMap::fromSizes(all, sizes, start.dims()), {}};
}

std::optional<OperandIndexing> dynamicSliceOperand(const HloInstruction &instr, unsigned operand,
                                                   MLIRContext *context) {
  return operand == 0 ? dynamicSlice(instr, context) : startOperand(instr, operand, context);
}

std::optional<OperandIndexing> updateSliceOperand(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  if (operand == 0)
    return OperandIndexing{sameIndices(instr, context), {}};
  return operand == 1 ? dynamicUpdateSliceUpdate(instr, context) : startOperand(instr, operand, context);
}

std::optional<OperandIndexing> gatherOperandOrIndices(const HloInstruction &instr, unsigned operand,
                                                      MLIRContext *context) {
  return operand == 0 ? gatherOperand(instr, context) : OperandIndexing{gatherIndices(instr, context), {}};
}

/// Of which updates reach an element, no map says.
std::optional<OperandIndexing> scatterOperand(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  if (operand < instr.numOperands() / 2)
    return OperandIndexing{sameIndices(instr, context), {}};
  return std::nullopt;
}

IndexingOf indexingOf(Opcode opcode) {
  using enum Opcode;
  static constexpr OpcodeTable<IndexingOf> table(
      [](Opcode each) { return !hasTrait(each, OpcodeTrait::InPlace) || each == BitcastConvert; },
      {
          {{GetTupleElement}, fixed<sameIndices>},
          {{Broadcast}, fixed<broadcastMap>},
          {{Transpose}, fixed<transposeMap>},
          {{Reverse}, fixed<reverseMap>},
          {{Slice}, fixed<sliceMap>},
          {{Concatenate}, fixedOf<concatenateMap>},
          {{Pad}, fixedOf<padOperand>},
          {{Reshape}, fixed<reshapeOperand>},
          {{Bitcast}, bitcastOperand},
          {{BitcastConvert}, fixed<bitcastConvertMap>}, // where it is not in place
          {{Reduce}, fixedOf<reduceMap>},
          {{ReduceWindow}, fixedOf<reduceWindowMap>},
          {{Dot}, fixedOf<dotMap>},
          {{ScaledDot}, fixedOf<scaledDotMap>},
          {{RaggedDot}, raggedDotOperand},
          {{Convolution}, fixedOf<convolutionMap>},
          {{DynamicSlice}, dynamicSliceOperand},
          {{DynamicUpdateSlice}, updateSliceOperand},
          {{Gather}, gatherOperandOrIndices},
          {{Scatter}, scatterOperand},
          // Elements depend on the order or the values of many others.
          {{SelectAndScatter, Sort, TopK, Scan, BatchNormTraining, BatchNormInference, BatchNormGrad, Fft, Cholesky,
            TriangularSolve, RngBitGenerator},
           unknown},
          // No arrays are read, or none inside a kernel.
          {{Parameter,
            Constant,
            Iota,
            ReplicaId,
            PartitionId,
            Rng,
            RngGetAndUpdateState,
            DynamicReshape,
            GetDimensionSize,
            SetDimensionSize,
            Tuple,
            Call,
            While,
            Conditional,
            Fusion,
            CustomCall,
            AfterAll,
            Infeed,
            Outfeed,
            Send,
            SendDone,
            Recv,
            RecvDone,
            AllReduce,
            AllReduceStart,
            AllReduceDone,
            ReduceScatter,
            AllGather,
            AllGatherStart,
            AllGatherDone,
            AllToAll,
            RaggedAllToAll,
            CollectiveBroadcast,
            CollectivePermute,
            CollectivePermuteStart,
            CollectivePermuteDone,
            CopyStart,
            CopyDone,
            AsyncStart,
            AsyncUpdate,
            AsyncDone},
           unknown},
      });
  return table.contains(opcode) ? table[opcode] : unknown;
}

} // namespace

const HloInstruction &behindTuple(const HloInstruction &instr) {
  const HloInstruction *value = &instr;
  while (value->opcode() == Opcode::GetTupleElement) {
    const HloInstruction *tuple = value->operand(0);
    while (tuple->opcode() == Opcode::OptimizationBarrier || tuple->opcode() == Opcode::GetTupleElement) {
      if (tuple->opcode() == Opcode::OptimizationBarrier)
        tuple = tuple->operand(0);
      else if (const HloInstruction *inner = &behindTuple(*tuple); inner != tuple)
        tuple = inner;
      else
        break;
    }
    if (tuple->opcode() != Opcode::Tuple)
      break;
    value = tuple->operand(value->intOr(AttributeKey::Index, 0));
  }
  return *value;
}

GatherDims gatherDims(const HloInstruction &gather) {
  return windowDims(gather,
                    {AttributeKey::OffsetDims, AttributeKey::CollapsedSliceDims, AttributeKey::StartIndexMap,
                     AttributeKey::OperandBatchingDims, AttributeKey::StartIndicesBatchingDims},
                    gather.shape().rank());
}

GatherDims scatterDims(const HloInstruction &scatter) {
  return windowDims(scatter,
                    {AttributeKey::UpdateWindowDims, AttributeKey::InsertedWindowDims,
                     AttributeKey::ScatterDimsToOperandDims, AttributeKey::InputBatchingDims,
                     AttributeKey::ScatterIndicesBatchingDims},
                    scatter.operands().back()->shape().rank());
}

IndexingMap scatterIndexMap(const HloInstruction &scatter, int64_t component, MLIRContext *context) {
  return indexVectorMap(scatterDims(scatter), scatter.operand(scatter.numOperands() / 2)->shape(),
                        scatter.operands().back()->shape().dims(), getAffineConstantExpr(component, context), {},
                        context);
}

IndexingMap bitcastIndexing(const Shape &to, const Shape &from, MLIRContext *context) {
  return bitcastMap(to.dims(), to.minorToMajor(), from.dims(), from.minorToMajor(), context);
}

IndexingMap memoryOrderIndexing(const Shape &shape, MLIRContext *context) {
  int64_t elements = shape.numElements();
  int64_t order[] = {0};
  return bitcastMap({elements}, order, shape.dims(), shape.minorToMajor(), context);
}

llvm::SmallVector<AffineExpr> memoryOrderIndices(const Shape &shape, AffineExpr position) {
  IndexingMap order = memoryOrderIndexing(shape, position.getContext());
  return llvm::map_to_vector(order.affine().getResults(),
                             [&](AffineExpr index) { return index.replaceDims({position}); });
}

bool readsOperandsInPlace(const HloInstruction &instr) {
  if (!hasTrait(instr.opcode(), OpcodeTrait::InPlace))
    return false;
  // Between elements of different widths bitcast-convert has another dimension.
  return family(instr.opcode()) != OpcodeFamily::Convert || instr.shape().sameDims(instr.operand(0)->shape());
}

std::optional<OperandIndexing> operandIndexing(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  ArrayRef<int64_t> sizes = instr.resultShape().dims();
  if (readsOperandsInPlace(instr)) {
    bool scalar = instr.operand(operand)->shape().rank() == 0;
    return OperandIndexing{scalar ? toScalar(sizes, context) : IndexingMap::identity(context, sizes), {}};
  }
  return indexingOf(instr.opcode())(instr, operand, context);
}

} // namespace hloc
