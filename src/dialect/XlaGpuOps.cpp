// Calls, shared memory, predicated and atomic accesses: builders, verifiers, folds.
#include "hloc/dialect/XlaGpu.h"

#include "dialect/ThreadDependence.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

/// `: bf16`, of two types `: si8 by ui8`; all others follow.
static ParseResult parseFragments(OpAsmParser &parser, TypeAttr &element, TypeAttr &rhsElement, Type &lhs, Type &rhs,
                                  Type &sums) {
  Type type, second;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseType(type))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("by"))) {
    if (parser.parseType(second))
      return failure();
    rhsElement = TypeAttr::get(second);
  }
  element = TypeAttr::get(type);
  FragmentTypes types = fragmentTypes(type);
  if (!types.lhs)
    return parser.emitError(at) << "cannot multiply fragments of " << type;
  std::tie(lhs, rhs, sums) = std::tie(types.lhs, types.rhs, types.sums);
  return success();
}

static void printFragments(OpAsmPrinter &printer, Operation *, TypeAttr element, TypeAttr rhsElement, Type, Type,
                           Type) {
  printer << element.getValue();
  if (rhsElement)
    printer << " by " << rhsElement.getValue();
}

#define GET_OP_CLASSES
#include "dialect/XlaGpuOps.cpp.inc"

namespace {

LogicalResult verifyIndices(Operation *op, Type tensor, OperandRange indices) {
  int64_t rank = cast<RankedTensorType>(tensor).getRank();
  if (int64_t(indices.size()) != rank)
    return op->emitOpError() << "has " << indices.size() << " indices for a tensor of rank " << rank;
  return success();
}

/// A barrier that only some threads of a block reach, or a shuffle that only some of a warp do, leaves the others
/// waiting, or without values.
LogicalResult verifyReachedByAll(Operation *op, bool warps) {
  Operation *around = threadDependentAncestor(op, warps);
  if (!around)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError("must be reached by all threads of the block together");
  diagnostic.attachNote(around->getLoc()) << "whether this is entered depends on the thread";
  return diagnostic;
}

bool isConstant(Attribute condition, bool value) {
  auto constant = dyn_cast_or_null<IntegerAttr>(condition);
  return constant && constant.getValue().getBoolValue() == value;
}

} // namespace

// --- pure_call

void PureCallOp::build(OpBuilder &builder, OperationState &state, func::FuncOp callee, ValueRange operands) {
  build(builder, state, FlatSymbolRefAttr::get(callee), callee.getFunctionType().getResults(), operands);
}

void PureCallOp::build(OpBuilder &, OperationState &state, FlatSymbolRefAttr callee, TypeRange results,
                       ValueRange operands) {
  state.addOperands(operands);
  state.addAttribute(getCalleeAttrName(state.name), callee);
  state.addTypes(results);
}

void PureCallOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value result : getResults())
    setName(result, "pure_call");
}

LogicalResult PureCallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls `" << getCallee() << "`, which is no function";
  if (callee.getFunctionType() != FunctionType::get(getContext(), getOperandTypes(), getResultTypes()))
    return emitOpError() << "calls `" << getCallee() << "` of type " << callee.getFunctionType() << " as "
                         << FunctionType::get(getContext(), getOperandTypes(), getResultTypes());
  return success();
}

// --- shuffle_reduce

void ShuffleReduceOp::build(OpBuilder &builder, OperationState &state, func::FuncOp combiner, ValueRange operands,
                            int64_t maxDistance, bool toAll) {
  build(builder, state, operands.getTypes(), operands, combiner.getSymName(), maxDistance, toAll);
}

LogicalResult ShuffleReduceOp::verify() {
  if (!llvm::isPowerOf2_64(getMaxDistance()) || getMaxDistance() >= 32)
    return emitOpError() << "needs a distance that is a power of two below 32, not " << getMaxDistance();
  for (Type type : getOperandTypes())
    if (!isa<FloatType, IntegerType, ComplexType>(type))
      return emitOpError() << "cannot shuffle " << type;
  return verifyReachedByAll(*this, /*warps=*/true);
}

LogicalResult ShuffleReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto combiner = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCombinerAttr());
  if (!combiner)
    return emitOpError() << "combines with `" << getCombiner() << "`, which is no function";
  SmallVector<Type> inputs(getOperandTypes());
  llvm::append_range(inputs, getOperandTypes());
  auto expected = FunctionType::get(getContext(), inputs, getOperandTypes());
  if (combiner.getFunctionType() != expected)
    return emitOpError() << "needs a combiner of type " << expected << ", `" << getCombiner() << "` has "
                         << combiner.getFunctionType();
  return success();
}

// --- sync_threads

LogicalResult SyncThreadsOp::verify() {
  if (getEach() && (!getThreads() || *getThreads() < 32 || !llvm::isPowerOf2_64(*getThreads())))
    return emitOpError("has groups of a power of two of threads, of one warp at least");
  return verifyReachedByAll(*this, /*warps=*/getThreads().has_value());
}

