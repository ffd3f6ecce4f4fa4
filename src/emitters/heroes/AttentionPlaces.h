#pragma once
// Where a thread of attention has its scores: of each piece of keys those of two rows, as tensor cores leave them; and
// which pieces there are.

#include "emitters/heroes/ContractionPlaces.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/fusion/AttentionPlan.h"
#include "hloc/fusion/ScorePlaces.h"

#include <map>

namespace hloc {

class AttentionPlaces {
protected:
  static constexpr int64_t rowsOfThread = 2, lanesOfRow = 4;

  AttentionPlaces(const AttentionPlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), context(kernel.context()), places(plan, context),
        followed(places.follow(kernel.graph(), {})) {}

  CodeBuilder &code() { return kernel.code(); }
  mlir::AffineExpr none() const { return mlir::getAffineConstantExpr(0, context); }
  /// Of a piece.
  mlir::AffineExpr number() const { return mlir::getAffineDimExpr(kernel.idVariables().size(), context); }
  TilePlace place(mlir::AffineExpr column, mlir::AffineExpr step, int64_t numbers = 1) const {
    mlir::AffineExpr block = kernel.block(), tile = block % plan.rowTiles();
    return {block.floorDiv(plan.rowTiles()), plan.beginsWithLastRows ? plan.rowTiles() - 1 - tile : tile, column, step,
            numbers};
  }
  /// Of a thread's row, in its batch.
  mlir::AffineExpr rowOf(int64_t row) const {
    return place(none(), none()).row * plan.scores.tile.rows() + kernel.warp() * AttentionPlan::rowsOfWarp +
           kernel.lane().floorDiv(lanesOfRow) + row * (AttentionPlan::rowsOfWarp / rowsOfThread);
  }
  mlir::AffineExpr keyOf(int64_t neighbour) const {
    return number() * plan.piece() + kernel.lane() % lanesOfRow * 2 + neighbour / 2 * ContractionTile::fragmentColumns +
           neighbour % 2;
  }
  int64_t neighbours() const { return plan.scores.tile.threadColumns; }

  mlir::Value valueOf(mlir::AffineExpr expression) {
    IndexingMap map = kernel.mapOf({expression}, {});
    map.simplify();
    return applyMap(code(), map, kernel.ids()).front();
  }

  /// The value of an expression of the launch space and a piece, if there is one; the last place of those beyond it.
  mlir::Value clamped(mlir::AffineExpr expression, int64_t size, mlir::Value piece) {
    IndexingMap map = mapOfPiece(expression);
    const bool mayBeBeyond = map.range(expression).upper >= size;
    map.simplify();
    llvm::SmallVector<mlir::Value> operands(kernel.ids());
    operands.push_back(piece ? piece : code().index(0));
    mlir::Value value = applyMap(code(), map, operands).front();
    if (!mayBeBeyond)
      return value;
    return known(code().minS(value, code().index(size - 1)), size);
  }

