#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace hloc {
namespace {

/// Ops of one thread's straight code, instructions times elements: more elements per thread than this allows only cost
/// compile time and registers. An estimate, not measured: it leaves 8 elements to a fusion of 256 instructions.
constexpr int64_t maxOpsPerThread = 2048;

/// Ops that compute much more per element than they move: one element a thread.
bool isSequentialLoop(const HloInstruction &instr) { return hasTrait(instr.opcode(), OpcodeTrait::Contracts); }

} // namespace

unsigned elementsPerThread(llvm::ArrayRef<unsigned> roots, int64_t elements, int64_t elementsOfKernel,
                           const FusionGraph &graph, const TargetInfo &target) {
  StreamWidths widths;
  unsigned narrowestOutput = 8;
  for (unsigned root : roots) {
    widths.add(graph.roots()[root].shape);
    narrowestOutput = std::min(narrowestOutput, deviceBits(graph.roots()[root].shape.elementType()));
  }
  for (const HloInstruction *parameter : graph.parameters())
    if (graph.isLive(*parameter) && parameter->shape().numElements() == elements)
      widths.add(parameter->shape());

  unsigned least = 8 / narrowestOutput;
  unsigned count = widths.elements(target);
  if (llvm::any_of(graph.instructions(), [](const HloInstruction *instr) { return isSequentialLoop(*instr); }))
    count = 1;
  int64_t oneBlockEach = int64_t(target.multiprocessors) * threadsPerLoopBlock;
  while (count > least && (elementsOfKernel / count < oneBlockEach ||
                           int64_t(count) * int64_t(graph.instructions().size()) > maxOpsPerThread))
    count /= 2;
  return std::max(count, least);
}

template <>
HeroMatch<LoopPlan> matchHero<LoopPlan>(const FusionGraph &graph, const FusionAliasing &, const TargetInfo &target) {
  LoopPlan plan;
  for (auto [i, root] : llvm::enumerate(graph.roots())) {
    int64_t elements = root.shape.numElements();
    if (elements == 0)
      continue;
    auto same = llvm::find_if(plan.nests, [&](const LoopNest &nest) { return nest.elements == elements; });
    if (same == plan.nests.end()) {
      plan.nests.emplace_back().elements = elements;
      same = std::prev(plan.nests.end());
    }
    same->roots.push_back(i);
  }
  int64_t threads = 0;
  for (LoopNest &nest : plan.nests) {
    nest.perThread = elementsPerThread(nest.roots, nest.elements, nest.elements, graph, target);
    threads = std::max(threads, nest.threads());
  }
  return {std::move(plan), launchOf(threads, target)};
}

/// Each element is overwritten by the thread that alone reads it, after it has read it: outputs of one array are in one
/// nest, and computed together.
template <>
bool mayTakePlace<LoopPlan>(const LoopPlan &plan, const FusionGraph &graph, unsigned root, unsigned parameter) {
  auto computes = [&](const LoopNest &nest) { return llvm::is_contained(nest.roots, root); };
  return llvm::any_of(plan.nests, computes) && mayOverwriteElements(graph, root, parameter);
}

/// The outputs of a nest at the indices of its first.
template <>
ComputedSpaces computedSpaces<LoopPlan>(const LoopPlan &plan, const FusionGraph &graph, mlir::MLIRContext *context) {
  ComputedSpaces result;
  for (const LoopNest &nest : plan.nests) {
    const Shape &first = graph.roots()[nest.roots.front()].shape;
    ComputedSpace &space = result.spaces.emplace_back();
    for (unsigned root : nest.roots)
      space.values.push_back({graph.roots()[root].instr, bitcastIndexing(first, graph.roots()[root].shape, context)});
  }
  return result;
}

std::string LoopPlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "loop:";
  llvm::ListSeparator separator(";");
  for (const LoopNest &nest : nests) {
    os << separator << " roots ";
    llvm::interleave(nest.roots, os, ",");
    os << ", " << nest.elements << " elements, " << nest.perThread << " per thread";
  }
  return result;
}

} // namespace hloc
