#include "hloc/transforms/Transforms.h"

namespace hloc {

llvm::ArrayRef<HloPass> hloPipeline() {
  static constexpr HloPass passes[] = {
      {"inline-calls", [](const HloModule &module, DiagnosticEngine &d) { return inlineCalls(module, d); }},
      {"apply-entry-layout", applyEntryLayout},
      {"form-fusions", formFusions},
  };
  return passes;
}

} // namespace hloc
