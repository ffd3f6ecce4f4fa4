#pragma once
// Which results of a block's tile a thread of a contraction has.

#include "emitters/KernelBuilder.h"

#include <algorithm>

namespace hloc {

class ContractionThreads {
protected:
  using AffineExpr = mlir::AffineExpr;

  ContractionThreads(const ContractionPlan &plan, KernelBuilder &kernel)
      : plan(plan), tile(plan.tile), kernel(kernel) {}

  int64_t tileSize(const ContractionSide &side) const { return plan.stride(side) - side.pad; }

  AffineExpr lane() const { return kernel.thread() % (tile.laneRows() * tile.laneColumns()); }
  AffineExpr warp() const { return kernel.thread().floorDiv(tile.laneRows() * tile.laneColumns()); }
  /// Number of the warp among those that have other rows, or columns.
  AffineExpr warpAlong(const ContractionSide &own) const {
    if (tile.ofWarpgroups) {
      constexpr int64_t ofGroup = ContractionTile::warpsOfGroup;
      const AffineExpr group = warp().floorDiv(ofGroup);
      return plan.isOfRows(own) ? group.floorDiv(tile.warpColumns) * ofGroup + warp() % ofGroup
                                : group % tile.warpColumns;
    }
    return plan.isOfRows(own) ? warp().floorDiv(tile.warpColumns) : warp() % tile.warpColumns;
  }
  int64_t lanesAlong(const ContractionSide &own) const {
    return plan.isOfRows(own) ? tile.laneRows() : tile.laneColumns();
  }
  AffineExpr laneAlong(const ContractionSide &own) const {
    return plan.isOfRows(own) ? lane().floorDiv(tile.laneColumns()) : lane() % tile.laneColumns();
  }
  /// Number of the thread among those that have other rows, or columns.
  AffineExpr threadAlong(const ContractionSide &own) const { return warpAlong(own) * lanesAlong(own) + laneAlong(own); }

  int64_t perThread(const ContractionSide &own) const {
    return plan.isOfRows(own) ? tile.threadRows : tile.threadColumns;
  }
  /// A thread's rows or columns are pieces of so many neighbours, the same piece of all threads side by side.
  int64_t pieceOf(const ContractionSide &own) const {
    if (tile.onTensorCores)
      return (plan.isOfRows(own) ? 1 : 2) * (plan.isInterleaved(own) ? 2 : 1);
    return std::min<int64_t>(perThread(own), ContractionPlan::sharedVectorBits / int64_t(plan.bits));
  }
  AffineExpr firstOfPiece(const ContractionSide &own, int64_t piece) const {
    if (tile.ofWarpgroups && plan.isOfRows(own)) {
      const int64_t rows = pieceOf(own);
      return rowOfGroup(warpAlong(own), mlir::getAffineConstantExpr(rows * piece, kernel.context()),
                        laneAlong(own) * rows);
    }
    if (tile.onTensorCores) { // pieces of a warp follow each other
      const int64_t lanes = lanesAlong(own), together = lanes * pieceOf(own);
      return warpAlong(own) * (lanes * perThread(own)) + piece * together + laneAlong(own) * pieceOf(own);
    }
    return threadAlong(own) * pieceOf(own) + piece * (tileSize(own) * pieceOf(own) / perThread(own));
  }

  /// Of a warp among those that have other rows: row number `lane` of its eight number `piece`. A group multiplies 64
  /// rows at once, of which each of its warps has 16.
  AffineExpr rowOfGroup(AffineExpr warp, AffineExpr piece, AffineExpr lane) const {
    constexpr int64_t warps = ContractionTile::warpsOfGroup, rows = ContractionTile::rowsOfGroup, eight = 8;
    return warp.floorDiv(warps) * (warps * eight * tile.threadRows) + piece.floorDiv(2) * rows +
           warp % warps * (rows / warps) + piece % 2 * eight + lane;
  }

  const ContractionPlan &plan;
  const ContractionTile &tile;
  KernelBuilder &kernel;
};

} // namespace hloc
