#pragma once
// Where the simplifications apply.

#include "Rewriter.h"

namespace hloc {

/// Is the entry made of plain ops? Fusions that were formed elsewhere are left as they are, and a headerless text
/// without a fusion is the body of one.
bool arrivesUnfused(const HloModule &module);

/// The entry, and the loops and branches that it runs; callees before callers. What is applied to elements stays as it
/// is, and so do computations that call fusions.
std::vector<HloComputation *> computationsToSimplify(HloModule &module);

/// A pass that is its rules, for what is fused here: nothing where fusions arrive, or where every op is to be a kernel.
PassResult rewriteBeforeFusing(HloModule &module, llvm::ArrayRef<RewriteRule> rules, HloPassContext &context);

} // namespace hloc
