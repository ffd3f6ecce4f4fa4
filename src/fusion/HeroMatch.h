#pragma once
// One function per row of Heroes.def.

#include "hloc/fusion/KernelPlan.h"

#include <optional>

namespace hloc {

/// The plan, or nothing and a reason in `whyNot`.
template <typename Plan>
std::optional<Plan> matchHero(const FusionGraph &graph, const TargetInfo &target, std::string &whyNot);

#define HLOC_HERO(name, text, plan)                                                                                    \
  template <>                                                                                                          \
  std::optional<plan> matchHero<plan>(const FusionGraph &graph, const TargetInfo &target, std::string &whyNot);
#include "hloc/fusion/Heroes.def"

} // namespace hloc
