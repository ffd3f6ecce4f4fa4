#pragma once
// Products that tensor cores of the target could make, and that a kernel makes without them.

#include "hloc/fusion/FusionPlan.h"

#include <vector>

namespace hloc {

/// A dot, convolution or ragged-dot as a matrix product, of one batch or group.
struct ProductShape {
  int64_t rows = 1, columns = 1, terms = 1;
};
ProductShape productShapeOf(const HloInstruction &product);

/// Remarks (`no-tensor-cores`) on products of at least 16 rows, columns and terms, in types that the target's tensor
/// cores have, which `kernel` makes otherwise, with the reason: why it is no contraction, or that threads are as fast.
/// `graph`: what the kernel is of; `plan`: of its fusion, of which another kernel may make a product beforehand.
std::vector<KernelRemark> remarksOnTensorCores(const FusionGraph &graph, const FusionPlan &plan,
                                               const KernelPlan &kernel, const TargetInfo &target);

} // namespace hloc
