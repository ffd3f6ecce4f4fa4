// xla_gpu.loop: text form, verifier, canonicalization.
#include "hloc/dialect/AppliedMap.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

void LoopOp::build(OpBuilder &builder, OperationState &state, const IndexingMap &map, ValueRange dims, ValueRange inits,
                   function_ref<void(OpBuilder &, Location, ValueRange, ValueRange, ValueRange)> body) {
  state.addOperands(dims);
  state.addOperands(inits);
  state.addAttribute(getMapAttrName(state.name), IndexingMapAttr::get(map));
  state.addTypes(inits.getTypes());
  state.getOrAddProperties<Properties>().operandSegmentSizes = {int32_t(dims.size()), int32_t(inits.size())};

  unsigned numRanges = map.ranges().size(), numIndices = numRanges + map.numResults();
  SmallVector<Type> types(numIndices, builder.getIndexType());
  llvm::append_range(types, inits.getTypes());
  OpBuilder::InsertionGuard guard(builder);
  // Dumps name values after their locations: what is carried is what the loop computes, indices have names of their
  // own.
  SmallVector<Location> places(types.size(), state.location);
  if (auto named = dyn_cast<NameLoc>(state.location))
    std::fill_n(places.begin(), numIndices, named.getChildLoc());
  Block *block = builder.createBlock(state.addRegion(), {}, types, places);
  if (!body)
    return;
  ValueRange arguments = block->getArguments();
  body(builder, state.location, arguments.take_front(numRanges), arguments.slice(numRanges, map.numResults()),
       arguments.drop_front(numIndices));
}

ValueRange LoopOp::rangeArguments() {
  return ValueRange(getBody()->getArguments()).take_front(indexingMap().ranges().size());
}
ValueRange LoopOp::mapResultArguments() {
  return ValueRange(getBody()->getArguments()).slice(indexingMap().ranges().size(), indexingMap().numResults());
}
ValueRange LoopOp::iterArguments() {
  return ValueRange(getBody()->getArguments()).drop_front(indexingMap().ranges().size() + indexingMap().numResults());
}

ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> dims, inits;
  SmallVector<OpAsmParser::Argument> arguments, mapResults, iterArguments;
  SmallVector<Type> iterTypes;
  IndexingMapAttr map;
  Type index = parser.getBuilder().getIndexType();
  if (parser.parseOperandList(dims, OpAsmParser::Delimiter::Paren) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Square) || parser.parseArrow() ||
      parser.parseArgumentList(mapResults, OpAsmParser::Delimiter::Paren) || parser.parseKeyword("in") ||
      parser.parseAttribute(map, getMapAttrName(result.name), result.attributes))
    return failure();
  SMLoc initLocation = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("iter_args")) &&
      (parser.parseAssignmentList(iterArguments, inits) || parser.parseArrowTypeList(iterTypes)))
    return failure();
  if (iterArguments.size() != iterTypes.size())
    return parser.emitError(initLocation, "expected as many types as iteration arguments");
  llvm::append_range(arguments, mapResults);
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = index;
  for (auto [argument, type] : llvm::zip_equal(iterArguments, iterTypes))
    argument.type = type;
  llvm::append_range(arguments, iterArguments);

  if (parser.resolveOperands(dims, index, result.operands) ||
      parser.resolveOperands(inits, iterTypes, initLocation, result.operands))
    return failure();
  result.getOrAddProperties<Properties>().operandSegmentSizes = {int32_t(dims.size()), int32_t(inits.size())};
  result.addTypes(iterTypes);
  Region *region = result.addRegion();
  if (parser.parseRegion(*region, arguments) || parser.parseOptionalAttrDict(result.attributes))
    return failure();
  ensureTerminator(*region, parser.getBuilder(), result.location);
  return success();
}

