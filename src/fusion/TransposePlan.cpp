#include "fusion/HeroMatch.h"

namespace hloc {

template <>
std::optional<TransposePlan> matchHero<TransposePlan>(const FusionGraph &, const TargetInfo &, std::string &whyNot) {
  whyNot = "no transpose";
  return std::nullopt;
}

std::string TransposePlan::toString() const { return "transpose"; }

} // namespace hloc
