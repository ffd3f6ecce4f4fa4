#pragma once
// What a module's ops expect of its parameters, found by following each parameter to where it is used.

#include "hloc/hlo/HloModule.h"

#include <optional>

namespace hloc::interp {

/// Expectations of one array leaf of the parameters.
struct Demand {
  std::optional<int64_t> below;        ///< integers in [0, below)
  bool unique = false, sorted = false; ///< along the first dimension of an index array
  std::optional<Opcode> identityOf;    ///< init of a reduction by this op
  bool positiveDefinite = false;
  bool triangular = false; ///< a matrix to solve with: its diagonal must dominate
  bool nonNegative = false;
  std::optional<int64_t> sumAtMost; ///< group sizes

  void bound(int64_t limit) { below = below ? std::min(*below, limit) : limit; }
};

/// One entry for each leaf of each parameter of the entry, in order.
std::vector<Demand> demandsOf(const HloModule &module);

} // namespace hloc::interp