  /// A value that is known to be less than `size`.
  mlir::Value known(mlir::Value value, int64_t size) {
    value.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, size - 1}));
    return value;
  }

  /// Is a thread's neighbour of a piece a key? Nothing: it always is.
  mlir::Value isKey(int64_t neighbour, mlir::Value piece) {
    if (plan.keys() % plan.piece() == 0)
      return {};
    IndexingMap map = mapOfPiece(keyOf(neighbour));
    map.simplify();
    llvm::SmallVector<mlir::Value> operands(kernel.ids());
    operands.push_back(piece);
    return code().cmpI(CodeBuilder::IPred::slt, applyMap(code(), map, operands).front(), code().index(plan.keys()));
  }

  IndexingMap mapOfPiece(mlir::AffineExpr expression) const {
    llvm::SmallVector<IndexingVariable> dims(kernel.idVariables());
    dims.push_back({Interval{0, plan.pieces() - 1}, "piece"});
    return IndexingMap(mlir::AffineMap::get(unsigned(dims.size()), 0, {expression}, context), dims, {}, {});
  }

  /// Indices of an array that is made of scores, or of what their rows come to.
  llvm::SmallVector<mlir::Value> indicesOf(const HloInstruction &value, mlir::Value row, mlir::Value key) {
    auto found = maps.find(&value);
    if (found == maps.end())
      found = maps.emplace(&value, places.ofThread(followed.at(value)->map)).first;
    return applyMap(code(), found->second, {batch, row, key});
  }

  // --- pieces

  /// The piece of a key of the block's tile of rows.
  mlir::Value pieceOf(mlir::AffineExpr key) {
    mlir::Value piece = valueOf(key.replaceDims({place(none(), none()).row}).floorDiv(plan.piece()));
    return known(code().minS(code().maxS(piece, code().index(0)), code().index(plan.pieces())), plan.pieces() + 1);
  }

  /// The pieces of which scores are multiplied: from `firstPiece` on, before `endPiece`; and those of which the mask
  /// leaves all rows all keys. `atLeastOne`: where there would be none, one with nothing but hidden keys.
  void findPieces(bool atLeastOne) {
    const KeptKeys kept = plan.keysOfRows(context);
    const int64_t rowsOfTile = plan.scores.tile.rows(), piece = plan.piece();
    if (plan.skipsPieces) {
      const KeptKeys any = kept.ofTile(rowsOfTile);
      firstPiece = any.first ? pieceOf(any.first) : code().index(0);
      endPiece = any.last ? pieceOf(any.last + piece) : code().index(plan.pieces());
      if (any.first && any.last)
        endPiece = known(code().maxS(endPiece, firstPiece), plan.pieces() + 1);
      if (atLeastOne) {
        firstPiece = clampedPiece(firstPiece);
        endPiece = known(code().maxS(endPiece, code().addI(firstPiece, code().index(1))), plan.pieces() + 1);
      }
    }
    if (!plan.masksLogits)
      return;
    const std::optional<KeptKeys> whole = kept.ofEachIn(rowsOfTile);
    firstWhole = !whole         ? code().index(plan.pieces())
                 : whole->first ? pieceOf(whole->first + (piece - 1))
                                : code().index(0);
    endWhole = whole && whole->last ? pieceOf(whole->last + 1) : code().index(plan.pieces());
  }

  /// Is any of a piece's keys hidden from a row of the block, or behind the last one? Nothing: none is.
  mlir::Value isAtEdge(mlir::Value piece) {
    mlir::Value edge;
    auto add = [&](CodeBuilder::IPred predicate, mlir::Value bound) {
      mlir::Value one = code().cmpI(predicate, piece, bound);
      edge = edge ? mlir::arith::OrIOp::create(code(), edge, one) : one;
    };
    if (plan.masksLogits) {
      add(CodeBuilder::IPred::slt, firstWhole);
      add(CodeBuilder::IPred::sge, endWhole);
    }
    if (plan.keys() % plan.piece() != 0)
      add(CodeBuilder::IPred::sge, code().index(plan.pieces() - 1));
    return edge;
  }

  mlir::Value clampedPiece(mlir::Value piece) {
    return known(code().minS(piece, code().index(plan.pieces() - 1)), plan.pieces());
  }

  mlir::Value firstOfPass() { return firstPiece ? clampedPiece(firstPiece) : code().index(0); }

  mlir::Value leftPieces() { return code().subI(code().index(plan.pieces()), code().subI(endPiece, firstPiece)); }

  /// The keys of the pieces that were left out.
  struct LeftKeys {
    mlir::Value isAny, count, first;
  };
  LeftKeys leftKeys() {
    mlir::Value isAny = code().cmpI(CodeBuilder::IPred::sgt, leftPieces(), code().index(0));
    auto keysBefore = [&](mlir::Value piece) {
      return code().minS(code().mulI(piece, code().index(plan.piece())), code().index(plan.keys()));
    };
    mlir::Value count =
        code().subI(code().index(plan.keys()), code().subI(keysBefore(endPiece), keysBefore(firstPiece)));
    // Behind the last of the others, or the first of all.
    mlir::Value key =
        known(code().select(code().cmpI(CodeBuilder::IPred::slt, endPiece, code().index(plan.pieces())),
                            code().minS(keysBefore(endPiece), code().index(plan.keys() - 1)), code().index(0)),
              plan.keys());
    return {isAny, count, key};
  }

  const AttentionPlan &plan;
  KernelBuilder &kernel;
  mlir::MLIRContext *context;
  const ScorePlaces places;
  const Places<Rearranged> followed; ///< where scores are, and what rows come to
  mlir::Value batch;                 ///< of the block; before indices are asked for
  mlir::Value firstPiece, endPiece;  ///< findPieces; none: all
  mlir::Value firstWhole, endWhole;  ///< if the mask hides logits

private:
  std::map<const HloInstruction *, IndexingMap> maps; ///< indicesOf
};

} // namespace hloc
