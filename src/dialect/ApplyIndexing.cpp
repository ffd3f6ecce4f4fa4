// xla_gpu.apply_indexing: text form, verifier, folds, canonicalization.
#include "hloc/dialect/AppliedMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

void ApplyIndexingOp::build(OpBuilder &builder, OperationState &state, ValueRange operands, const IndexingMap &map) {
  state.addOperands(operands);
  state.addAttribute(getMapAttrName(state.name), IndexingMapAttr::get(map));
  state.addTypes(SmallVector<Type>(map.numResults(), builder.getIndexType()));
}

void ApplyIndexingOp::build(OpBuilder &builder, OperationState &state, ValueRange operands, AffineMap affine,
                            ArrayRef<IndexingVariable> dims) {
  build(builder, state, operands, IndexingMap(affine, dims, {}, {}));
}

ParseResult ApplyIndexingOp::parse(OpAsmParser &parser, OperationState &result) {
  IndexingMapAttr map;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Type index = parser.getBuilder().getIndexType();
  if (parser.parseAttribute(map, getMapAttrName(result.name), result.attributes) ||
      parser.parseOperandList(operands, OpAsmParser::Delimiter::OptionalParen) ||
      parser.parseOperandList(operands, OpAsmParser::Delimiter::OptionalSquare) ||
      parser.resolveOperands(operands, index, result.operands) || parser.parseOptionalAttrDict(result.attributes))
    return failure();
  result.addTypes(SmallVector<Type>(map.getMap().numResults(), index));
  return success();
}

void ApplyIndexingOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getMap();
  // The verifier may not have run yet: never slice past the operands.
  unsigned numDims = std::min<unsigned>(indexingMap().dims().size(), getOperands().size());
  if (numDims)
    printer << '(' << getOperands().take_front(numDims) << ')';
  if (numDims < getOperands().size())
    printer << '[' << getOperands().drop_front(numDims) << ']';
  printer.printOptionalAttrDict((*this)->getAttrs(), {"map"});
}

LogicalResult ApplyIndexingOp::verify() {
  const IndexingMap &map = indexingMap();
  if (getOperands().size() != map.dims().size() + map.ranges().size())
    return emitOpError() << "has " << getOperands().size() << " operands, its map has "
                         << map.dims().size() + map.ranges().size() << " variables";
  if (getNumResults() != map.numResults())
    return emitOpError() << "has " << getNumResults() << " results, its map has " << map.numResults();
  if (!map.constraints().empty())
    return emitOpError("must not have constraints in its map");
  return success();
}

namespace {

/// Nothing if a number does not fit into 64 bits, or something is divided by what is no positive constant.
std::optional<int64_t> valueAt(AffineExpr expression, ArrayRef<int64_t> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expression))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return dims[dim.getPosition()];
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  std::optional<int64_t> a = binary ? valueAt(binary.getLHS(), dims) : std::nullopt;
  std::optional<int64_t> b = a ? valueAt(binary.getRHS(), dims) : std::nullopt;
  int64_t result = 0;
  if (!b)
    return std::nullopt;
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    return llvm::AddOverflow(*a, *b, result) ? std::nullopt : std::optional(result);
  case AffineExprKind::Mul:
    return llvm::MulOverflow(*a, *b, result) ? std::nullopt : std::optional(result);
  case AffineExprKind::FloorDiv:
    return *b > 0 ? std::optional(llvm::divideFloorSigned(*a, *b)) : std::nullopt;
  case AffineExprKind::Mod:
    return *b > 0 ? std::optional(llvm::mod(*a, *b)) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// Two points to tell expressions by: they agree where operands are constants.
struct Probes {
  SmallVector<int64_t> a, b;
  llvm::SmallBitVector isFree;

  void add(std::optional<int64_t> constant) {
    const int64_t number = a.size();
    a.push_back(constant.value_or(1000003 + 7919 * number));
    b.push_back(constant.value_or(2000003 + 104729 * number));
    isFree.push_back(!constant);
  }
  /// False: it certainly is neither one constant nor one dimension, which simplifying it to see would take far longer.
  bool mayBeTrivial(AffineExpr expression) const {
    std::optional<int64_t> atA = valueAt(expression, a), atB = valueAt(expression, b);
    return !atA || !atB || *atA == *atB ||
           llvm::any_of(isFree.set_bits(), [&](unsigned dim) { return *atA == a[dim] && *atB == b[dim]; });
  }
};

} // namespace

LogicalResult ApplyIndexingOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  AppliedMap applied = AppliedMap::of(*this);
  unsigned numOperands = applied.operands.size();
  SmallVector<AffineExpr> constants;
  Probes probes;
  for (unsigned i = 0; i < numOperands; ++i) {
    auto value = dyn_cast_or_null<IntegerAttr>(adaptor.getOperands()[i]);
    constants.push_back(value ? getAffineConstantExpr(value.getInt(), getContext())
                              : getAffineDimExpr(i, getContext()));
    probes.add(value ? std::optional(value.getInt()) : std::nullopt);
  }
  for (AffineExpr expression : applied.map.affine().getResults()) {
    if (!probes.mayBeTrivial(expression))
      return failure();
    AffineExpr bound = simplifyAffineExpr(expression.replaceDims(constants), numOperands, 0);
    if (auto constant = dyn_cast<AffineConstantExpr>(bound))
      results.push_back(IntegerAttr::get(IndexType::get(getContext()), constant.getValue()));
    else if (auto dim = dyn_cast<AffineDimExpr>(bound))
      results.push_back(applied.operands[dim.getPosition()]);
    else
      return failure();
  }
  return success();
}

namespace {

/// Unused results, constant results and results that are an operand leave the op.
bool hasTrivialResult(ApplyIndexingOp op) {
  return llvm::any_of(llvm::enumerate(op.getResults()), [&](auto it) {
    return it.value().use_empty() || isa<AffineConstantExpr, AffineDimExpr>(op.indexingMap().result(it.index()));
  });
}

/// One rewrite to the normal form: producers composed where it pays, map simplified, only computed and used results.
struct NormalizeApply : OpRewritePattern<ApplyIndexingOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ApplyIndexingOp op, PatternRewriter &rewriter) const override {
    AppliedMap applied = AppliedMap::of(op);
    SmallVector<unsigned> used;
    for (OpResult result : op->getResults())
      if (!result.use_empty())
        used.push_back(result.getResultNumber());
    if (used.empty())
      return failure(); // dead: the driver erases it
    bool changed = !op.indexingMap().ranges().empty() || hasTrivialResult(op);
    if (used.size() != op.getNumResults())
      applied.map = applied.map.withResults(used);
    changed |= applied.composeProducers(AppliedMap::When::Profitable);
    changed |= applied.simplify();
    if (!changed)
      return failure();
    SmallVector<Value> values = applied.materialize(rewriter, op.getLoc());
    SmallVector<Value> replacements(op.getNumResults());
    for (auto [result, value] : llvm::zip_equal(used, values))
      replacements[result] = value;
    for (OpResult result : op->getResults())
      if (replacements[result.getResultNumber()])
        rewriter.replaceAllUsesWith(result, replacements[result.getResultNumber()]);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void ApplyIndexingOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<NormalizeApply>(context);
}
