#pragma once
// What the files of the verifier share.

#include "ShapeInferenceContext.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/hlo/Verifier.h"

namespace hloc {

/// Turns broken rules into diagnostics that name the rule.
class VerifierReporter {
public:
  explicit VerifierReporter(DiagnosticEngine &diagnostics) : diagnostics(diagnostics) {}
  void report(VerifierRule rule, SourceRange where, const llvm::Twine &message);
  /// What breaks no rule, but is not used.
  void warn(SourceRange where, const llvm::Twine &message);
  bool ok = true; ///< nothing was reported

private:
  DiagnosticEngine &diagnostics;
};

/// The part of a tuple tree that an index path leads to; null if there is none.
const Shape *partOf(const Shape &shape, Dims path);

/// The rules about header attributes: module_c3 to module_c5.
void verifyHeader(const HloModule &module, VerifierReporter &reporter);

} // namespace hloc
