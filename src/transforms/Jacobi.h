#pragma once
// Jacobi's rotations, half of the columns with the other half at once. Columns p < h meet columns p + h; then all but
// the first move one place round, so that in size - 1 rounds each meets each other, and all are where they were.
//
//   0 1 2      0 3 1      columns 0..2 above 3..5: 1 goes right, 3 goes up,
//   3 4 5  ->  4 5 2      2 goes down, 5 goes left
//
// The number of columns is even: an odd one gets a column of zeros at the end, which no rotation touches and which is
// there again after each sweep.

#include "Matrices.h"

namespace hloc {

/// p' = c p - conj(s) q, q' = s p + c q makes columns p and q orthogonal.
struct Rotation {
  Expansion::Value cosine; ///< real [batch, h]
  Expansion::Value sine;   ///< of the type of the matrices
};
/// Of Hermitian matrices {{p, meeting}, {conj(meeting), q}}: for columns their squares and products.
Rotation rotation(Expansion &x, Expansion::Value p, Expansion::Value q, Expansion::Value meeting);

/// Where columns go, in dimension 1 or 2 of [batch, ., .]; and what the rotations make of them before. `conjugated`:
/// for rows, which the conjugate transpose of the rotations multiplies.
Expansion::Value rotated(Expansion &x, Expansion::Value matrices, unsigned dimension, const Rotation &by,
                         bool conjugated);

/// What is even and holds `size` columns.
inline int64_t evenSize(int64_t size) { return size + size % 2; }

} // namespace hloc
