// Races in kernels that need Causality: what accesses leave behind and carry along.
#include "Cluster.h"

#include "Lanes.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

namespace hloc::emulator {

void Checker::follow(const Place &place, uint64_t bytes, uint32_t lanes) {
  Core &core = *warp.core;
  Launch &launch = core.launch;
  const bool shared = place.space == Space::Shared;
  Core &owner = home(place);
  if (shared && launch.asynchronous && !meetProxy(owner, place, bytes, lanes))
    return;
  Cell *cells = shared ? owner.sharedCells.data() : launch.windows[place.region].cells.get();
  Traces &traces = shared ? owner.sharedTraces : launch.traces;
  if (shared && &owner != &core)
    forEachLane(lanes, [&](unsigned l) { checkPresence(warp, at, l, place, access); });
  const unsigned shift = shared ? launch.sharedShift : launch.globalShift, lane = unsigned(llvm::countr_zero(lanes));
  Traces::Access now{core.causality, core.causality.date(warp.warp, lanes), access != Access::Write,
                     access != Access::Read};
  now.now.strong = synchronizes;
  now.now.scope = at.scope;
  now.shared = shared;
  if (now.writes && !now.reads)
    now.rewrites = rewrites(place, bytes, lane);
  const bool isPlain = at.opcode == Opcode::Ld || at.opcode == Opcode::St;
  now.now.needsLaneOrder = shared && isPlain && at.strong && !at.acquires && !at.releases && !now.rewrites &&
                           !launch.polling.looks.contains(&at);
  for (uint64_t g = place.offset >> shift; g <= (place.offset + bytes - 1) >> shift; ++g)
    if (auto conflict = traces.enter(cells[g], now); conflict.other.lanes) {
      Trace other = conflict.other;
      if (other.block == core.blockIndex && other.warp == warp.warp && (other.lanes & ~lanes))
        other.lanes &= ~lanes;
      return reportRace(place, lane, other.thread(),
                        other.block == core.blockIndex ? std::nullopt : std::optional<uint64_t>(other.block),
                        conflict.otherWrote);
    }
}

/// Whether the access to shared memory is in order with all that the asynchronous proxy does there.
bool Checker::meetProxy(Core &owner, const Place &place, uint64_t bytes, uint32_t lanes) {
  const unsigned lane = unsigned(llvm::countr_zero(lanes));
  owner.async.markGeneric(place.offset, bytes);
  uint64_t object = 0;
  if (access != Access::Read && at.opcode != Opcode::Mbarrier &&
      owner.mbarriers.overlapping(place.offset, bytes, object)) {
    reportFinding(warp, at, lane, FindingKind::BrokenMbarrier, [&] {
      return fmt::format("writes {}, where there is an mbarrier (byte {})", describe(warp, place), object);
    });
    return false;
  }
  if (!owner.async.inUse())
    return true;
  const AsyncShadow::Record *other =
      owner.async.meet(warp.core->causality, warp.warp, lanes, place.offset, bytes, access != Access::Read);
  if (!other)
    return true;
  reportFinding(warp, at, lane, FindingKind::SharedRace, [&] {
    return fmt::format(
        "{} {}, which the {} of thread {} in line {} {} until it is waited for, and nothing says that this "
        "is over",
        access == Access::Read ? "reads" : "writes", describe(warp, place), kindOf(*other->at), other->thread,
        other->at->line, other->writes ? "writes" : "reads");
  });
  return false;
}

/// After a strong access: what it learns and what it tells.
void followStrong(Warp &warp, const Decoded &at, unsigned lane, const Place &place, bool reads, bool writes) {
  Core &core = *warp.core;
  const bool shared = place.space == Space::Shared;
  if (!place.data || (!shared && place.space != Space::Global))
    return;
  auto &messages = shared ? (place.owner ? *place.owner : core).sharedMessages : core.launch.messages;
  const std::pair<uint32_t, uint64_t> key{shared ? 0 : place.region, place.offset};
  auto found = messages.find(key);
  const bool isAtomic = at.opcode == Opcode::Atom || at.opcode == Opcode::Red;
  if (reads && found != messages.end())
    core.causality.receive(warp.warp, lane, at, found->second, isAtomic);
  if (!writes)
    return;
  Message message;
  if (found != messages.end())
    message = found->second;
  core.causality.send(warp.warp, lane, at, message, isAtomic);
  if (llvm::any_of(message.views, [](const ViewRef &view) { return bool(view); }))
    messages[key] = std::move(message);
  else if (found != messages.end())
    messages.erase(found);
}

void followStrong(Warp &warp, const Decoded &at, uint32_t mask, const uint64_t *addresses, bool reads, bool writes) {
  forEachLane(mask, [&](unsigned lane) {
    Place place;
    locate(at.space, addresses[lane], place);
    if (admit(warp, place, at.type.bytes(), writes ? Access::Write : Access::Read))
      followStrong(warp, at, lane, place, reads, writes);
  });
}

void followFence(Warp &warp, const Decoded &at, uint32_t mask) {
  if (!warp.core->launch.causal || !mask)
    return;
  if (at.mode == Mode::Proxy)
    warp.core->causality.fenceProxies(warp.warp, mask, mask == warp.live);
  else
    warp.core->causality.fence(warp.warp, mask, mask == warp.live, at);
}

void followWarpSync(Warp &warp, uint32_t mask, const uint32_t *members) {
  if (!warp.core->launch.causal)
    return;
  for (uint32_t rest = mask; rest;) {
    const uint32_t named = members[llvm::countr_zero(rest)];
    uint32_t group = 0;
    forEachLane(rest & (named | (rest & -rest)), [&](unsigned lane) {
      if (members[lane] == named)
        group |= 1u << lane;
    });
    warp.core->causality.syncLanes(warp.warp, group, group == warp.live);
    rest &= ~group;
  }
}

void followCollective(Warp &warp, const Decoded &at, const LaneSources &sources) {
  Core &core = *warp.core;
  if (core.launch.sharedBytes)
    core.causality.endReads(warp.warp, sources);
  if (core.launch.telling.contains(&at))
    core.causality.tellLanes(warp.warp, sources);
}

} // namespace hloc::emulator