LogicalResult SetRegistersOp::verify() { return verifyReachedByAll(*this, /*warps=*/true); }

// --- fragments

FragmentTypes xla_gpu::fragmentTypes(Type element) {
  constexpr int64_t ofLhs = 4, ofRhs = 2, ofSums = 4;
  MLIRContext *context = element.getContext();
  auto of = [&](Type factor, Type sum) -> FragmentTypes {
    return {VectorType::get({ofLhs}, factor), VectorType::get({ofRhs}, factor), VectorType::get({ofSums}, sum)};
  };
  Type word = IntegerType::get(context, 32);
  if (element.isF16() || element.isBF16() || element.isTF32())
    return of(word, Float32Type::get(context));
  if (element.isSignedInteger(8) || element.isUnsignedInteger(8))
    return of(word, word);
  if (element.isF64())
    return of(element, element);
  return {};
}

LogicalResult LoadFragmentsOp::verify() {
  Type element = getSource().getType().getElementType();
  const unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (!llvm::is_contained({8u, 16u, 32u}, bits) || (bits == 32 && getTransposed()))
    return emitOpError() << "cannot load fragments of " << element << (getTransposed() ? " transposed" : "");
  if (getSwapped() && (bits != 8 || !getTransposed()))
    return emitOpError("swaps rows of what are no transposed bytes");
  if (getSource().getType().getRank() != 1)
    return emitOpError("needs a flat tensor");
  return verifyReachedByAll(*this, /*warps=*/true);
}

LogicalResult MultiplyFragmentsOp::verify() {
  FragmentTypes types = fragmentTypes(getElement());
  if (!types.lhs)
    return emitOpError() << "cannot multiply fragments of " << getElement();
  if (getLhs().getType() != types.lhs || getRhs().getType() != types.rhs || getSums().getType() != types.sums)
    return emitOpError() << "has other fragments than those of " << getElement();
  if (std::optional<Type> second = getRhsElement();
      second && (*second == getElement() || !second->isInteger(8) || !getElement().isInteger(8)))
    return emitOpError() << "cannot multiply fragments of " << getElement() << " by those of " << *second;
  return verifyReachedByAll(*this, /*warps=*/true);
}

/// Lines of 8 in units of 16 bytes.
static LogicalResult verifyLayout(Operation *op, ArrayRef<int64_t> layout, ArrayRef<int64_t> steps,
                                  unsigned bitsOfFactor) {
  constexpr int64_t bytesOfUnit = 16, mostUnits = 1 << 14;
  auto isDistance = [](int64_t bytes) {
    return bytes % bytesOfUnit == 0 && bytes >= 0 && bytes / bytesOfUnit < mostUnits;
  };
  if (layout.size() != 4 || !isDistance(layout[0]) || !isDistance(layout[1]) ||
      !llvm::is_contained({0, 32, 64, 128}, layout[2]) || !llvm::is_contained({0, 1}, layout[3]))
    return op->emitOpError("has a layout that no descriptor has");
  if (layout[3] && bitsOfFactor != 16)
    return op->emitOpError("has neighbours across terms, which only factors of 16 bits may have");
  return llvm::all_of(steps, isDistance) ? success() : op->emitOpError("has steps that are no multiples of 16 bytes");
}

/// Floats of bytes, which warpgroups alone multiply as they are.
static bool isByteFloat(Type element) { return isa<Float8E4M3FNType, Float8E5M2Type>(element); }

/// Of a product of warpgroups; the bits of a factor, or 0 and an error.
static unsigned verifyProduct(Operation *op, Type element, ValueRange sums, ArrayRef<Value> tiles) {
  constexpr size_t mostSums = 128, sumsOfColumns = 4; // of a thread, of eight columns
  const FragmentTypes types = fragmentTypes(isByteFloat(element) ? Float16Type::get(op->getContext()) : element);
  if (!types.lhs || element.isF64()) {
    op->emitOpError() << "cannot multiply tiles of " << element;
    return 0;
  }
  const Type sum = types.sums.getElementType();
  if (sums.empty() || sums.size() > mostSums || sums.size() % sumsOfColumns != 0 ||
      !llvm::all_of(sums.getTypes(), [&](Type type) { return type == sum; })) {
    op->emitOpError() << "has other sums than those of 64 rows of " << element;
    return 0;
  }
  const unsigned bits = element.isTF32() ? 32 : element.getIntOrFloatBitWidth();
  for (Value tile : tiles)
    if (auto type = cast<RankedTensorType>(tile.getType());
        type.getRank() != 1 || !type.getElementType().isIntOrFloat() || type.getElementTypeBitWidth() != bits) {
      op->emitOpError() << "needs flat tensors of factors of " << bits << " bits";
      return 0;
    }
  return bits;
}

