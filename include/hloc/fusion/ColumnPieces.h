#pragma once
// Column reductions whose rows are reduced, too: in pieces of neighbouring columns, of which each is one result.
//
//   f32[64,20000,3] over 0 and 2: 64 rows of 60000 columns in pieces of 3

#include "hloc/fusion/HeroPlans.h"

namespace hloc {

/// What the frame of a column reduction is: rows of columns, slice by slice. `piece` columns are one result; 1 where
/// the minor dimension is kept.
struct ColumnDims {
  int64_t slices = 1, rows = 1, columns = 1, piece = 1;
};
ColumnDims columnDimsOf(const ReductionFrame &frame);

/// How the block of a column reduction makes one value of a piece.
struct ColumnPieces {
  int64_t size = 1;  ///< columns of a piece; those of partial results are whole ones
  int64_t own = 1;   ///< neighbours that always are one thread's, which makes one value of them
  int64_t parts = 1; ///< values of a piece that the block then has, of all of its rows
  int64_t few = 1;   ///< these are combined to so many, and these to one; 1: at once

  int64_t valuesOfRow() const { return size / own; }
};
ColumnPieces piecesOf(const ColumnReductionPlan &plan);

} // namespace hloc
