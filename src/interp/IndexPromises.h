#pragma once
// What gathers and scatters promise of their indices: unique_indices, indices_are_sorted. Kernels may rely on it, so
// that nothing is right or wrong where it does not hold.

#include "interp/Machine.h"

namespace hloc::interp {

/// Reports, at the gather or scatter, which promise its indices break, and the first of them that do. All other
/// instructions promise nothing.
///
/// Unique are windows that lie inside: what a scatter leaves out cannot meet. Sorted are starts as vectors over the
/// operand's dimensions, among those of one batch.
llvm::LogicalResult checkPromises(const Step &step);

} // namespace hloc::interp
