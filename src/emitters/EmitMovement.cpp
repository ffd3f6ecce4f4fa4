// Data movement: the operand at other indices, or one of several operands.
#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/FunctionEmitter.h"
#include "emitters/ScalarComputation.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/support/Check.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;

namespace hloc {
namespace {

using IPred = CodeBuilder::IPred;

Value both(CodeBuilder &b, Value x, Value y) { return !x ? y : !y ? x : b.andI(x, y); }

Value insideInterval(CodeBuilder &b, Value value, Interval interval, Interval known) {
  Value result;
  if (known.lower < interval.lower)
    result = b.cmpI(IPred::sge, value, interval.lower);
  if (known.upper > interval.upper)
    result = both(b, result, b.cmpI(IPred::sle, value, interval.upper));
  return result;
}

/// Wide enough for all starts of the type, and for `high`.
Type widthOf(CodeBuilder &b, ElementType type, int64_t high) {
  bool narrow = bitWidth(type) <= 32 && high <= std::numeric_limits<int32_t>::max();
  return narrow ? b.getI32Type() : b.getI64Type();
}

/// A value in [0, high].
Value indexUpTo(CodeBuilder &b, Value value, int64_t high) {
  Value index = b.toIndex(value, true);
  index.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(b.getContext(), Interval{0, high}));
  return index;
}

} // namespace

Value clampStart(CodeBuilder &b, Value start, ElementType type, int64_t high) {
  Type width = widthOf(b, type, high);
  if (type == ElementType::U32)
    width = b.getI64Type();
  Value wide = b.castI(start, width, isSigned(type));
  Value limit = b.integer(width, high);
  Value clamped;
  if (isUnsigned(type) || isPred(type))
    clamped = b.minU(wide, limit);
  else
    clamped = b.maxS(b.minS(wide, limit), b.integer(width, 0));
  return indexUpTo(b, clamped, high);
}

Value startIsInside(CodeBuilder &b, Value start, ElementType type, int64_t high) {
  Type width = widthOf(b, type, high);
  // What is negative is a huge unsigned number.
  return b.cmpI(IPred::ule, b.castI(start, width, isSigned(type)), high);
}

Value startAsIndex(CodeBuilder &b, Value start, ElementType type, int64_t high) {
  return indexUpTo(b, b.castI(start, widthOf(b, type, high), isSigned(type)), high);
}

SmallVector<Value> applyMap(CodeBuilder &b, const IndexingMap &map, ValueRange operands) {
  unsigned numDims = map.dims().size();
  SmallVector<Value> results(map.numResults());
  SmallVector<AffineExpr> computed;
  SmallVector<unsigned> positions;
  for (unsigned i = 0; i < map.numResults(); ++i) {
    AffineExpr result = map.result(i);
    if (auto dim = dyn_cast<AffineDimExpr>(result)) {
      results[i] = operands[dim.getPosition()];
    } else if (auto symbol = dyn_cast<AffineSymbolExpr>(result)) {
      results[i] = operands[numDims + symbol.getPosition()];
    } else if (auto constant = dyn_cast<AffineConstantExpr>(result)) {
      results[i] = b.index(constant.getValue());
    } else {
      computed.push_back(result);
      positions.push_back(i);
    }
  }
  if (computed.empty())
    return results;
  auto affine = AffineMap::get(numDims, map.affine().getNumSymbols(), computed, b.getContext());
  IndexingMap plain = IndexingMap(affine, map.dims(), map.ranges(), map.runtimes()).symbolsToDims();
  auto apply = xla_gpu::ApplyIndexingOp::create(b, operands, plain);
  for (auto [i, position] : llvm::enumerate(positions))
    results[position] = apply.getResult(i);
  return results;
}