void LoopOp::print(OpAsmPrinter &printer) {
  printer << " (" << getDims() << ")[";
  llvm::interleaveComma(rangeArguments(), printer);
  printer << "] -> (";
  llvm::interleaveComma(mapResultArguments(), printer);
  printer << ") in " << getMap();
  if (!getInits().empty()) {
    printer << " iter_args(";
    llvm::interleaveComma(llvm::zip_equal(iterArguments(), getInits()), printer,
                          [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
    printer << ") -> (" << getInits().getTypes() << ')';
  }
  printer << ' ';
  printer.printRegion(getRegion(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/!getInits().empty());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"map", "operandSegmentSizes"});
}

void LoopOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  const IndexingMap &map = indexingMap();
  for (auto [i, argument] : llvm::enumerate(region.getArguments())) {
    if (i < map.ranges().size())
      setName(argument, "i");
    else
      setName(argument, i < map.ranges().size() + map.numResults() ? "x" : "iter");
  }
}

LogicalResult LoopOp::verify() {
  const IndexingMap &map = indexingMap();
  if (map.dims().size() != getDims().size())
    return emitOpError() << "has " << getDims().size() << " dimension operands, its map has " << map.dims().size()
                         << " dimensions";
  if (getInits().getTypes() != getResults().getTypes())
    return emitOpError("needs results of the types of its initial values");
  return success();
}

LogicalResult LoopOp::verifyRegions() {
  const IndexingMap &map = indexingMap();
  size_t numIndices = map.ranges().size() + map.numResults();
  Block &block = getRegion().front();
  if (block.getNumArguments() != numIndices + getInits().size())
    return emitOpError() << "needs " << map.ranges().size() << " range variables, " << map.numResults()
                         << " map results and " << getInits().size() << " iteration arguments, its body has "
                         << block.getNumArguments() << " arguments";
  for (BlockArgument argument : block.getArguments().take_front(numIndices))
    if (!argument.getType().isIndex())
      return emitOpError("needs index range variables and map results");
  if (ValueRange(block.getArguments()).drop_front(numIndices).getTypes() != getInits().getTypes())
    return emitOpError("needs iteration arguments of the types of its initial values");
  if (block.getTerminator()->getOperandTypes() != getInits().getTypes())
    return emitOpError("must yield values of the types of its initial values");
  return success();
}

namespace {

/// Simplifies the map and drops dimension operands nothing depends on.
struct NormalizeLoop : OpRewritePattern<LoopOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoopOp op, PatternRewriter &rewriter) const override {
    const IndexingMap &original = op.indexingMap();
    if (original.isKnownEmpty()) {
      rewriter.replaceOp(op, op.getInits());
      return success();
    }
    IndexingMap map = original;
    SmallVector<Value> dims(op.getDims());
    bool changed = composeDims(map, dims);
    changed |= bindPoints(map, dims);
    changed |= map.simplify();
    changed |= dropUnused(map, dims);
    if (!changed)
      return failure();
    if (map.isKnownEmpty()) {
      rewriter.replaceOp(op, op.getInits());
      return success();
    }
    auto loop = LoopOp::create(rewriter, op.getLoc(), map, dims, op.getInits());
    rewriter.eraseBlock(loop.getBody());
    rewriter.inlineRegionBefore(op.getRegion(), loop.getRegion(), loop.getRegion().begin());
    rewriter.replaceOp(op, loop);
    return success();
  }

