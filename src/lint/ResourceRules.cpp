// What the text does not say: the grid, and what ptxas made of it.
#include "hloc/kernel/Estimate.h"
#include "lint/Rules.h"

#include "fmt/format.h"

namespace hloc::lint {

void checkResources(const KernelContext &context) {
  const KernelFacts &facts = context.facts;
  const uint32_t multiprocessors = context.target.multiprocessors;
  if (facts.grid && facts.bytesMoved >= bytesOfLargeKernel && facts.grid->count() < multiprocessors)
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
  if (resources.registers > facts.registerLimit)
    context.report(Rule::Registers, fmt::format("{} registers a thread, {} were planned: fewer warps hide latency",
                                                resources.registers, facts.registerLimit));
}

} // namespace hloc::lint
