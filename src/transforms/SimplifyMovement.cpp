#include "AlgebraicRules.h"
#include "Matching.h"

#include "hloc/hlo/ReshapeLayouts.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Ints = llvm::SmallVector<int64_t, 6>;

bool isIdentity(llvm::ArrayRef<int64_t> permutation) {
  return llvm::all_of(llvm::enumerate(permutation),
                      [](const auto &entry) { return entry.value() == static_cast<int64_t>(entry.index()); });
}

HloInstruction *transposeOfNothing(HloInstruction &transpose, HloRewriter &) {
  return isIdentity(transpose.ints(AttributeKey::Dimensions)) ? transpose.operand(0) : nullptr;
}

HloInstruction *transposeTwice(HloInstruction &outer, HloRewriter &r) {
  HloInstruction *inner = outer.operand(0);
  if (!is(inner, Opcode::Transpose))
    return nullptr;
  Ints composed;
  for (int64_t dim : outer.ints(AttributeKey::Dimensions))
    composed.push_back(inner->ints(AttributeKey::Dimensions)[dim]);
  HloInstruction *source = inner->operand(0);
  if (isIdentity(composed) && source->shape() == outer.shape())
    return source;
  return r.builder().add(Opcode::Transpose, outer.shape(), {source},
                         {r.builder().ints(AttributeKey::Dimensions, composed)});
}

HloInstruction *reshapeToSame(HloInstruction &reshape, HloRewriter &) { return reshape.operand(0); }

HloInstruction *reshapeTwice(HloInstruction &outer, HloRewriter &r) {
  HloInstruction *inner = outer.operand(0);
  if (!is(inner, Opcode::Reshape))
    return nullptr;
  HloInstruction *source = inner->operand(0);
  return source->shape() == outer.shape() ? source : make(r, Opcode::Reshape, outer, {source});
}

HloInstruction *copied(HloRewriter &r, HloInstruction *value, llvm::ArrayRef<int64_t> minorToMajor) {
  return r.builder().add(Opcode::Copy, value->shape().withLayout(minorToMajor), {value});
}

// What looks like a renaming or a computation may be a transpose, by its layouts. As a copy it has a hero.

HloInstruction *reshapeAcrossLayouts(HloInstruction &reshape, HloRewriter &r) {
  HloInstruction *value = reshape.operand(0);
  const Shape &from = value->shape(), &to = reshape.shape();
  if (to.hasDynamicDims() || from.hasDynamicDims() || reshapeKeepsOrder(from, to))
    return nullptr;
  if (const auto before = layoutBeforeReshape(from.dims(), to))
    return make(r, Opcode::Reshape, reshape, {copied(r, value, *before)});
  // The other way about, by way of the order that each reshape keeps if need be.
  if (const auto behind = layoutBeforeReshape(to.dims(), from))
    return copied(r, r.builder().add(Opcode::Reshape, to.withLayout(*behind), {value}), to.minorToMajor());
  HloInstruction *rowMajor = copied(r, value, defaultMinorToMajor(from.rank()));
  return copied(r, r.builder().add(Opcode::Reshape, to.withDefaultLayout(), {rowMajor}), to.minorToMajor());
}

HloInstruction *elementwiseAcrossLayouts(HloInstruction &instr, HloRewriter &r) {
  const Shape &shape = instr.shape();
  auto isArray = [&](const HloInstruction *operand) {
    return operand->shape().isArray() && operand->shape().sameDims(shape);
  };
  if (is(&instr, Opcode::Copy) || !shape.isArray() || shape.hasDynamicDims() || shape.rank() < 2 ||
      llvm::all_of(instr.operands(), [&](const HloInstruction *operand) {
        return !isArray(operand) || reshapeKeepsOrder(operand->shape(), shape);
      }))
    return nullptr;
  const HloInstruction *first = *llvm::find_if(instr.operands(), isArray);
  const llvm::ArrayRef<int64_t> layout = first->shape().minorToMajor();
  if (llvm::all_of(instr.operands(), [&](const HloInstruction *operand) {
        return !isArray(operand) || reshapeKeepsOrder(operand->shape(), first->shape());
      }))
    return copied(r, again(r, instr, shape.withLayout(layout), instr.operands()), shape.minorToMajor());
  llvm::SmallVector<HloInstruction *> operands;
  for (HloInstruction *operand : instr.operands()) {
    if (!isArray(operand) || reshapeKeepsOrder(operand->shape(), shape))
      operands.push_back(operand);
    else if (is(operand, Opcode::Broadcast))
      operands.push_back(r.builder().broadcast(operand->operand(0), operand->shape().withLayout(shape.minorToMajor()),
                                               operand->ints(AttributeKey::Dimensions)));
    else
      operands.push_back(copied(r, operand, shape.minorToMajor()));
  }
  return again(r, instr, shape, operands);
}

