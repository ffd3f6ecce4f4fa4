#pragma once
// What a module's ops expect of its parameters, found by following each parameter to where it is used.

#include "hloc/hlo/HloModule.h"

#include <optional>

namespace hloc::interp {

/// Index vectors of several components that are unique together.
struct IndexVectors {
  struct Component {
    int64_t places, apart; ///< so many values, so far from each other
    int64_t operandDim;    ///< vectors are sorted by the least of these first
  };
  llvm::SmallVector<int64_t, 4> arrayDims; ///< of the array of indices
  unsigned dim;                            ///< along which the vectors lie in it
  std::vector<Component> components;
};

/// Expectations of one array leaf of the parameters.
struct Demand {
  std::optional<int64_t> below;        ///< integers in [0, below)
  bool mustLieInside = false;          ///< there is no meaning outside; other indices are clamped or skipped
  bool unique = false, sorted = false; ///< along the first dimension of an index array
  int64_t apart = 1;                   ///< unique indices that differ do so by this much: windows do not overlap
  std::optional<IndexVectors> vectors; ///< if they are unique
  bool isClamped = false;              ///< on the way to its use: what differs outside does not differ there
  bool isScattered = false;            ///< indices of a scatter, which leaves out those outside
  std::optional<Opcode> identityOf;    ///< init of a reduction by this op
  bool positiveDefinite = false;
  bool triangular = false; ///< a matrix to solve with: its diagonal must dominate
  bool nonNegative = false;
  std::optional<int64_t> sumAtMost; ///< group sizes
  uint64_t reducedDims = 0;         ///< a bit a dimension over which values made of the leaf's are summed or the like
  int64_t factors = 0;              ///< so many of its elements are multiplied with each other; 0: none

  void bound(int64_t limit) { below = below ? std::min(*below, limit) : limit; }
};

/// Fills in reducedDims and factors.
void noteReductions(const HloModule &module, std::vector<Demand> &demands);

/// One entry for each leaf of each parameter of the entry, in order.
std::vector<Demand> demandsOf(const HloModule &module);

} // namespace hloc::interp