private:
  /// Dimensions that can only be one point become that constant.
  static bool bindPoints(IndexingMap &map, ArrayRef<Value> dims) {
    SmallVector<AffineExpr> replacements;
    bool changed = false;
    for (auto [i, dim] : llvm::enumerate(dims)) {
      std::optional<Interval> range = rangeOf(dim);
      bool point = range && range->isPoint() && map.dims()[i].bounds.contains(*range);
      replacements.push_back(point ? getAffineConstantExpr(range->lower, map.context())
                                   : getAffineDimExpr(i, map.context()));
      changed |= point && mentions(map, i);
    }
    if (!changed)
      return false;
    SmallVector<IndexingMap::Constraint> constraints;
    for (const auto &[expression, interval] : map.constraints())
      constraints.push_back({expression.replaceDims(replacements), interval});
    SmallVector<AffineExpr> symbols;
    for (unsigned i = 0; i < map.ranges().size(); ++i)
      symbols.push_back(getAffineSymbolExpr(i, map.context()));
    AffineMap affine =
        map.affine().replaceDimsAndSymbols(replacements, symbols, map.dims().size(), map.ranges().size());
    map = IndexingMap(affine, map.dims(), map.ranges(), {}, constraints);
    return true;
  }

  static bool mentions(const IndexingMap &map, unsigned dim) {
    return map.affine().isFunctionOfDim(dim) ||
           llvm::any_of(map.constraints(), [&](const auto &c) { return c.first.isFunctionOfDim(dim); });
  }

  /// Dimensions computed by apply_indexing take over its operands; the bounds of the dimension become a constraint.
  static bool composeDims(IndexingMap &map, SmallVector<Value> &dims) {
    bool changed = false;
    for (unsigned i = 0; i < dims.size(); ++i) {
      auto producer = dims[i].getDefiningOp<ApplyIndexingOp>();
      if (!producer || !producer->hasOneUse() || !mentions(map, i))
        continue;
      AppliedMap inner = AppliedMap::of(producer);
      AffineExpr result = inner.map.result(cast<OpResult>(dims[i]).getResultNumber())
                              .shiftDims(inner.map.dims().size(), map.dims().size());
      if (expressionSize(result) > AppliedMap::maxExpressionSize / 4)
        continue;
      substitute(map, i, result, inner.map.dims());
      llvm::append_range(dims, inner.operands);
      changed = true;
    }
    return changed;
  }

  static void substitute(IndexingMap &map, unsigned dim, AffineExpr replacement, ArrayRef<IndexingVariable> newDims) {
    SmallVector<IndexingVariable> dims(map.dims());
    Interval bounds = dims[dim].bounds;
    llvm::append_range(dims, newDims);
    SmallVector<AffineExpr> replacements, symbols;
    for (unsigned i = 0; i < map.dims().size(); ++i)
      replacements.push_back(i == dim ? replacement : getAffineDimExpr(i, map.context()));
    for (unsigned i = 0; i < map.ranges().size(); ++i)
      symbols.push_back(getAffineSymbolExpr(i, map.context()));
    SmallVector<IndexingMap::Constraint> constraints;
    for (const auto &[expression, interval] : map.constraints())
      constraints.push_back({expression.replaceDims(replacements), interval});
    constraints.push_back({replacement, bounds});
    AffineMap affine = map.affine().replaceDimsAndSymbols(replacements, symbols, dims.size(), symbols.size());
    map = IndexingMap(affine, dims, map.ranges(), {}, constraints);
  }

  /// An unused dimension still guards the loop by its bounds, unless its operand is known to respect them.
  static bool dropUnused(IndexingMap &map, SmallVector<Value> &dims) {
    SmallVector<AffineExpr> replacements;
    SmallVector<IndexingVariable> keptVariables;
    SmallVector<Value> keptDims;
    for (auto [i, dim] : llvm::enumerate(dims)) {
      std::optional<Interval> range = rangeOf(dim);
      if (!mentions(map, i) && range && map.dims()[i].bounds.contains(*range)) {
        replacements.push_back(getAffineConstantExpr(0, map.context()));
        continue;
      }
      replacements.push_back(getAffineDimExpr(keptDims.size(), map.context()));
      keptDims.push_back(dim);
      keptVariables.push_back(map.dims()[i]);
    }
    if (keptDims.size() == dims.size() || map.isKnownEmpty())
      return false;
    SmallVector<AffineExpr> symbols;
    for (unsigned i = 0; i < map.ranges().size(); ++i)
      symbols.push_back(getAffineSymbolExpr(i, map.context()));
    SmallVector<IndexingMap::Constraint> constraints;
    for (const auto &[expression, interval] : map.constraints())
      constraints.push_back({expression.replaceDims(replacements), interval});
    AffineMap affine = map.affine().replaceDimsAndSymbols(replacements, symbols, keptDims.size(), symbols.size());
    map = IndexingMap(affine, keptVariables, map.ranges(), {}, constraints);
    dims = std::move(keptDims);
    return true;
  }
};

} // namespace

void LoopOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<NormalizeLoop>(context);
}
