#pragma once
// Choices that somebody makes instead of the planner and of the search for groups, to see what they are worth. What
// cannot be had is an error that says why.
//
//   hero=loop           all kernels that can be loops
//   softmax:hero=rows   the kernel of the instruction, fusion or kernel `softmax`
//   split=exp,sum       no kernel that makes both `exp` and `sum`, which reads it

#include "hloc/fusion/PlanContext.h"

#include <string>
#include <vector>

namespace hloc {

class HloModule;
class HloInstruction;
struct FusionPlan;

/// One of them.
struct ForcedKernel {
  std::string text;   ///< as it was asked for
  std::string kernel; ///< a fusion, its kernel or an instruction in it, without `%`; empty: all that can
  PlanChoices choices;
};

struct ForcedEdge {
  std::string text;           ///< as it was asked for
  std::string producer, user; ///< as they are called when fusions are formed (`--explain`)
  bool fused = false;
};

struct ForcedChoices {
  std::vector<ForcedKernel> kernels;
  std::vector<ForcedEdge> edges;
  bool empty() const { return kernels.empty() && edges.empty(); }
};

/// Does the name mean the kernel of `fusion`?
bool isKernelOf(const HloInstruction &fusion, const std::string &name);
/// Why the first kernel of the plan has no groups of so many neighbours for a thread, or so many parts; empty: it has.
std::string refusalOf(const PlanChoices &choices, const FusionPlan &plan);

} // namespace hloc
