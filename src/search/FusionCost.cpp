#include "search/FusionCost.h"

#include "search/PlanQuery.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/InstructionKey.h"

#include "fmt/format.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

namespace hloc {
namespace {

constexpr double lanesPerWarp = 32;
/// From there on a thread of a loop computes several elements (LoopPlan).
constexpr double threadsPerMultiprocessor = 256;

/// Why the plan's kernel is none of those that the search makes; empty if it is.
std::string objection(const PlanSummary &plan, llvm::ArrayRef<HloInstruction *> members) {
  // Kernels of their own divide long columns among blocks.
  if (plan.hero == Hero::Columns && plan.passes > 1)
    return "the columns do not fit into the registers of a block";
  auto isLost = [&](const HloInstruction *instr) {
    return instr->opcode() == Opcode::Sort && !llvm::is_contained(plan.kept, instr);
  };
  return llvm::any_of(members, isLost) ? "a kernel sorts once, and nothing reads in it what it has sorted" : "";
}

double elementsOfLargest(llvm::ArrayRef<HloInstruction *> roots) {
  double largest = 0;
  for (const HloInstruction *root : roots)
    for (unsigned i = 0; i < root->numResults(); ++i)
      if (root->resultShape(i).isArray())
        largest = std::max(largest, double(root->resultShape(i).numElements()));
  return largest;
}

/// Of a loop that no hero was asked about: planned by its size.
PlanSummary loopOf(const GroupWork &work, const DeviceModel &device) {
  const double largest = double(work.largest);
  const double perThread = work.isOneByOne ? 1
                                           : std::clamp(largest / (device.multiprocessors * threadsPerMultiprocessor),
                                                        1.0, mostElementsPerThread);
  PlanSummary plan;
  plan.blocks = uint64_t(std::ceil(largest / (threadsPerLoopBlock * perThread)));
  plan.threads = uint32_t(std::min<int64_t>(work.largest, threadsPerLoopBlock));
  return plan;
}

} // namespace

std::string KernelLimits::why(const GroupWork &work, size_t numRoots) const {
  if (work.buffers > buffers)
    return fmt::format("{} operands and outputs, more than {}", work.buffers, buffers);
  if (work.streams > streams && numRoots > 1)
    return fmt::format("{} arrays at once, more than {}", work.streams, streams);
  if (work.codeSize > codeSize)
    return fmt::format("{} instructions of code, more than {}", work.codeSize, codeSize);
  return "";
}

FusionCost::FusionCost(const HloComputation &computation, const TargetInfo &target,
                       std::function<bool(const HloInstruction &)> mayUpdate)
    : target(target), device(deviceOf(target)), mayUpdate(std::move(mayUpdate)),
      stamps(computation.instructions().size(), 0), slots(stamps.size(), 0), hashes(stamps.size(), 0),
      counter(stamps.size()) {
  plans.comparesTimes = true;
}

/// Operands aside. Layouts count, and what is called, one level deep.
uint64_t FusionCost::hashOf(const HloInstruction &instr) {
  uint64_t &hash = hashes[instr.id()];
  if (hash)
    return hash;
  llvm::hash_code code = llvm::hash_combine(hashOfWork(instr), instr.numOperands());
  for (unsigned i = 0; i < instr.numResults(); ++i)
    if (const Shape &shape = instr.resultShape(i); shape.isArray())
      code = llvm::hash_combine(code, shape.elementType(), shape.dims(), shape.minorToMajor());
  for (const HloComputation *callee : instr.calledComputations())
    for (const HloInstruction *inner : callee->instructions()) {
      code = llvm::hash_combine(code, hashOfWork(*inner));
      for (const HloInstruction *operand : inner->operands())
        code = llvm::hash_combine(code, operand->id());
    }
  return hash = uint64_t(code) | 1;
}

/// Equal for kernels that differ in nothing but names.
FusionCost::Key FusionCost::keyOf(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots) {
  ++query;
  uint32_t last = 0;
  Key key{members.size(), roots.size()};
  auto add = [&](uint64_t value) {
    key.first = llvm::hash_combine(key.first, value);
    key.second = (key.second ^ value) * 0x9e3779b97f4a7c15 + (key.second >> 29);
  };
  auto place = [&](const HloInstruction *instr) {
    stamps[instr->id()] = query;
    slots[instr->id()] = ++last;
  };
  for (const HloInstruction *instr : members) {
    for (const HloInstruction *operand : instr->operands()) {
      if (stamps[operand->id()] != query) {
        place(operand);
        add(llvm::hash_combine(operand->shape().isArray()
                                   ? llvm::hash_combine(operand->shape().elementType(), operand->shape().dims(),
                                                        operand->shape().minorToMajor())
                                   : llvm::hash_code(0),
                               mayUpdate(*operand)));
      }
      add(slots[operand->id()]);
    }
    add(hashOf(*instr));
    place(instr);
  }
  for (const HloInstruction *root : roots)
    add(slots[root->id()]);
  return key;
}

const KernelCost &FusionCost::of(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots) {
  auto [at, isNew] = known.try_emplace(keyOf(members, roots));
  if (isNew)
    at->second = find(members, roots);
  return at->second;
}

KernelCost FusionCost::find(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots) {
  KernelCost cost;
  PlanSummary plan;
  // (There are no plans for dynamic shapes, which are refused as a whole.)
  const bool asked =
      llvm::any_of(members, [](const HloInstruction *instr) { return decidesHero(*instr); }) &&
      llvm::none_of(members, [](const HloInstruction *instr) { return instr->shape().hasDynamicDims(); });
  if (asked) {
    std::optional<PlanSummary> answer = askForPlan(members, roots, mayUpdate, target, plans);
    if (!answer) {
      cost.impossible = "no hero takes it";
      return cost;
    }
    plan = std::move(*answer);
    cost.hero = plan.hero;
    cost.impossible = objection(plan, members);
    if (!cost.impossible.empty())
      return cost;
  }
  if (!asked)
    plan.perThread = elementsPerThread(elementsOfLargest(roots), device.multiprocessors * threadsPerMultiprocessor);
  const GroupWork work = counter.count(members, roots, plan);
  cost.impossible = limits.why(work, roots.size());
  if (!asked)
    plan = loopOf(work, device);
  cost.bytes = work.memoryBytes;
  cost.work = work.work + plan.counts.instructions * lanesPerWarp;
  cost.seconds = secondsOf(work, plan, device);
  return cost;
}

} // namespace hloc
