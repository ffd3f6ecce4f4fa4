#include "compiler/Remarks.h"

#include "hloc/compiler/Tf32Gain.h"
#include "hloc/fusion/ContractionPlan.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Regex.h"

#include <cmath>

namespace hloc {

namespace {

DiagnosticKind kindOf(llvm::StringRef kindText) {
  for (DiagnosticKind kind : {
#define HLOC_DIAGNOSTIC(name, text, exitCode)
#define HLOC_REMARK(name, text) DiagnosticKind::name,
#include "hloc/support/DiagnosticKinds.def"
       })
    if (text(kind) == kindText)
      return kind;
  HLOC_UNREACHABLE("a remark of a kind that is not in the table");
}

} // namespace

bool isWanted(DiagnosticKind kind, const std::string &kinds) { return llvm::Regex(kinds).match(text(kind)); }

void remarkOnPrecision(const PlannedKernel &planned, const TargetInfo &target, PlanContext &plans, KernelSpec &kernel) {
  const auto *contraction = std::get_if<ContractionPlan>(&planned.plan().plan);
  if (!contraction || contraction->stage == ReductionStage::Combine)
    return;
  if (std::optional<Tf32Gain> gain = tf32Gain(planned.plan().graphOf(planned.planned->graph), target, plans))
    kernel.remarks.push_back({text(DiagnosticKind::F32Dot).str(), gain->dots.front()->name().str(),
                              uint64_t(std::round(gain->seconds / gain->asTf32)), gain->toString(target)});
}

void reportRemarks(const KernelSpec &kernel, const HloComputation &fusion, const std::string &kinds,
                   DiagnosticEngine &diagnostics) {
  const llvm::Regex wanted(kinds);
  for (const KernelRemark &remark : kernel.remarks) {
    if (!wanted.match(remark.kind))
      continue;
    auto instr = llvm::find_if(fusion.instructions(),
                               [&](const HloInstruction *each) { return each->name() == remark.instruction; });
    HLOC_CHECK(instr != fusion.instructions().end(), "a remark on an instruction that is not there");
    SourceRange range = (*instr)->range();
    bool isKnown = llvm::any_of(diagnostics.diagnostics(), [&](const Diagnostic &other) {
      return other.range.begin == range.begin && other.message == remark.message;
    });
    if (!isKnown)
      diagnostics.report(kindOf(remark.kind), range, remark.message);
  }
}

} // namespace hloc
