#include "hloc/fusion/ForcedChoices.h"

#include "fusion/HeroMatch.h"
#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/HloComputation.h"
#include "hloc/support/Names.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

bool isKernelOf(const HloInstruction &fusion, const std::string &name) {
  if (fusion.name() == name || identifierOf(fusion.name()) == name)
    return true;
  const HloComputation *body = fusion.computation(AttributeKey::Calls);
  return body && (body->name() == name ||
                  llvm::any_of(body->instructions(), [&](const HloInstruction *one) { return one->name() == name; }));
}

namespace {

/// Neighbours that a thread has at once; nothing: the hero does not choose among several numbers, or not here.
template <typename Plan> std::optional<unsigned> vectorOf(const Plan &) { return std::nullopt; }
template <> std::optional<unsigned> vectorOf(const LoopPlan &plan) {
  if (plan.nests.empty())
    return std::nullopt;
  const unsigned first = plan.nests.front().perThread;
  return llvm::all_of(plan.nests, [&](const LoopNest &nest) { return nest.perThread == first; }) ? std::optional(first)
                                                                                                 : std::nullopt;
}
template <> std::optional<unsigned> vectorOf(const RowReductionPlan &plan) { return plan.perThread; }
template <> std::optional<unsigned> vectorOf(const RowsPlan &plan) { return plan.perThread; }
template <> std::optional<unsigned> vectorOf(const ColumnsPlan &plan) { return plan.perThread; }
template <> std::optional<unsigned> vectorOf(const ColumnReductionPlan &plan) {
  return unsigned(plan.tiling.perThread);
}

} // namespace

std::string vectorRefusal(const FusionPlan &plan, unsigned vector) {
  for (const FusionStep &step : plan.steps) {
    const auto *kernel = std::get_if<KernelPlan>(&step);
    if (!kernel || kernel->makes)
      continue;
    const std::optional<unsigned> own = visitHero(kernel->plan, [](const auto &plan) { return vectorOf(plan); });
    if (own && *own == vector)
      return "";
    return own ? fmt::format("a thread of `{}` can have {} at once here, not {}", text(kernel->hero()).str(), *own,
                             vector)
               : fmt::format("threads of `{}` have no such choice", text(kernel->hero()).str());
  }
  return "there is no kernel";
}

} // namespace hloc
