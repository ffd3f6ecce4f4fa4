// Launches that begin before the kernels before them are complete (LaunchRequest::programmatic): until a thread has
// waited for these (griddepcontrol.wait), what they write may not be there yet, and what they read may not be replaced.
//
//   launch 1 writes a                     slices {a, written}
//   launch 2, programmatic:  ld [a]       a finding
//                            griddepcontrol.wait;  bar.sync 0
//                            ld [a]       fine, in all threads of the block
#include "Cluster.h"

#include "Lanes.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

namespace hloc::emulator {

namespace {

/// Whether the thread has waited for the grids before, or comes after one that has.
bool hasWaited(Warp &warp, unsigned lane) {
  if (warp.waitedForGrids >> lane & 1)
    return true;
  const Core &core = *warp.core;
  bool knows = false;
  if (core.launch.causal)
    for (const std::unique_ptr<Core> &block : core.cluster.blocks)
      knows |= llvm::any_of(block->gridWaits,
                            [&](const Trace &wait) { return core.causality.knows(warp.warp, lane, wait); });
  else
    knows = core.firstGridWait && core.blockEpoch > *core.firstGridWait;
  warp.waitedForGrids |= uint32_t(knows) << lane;
  return knows;
}

} // namespace

void runGridDependency(Warp &warp, const Decoded &at, uint32_t mask) {
  Core &core = *warp.core;
  Launch &launch = core.launch;
  if (at.mode != Mode::Wait) {
    forEachLane(mask, [&](unsigned lane) {
      if (!hasWaited(warp, lane))
        launch.letsDependentsGo = true;
    });
    return;
  }
  launch.waitsForGrids = true;
  if (!core.firstGridWait)
    core.firstGridWait = core.blockEpoch;
  if (launch.causal)
    forEachLane(mask & ~warp.waitedForGrids,
                [&](unsigned lane) { core.gridWaits.push_back(core.causality.date(warp.warp, 1u << lane)); });
  warp.waitedForGrids |= mask;
}

void avoidEarlierGrids(Warp &warp, const Decoded &at, unsigned lane, const Place &place, uint64_t bytes,
                       Access access) {
  if (place.space != Space::Global)
    return;
  const std::vector<EarlierSlice> &earlier = warp.core->launch.windows[place.region].earlier;
  const auto found = llvm::find_if(earlier, [&](const EarlierSlice &slice) {
    return slice.begin < place.offset + bytes && place.offset < slice.end && (slice.written || access != Access::Read);
  });
  if (found == earlier.end() || hasWaited(warp, lane))
    return;
  reportFinding(warp, at, lane, FindingKind::EarlyAccess, [&] {
    return fmt::format("{} {}, which kernel `{}` before it may still {}: the thread has not waited for that "
                       "(griddepcontrol.wait)",
                       access == Access::Read ? "reads" : "writes", describe(warp, place), found->kernel,
                       found->written ? "write" : "read");
  });
}

void EarlierGrids::add(const Launch &launch) {
  // Those before a kernel are complete before it is. But it may let the next one begin before it has waited for them.
  const bool stay = launch.request.programmatic && (launch.letsDependentsGo || !launch.waitsForGrids);
  if (!stay)
    slices.clear();
  for (uint32_t region = 1; region < launch.windows.size(); ++region) // all that it was given
    for (const Window::Slice &slice : launch.windows[region].slices)
      slices.push_back({region, {slice.begin, slice.end, slice.writable, launch.kernel.name}});
}

void EarlierGrids::enter(Launch &launch) {
  if (!launch.request.programmatic || !launch.options.checkRaces)
    return;
  for (const auto &[region, slice] : slices) {
    Window &window = launch.windows[region];
    window.earlier.push_back(slice);
    window.watched = true;
  }
}

} // namespace hloc::emulator
