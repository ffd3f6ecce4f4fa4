#pragma once
// Where the results of a contraction's tile are, and in which types they are computed.

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/ProductArithmetic.h"
#include "emitters/heroes/ContractionThreads.h"
#include "hloc/indexing/ShapeMaps.h"

namespace hloc {

/// Which tile, and which step of its sums: expressions of the launch space, followed by a number of which there are
/// `numbers`, such as that of a step.
struct TilePlace {
  mlir::AffineExpr batch, row, column; ///< of the tile, along each
  mlir::AffineExpr step;               ///< of the sums
  int64_t numbers = 1;
  // Of a ragged-dot, variables of the launch space:
  mlir::AffineExpr firstRow = {}, endOfRows = {};      ///< of the tile, instead of `row`: those of one group
  mlir::AffineExpr group = {};                         ///< whose right side it is
  mlir::AffineExpr firstOfTerms = {}, endOfTerms = {}; ///< of the ragged dimension
};

/// Factors and sums as they are computed with. Integers narrower than a register have a whole one.
class ContractionValues {
public:
  ContractionValues(CodeBuilder &b, const ContractionPlan &plan)
      : ContractionValues(b, plan.hero->shape().elementType(), plan.bits) {}
  ContractionValues(CodeBuilder &b, ElementType type, unsigned bits)
      : b(b), type(type), bits(bits), arithmetic(b, type) {}

  mlir::Type computed() const { return isFloat(type) ? computeType(type, b.getContext()) : b.getIntegerType(bits); }
  mlir::Value zero() { return isFloat(type) ? b.floating(computed(), 0.0) : b.integer(computed(), 0); }
  mlir::Value factor(mlir::Value stored, ElementType from) {
    mlir::Value value = arithmetic.factor(fromStorage(b, stored, from), from);
    return isFloat(type) ? value : b.castI(value, computed(), false);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) { return arithmetic.add(x, y); }
  mlir::Value multiply(mlir::Value x, mlir::Value y) { return arithmetic.multiply(x, y); }
  /// A sum as the hero's result is stored.
  mlir::Value stored(mlir::Value sum) {
    mlir::Value value = isFloat(type) ? sum : b.castI(sum, valueType(type, b.getContext()), false);
    return toStorage(b, arithmetic.result(value), type);
  }

private:
  CodeBuilder &b;
  const ElementType type;
  const unsigned bits;
  ProductArithmetic arithmetic;
};

/// What `make` makes where the condition holds; `otherwise` where it does not.
llvm::SmallVector<mlir::Value> ifHolds(CodeBuilder &b, mlir::Value condition, mlir::ValueRange otherwise,
                                       llvm::function_ref<llvm::SmallVector<mlir::Value>()> make);

/// What `make` makes of the number `ahead` after `number`, of so many; `otherwise` where there is none, or it is not
/// before `end`, if there is an end.
llvm::SmallVector<mlir::Value> ifFollows(CodeBuilder &b, mlir::Value number, int64_t ahead, int64_t numbers,
                                         mlir::Value end, mlir::ValueRange otherwise,
                                         llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value)> make);

class ContractionPlaces : protected ContractionThreads {
protected:
  ContractionPlaces(const ContractionPlan &plan, KernelBuilder &kernel, const TilePlace &at)
      : ContractionThreads(plan, kernel), space(plan.space), at(at), context(kernel.context()) {}

  AffineExpr constant(int64_t value) const { return mlir::getAffineConstantExpr(value, context); }
  AffineExpr tileAlong(const ContractionSide &own) const { return plan.isOfRows(own) ? at.row : at.column; }
  AffineExpr firstAlong(const ContractionSide &own) const {
    return plan.isOfRows(own) && at.firstRow ? at.firstRow : tileAlong(own) * tileSize(own);
  }
  /// Where a position along a side is one of the tile's.
  IndexingMap::Constraint isInside(const ContractionSide &own, AffineExpr position) const {
    if (plan.isOfRows(own) && at.endOfRows)
      return {at.endOfRows - position, Interval{1, own.size}};
    return {position, Interval{0, own.size - 1}};
  }
  void placeBatch(llvm::MutableArrayRef<AffineExpr> indices) const { place(plan.batch, at.batch, indices); }
  /// Indices of the space along `dims`, taken as one.
  void place(llvm::ArrayRef<unsigned> dims, AffineExpr position, llvm::MutableArrayRef<AffineExpr> indices) const {
    llvm::SmallVector<int64_t> sizes;
    for (unsigned dim : dims)
      sizes.push_back(space.dim(dim));
    for (auto [dim, index] : llvm::zip_equal(dims, delinearize(position, sizes, context)))
      indices[dim] = index;
  }

  const ContractionSpace &space;
  const TilePlace at;
  mlir::MLIRContext *context;
};

} // namespace hloc
