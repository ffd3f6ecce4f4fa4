#pragma once
// HLO -> HLO passes. Each takes a module and returns a new one on the same arena; null after an error was reported.
//
// Together they bring a module into the normal form the planner takes: an entry of parameters, fusions, and the
// structure between them (tuple, get-tuple-element, bitcast).

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Diagnostics.h"

#include <functional>
#include <memory>

namespace hloc {

/// Replaces every `call` by the body it calls, in all computations reachable from the entry; drops what is unreachable
/// and what nothing uses. jax writes `jax.nn.gelu` as a call, so this comes before fusion.
/// Nested calls can multiply: more than `maxInstructions` in one computation is refused.
std::unique_ptr<HloModule> inlineCalls(const HloModule &module, DiagnosticEngine &diagnostics,
                                       size_t maxInstructions = 4'000'000);

/// Makes parameters and results of the entry have the layouts of `entry_computation_layout`, with copies where the body
/// has others. Example: `->f32[2,3]{0,1}` over a root f32[2,3]{1,0} adds `copy` to f32[2,3]{0,1}.
std::unique_ptr<HloModule> applyEntryLayout(const HloModule &module, DiagnosticEngine &diagnostics);

/// Forms fusions so that the entry is in normal form:
/// * a headerless text without a fusion is one fusion body (as XLA's emitter fixtures are);
/// * an entry of plain ops becomes one fusion for each distinct shape among its results: all in one if they agree;
///   reductions, contractions and the like end a fusion where fusing through them would compute them again and again;
/// * in an entry that calls fusions, every remaining plain op becomes a fusion of its own.
/// Constants move into the fusions that read them.
std::unique_ptr<HloModule> formFusions(const HloModule &module, DiagnosticEngine &diagnostics);

/// A named pass of the list below.
struct HloPass {
  llvm::StringRef name;
  std::unique_ptr<HloModule> (*run)(const HloModule &, DiagnosticEngine &);
};

/// The passes in order; `--dump-after-each-pass` shows the module after each.
llvm::ArrayRef<HloPass> hloPipeline();

} // namespace hloc
