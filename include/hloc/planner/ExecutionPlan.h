#pragma once
// ExecutionPlan: what happens, in order, over which buffers, to compute the entry of a module in normal form.
//
//   ENTRY e { p = f32[8] parameter(0); f = (f32[8], f32[8]) fusion(p), ...; ROOT g = f32[8] get-tuple-element(f),
//   index=1 } buffers: 0 parameter p, 1 and 2 outputs of f;  steps: launch f(0; 1, 2);  results: {} is buffer 2
//
// A buffer is written by exactly one step; nothing is reused.

#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/support/Diagnostics.h"

#include <optional>
#include <vector>

namespace hloc {

/// One launch: `fusion` reads `inputs` (one per array leaf of its operands, in order) and writes `outputs` (one per
/// array leaf of its shape).
struct PlannedLaunch {
  const HloInstruction *fusion = nullptr;
  std::vector<BufferSlice> inputs;
  std::vector<BufferSlice> outputs;
};

struct ExecutionPlan {
  std::vector<ModuleBuffer> buffers;
  std::vector<PlannedLaunch> launches; ///< in order; fusions that write no bytes are left out
  std::vector<ModuleResult> results;   ///< one per array leaf of the root
};

/// Reports entry instructions that are not in normal form (a `while`, say) as unsupported, all of them.
std::optional<ExecutionPlan> planModule(const HloModule &module, DiagnosticEngine &diagnostics);

} // namespace hloc