HloInstruction *broadcastToSame(HloInstruction &broadcast, HloRewriter &) {
  return isIdentity(broadcast.ints(AttributeKey::Dimensions)) ? broadcast.operand(0) : nullptr;
}

HloInstruction *broadcastTwice(HloInstruction &outer, HloRewriter &r) {
  HloInstruction *inner = outer.operand(0);
  if (!is(inner, Opcode::Broadcast))
    return nullptr;
  Ints composed;
  for (int64_t dim : inner->ints(AttributeKey::Dimensions))
    composed.push_back(outer.ints(AttributeKey::Dimensions)[dim]);
  return r.builder().broadcast(inner->operand(0), outer.shape(), composed);
}

bool isBroadcastScalar(const HloInstruction *value) {
  return is(value, Opcode::Broadcast) && value->operand(0)->shape().isScalar();
}

/// What moves equal elements about gives equal elements.
HloInstruction *movedScalar(HloInstruction &instr, HloRewriter &r) {
  HloInstruction *broadcast = instr.operand(0);
  return isBroadcastScalar(broadcast) ? r.builder().broadcast(broadcast->operand(0), instr.shape(), {}) : nullptr;
}

bool canSink(const HloInstruction &instr) {
  if (!isElementwise(instr.opcode()) || !instr.shape().isArray() || instr.shape().isScalar() ||
      is(&instr, Opcode::Copy) || is(&instr, Opcode::StochasticConvert) || is(&instr, Opcode::BitcastConvert))
    return false;
  return llvm::all_of(instr.operands(), [](const HloInstruction *operand) {
    return operand->shape().isScalar() || isBroadcastScalar(operand);
  });
}

HloInstruction *elementwiseOfScalars(HloInstruction &instr, HloRewriter &r) {
  if (!canSink(instr))
    return nullptr;
  llvm::SmallVector<HloInstruction *> scalars;
  for (HloInstruction *operand : instr.operands())
    scalars.push_back(operand->shape().isScalar() ? operand : operand->operand(0));
  HloInstruction *scalar = again(r, instr, Shape::scalar(typeOf(&instr)), scalars);
  return r.builder().broadcast(scalar, instr.shape(), {});
}

HloInstruction *reverseOfNothing(HloInstruction &reverse, HloRewriter &) {
  bool moves =
      llvm::any_of(reverse.ints(AttributeKey::Dimensions), [&](int64_t dim) { return reverse.shape().dim(dim) > 1; });
  return moves ? nullptr : reverse.operand(0);
}

HloInstruction *reverseTwice(HloInstruction &outer, HloRewriter &r) {
  HloInstruction *inner = outer.operand(0);
  if (!is(inner, Opcode::Reverse))
    return nullptr;
  llvm::ArrayRef<int64_t> first = inner->ints(AttributeKey::Dimensions), second = outer.ints(AttributeKey::Dimensions);
  Ints once;
  for (int64_t dim = 0; dim < static_cast<int64_t>(outer.shape().rank()); ++dim)
    if (llvm::is_contained(first, dim) != llvm::is_contained(second, dim))
      once.push_back(dim);
  HloInstruction *source = inner->operand(0);
  if (once.empty() && source->shape() == outer.shape())
    return source;
  return r.builder().add(Opcode::Reverse, outer.shape(), {source}, {r.builder().ints(AttributeKey::Dimensions, once)});
}

HloInstruction *sortOfSingles(HloInstruction &sort, HloRewriter &r) {
  const Shape &keys = sort.operand(0)->shape();
  if (keys.dim(sort.ints(AttributeKey::Dimensions)[0]) > 1)
    return nullptr;
  return sort.shape().isTuple() ? r.builder().tuple(sort.operands()) : sort.operand(0);
}

