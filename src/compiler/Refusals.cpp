#include "compiler/Refusals.h"

#include "hloc/emitters/KernelEmitter.h"
#include "hloc/emitters/OpcodeSupport.h"
#include "hloc/fusion/LibraryForm.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/External.h"
#include "hloc/hlo/LibraryMark.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

namespace hloc {

namespace {

void refuseExternal(const HloInstruction &instr, DiagnosticEngine &found) {
  Diagnostic &refusal = found.report(DiagnosticKind::UnsupportedOpcode, instr.range(),
                                     kernelRefusal(instr, "the module is for several devices"));
  for (const std::string &way : waysAround(instr))
    refusal.note(way);
  refusal.note(fmt::format("`--allow-external` makes it a step: whoever runs the module supplies `{}`",
                           externalFunction(instr)));
}

/// Of a call that is to stay one.
void refuseWithoutForm(const HloInstruction &instr, const TargetInfo &target, DiagnosticEngine &found) {
  std::string why;
  if (!libraryFormOf(instr, target, why))
    found.report(DiagnosticKind::UnsupportedFeature, instr.range(),
                 fmt::format("`{}` cannot stay a call of `{}`: {}", instr.name().str(), externalFunction(instr), why));
}

/// What stands in the way of `instr`; nothing if it is structure or can be compiled.
void findObstacles(const HloInstruction &instr, const TargetInfo &target, bool plansFusions, bool allowExternal,
                   DiagnosticEngine &found) {
  bool normal = checkNormalForm(instr, found);
  if (hasLibraryMark(instr))
    refuseWithoutForm(instr, target, found);
  else if (!allowExternal && isExternal(instr) && isWork(instr))
    refuseExternal(instr, found);
  if (instr.opcode() != Opcode::Fusion || !isWork(instr))
    return;
  llvm::FailureOr<FusionGraph> graph = supportedGraph(*instr.computation(AttributeKey::Calls), found);
  if (normal && succeeded(graph) && plansFusions)
    (void)planFusion(*graph, {}, target, found);
}

/// What several have in common.
struct Reason {
  const Diagnostic *first;
  size_t times = 0;
};

} // namespace

void Refusals::add(const HloInstruction &instr, const DiagnosticEngine &found, size_t times) {
  std::vector<Diagnostic> reasons;
  for (const Diagnostic &one : found.diagnostics())
    if (one.isError())
      reasons.push_back(one);
  all.push_back({&instr, std::move(reasons), times});
}

UnplannedWork Refusals::reasons() const {
  UnplannedWork result;
  for (const Refusal &refusal : all)
    result[refusal.instr] = refusal.reasons.front().message;
  return result;
}

void Refusals::report(DiagnosticEngine &diagnostics) const {
  std::set<std::pair<uint32_t, std::string>> said; // fusions may share what they call
  for (const Refusal &refusal : all)
    for (const Diagnostic &reason : refusal.reasons)
      if (said.insert({reason.range.begin, reason.message}).second)
        diagnostics.report(reason.kind, reason.range, reason.message).notes = reason.notes;
}

void Refusals::summarize(size_t numCompiled, DiagnosticEngine &diagnostics) const {
  std::map<std::pair<DiagnosticKind, std::string>, Reason> byText;
  size_t numRefused = 0;
  for (const Refusal &refusal : all) {
    numRefused += refusal.times;
    std::set<std::pair<DiagnosticKind, std::string>> own;
    for (const Diagnostic &one : refusal.reasons) {
      Reason &reason = byText.try_emplace({one.kind, one.message}, Reason{&one}).first->second;
      if (own.insert({one.kind, one.message}).second)
        reason.times += refusal.times;
      if (one.range.begin < reason.first->range.begin)
        reason.first = &one;
    }
  }
  std::vector<Reason> reasons;
  for (const auto &[text, reason] : byText)
    reasons.push_back(reason);
  llvm::stable_sort(reasons, [](const Reason &a, const Reason &b) {
    return std::pair(b.times, a.first->range.begin) < std::pair(a.times, b.first->range.begin);
  });
  for (const Reason &reason : reasons) {
    std::string message = fmt::format("{} x {}", reason.times, reason.first->message);
    if (llvm::any_of(diagnostics.diagnostics(), [&](const Diagnostic &one) { return one.message == message; }))
      continue; // said for another target
    Diagnostic &report = diagnostics.report(reason.first->kind, reason.first->range, message);
    report.notes = reason.first->notes;
    if (&reason == &reasons.back())
      report.note(fmt::format("{} step{} of the entry not compiled, {} kernel{} compiled", numRefused,
                              numRefused == 1 ? "" : "s", numCompiled, numCompiled == 1 ? "" : "s"));
  }
}

Refusals findRefusals(const HloModule &fused, const TargetInfo &target, bool plansFusions, bool allowExternal) {
  Refusals refusals;
  for (const HloComputation *computation : controlComputations(fused))
    for (const HloInstruction *instr : computation->instructions()) {
      DiagnosticEngine found;
      found.setFile(fused.source());
      findObstacles(*instr, target, plansFusions, allowExternal, found);
      if (found.hasErrors())
        refusals.add(*instr, found);
    }
  return refusals;
}

bool isRefusal(const DiagnosticEngine &found) {
  return found.hasErrors() && llvm::all_of(found.diagnostics(), [](const Diagnostic &one) {
           return !one.isError() || exitCode(one.kind) == ExitCode::Unsupported;
         });
}

void markUncompiled(Steps &steps, llvm::ArrayRef<KernelSpec> kernels, llvm::ArrayRef<std::string> reasons) {
  std::vector<uint32_t> numbers;
  uint32_t next = 0;
  for (const std::string &reason : reasons)
    numbers.push_back(reason.empty() ? next++ : 0);
  forEachStep(steps, [&](Step &step) {
    auto *launch = std::get_if<LaunchStep>(&step.action);
    if (!launch)
      return;
    const uint32_t number = launch->kernel;
    launch->kernel = numbers[number];
    if (reasons[number].empty())
      return;
    UnsupportedStep unsupported{reasons[number], {}, {}};
    for (auto [parameter, argument] : llvm::zip_equal(kernels[number].parameters, launch->arguments))
      if (const auto *slice = sliceOf(argument); slice && !parameter.tensorMap) // a pointer names it, too
        (parameter.written ? unsupported.writes : unsupported.reads).push_back(*slice);
    step.action = std::move(unsupported);
  });
}

} // namespace hloc
