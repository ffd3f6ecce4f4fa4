#pragma once
// Modules planned from texts, and their plans as texts.
#include "hloc/parser/Parser.h"
#include "hloc/planner/ExecutionPlan.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

namespace hloc::test {

inline std::string show(const BufferSlice &slice) { return std::to_string(slice.buffer); }

/// One word a step: `sum(0,1,2)` reads and writes these buffers in the order of the kernel's parameters; `copy(0->1)`;
/// `mine(0->1)` of an external step; `while 3 {CONDITION} {BODY}`; `repeat 12 {BODY}`; `choose 0 {BRANCH} {BRANCH}`.
inline std::string stepsOf(const ExecutionPlan &plan, const Steps &steps) {
  std::string text;
  for (const Step &step : steps) {
    text += text.empty() ? "" : " ";
    if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
      text += plan.kernels[launch->kernel].fusion->computation(AttributeKey::Calls)->name().str() + "(";
      for (size_t i = 0; i < launch->arguments.size(); ++i)
        text += (i ? "," : "") + show(std::get<BufferSlice>(launch->arguments[i]));
      text += ")";
    } else if (const auto *loop = std::get_if<WhileStep>(&step.action)) {
      text += loop->isCounted() ? "repeat " + std::to_string(*loop->rounds)
                                : "while " + show(loop->predicate) + " {" + stepsOf(plan, loop->condition) + "}";
      text += " {" + stepsOf(plan, loop->body) + "}";
    } else if (const auto *choice = std::get_if<ConditionalStep>(&step.action)) {
      text += "choose " + show(choice->selector);
      for (const Steps &branch : choice->branches)
        text += " {" + stepsOf(plan, branch) + "}";
    } else if (const auto *call = std::get_if<CallStep>(&step.action)) {
      auto list = [](const std::vector<BufferSlice> &slices) {
        std::string all;
        for (const BufferSlice &slice : slices)
          all += (all.empty() ? "" : ",") + show(slice);
        return all;
      };
      text += call->function + "(" + list(call->reads) + "->" + list(call->writes) + ")";
    } else {
      const auto &copy = std::get<CopyStep>(step.action);
      text += "copy(" + show(copy.from) + "->" + show(copy.to) + ")";
    }
  }
  return text;
}

struct Planned {
  std::unique_ptr<HloModule> module;
  std::optional<ExecutionPlan> plan;
  std::string steps, results;
};

/// `text` is a module in normal form.
inline Planned planModuleText(const std::string &text) {
  DiagnosticEngine diagnostics;
  Planned made;
  made.module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
  bool isGood = made.module && checkNormalForm(*made.module, diagnostics);
  std::string messages;
  llvm::raw_string_ostream os(messages);
  diagnostics.print(os, false);
  INFO(messages);
  REQUIRE(isGood);
  made.plan = planModule(*made.module, *findTarget("sm_90"), diagnostics);
  REQUIRE(made.plan);
  made.steps = stepsOf(*made.plan, made.plan->steps);
  for (const ModuleResult &result : made.plan->results)
    made.results += (made.results.empty() ? "" : ",") + show(result.slice);
  return made;
}

} // namespace hloc::test
