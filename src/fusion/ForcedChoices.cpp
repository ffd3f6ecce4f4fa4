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

/// Parts of its sums; nothing: they have none.
template <typename Plan> std::optional<int64_t> partsOf(const Plan &) { return std::nullopt; }
template <> std::optional<int64_t> partsOf(const RowReductionPlan &plan) { return plan.splits; }
template <> std::optional<int64_t> partsOf(const ColumnReductionPlan &plan) { return plan.splits; }
template <> std::optional<int64_t> partsOf(const ContractionPlan &plan) { return plan.splits; }

/// Tiles of a ring's blocks; nothing: none goes on to another.
template <typename Plan> std::optional<int64_t> roundsOf(const Plan &) { return std::nullopt; }
template <> std::optional<int64_t> roundsOf(const ContractionPlan &plan) {
  return plan.tile.hasProducer && plan.splits == 1 ? std::optional(plan.rounds) : std::nullopt;
}

} // namespace

std::string refusalOf(const PlanChoices &choices, const FusionPlan &plan) {
  for (const FusionStep &step : plan.steps) {
    const auto *kernel = std::get_if<KernelPlan>(&step);
    if (!kernel || kernel->makes)
      continue;
    const std::string hero = text(kernel->hero()).str();
    const std::optional<unsigned> vector = visitHero(kernel->plan, [](const auto &own) { return vectorOf(own); });
    const std::optional<int64_t> parts = visitHero(kernel->plan, [](const auto &own) { return partsOf(own); });
    const std::optional<int64_t> rounds = visitHero(kernel->plan, [](const auto &own) { return roundsOf(own); });
    if (choices.rounds > 1 && !rounds)
      return "no ring is to be had here, whose blocks go on to other tiles";
    if ((choices.vector && !vector) || (choices.parts && !parts))
      return fmt::format("threads of `{}` have no such choice", hero);
    if (choices.vector && *vector != choices.vector)
      return fmt::format("a thread of `{}` can have {} at once here, not {}", hero, *vector, choices.vector);
    if (choices.parts && *parts != choices.parts)
      return fmt::format("sums of `{}` can be in {} parts here, not {}", hero, *parts, choices.parts);
    if (choices.rounds && rounds && *rounds != choices.rounds)
      return fmt::format("a block of `{}` can have {} tiles here, not {}", hero, *rounds, choices.rounds);
    return "";
  }
  return "there is no kernel";
}

} // namespace hloc
