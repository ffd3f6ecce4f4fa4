// Tensors become rank 1 in the order of their bytes. Types are changed in place: a closed set of ops uses tensors here,
// and none of them but the accesses looks at shapes.
#include "passes/PassDetail.h"

#include "hloc/dialect/AppliedMap.h"
#include "hloc/dialect/TensorLayout.h"

namespace hloc {
#define GEN_PASS_DEF_FLATTENTENSORS
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

bool isFlat(RankedTensorType type) { return type.getRank() == 1 && !type.getEncoding(); }

Type flatten(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || isFlat(tensor))
    return type;
  return RankedTensorType::get({tensor.getNumElements()}, tensor.getElementType());
}

/// The position in memory of the element of a `type` at `indices`.
Value linearIndex(OpBuilder &builder, Location loc, RankedTensorType type, ValueRange indices) {
  if (type.getRank() == 0)
    return arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<unsigned> majorToMinor;
  SmallVector<int64_t> sizes;
  auto order = minorToMajor(type);
  for (int64_t dimension : llvm::reverse(order)) {
    majorToMinor.push_back(dimension);
    sizes.push_back(type.getDimSize(dimension));
  }
  AppliedMap applied = AppliedMap::identity(indices, builder.getContext());
  applied.map = applied.map.withResults(majorToMinor);
  applied.linearize(sizes);
  applied.composeProducers();
  applied.simplify();
  return applied.materialize(builder, loc).front();
}

template <typename OpTy> void flattenAccess(OpTy op, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (isFlat(type))
    return;
  OpBuilder builder(op);
  op.getIndicesMutable().assign(linearIndex(builder, op.getLoc(), type, op.getIndices()));
}

/// The elements of `data` in the order of their bytes.
DenseElementsAttr flattenData(DenseElementsAttr data, RankedTensorType type) {
  auto flat = cast<RankedTensorType>(flatten(type));
  if (data.isSplat())
    return data.resizeSplat(flat);
  if (!type.getEncoding())
    return data.reshape(flat);
  SmallVector<int64_t> layout = minorToMajor(type);
  SmallVector<int64_t> strides(type.getRank()), point(type.getRank(), 0);
  int64_t stride = 1;
  for (int64_t i = type.getRank(); i-- > 0; stride *= type.getDimSize(i))
    strides[i] = stride;
  auto values = data.getValues<Attribute>();
  SmallVector<Attribute> ordered;
  for (int64_t n = 0; n < type.getNumElements(); ++n) {
    int64_t logical = 0;
    for (auto [index, step] : llvm::zip_equal(point, strides))
      logical += index * step;
    ordered.push_back(values[logical]);
    for (int64_t dimension : layout) {
      if (++point[dimension] < type.getDimSize(dimension))
        break;
      point[dimension] = 0;
    }
  }
  return DenseElementsAttr::get(flat, ordered);
}

LogicalResult flattenIndices(Operation *op) {
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()), SmallVector<Type>(op->getResultTypes())))
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      if (!tensor.hasStaticShape() || !hasValidLayout(tensor))
        return op->emitOpError() << "uses " << tensor << ", whose shape or layout is not static";
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    flattenAccess(extract, extract.getTensor());
  else if (auto insert = dyn_cast<tensor::InsertOp>(op))
    flattenAccess(insert, insert.getDest());
  else if (auto atomic = dyn_cast<AtomicRmwOp>(op))
    flattenAccess(atomic, atomic.getInput());
  else if (auto insert = dyn_cast<PredicatedInsertOp>(op))
    flattenAccess(insert, insert.getDest());
  else if (auto extract = dyn_cast<PredicatedExtractOp>(op))
    flattenAccess(extract, extract.getSource());
  else if (auto copy = dyn_cast<CopyAsyncOp>(op))
    flattenAccess(copy, copy.getSource());
  else if (isa<tensor::TensorDialect, vector::VectorDialect>(op->getDialect()) &&
           llvm::any_of(op->getOperandTypes(), [](Type type) {
             auto tensor = dyn_cast<RankedTensorType>(type);
             return tensor && !isFlat(tensor);
           }))
    return op->emitOpError("cannot access a tensor that is not rank 1 in the default layout");
  return success();
}

void flattenTypes(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto data = dyn_cast<DenseElementsAttr>(constant.getValue()))
      if (auto type = dyn_cast<RankedTensorType>(data.getType()); type && !isFlat(type))
        constant.setValueAttr(flattenData(data, type));
  for (Value result : op->getResults())
    result.setType(flatten(result.getType()));
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (BlockArgument argument : block.getArguments())
        argument.setType(flatten(argument.getType()));
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    return;
  auto flattenAll = [](TypeRange types) { return llvm::map_to_vector(types, flatten); };
  FunctionType type = function.getFunctionType();
  function.setFunctionType(
      FunctionType::get(op->getContext(), flattenAll(type.getInputs()), flattenAll(type.getResults())));
}

struct FlattenTensorsPass : hloc::impl::FlattenTensorsBase<FlattenTensorsPass> {
  void runOnOperation() override {
    // All indices first: they need the shapes.
    WalkResult result = getOperation().walk(
        [](Operation *op) { return failed(flattenIndices(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
    if (result.wasInterrupted())
      return signalPassFailure();
    getOperation().walk(flattenTypes);
  }
};

} // namespace