LogicalResult MultiplyTilesOp::verify() {
  const unsigned bits = verifyProduct(*this, getElement(), getSums(), {getLhs(), getRhs()});
  if (!bits)
    return failure();
  if (getLhsSteps().empty() || getLhsSteps().size() != getRhsSteps().size())
    return emitOpError("has other terms on its left than on its right");
  if (failed(verifyLayout(*this, getLhsLayout(), getLhsSteps(), bits)) ||
      failed(verifyLayout(*this, getRhsLayout(), getRhsSteps(), bits)))
    return failure();
  return verifyReachedByAll(*this, /*warps=*/true);
}

LogicalResult MultiplyHeldOp::verify() {
  constexpr size_t wordsOfTerms = 4;
  const unsigned bits = verifyProduct(*this, getElement(), getSums(), {getRhs()});
  if (!bits || failed(verifyLayout(*this, getRhsLayout(), getRhsSteps(), bits)))
    return failure();
  if (getRhsSteps().empty() || getLhs().size() != wordsOfTerms * getRhsSteps().size())
    return emitOpError("has other terms on its left than on its right");
  return verifyReachedByAll(*this, /*warps=*/true);
}

// --- asynchronous copies

LogicalResult CopyAsyncOp::verify() {
  Type element = getSource().getType().getElementType();
  if (element != getDest().getType().getElementType())
    return emitOpError() << "cannot copy " << element << " into a tensor of " << getDest().getType().getElementType();
  if (getDest().getType().getRank() != 1)
    return emitOpError("needs a flat tensor to copy into");
  if (!isa<FloatType, IntegerType>(element))
    return emitOpError() << "cannot copy " << element;
  const uint64_t bits = uint64_t(getSize()) * element.getIntOrFloatBitWidth();
  if (!llvm::is_contained({32, 64, 128}, bits))
    return emitOpError() << "copies 4, 8 or 16 bytes, not " << bits << " bits";
  return verifyIndices(*this, getSource().getType(), getIndices());
}

// --- allocate_shared

void AllocateSharedOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), "shmem"); }

// --- atomic_rmw

void AtomicRmwOp::build(OpBuilder &builder, OperationState &state, Value tensor, ValueRange indices,
                        function_ref<void(OpBuilder &, Location, Value)> body) {
  state.addOperands(tensor);
  state.addOperands(indices);
  state.addTypes(tensor.getType());
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(state.addRegion(), {}, {element}, {state.location});
  if (body)
    body(builder, state.location, block->getArgument(0));
}

LogicalResult AtomicRmwOp::verify() { return verifyIndices(*this, getInput().getType(), getIndices()); }

LogicalResult AtomicRmwOp::verifyRegions() {
  Block &block = getRegion().front();
  if (block.getNumArguments() != 1)
    return emitOpError("needs a body with one argument");
  Type type = block.getArgument(0).getType();
  auto vector = dyn_cast<VectorType>(type);
  Type element = vector ? vector.getElementType() : type;
  if ((vector && vector.getRank() != 1) || element != cast<ShapedType>(getInput().getType()).getElementType())
    return emitOpError() << "updates elements of type " << cast<ShapedType>(getInput().getType()).getElementType()
                         << ", its body has an argument of type " << type;
  if (block.getTerminator()->getOperandTypes() != TypeRange(type))
    return emitOpError() << "must yield one value of type " << type;
  return success();
}

OpFoldResult AtomicRmwOp::fold(FoldAdaptor) {
  return updated() == current() ? OpFoldResult(getInput()) : OpFoldResult();
}

/// What does not depend on the current element is computed once, before.
LogicalResult AtomicRmwOp::canonicalize(AtomicRmwOp op, PatternRewriter &rewriter) {
  bool moved = false;
  for (Operation &inner : llvm::make_early_inc_range(op.getBody()->without_terminator())) {
    bool usesBody =
        llvm::any_of(inner.getOperands(), [&](Value value) { return value.getParentBlock() == op.getBody(); });
    if (usesBody || inner.getNumRegions() > 0 || !isPure(&inner))
      continue;
    rewriter.moveOpBefore(&inner, op);
    moved = true;
  }
  return success(moved);
}

// --- predicated_insert, predicated_extract

LogicalResult PredicatedInsertOp::verify() { return verifyIndices(*this, getDest().getType(), getIndices()); }

OpFoldResult PredicatedInsertOp::fold(FoldAdaptor adaptor) {
  return isConstant(adaptor.getCondition(), false) ? OpFoldResult(getDest()) : OpFoldResult();
}

LogicalResult PredicatedInsertOp::canonicalize(PredicatedInsertOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return failure();
  rewriter.replaceOpWithNewOp<tensor::InsertOp>(op, op.getValue(), op.getDest(), op.getIndices());
  return success();
}

LogicalResult PredicatedExtractOp::verify() { return verifyIndices(*this, getSource().getType(), getIndices()); }

OpFoldResult PredicatedExtractOp::fold(FoldAdaptor adaptor) {
  return isConstant(adaptor.getCondition(), false) ? OpFoldResult(getFallback()) : OpFoldResult();
}

LogicalResult PredicatedExtractOp::canonicalize(PredicatedExtractOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return failure();
  rewriter.replaceOpWithNewOp<tensor::ExtractOp>(op, op.getSource(), op.getIndices());
  return success();
}
