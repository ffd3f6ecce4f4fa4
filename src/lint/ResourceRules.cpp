// What the text does not say: the grid, and what ptxas made of it.
#include "hloc/kernel/Estimate.h"
#include "lint/Rules.h"

#include "fmt/format.h"

#include <cmath>

namespace hloc::lint {

namespace {

/// Are fewer warps at work than if a thread took no more registers than planned? Not if there are no more blocks than
/// multiprocessors hold anyway. True if nobody knows.
bool registersCostWarps(const KernelFacts &facts, uint32_t multiprocessors) {
  if (!facts.grid || !facts.block)
    return true;
  const double warps = std::ceil(double(facts.block->count()) / 32);
  const double blocks = std::ceil(double(facts.grid->count()) / multiprocessors);
  const KernelResources &resources = *facts.resources;
  auto atWork = [&](uint32_t registers) {
    return std::min(blocks, residentBlocks(registers, resources.sharedBytes, warps));
  };
  return atWork(resources.registers) < atWork(facts.registerLimit);
}

} // namespace

void checkResources(const KernelContext &context) {
  const KernelFacts &facts = context.facts;
  const uint32_t multiprocessors = context.target.multiprocessors;
  // Some of the multiprocessors read as fast as memory gives.
  const DeviceModel &device = deviceOf(context.target);
  const double enough = device.dramBytesPerSecond / (device.l2BytesPerClock * device.gigahertz * 1e9);
  const bool isFew = facts.grid && double(facts.grid->count()) < std::min(enough, double(multiprocessors));
  if (isFew && facts.bytesMoved >= bytesOfLargeKernel)
    context.report(Rule::SmallGrid,
                   fmt::format("{} blocks move {:.1f} MiB and leave {} of the {} multiprocessors of {} "
                               "without work",
                               facts.grid->count(), double(facts.bytesMoved) / double(1 << 20),
                               multiprocessors - facts.grid->count(), multiprocessors, context.target.name));
  if (!facts.resources)
    return;
  const KernelResources &resources = *facts.resources;
  if (resources.spillLoadBytes || resources.spillStoreBytes)
    context.report(Rule::Spills, fmt::format("ptxas spills registers: each thread stores {} bytes and loads {}",
                                             resources.spillStoreBytes, resources.spillLoadBytes));
  if (resources.registers > facts.registerLimit && registersCostWarps(facts, multiprocessors))
    context.report(Rule::Registers, fmt::format("{} registers a thread, {} were planned: fewer warps hide latency",
                                                resources.registers, facts.registerLimit));
}

} // namespace hloc::lint
