#pragma once
// Modules that break one rule each. The body is that of the entry computation; `before` holds further computations.
// Both come after a prelude of computations over scalars: sum, mul, lt (f32), isum (s32).

#include "hloc/hlo/Verifier.h"

#include "llvm/ADT/ArrayRef.h"

namespace hloc {

struct RuleCase {
  VerifierRule rule;
  const char *body;
  const char *before = "";
  const char *header = "";
};

llvm::ArrayRef<RuleCase> elementwiseRuleCases();
llvm::ArrayRef<RuleCase> movementRuleCases();
llvm::ArrayRef<RuleCase> indexedRuleCases();
llvm::ArrayRef<RuleCase> reductionRuleCases();
llvm::ArrayRef<RuleCase> contractionRuleCases();
llvm::ArrayRef<RuleCase> structureRuleCases();
llvm::ArrayRef<RuleCase> collectiveRuleCases();

} // namespace hloc
