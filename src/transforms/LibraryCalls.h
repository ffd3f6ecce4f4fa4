#pragma once
// Calls of cuBLAS and CUB as ops; part of expandCustomCalls.

#include "Rewriter.h"

namespace hloc {

/// hlo/GemmCall.h: a dot and what is done to it. Null: not such a call.
HloInstruction *expandGemmCall(HloInstruction &call, HloRewriter &rewriter);
/// hlo/SortCall.h: a sort. Null: not such a call.
HloInstruction *expandSortCall(HloInstruction &call, HloRewriter &rewriter);

} // namespace hloc