HloInstruction *iotaOfSingles(HloInstruction &iota, HloRewriter &r) {
  bool single = iota.shape().dim(iota.intOr(AttributeKey::IotaDimension, 0)) <= 1;
  return single && typeOf(&iota) != ElementType::F8E8M0FNU ? makeSplat(r, iota.shape(), 0) : nullptr;
}

HloInstruction *sizeOfDimension(HloInstruction &instr, HloRewriter &r) {
  int64_t dim = instr.ints(AttributeKey::Dimensions)[0];
  const Shape &shape = instr.operand(0)->shape();
  return shape.isDynamic(dim) ? nullptr : makeSplat(r, instr.shape(), shape.dim(dim));
}

HloInstruction *scatterOfNothing(HloInstruction &scatter, HloRewriter &) {
  bool single = scatter.numOperands() == 3 && scatter.operand(2)->shape().numElements() == 0;
  return single ? scatter.operand(0) : nullptr;
}

/// Is what a reducer computes one op of both its parameters?
bool isOpOfBoth(const HloInstruction &op) {
  return op.numOperands() == 2 && isElementwise(op.opcode()) && family(op.opcode()) == OpcodeFamily::Binary &&
         is(op.operand(0), Opcode::Parameter) && is(op.operand(1), Opcode::Parameter) &&
         op.operand(0)->parameterNumber() != op.operand(1)->parameterNumber();
}

/// For each element of the operand's other dimensions one index along one dimension, and one element to put there: what
/// such scatters are, and what their updates' dimensions are to the operand.
struct OneIndexEach {
  int64_t dim = 0;       ///< of the operand, which is indexed
  Ints sizes, ofOperand; ///< of the updates, but for dimensions of size 1 that the operand has not
};

std::optional<OneIndexEach> oneIndexEach(const HloInstruction &scatter) {
  llvm::ArrayRef<int64_t> indexed = scatter.ints(AttributeKey::ScatterDimsToOperandDims),
                          operandBatch = scatter.ints(AttributeKey::InputBatchingDims),
                          indexBatch = scatter.ints(AttributeKey::ScatterIndicesBatchingDims);
  const Shape &operand = scatter.operand(0)->shape(), &indices = scatter.operand(1)->shape();
  if (scatter.numOperands() != 3 || indexed.size() != 1 || !scatter.ints(AttributeKey::UpdateWindowDims).empty() ||
      operandBatch.size() + 1 != size_t(operand.rank()) || scatter.operand(2)->shape().numElements() == 0 ||
      llvm::any_of(scatter.operands(), [](const HloInstruction *each) { return each->shape().hasDynamicDims(); }))
    return std::nullopt;
  OneIndexEach found{indexed[0], {}, {}};
  int64_t vectorDim = scatter.intOr(AttributeKey::IndexVectorDim, indices.rank());
  for (int64_t dim = 0; dim < int64_t(indices.rank()); ++dim) {
    if (const int64_t *at = llvm::find(indexBatch, dim); at != indexBatch.end()) {
      found.sizes.push_back(indices.dim(dim));
      found.ofOperand.push_back(operandBatch[size_t(at - indexBatch.begin())]);
    } else if (dim != vectorDim && indices.dim(dim) != 1) {
      return std::nullopt;
    }
  }
  return llvm::is_sorted(found.ofOperand) ? std::optional(std::move(found)) : std::nullopt;
}

/// Each element of equal ones is changed by its own update or by none, as gradients of what is taken along an axis are:
/// to look for it there keeps no array of zeros.
HloInstruction *scatterOneEach(HloInstruction &scatter, HloRewriter &r) {
  std::optional<OneIndexEach> each = oneIndexEach(scatter);
  if (!each || !isBroadcastScalar(scatter.operand(0)))
    return nullptr;
  HloInstruction *operand = scatter.operand(0), *indices = scatter.operand(1), *updates = scatter.operand(2);
  const HloInstruction &op = *scatter.computation(AttributeKey::ToApply)->root();
  bool replaces = is(&op, Opcode::Parameter) && op.parameterNumber() == 1;
  ElementType type = typeOf(&scatter), indexType = typeOf(indices);
  if ((!replaces && !isOpOfBoth(op)) || typeOf(operand) != type || typeOf(updates) != type || typeOf(&op) != type ||
      bitWidth(indexType) < 32)
    return nullptr;
  HloBuilder &b = r.builder();
  const Shape &shape = scatter.shape(), places = shape.withElementType(indexType);
  auto spread = [&](HloInstruction *value, const Shape &to) {
    HloInstruction *flat = b.add(Opcode::Reshape, Shape::array(typeOf(value), each->sizes), {value});
    return b.broadcast(flat, to, each->ofOperand);
  };
  HloInstruction *place = b.add(Opcode::Iota, places, {}, {{AttributeKey::IotaDimension, each->dim}});
  HloInstruction *isThere = b.compare(ComparisonDirection::Eq, place, spread(indices, places));
  HloInstruction *update = spread(updates, shape), *operands[] = {operand, update};
  if (!replaces && op.operand(0)->parameterNumber() == 1)
    std::swap(operands[0], operands[1]);
  HloInstruction *changed = replaces ? update : make(r, op.opcode(), scatter, operands);
  return b.add(Opcode::Select, shape, {isThere, changed, operand});
}