Value insideDomain(CodeBuilder &b, const IndexingMap &map, ValueRange indices, ArrayRef<int64_t> sizes) {
  Value inside;
  for (auto [i, dim] : llvm::enumerate(map.dims()))
    inside = both(b, inside, insideInterval(b, indices[i], dim.bounds, Interval{0, sizes[i] - 1}));
  for (const auto &[expression, interval] : map.constraints()) {
    auto affine = AffineMap::get(map.dims().size(), map.affine().getNumSymbols(), expression);
    SmallVector<IndexingVariable> dims;
    for (int64_t size : sizes)
      dims.push_back({Interval{0, size - 1}, {}});
    IndexingMap single(affine, dims, map.ranges(), map.runtimes());
    Value value = applyMap(b, single, indices).front();
    inside = both(b, inside, insideInterval(b, value, interval, single.range(single.result(0))));
  }
  return inside;
}

FunctionEmitter::Result FunctionEmitter::emitIf(Value condition, Type type, llvm::function_ref<Result()> thenBranch,
                                                llvm::function_ref<Result()> elseBranch) {
  auto branch = scf::IfOp::create(b, TypeRange{type}, condition, /*withElse=*/true);
  auto fill = [&](Block *block, llvm::function_ref<Result()> body) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(block);
    Result value = body();
    if (failed(value))
      return failure();
    scf::YieldOp::create(b, *value);
    return success();
  };
  if (failed(fill(branch.thenBlock(), thenBranch)) || failed(fill(branch.elseBlock(), elseBranch)))
    return failure();
  return Values{branch.getResult(0)};
}

FunctionEmitter::Result FunctionEmitter::emitMapped(const HloInstruction &instr, ValueRange indices) {
  std::optional<OperandIndexing> indexing = operandIndexing(instr, 0, b.getContext());
  HLOC_CHECK(indexing, "data movement without a map");
  locate(instr);
  Result operand = emit(*instr.operand(0), applyMap(b, indexing->map, indices));
  if (failed(operand) || instr.opcode() != Opcode::GetTupleElement)
    return operand;
  Value element = (*operand)[instr.intOr(AttributeKey::Index, 0)];
  HLOC_CHECK(element, "a result is read that is not injected");
  return Values{element};
}

FunctionEmitter::Result FunctionEmitter::emitBitcast(const HloInstruction &instr, ValueRange indices) {
  ElementType from = instr.operand(0)->shape().elementType();
  ElementType to = instr.shape().elementType();
  if (from == ElementType::C128 && to == ElementType::C64)
    return emitHalvesOfComplex(instr, indices);
  if (from == ElementType::C64 && to == ElementType::C128)
    return emitComplexOfHalves(instr, indices);
  if (deviceBits(from) != deviceBits(to)) {
    bool patterns =
        !isComplex(from) && !isComplex(to) && bitWidth(from) == deviceBits(from) && bitWidth(to) == deviceBits(to);
    if (!patterns || instr.opcode() == Opcode::Bitcast)
      return unsupportedFeature(instr, "`" + text(instr.opcode()).str() + "` from " + text(from).str() + " to " +
                                           text(to).str());
    return bitWidth(from) > bitWidth(to) ? emitNarrowingBitcast(instr, indices) : emitWideningBitcast(instr, indices);
  }
  Result operand = emitMapped(instr, indices);
  if (failed(operand) || from == to)
    return operand;
  if (isComplex(from) || isComplex(to))
    return unsupportedFeature(instr, "a bitcast between complex and other types");
  locate(instr);
  Value stored = toStorage(b, operand->front(), from);
  return Values{fromStorage(b, b.bitcast(stored, storageType(to, b.getContext())), to)};
}

/// The last index says which part of a c128: each is two words, which are the parts of a c64.
FunctionEmitter::Result FunctionEmitter::emitHalvesOfComplex(const HloInstruction &instr, ValueRange indices) {
  llvm::FailureOr<Value> operand = emitOne(*instr.operand(0), indices.drop_back());
  if (failed(operand))
    return failure();
  locate(instr);
  Value isReal = b.cmpI(IPred::eq, indices.back(), 0);
  Value bits = b.bitcast(b.select(isReal, b.real(*operand), b.imag(*operand)), b.getI64Type());
  auto word = [&](Value wide) { return b.bitcast(b.castI(wide, b.getI32Type(), false), b.getF32Type()); };
  return Values{b.complex(word(bits), word(b.shrU(bits, b.integerLike(bits, 32))))};
}

