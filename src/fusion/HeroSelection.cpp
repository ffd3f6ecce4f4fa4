#include "fusion/HeroMatch.h"
#include "hloc/support/Check.h"

namespace hloc {

llvm::StringRef text(Hero hero) {
  static constexpr llvm::StringLiteral names[] = {
#define HLOC_HERO(name, text, plan) text,
#include "hloc/fusion/Heroes.def"
  };
  return names[static_cast<size_t>(hero)];
}

HeroChoice selectHero(const FusionGraph &graph, const TargetInfo &target) {
  std::string rejected;
  std::string whyNot;
#define HLOC_HERO(name, heroText, planType)                                                                            \
  if (std::optional<planType> plan = matchHero<planType>(graph, target, whyNot))                                       \
    return {Hero::name, rejected.empty() ? "the most special emitter that applies" : rejected, std::move(*plan)};      \
  rejected += (rejected.empty() ? "no " : "; no ") + std::string(heroText) + ": " + whyNot;
#include "hloc/fusion/Heroes.def"
  HLOC_UNREACHABLE("the loop emitter takes every fusion");
}

} // namespace hloc
