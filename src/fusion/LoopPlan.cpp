#include "fusion/HeroMatch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace hloc {
namespace {

constexpr uint32_t threadsPerBlock = 128;
/// Ops of one thread's straight code: more elements per thread than this allows only cost compile time and registers.
constexpr int64_t maxOpsPerThread = 2048;

/// Bits per element of the arrays that are as large as the iteration space: the streams worth wide accesses.
struct StreamWidths {
  unsigned narrowest = 64;
  unsigned widest = 1;
  void add(const Shape &shape) {
    unsigned bits = deviceBits(shape.elementType());
    narrowest = std::min(narrowest, bits);
    widest = std::max(widest, bits);
  }
};

/// Ops that compute much more per element than they move: one element a thread.
bool isSequentialLoop(const HloInstruction &instr) {
  switch (instr.opcode()) {
  case Opcode::Reduce:
  case Opcode::ReduceWindow:
  case Opcode::Dot:
  case Opcode::Convolution:
    return true;
  default:
    return false;
  }
}

/// The narrowest stream is accessed in `maxVectorBytes`, as long as the widest needs at most two such accesses.
/// Fewer elements if the device would not be filled. Sub-byte outputs always cover whole bytes.
unsigned elementsPerThread(const LoopNest &nest, const FusionGraph &graph, const TargetInfo &target) {
  StreamWidths widths;
  unsigned narrowestOutput = 8;
  for (unsigned root : nest.roots) {
    widths.add(graph.roots()[root].shape);
    narrowestOutput = std::min(narrowestOutput, deviceBits(graph.roots()[root].shape.elementType()));
  }
  for (const HloInstruction *parameter : graph.parameters())
    if (graph.isLive(*parameter) && parameter->shape().numElements() == nest.elements)
      widths.add(parameter->shape());

  unsigned least = 8 / narrowestOutput;
  unsigned vectorBits = target.maxVectorBytes * 8;
  unsigned count = std::min(vectorBits / widths.narrowest, 2 * vectorBits / std::max(widths.widest, 8u));
  count = std::min(count, 32u);
  if (llvm::any_of(graph.instructions(), [](const HloInstruction *instr) { return isSequentialLoop(*instr); }))
    count = 1;
  int64_t oneBlockEach = int64_t(target.multiprocessors) * threadsPerBlock;
  while (count > least && (nest.elements / count < oneBlockEach ||
                           int64_t(count) * int64_t(graph.instructions().size()) > maxOpsPerThread))
    count /= 2;
  return std::max(count, least);
}

Dim3 gridFor(int64_t threads, const TargetInfo &target) {
  uint64_t blocks = (uint64_t(threads) + threadsPerBlock - 1) / threadsPerBlock;
  if (blocks <= target.maxGridX)
    return {uint32_t(blocks), 1, 1};
  uint64_t y = (blocks + target.maxGridX - 1) / target.maxGridX;
  return {uint32_t((blocks + y - 1) / y), uint32_t(y), 1};
}

} // namespace

template <>
std::optional<LoopPlan> matchHero<LoopPlan>(const FusionGraph &graph, const TargetInfo &target, std::string &) {
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
    nest.perThread = elementsPerThread(nest, graph, target);
    threads = std::max(threads, nest.threads());
  }
  plan.block = {uint32_t(std::clamp<int64_t>(threads, 1, threadsPerBlock)), 1, 1};
  plan.grid = threads == 0 ? Dim3{0, 1, 1} : gridFor(threads, target);
  return plan;
}

std::string LoopPlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "loop:";
  for (const LoopNest &nest : nests) {
    os << " roots ";
    llvm::interleave(nest.roots, os, ",");
    os << ", " << nest.elements << " elements, " << nest.perThread << " per thread;";
  }
  os << " grid " << grid.x;
  if (grid.y != 1)
    os << "x" << grid.y;
  os << ", block " << block.x;
  return result;
}

} // namespace hloc