HloInstruction *reduceSingles(HloInstruction &reduce, HloRewriter &r) {
  if (reduce.numOperands() != 2 || !reduce.shape().isArray())
    return nullptr;
  HloInstruction *array = reduce.operand(0), *init = reduce.operand(1);
  const HloInstruction &op = *reduce.computation(AttributeKey::ToApply)->root();
  bool isOfType = llvm::all_of(llvm::ArrayRef({array, init}), [&](HloInstruction *operand) {
    return typeOf(operand) == typeOf(&reduce) && typeOf(operand) == typeOf(&op);
  });
  if (!isOpOfBoth(op) || !isOfType || array->shape().numElements() != reduce.shape().numElements())
    return nullptr;
  for (int64_t dim = 0; dim < array->shape().rank(); ++dim)
    if (array->shape().isDynamic(dim))
      return nullptr;
  HloInstruction *operands[] = {r.builder().broadcast(init, reduce.shape(), {}),
                                r.builder().add(Opcode::Reshape, reduce.shape(), {array})};
  if (op.operand(0)->parameterNumber() == 1)
    std::swap(operands[0], operands[1]);
  return make(r, op.opcode(), reduce, operands);
}

/// Where the terms of each sum come in the same order without the transposes, these move no more than the results.
HloInstruction *reduceOfTransposes(HloInstruction &reduce, HloRewriter &r) {
  const unsigned count = reduce.numOperands() / 2;
  const HloInstruction *first = reduce.operand(0);
  if (llvm::any_of(reduce.operands().take_front(count), [&](const HloInstruction *operand) {
        return !is(operand, Opcode::Transpose) ||
               operand->ints(AttributeKey::Dimensions) != first->ints(AttributeKey::Dimensions);
      }))
    return nullptr;
  const llvm::ArrayRef<int64_t> permutation = first->ints(AttributeKey::Dimensions),
                                reduced = reduce.ints(AttributeKey::Dimensions);
  Ints terms, kept;
  for (int64_t dim = 0; dim < int64_t(permutation.size()); ++dim)
    (llvm::is_contained(reduced, dim) ? terms : kept).push_back(permutation[dim]);
  const bool movesResults = !llvm::is_sorted(kept);
  if (!llvm::is_sorted(terms) || (movesResults && count > 1))
    return nullptr;
  llvm::SmallVector<HloInstruction *> operands;
  for (HloInstruction *operand : reduce.operands().take_front(count))
    operands.push_back(operand->operand(0));
  llvm::append_range(operands, reduce.operands().drop_front(count));
  Ints sorted = kept, sizes, back;
  llvm::sort(sorted);
  for (int64_t dim : sorted)
    sizes.push_back(operands.front()->shape().dim(unsigned(dim)));
  for (int64_t dim : kept)
    back.push_back(llvm::find(sorted, dim) - sorted.begin());
  const Shape shape = movesResults ? Shape::array(typeOf(&reduce), sizes) : reduce.shape();
  llvm::SmallVector<Attribute, 4> attributes = ownAttributes(reduce);
  for (Attribute &attribute : attributes)
    if (attribute.key == AttributeKey::Dimensions)
      attribute = r.builder().ints(AttributeKey::Dimensions, terms);
  HloInstruction *made = r.builder().add(Opcode::Reduce, shape, operands, attributes);
  return movesResults ? r.builder().add(Opcode::Transpose, reduce.shape(), {made},
                                        {r.builder().ints(AttributeKey::Dimensions, back)})
                      : made;
}

