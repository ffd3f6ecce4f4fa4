// One idea: a predicate of positions is a conjunction of comparisons, each of which says that an affine expression of
// row and key is not positive. What is no such comparison may leave fewer keys, and is left out.

#include "hloc/fusion/KeptKeys.h"

#include "hloc/fusion/HloIndexing.h"
#include "hloc/hlo/Literal.h"

using namespace mlir;

namespace hloc {
namespace {

class Conditions {
public:
  explicit Conditions(MLIRContext *context) : context(context) {}

  /// `place`: from (batch, row, key) to an index of `predicate`.
  void add(const HloInstruction &predicate, bool holds, const IndexingMap &place) {
    const Opcode opcode = predicate.opcode();
    if (opcode == Opcode::And || opcode == Opcode::Or) {
      const bool areBoth = (opcode == Opcode::And) == holds;
      for (const HloInstruction *operand : predicate.operands())
        if (areBoth)
          add(*operand, holds, place);
      kept.isAll &= areBoth;
    } else if (opcode == Opcode::Not) {
      add(*predicate.operand(0), !holds, place);
    } else if (opcode == Opcode::Compare) {
      addComparison(predicate, holds, place);
    } else if (std::optional<IndexingMap> moved = behindMovement(predicate, place)) {
      add(*predicate.operand(0), holds, *moved);
    } else {
      kept.isAll = false;
    }
  }

  KeptKeys kept = {{}, {}, /*isAll=*/true};

private:
  static constexpr unsigned batchDim = 0, keyDim = 2; // the row is between them

  /// Of the operand, where `instr` only moves elements.
  std::optional<IndexingMap> behindMovement(const HloInstruction &instr, const IndexingMap &place) const {
    using enum Opcode;
    if (!llvm::is_contained({Broadcast, Reshape, Bitcast, Transpose, Slice, Copy}, instr.opcode()))
      return std::nullopt;
    IndexingMap map = compose(place, operandIndexing(instr, 0, context)->map);
    map.simplify();
    return map;
  }

  /// An integer at the place, if it is an affine expression of it, which its type has room for.
  AffineExpr valueOf(const HloInstruction &instr, const IndexingMap &place) const {
    if (!instr.shape().isArray() || !isInteger(instr.shape().elementType()))
      return {};
    AffineExpr value = expressionOf(instr, place);
    const ElementType type = instr.shape().elementType();
    const unsigned bits = std::min(bitWidth(type), 63u) - unsigned(isSigned(type));
    const Interval room{isSigned(type) ? -(int64_t(1) << bits) : 0, (int64_t(1) << bits) - 1};
    return value && room.contains(place.range(value)) ? value : AffineExpr();
  }

  AffineExpr expressionOf(const HloInstruction &instr, const IndexingMap &place) const {
    const Opcode opcode = instr.opcode();
    auto operand = [&](unsigned number) { return valueOf(*instr.operand(number), place); };
    if (opcode == Opcode::Iota)
      return place.result(unsigned(instr.intOr(AttributeKey::IotaDimension, 0)));
    if (opcode == Opcode::Constant)
      return instr.shape().isScalar() ? getAffineConstantExpr(instr.literal().getInt(0), context) : AffineExpr();
    if (opcode == Opcode::Convert)
      return operand(0);
    if (opcode == Opcode::Add || opcode == Opcode::Subtract) {
      AffineExpr a = operand(0), b = operand(1);
      return !a || !b ? AffineExpr() : opcode == Opcode::Add ? a + b : a - b;
    }
    std::optional<IndexingMap> moved = behindMovement(instr, place);
    return moved ? valueOf(*instr.operand(0), *moved) : AffineExpr();
  }

  void addComparison(const HloInstruction &compare, bool holds, const IndexingMap &place) {
    AffineExpr a = valueOf(*compare.operand(0), place), b = valueOf(*compare.operand(1), place);
    if (!a || !b) {
      kept.isAll = false;
      return;
    }
    using enum ComparisonDirection;
    const auto direction = compare.enumOr(AttributeKey::Direction, Eq);
    switch (direction) {
    case Le:
      return holds ? addNotPositive(a - b) : addNotPositive(b - a + 1);
    case Lt:
      return holds ? addNotPositive(a - b + 1) : addNotPositive(b - a);
    case Ge:
      return holds ? addNotPositive(b - a) : addNotPositive(a - b + 1);
    case Gt:
      return holds ? addNotPositive(b - a + 1) : addNotPositive(a - b);
    case Eq:
    case Ne:
      if ((direction == Eq) != holds) {
        kept.isAll = false;
        return;
      }
      addNotPositive(a - b);
      return addNotPositive(b - a);
    }
  }

  /// A key minus something is the last key, something minus a key the first.
  void addNotPositive(AffineExpr expression) {
    AffineExpr key = getAffineDimExpr(keyDim, context);
    auto simplified = [](AffineExpr e) { return simplifyAffineExpr(e, 3, 0); };
    if (AffineExpr last = simplified(key - expression); isOfRow(last) && !kept.last)
      kept.last = inRow(last);
    else if (AffineExpr first = simplified(expression + key); isOfRow(first) && !kept.first)
      kept.first = inRow(first);
    else
      kept.isAll = false;
  }

  static bool isOfRow(AffineExpr expression) {
    return !expression.isFunctionOfDim(batchDim) && !expression.isFunctionOfDim(keyDim);
  }
  AffineExpr inRow(AffineExpr expression) const {
    AffineExpr zero = getAffineConstantExpr(0, context);
    return expression.replaceDims({zero, getAffineDimExpr(0, context), zero});
  }

  MLIRContext *context;
};

/// Does it never fall from a row to the next one of a tile of `rows` rows that begins with a multiple of these?
bool rises(AffineExpr expression, int64_t rows) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (!binary)
    return true;
  AffineExpr left = binary.getLHS();
  auto by = dyn_cast<AffineConstantExpr>(binary.getRHS());
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    return rises(left, rows) && rises(binary.getRHS(), rows);
  case AffineExprKind::Mul:
  case AffineExprKind::FloorDiv:
    return by && by.getValue() >= 0 && rises(left, rows);
  case AffineExprKind::Mod:
    return by && by.getValue() % rows == 0 && isa<AffineDimExpr>(left);
  default:
    return false;
  }
}

} // namespace

KeptKeys KeptKeys::ofTile(int64_t rows) const {
  KeptKeys tile;
  if (first && rises(first, rows))
    tile.first = first.replaceDims({getAffineDimExpr(0, first.getContext()) * rows});
  if (last && rises(last, rows))
    tile.last = last.replaceDims({getAffineDimExpr(0, last.getContext()) * rows + (rows - 1)});
  return tile;
}

std::optional<KeptKeys> KeptKeys::ofEachIn(int64_t rows) const {
  if (!isAll || (first && !rises(first, rows)) || (last && !rises(last, rows)))
    return std::nullopt;
  KeptKeys tile = *this;
  if (first)
    tile.first = first.replaceDims({getAffineDimExpr(0, first.getContext()) * rows + (rows - 1)});
  if (last)
    tile.last = last.replaceDims({getAffineDimExpr(0, last.getContext()) * rows});
  return tile;
}

KeptKeys keptKeys(const HloInstruction &predicate, bool isKept, const IndexingMap &place) {
  Conditions conditions(place.context());
  conditions.add(predicate, isKept, place);
  return conditions.kept;
}

} // namespace hloc
