#pragma once
// Writes whose places or conditions depend on data that all threads of the grid have the same of: where a slice is
// updated, and whether that is aligned. What that is does not matter as long as it is one value.
//
//   (x + start, y * 4) if start mod 4 == 0; (x + start, y) if not: two cases, of which one happens; in each, (x, y * 4)
//   and (x, y) are as much apart as the elements are

#include "prove/Accesses.h"

#include <optional>
#include <vector>

namespace hloc::prove {

struct WriteCase {
  std::vector<Access> writes;
  bool isShifted = false; ///< places are relative to one that is not known, the same for all
};

/// The writes of a buffer, by what may happen together: one case where nothing depends on data. Nothing, with the
/// reason, if they depend on data that threads may have different of. `areAll`: whether one of the cases always
/// happens.
std::optional<std::vector<WriteCase>> writeCasesOf(const KernelAccesses &kernel, unsigned buffer, bool &areAll,
                                                   std::string &why);

} // namespace hloc::prove