/// A constant of one element stays, or it would be made again and again.
HloInstruction *splatConstant(HloInstruction &constant, HloRewriter &r) {
  if (!constant.shape().isArray() || constant.shape().numElements() < 2 || splatOf(&constant) != &constant)
    return nullptr;
  Literal scalar(Shape::scalar(typeOf(&constant)));
  llvm::copy(constant.literal().bytes().take_front(hostBytes(typeOf(&constant))), scalar.mutableBytes().begin());
  return r.builder().broadcast(r.builder().constant(std::move(scalar)), constant.shape(), {});
}

constexpr const char *ofScalar = "of equal elements -> a broadcast of one";

constexpr RewriteRule rules[] = {
    {"splat-constant", Opcode::Constant, splatConstant, "a constant of equal elements -> a broadcast of one"},
    {"transpose-of-nothing", Opcode::Transpose, transposeOfNothing, "transpose that moves nothing -> x"},
    {"transpose-twice", Opcode::Transpose, transposeTwice, "transpose of a transpose -> one, or x"},
    {"transpose-of-scalar", Opcode::Transpose, movedScalar, ofScalar},
    {"reshape-to-same", Opcode::Reshape, reshapeToSame, "reshape to the shape it has -> x"},
    {"reshape-twice", Opcode::Reshape, reshapeTwice, "reshape of a reshape -> one, or x"},
    {"reshape-across-layouts", Opcode::Reshape, reshapeAcrossLayouts,
     "reshape that moves elements, by its layouts -> a copy and one that does not"},
    {"reshape-of-scalar", Opcode::Reshape, movedScalar, ofScalar},
    {"broadcast-to-same", Opcode::Broadcast, broadcastToSame, "broadcast to the shape it has -> x"},
    {"broadcast-twice", Opcode::Broadcast, broadcastTwice, "broadcast of a broadcast -> one"},
    {"reverse-of-nothing", Opcode::Reverse, reverseOfNothing, "reverse of dimensions of size 1 -> x"},
    {"reverse-twice", Opcode::Reverse, reverseTwice, "reverse of a reverse -> one, or x"},
    {"reverse-of-scalar", Opcode::Reverse, movedScalar, ofScalar},
    {"slice-of-scalar", Opcode::Slice, movedScalar, ofScalar},
    {"dynamic-slice-of-scalar", Opcode::DynamicSlice, movedScalar, ofScalar},
    {"sort-of-singles", Opcode::Sort, sortOfSingles, "sort of a dimension of size 1 or 0 -> its operands"},
    {"iota-of-singles", Opcode::Iota, iotaOfSingles, "iota of a dimension of size 1 -> 0"},
    {"size-of-dimension", Opcode::GetDimensionSize, sizeOfDimension, "get-dimension-size -> a constant"},
    {"reduce-of-singles", Opcode::Reduce, reduceSingles,
     "reduce of one element each by one op -> the op on what it begins with and the element"},
    {"reduce-of-transposes", Opcode::Reduce, reduceOfTransposes,
     "reduce of transposes, terms in the same order -> reduce along other dimensions"},
    {"scatter-of-nothing", Opcode::Scatter, scatterOfNothing, "scatter of no updates -> x"},
    {"scatter-one-each", Opcode::Scatter, scatterOneEach,
     "scatter of one element to each row of a broadcast scalar -> select where the index is"},
};

/// One rule for each elementwise opcode.
std::vector<RewriteRule> makeRules() {
  std::vector<RewriteRule> all(std::begin(rules), std::end(rules));
  for (unsigned i = 0; i < numOpcodes(); ++i)
    if (auto opcode = static_cast<Opcode>(i); isElementwise(opcode))
      all.push_back({"elementwise-of-scalars", opcode, elementwiseOfScalars,
                     "an elementwise op on broadcast scalars -> a broadcast of the op on scalars"});
  for (unsigned i = 0; i < numOpcodes(); ++i)
    if (auto opcode = static_cast<Opcode>(i); isElementwise(opcode) && opcode != Opcode::Copy)
      all.push_back({"elementwise-across-layouts", opcode, elementwiseAcrossLayouts,
                     "an elementwise op between layouts -> copies and one in one layout"});
  return all;
}

} // namespace

llvm::ArrayRef<RewriteRule> movementRules() {
  static const std::vector<RewriteRule> all = makeRules();
  return all;
}

} // namespace hloc
