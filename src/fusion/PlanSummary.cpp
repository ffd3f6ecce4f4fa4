#include "hloc/fusion/PlanSummary.h"

#include "hloc/fusion/GroupWork.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hloc {
namespace {

constexpr double lanesPerWarp = 32, sectorBytes = 32;
/// Of a thread, whatever it computes: ids, bounds, addresses, the loop around its elements. Counted in PTX of small
/// kernels.
constexpr double fixedInstructions = 20;
/// Of these, the chain.
constexpr double fixedChain = 8;

/// What one kernel's hero says.
struct Describe {
  PlanSummary &summary;
  void keep(const HloInstruction *instr) { summary.kept.push_back(instr); }
  void operator()(const ContractionPlan &plan) {
    llvm::for_each(plan.heroes(), [&](auto *hero) { keep(hero); });
  }
  void operator()(const AttentionPlan &plan) {
    keep(plan.scores.hero);
    if (plan.beside)
      keep(plan.beside->hero);
    for (const ReductionFrame &stage : plan.stages)
      keepHeroes(stage);
    keep(plan.product.hero);
  }
  void operator()(const RowReductionPlan &plan) { keepHeroes(plan.frame); }
  void operator()(const ColumnReductionPlan &plan) { keepHeroes(plan.frame); }
  void operator()(const RowsPlan &plan) {
    for (const ReductionFrame &stage : plan.stages)
      keepHeroes(stage);
    if (plan.columns) {
      keepHeroes(*plan.columns);
      summary.besideColumns = true;
    }
    if (!plan.inRegisters)
      summary.passes = unsigned(plan.stages.size()) + unsigned(!plan.roots.empty());
  }
  void operator()(const ColumnsPlan &plan) {
    for (const ReductionFrame &stage : plan.stages)
      keepHeroes(stage);
    if (!plan.inRegisters)
      summary.passes = unsigned(plan.stages.size()) + unsigned(!plan.roots.empty());
  }
  void operator()(const TransposePlan &plan) {
    llvm::for_each(plan.heroes, [&](auto *hero) { keep(hero); });
  }
  void operator()(const ScatterPlan &plan) {
    keep(plan.hero);
    summary.inPlace = true;
  }
  void operator()(const SortPlan &plan) {
    keep(plan.hero);
    summary.passes = std::max(summary.passes, summary.launches);
  }
  void operator()(const UpdateSlicePlan &plan) {
    for (const auto &segment : plan.segments)
      for (const auto &update : segment.updates)
        keep(update.hero);
    summary.inPlace = true;
  }
  void operator()(const ConcatenatePlan &plan) {
    llvm::for_each(plan.heroes, [&](auto *hero) { keep(hero); });
  }
  void operator()(const InputSlicesPlan &) {}
  void operator()(const LoopPlan &) {}
  void operator()(std::monostate) {}

private:
  void keepHeroes(const ReductionFrame &frame) {
    for (const ReductionHero &hero : frame.heroes)
      keep(hero.instr);
  }
};

/// Kernels follow each other.
void add(const PlanCounts &own, PlanCounts &all) {
  llvm::append_range(all.reads, own.reads);
  all.instructions += own.instructions;
  all.sharedPasses += own.sharedPasses;
  all.products += own.products;
  all.groupProducts += own.groupProducts;
  all.doubleProducts += own.doubleProducts;
  all.memoryRoundTrips += own.memoryRoundTrips;
  all.sharedRoundTrips += own.sharedRoundTrips;
  all.chainInstructions += own.chainInstructions;
  all.inTurns |= own.inTurns;
  all.tilesOfBlock = std::max(all.tilesOfBlock, own.tilesOfBlock);
  if (own.rounds > all.rounds) {
    all.rounds = own.rounds;
    all.elementsOfRound = own.elementsOfRound;
  }
}

double bytesOf(const PlanBuffer &buffer, const FusionGraph &graph) {
  switch (buffer.kind) {
  case PlanBuffer::Kind::Output:
    return double(graph.roots()[buffer.index].shape.byteSize());
  case PlanBuffer::Kind::Parameter:
    return double(graph.parameters()[buffer.index]->shape().byteSize());
  case PlanBuffer::Kind::Scratch: // counted as such
    return 0;
  }
  HLOC_UNREACHABLE("buffer");
}

} // namespace

double elementsPerThread(double elements, double threads) {
  return std::clamp(std::ceil(elements / threads), 1.0, mostElementsPerThread);
}

PlanSummary summarize(const FusionGraph &graph, const FusionPlan &plan) {
  PlanSummary summary;
  summary.launches = unsigned(plan.steps.size());
  for (const ScratchBuffer &scratch : plan.scratch)
    summary.extraBytes += 2 * double(scratch.bytes());
  // Of what threads do, the first thing beside what the plan says they do; it may say that they do less than the ops.
  double most = std::numeric_limits<double>::lowest();
  summary.counts.memoryRoundTrips = 0;
  for (const FusionStep &step : plan.steps) {
    if (const auto *copy = std::get_if<CopyPlan>(&step)) {
      summary.extraBytes += 2 * bytesOf(copy->to, graph);
    } else if (const auto *fill = std::get_if<FillPlan>(&step)) {
      summary.extraBytes += bytesOf(fill->to, graph);
    } else {
      const auto &kernel = std::get<KernelPlan>(step);
      const PlanCounts counts = countsOf(kernel);
      const double threads = double(kernel.launch.grid.count() * kernel.launch.block.count());
      if (const double lanes = threads + counts.instructions * lanesPerWarp; lanes > most) {
        most = lanes;
        summary.blocks = kernel.launch.grid.count();
        summary.threads = uint32_t(kernel.launch.block.count());
      }
      if (kernel.makes)
        summary.extraBytes += double(graph.roots()[kernel.makes->output].shape.byteSize());
      summary.hero = kernel.hero();
      summary.registers = std::max(summary.registers, kernel.plannedRegisters());
      summary.sharedBytes = std::max(summary.sharedBytes, uint32_t(kernel.launch.sharedBytes));
      add(counts, summary.counts);
      std::visit(Describe{summary}, kernel.plan);
    }
  }
  double largest = 0;
  for (const auto &root : graph.roots()) {
    largest = std::max(largest, double(root.shape.numElements()));
    summary.resultBytes += double(root.shape.byteSize());
  }
  summary.perThread = elementsPerThread(largest, double(summary.blocks) * summary.threads);
  return summary;
}

KernelCounts countsOf(const GroupWork &work, const PlanSummary &plan) {
  KernelCounts counts = kernelCounts(plan.counts);
  counts.blocks = plan.blocks;
  counts.threadsPerBlock = plan.threads;
  counts.registers = plan.registers;
  counts.sharedBytes = plan.sharedBytes;
  const double threads = std::max(1.0, double(counts.blocks) * counts.threadsPerBlock);
  counts.sectors = work.sectors;
  counts.storedSectors = plan.resultBytes / sectorBytes;
  counts.footprint = std::max(1.0, work.memoryBytes / sectorBytes);
  counts.instructions += (work.work + fixedInstructions * threads) / lanesPerWarp;
  // What a hero loads first is among the plan's own.
  counts.memoryRoundTrips += std::max(0.0, work.chain.memoryRoundTrips - 1);
  counts.chainInstructions += work.chain.instructions + fixedChain;
  return counts;
}

double secondsOf(const GroupWork &work, const PlanSummary &plan, const DeviceModel &device) {
  // All but the first kernel of a fusion only begin.
  return estimate(countsOf(work, plan), device).total + launchSeconds * (std::max(1u, plan.launches) - 1);
}

} // namespace hloc
