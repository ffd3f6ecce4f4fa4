#pragma once
#include "hloc/hlo/HloBuilder.h"

namespace hloc {

/// `value` in the layout of `wanted`, with copies; tuples are taken apart and put together again only where a leaf
/// differs.
HloInstruction *withLayout(HloInstruction *value, const Shape &wanted, HloBuilder &builder);

} // namespace hloc