FunctionEmitter::Result FunctionEmitter::emitComplexOfHalves(const HloInstruction &instr, ValueRange indices) {
  Value parts[2];
  for (int64_t i = 0; i < 2; ++i) {
    locate(instr);
    SmallVector<Value> halfIndices(indices);
    halfIndices.push_back(b.index(i));
    llvm::FailureOr<Value> half = emitOne(*instr.operand(0), halfIndices);
    if (failed(half))
      return failure();
    locate(instr);
    auto word = [&](Value part) { return b.castI(b.bitcast(part, b.getI32Type()), b.getI64Type(), false); };
    Value bits = b.orI(word(b.real(*half)), b.shl(word(b.imag(*half)), 32));
    parts[i] = b.bitcast(bits, b.getF64Type());
  }
  return Values{b.complex(parts[0], parts[1])};
}

/// The last index says which part of the operand's bits, lowest first.
FunctionEmitter::Result FunctionEmitter::emitNarrowingBitcast(const HloInstruction &instr, ValueRange indices) {
  ElementType from = instr.operand(0)->shape().elementType();
  ElementType to = instr.shape().elementType();
  llvm::FailureOr<Value> operand = emitOne(*instr.operand(0), indices.drop_back());
  if (failed(operand))
    return failure();
  locate(instr);
  Value stored = toStorage(b, *operand, from);
  Value bits = b.bitcast(stored, b.intTypeOf(stored));
  Value part = arith::IndexCastUIOp::create(b, bits.getType(), indices.back());
  Value shifted = b.shrU(bits, b.mulI(part, b.integerLike(part, bitWidth(to))));
  Value piece = b.castI(shifted, b.getIntegerType(bitWidth(to)), false);
  return Values{fromStorage(b, b.bitcast(piece, storageType(to, b.getContext())), to)};
}

/// Puts the elements along the operand's last dimension together, first one lowest.
FunctionEmitter::Result FunctionEmitter::emitWideningBitcast(const HloInstruction &instr, ValueRange indices) {
  const Shape &operand = instr.operand(0)->shape();
  ElementType to = instr.shape().elementType();
  Type wide = b.getIntegerType(bitWidth(to));
  Value bits;
  for (int64_t i = 0; i < operand.dims().back(); ++i) {
    locate(instr);
    SmallVector<Value> partIndices(indices);
    partIndices.push_back(b.index(i));
    llvm::FailureOr<Value> part = emitOne(*instr.operand(0), partIndices);
    if (failed(part))
      return failure();
    locate(instr);
    Value stored = toStorage(b, *part, operand.elementType());
    Value piece = b.castI(b.bitcast(stored, b.intTypeOf(stored)), wide, false);
    Value placed = i == 0 ? piece : b.shl(piece, i * int64_t(bitWidth(operand.elementType())));
    bits = bits ? b.orI(bits, placed) : placed;
  }
  return Values{fromStorage(b, b.bitcast(bits, storageType(to, b.getContext())), to)};
}

FunctionEmitter::Result FunctionEmitter::emitConcatenate(const HloInstruction &instr, ValueRange indices) {
  return emitOneOf(instr, indices, 0, instr.numOperands());
}

/// A balanced tree of comparisons with the operands' offsets.
FunctionEmitter::Result FunctionEmitter::emitOneOf(const HloInstruction &instr, ValueRange indices, unsigned begin,
                                                   unsigned end) {
  if (end - begin == 1) {
    std::optional<OperandIndexing> indexing = operandIndexing(instr, begin, b.getContext());
    locate(instr);
    return emit(*instr.operand(begin), applyMap(b, indexing->map, indices));
  }
  int64_t dim = instr.ints(AttributeKey::Dimensions).front();
  unsigned middle = (begin + end) / 2;
  int64_t offset = 0;
  for (unsigned i = 0; i < middle; ++i)
    offset += instr.operand(i)->shape().dim(dim);
  locate(instr);
  Value first = b.cmpI(IPred::ult, indices[dim], offset);
  return emitIf(
      first, valueType(instr.shape().elementType(), b.getContext()),
      [&] { return emitOneOf(instr, indices, begin, middle); }, [&] { return emitOneOf(instr, indices, middle, end); });
}

