#pragma once
// A fusion of a test and its plan.
#include "hloc/fusion/FusionPlan.h"

#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

namespace hloc::test {

/// The fusion that an entry computation of these instructions is, which may reduce by `add` and `max`.
struct PlannedEntry {
  Parsed parsed;
  std::optional<FusionGraph> graph;
  FusionPlan plan;

  /// `offers` as in planFusion.
  explicit PlannedEntry(const std::string &body, const FusionAliasing &offers = {}, const char *target = "sm_90")
      : parsed("HloModule m\n"
               "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
               "max { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] maximum(x, y) }\n"
               "ENTRY e {\n" +
               body + "\n}\n") {
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
    graph = *FusionGraph::build(*parsed.module->entry(), parsed.diagnostics);
    llvm::FailureOr<FusionPlan> made = planFusion(*graph, offers, *findTarget(target), parsed.diagnostics);
    REQUIRE(succeeded(made));
    plan = std::move(*made);
  }

  std::string text() const { return plan.toString(); }
  const KernelPlan &kernel() const { return std::get<KernelPlan>(plan.steps.front()); }
  /// Why a hero does not take the fusion; empty: it does, or was not asked.
  std::string rejection(llvm::StringRef hero) const {
    for (const HeroRejection &rejection : plan.rejections)
      if (rejection.hero == hero)
        return rejection.reason;
    return "";
  }
};

} // namespace hloc::test
