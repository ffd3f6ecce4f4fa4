#pragma once
// What the text of a call of CUB's radix sort says: rows of the last dimension by their keys, stable.
//
//   xla.gpu.ext.cub_sort_keys, ..._pairs, ..._unassigned_scratch_size
//       (keys[, values], scratch) of keys[, values], backend_config={"descending":false}
//
// Keys are ordered as integers are, floats by their total order but that -0 is 0.

#include "hloc/hlo/HloInstruction.h"

namespace hloc {

struct SortCall {
  bool descending = false;
};

/// Is the target one of those above?
bool isSortTarget(llvm::StringRef target);
/// nullopt where operands, results or configuration are none of those above.
std::optional<SortCall> readSortCall(const HloInstruction &call);

} // namespace hloc