FunctionEmitter::Result FunctionEmitter::emitPad(const HloInstruction &instr, ValueRange indices) {
  const IndexingMap map = operandIndexing(instr, 0, b.getContext())->map;
  if (map.isKnownEmpty())
    return emit(*instr.operand(1), {});
  locate(instr);
  auto inside = [&] {
    locate(instr);
    return emit(*instr.operand(0), applyMap(b, map, indices));
  };
  Value condition = insideDomain(b, map, indices, instr.shape().dims());
  if (!condition)
    return inside();
  return emitIf(condition, valueType(instr.shape().elementType(), b.getContext()), inside,
                [&] { return emit(*instr.operand(1), {}); });
}

llvm::FailureOr<FunctionEmitter::Values>
FunctionEmitter::runtimeValues(const HloInstruction &instr, const OperandIndexing &indexing, ValueRange indices) {
  Values starts;
  for (auto [source, variable] : llvm::zip_equal(indexing.runtimes, indexing.map.runtimes())) {
    const HloInstruction &operand = *instr.operand(source.operand);
    llvm::FailureOr<Value> start = emitOne(operand, applyMap(b, source.indices, indices));
    if (failed(start))
      return failure();
    locate(instr);
    starts.push_back(clampStart(b, *start, operand.shape().elementType(), variable.bounds.upper));
  }
  return starts;
}

/// A gather of empty windows that are collapsed has elements although it reads none: they are zero.
FunctionEmitter::Result FunctionEmitter::emitGather(const HloInstruction &instr, ValueRange indices) {
  if (!llvm::is_contained(instr.ints(AttributeKey::SliceSizes), 0))
    return emitDynamicSlice(instr, indices);
  locate(instr);
  return Values{zeroElement(instr.shape().elementType(), b)};
}

/// dynamic-slice and gather: the operand at the indices plus clamped offsets.
FunctionEmitter::Result FunctionEmitter::emitDynamicSlice(const HloInstruction &instr, ValueRange indices) {
  std::optional<OperandIndexing> indexing = operandIndexing(instr, 0, b.getContext());
  llvm::FailureOr<Values> starts = runtimeValues(instr, *indexing, indices);
  if (failed(starts))
    return failure();
  SmallVector<Value> variables(indices);
  llvm::append_range(variables, *starts);
  locate(instr);
  return emit(*instr.operand(0), applyMap(b, indexing->map, variables));
}

FunctionEmitter::Result FunctionEmitter::emitDynamicUpdateSlice(const HloInstruction &instr, ValueRange indices) {
  std::optional<OperandIndexing> indexing = operandIndexing(instr, 1, b.getContext());
  const HloInstruction &operand = *instr.operand(0);
  const HloInstruction &update = *instr.operand(1);
  if (update.shape().numElements() == 0)
    return emit(operand, indices);
  llvm::FailureOr<Values> starts = runtimeValues(instr, *indexing, indices);
  if (failed(starts))
    return failure();
  // Others read the operand at these indices too: made outside of the branch, it is made once.
  if (code.useCounts[operand.id()] > 1 && failed(emit(operand, indices)))
    return failure();
  SmallVector<Value> variables(indices);
  llvm::append_range(variables, *starts);
  locate(instr);
  SmallVector<Value> position = applyMap(b, indexing->map, variables);
  Value condition;
  for (auto [i, index] : llvm::enumerate(position))
    if (instr.shape().dim(i) != update.shape().dim(i)) {
      // Below the start the difference is negative: a huge unsigned number.
      condition = both(b, condition, b.cmpI(IPred::sge, index, 0));
      condition = both(b, condition, b.cmpI(IPred::slt, index, update.shape().dim(i)));
    }
  if (!condition)
    return emit(update, position);
  return emitIf(
      condition, valueType(instr.shape().elementType(), b.getContext()), [&] { return emit(update, position); },
      [&] { return emit(operand, indices); });
}

} // namespace hloc
