// The shadows of memory: was it written, and by whom with what in between.
#include "Machine.h"

#include "fmt/format.h"
#include "llvm/ADT/bit.h"

#include <cstring>

namespace hloc::emulator {

namespace {

const char *spaceName(Space space) {
  switch (space) {
  case Space::Generic:
    return "generic";
  case Space::Global:
    return "global";
  case Space::Shared:
    return "shared";
  case Space::Local:
    return "local";
  case Space::Param:
    return "parameter";
  }
  return "";
}

uint32_t threadOf(const Warp &warp, unsigned lane) { return warp.warp * warpLanes + lane; }

/// Elements of less than a byte are stored by atomics on the words around them, whose other bits nobody may have
/// written yet: bits are cleared and set, or exchanged in a loop around cas, which loads its first guess from the same
/// address.
bool mayReadUnwritten(const Launch &launch, const Decoded &at) {
  switch (at.opcode) {
  case Opcode::Atom:
  case Opcode::Red:
    return at.mode == Mode::And || at.mode == Mode::Or || at.mode == Mode::Cas;
  case Opcode::Ld:
    return launch.firstGuesses.contains(&at);
  default:
    return false;
  }
}

} // namespace

std::string describe(const Warp &warp, const Place &place) {
  if (place.space == Space::Global)
    return fmt::format("byte {} of `{}`", place.offset, warp.core->launch.regions[place.region]->name);
  return fmt::format("byte {} of {} memory", place.offset, spaceName(place.space));
}

/// The owners of one space or buffer.
struct Checker::Shadows {
  uint64_t *writers, *readers;
  unsigned shift; ///< log2 of the granule
};

Checker::Checker(Warp &warp, const Decoded &at, Access access)
    : warp(warp), at(at), access(access), uninit(warp.core->launch.options.checkUninit),
      races(warp.core->launch.options.checkRaces) {
  const Launch &launch = warp.core->launch;
  synchronizes = access == Access::Atomic || at.strong || launch.firstGuesses.contains(&at);
}

bool Checker::idle(const Place &place) const {
  const Launch &launch = warp.core->launch;
  if (place.space == Space::Global)
    return !(uninit && !launch.regions[place.region]->complete) && !(races && launch.windows[place.region].tracked);
  return !uninit && !(races && place.space == Space::Shared);
}

uint64_t Checker::owner(unsigned lane, Space space) const {
  const Core &core = *warp.core;
  uint64_t scope = space == Space::Shared ? core.epoch : core.blockIndex;
  return Owner::make(threadOf(warp, lane), scope, core.blockEpoch, warp.epoch, synchronizes);
}

Checker::Shadows Checker::shadowsOf(const Place &place) const {
  Core &core = *warp.core;
  if (place.space == Space::Shared)
    return {core.sharedWriters.data(), core.sharedReaders.data(), core.launch.sharedShift};
  const Window &window = core.launch.windows[place.region];
  return {window.writers.get(), window.readers.get(), core.launch.globalShift};
}

void Checker::lane(const Place &place, unsigned lane, uint64_t bytes) {
  if (uninit && access != Access::Write && !mayReadUnwritten(warp.core->launch, at))
    checkWritten(place, lane, bytes);
  if (uninit && access != Access::Read)
    markWritten(place, lane, bytes);
  if (!races)
    return;
  if (place.space == Space::Shared)
    track<true>(shadowsOf(place), place, bytes, owner(lane, Space::Shared));
  else if (place.space == Space::Global && warp.core->launch.windows[place.region].tracked)
    track<false>(shadowsOf(place), place, bytes, owner(lane, Space::Global));
}

void Checker::lanes(const Place &base, uint64_t lowest, uint32_t mask, const uint64_t *addresses, uint64_t bytes) {
  auto forEach = [&](auto visit) {
    Place place = base;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      unsigned l = unsigned(llvm::countr_zero(rest));
      place.offset = base.offset + (addresses[l] - lowest);
      visit(place, l);
    }
  };
  const Launch &launch = warp.core->launch;
  bool global = base.space == Space::Global;
  if (uninit && !(global && launch.regions[base.region]->complete)) {
    if (access == Access::Write)
      forEach([&](const Place &place, unsigned l) { markWritten(place, l, bytes); });
    else if (!mayReadUnwritten(launch, at))
      forEach([&](const Place &place, unsigned l) { checkWritten(place, l, bytes); });
  }
  if (!races || base.space == Space::Local || (global && !launch.windows[base.region].tracked))
    return;
  Shadows shadows = shadowsOf(base);
  uint64_t first = owner(0, base.space);
  if (global)
    forEach([&](const Place &place, unsigned l) { track<false>(shadows, place, bytes, first + l); });
  else
    forEach([&](const Place &place, unsigned l) { track<true>(shadows, place, bytes, first + l); });
}

void Checker::run(const Place &place, uint64_t bytes) {
  Core &core = *warp.core;
  bool shared = place.space == Space::Shared;
  bool fast = true;
  uint64_t whole = bytes * warpLanes;
  if (uninit && shared) {
    uint64_t *serials = &core.sharedWritten[place.offset >> core.launch.sharedShift];
    uint64_t granules = whole >> core.launch.sharedShift, missing = 0;
    if (access == Access::Write)
      std::fill(serials, serials + granules, core.blockSerial);
    else
      for (uint64_t g = 0; g < granules; ++g)
        missing |= serials[g] ^ core.blockSerial;
    fast &= !missing;
  } else if (uninit && !core.launch.regions[place.region]->complete) {
    uint8_t *written = &core.launch.regions[place.region]->written[place.offset];
    if (access == Access::Write)
      std::memset(written, 1, whole);
    else
      fast &= !std::memchr(written, 0, whole);
  }
  if (fast && races && (shared || core.launch.windows[place.region].tracked)) {
    uint64_t first = owner(0, place.space);
    fast &= shared ? trackRun<true>(shadowsOf(place), place, bytes, first)
                   : trackRun<false>(shadowsOf(place), place, bytes, first);
  }
  if (fast)
    return;
  Place part = place;
  for (unsigned l = 0; l < warpLanes; ++l, part.offset += bytes)
    lane(part, l, bytes);
}

/// The whole warp at once, if nothing needs a closer look; else false, and nothing is marked.
template <bool shared>
bool Checker::trackRun(const Shadows &shadows, const Place &place, uint64_t bytes, uint64_t first) {
  uint64_t perLane = bytes >> shadows.shift, start = place.offset >> shadows.shift;
  uint64_t *writers = shadows.writers + start, *readers = shadows.readers + start;
  uint64_t granules = perLane * warpLanes, any = 0;
  for (uint64_t g = 0; g < granules; ++g)
    any |= writers[g] | readers[g];
  bool trivial = true;
  for (unsigned l = 0; any && trivial && l < warpLanes; ++l)
    for (uint64_t g = l * perLane; g < (l + 1) * perLane; ++g)
      trivial =
          trivial && Owner::trivially<shared>(writers[g], first + l) && Owner::trivially<shared>(readers[g], first + l);
  if (!trivial)
    return false;
  uint64_t *owners = access == Access::Read ? readers : writers;
  for (unsigned l = 0; l < warpLanes; ++l)
    for (uint64_t g = l * perLane; g < (l + 1) * perLane; ++g)
      owners[g] = first + l;
  return true;
}

void Checker::broadcast(const Place &place, uint32_t mask, uint64_t bytes) {
  unsigned last = warpLanes - 1 - unsigned(llvm::countl_zero(mask));
  if (uninit && !mayReadUnwritten(warp.core->launch, at))
    checkWritten(place, last, bytes);
  if (!races || place.space == Space::Local)
    return;
  uint64_t many = mask & (mask - 1) ? Owner::manyLanes : 0;
  if (place.space == Space::Shared)
    track<true>(shadowsOf(place), place, bytes, owner(last, Space::Shared) | many);
  else if (warp.core->launch.windows[place.region].tracked)
    track<false>(shadowsOf(place), place, bytes, owner(last, Space::Global) | many);
}

template <bool shared> void Checker::track(const Shadows &shadows, const Place &place, uint64_t bytes, uint64_t now) {
  uint64_t first = place.offset >> shadows.shift, last = (place.offset + bytes - 1) >> shadows.shift;
  for (uint64_t g = first; g <= last; ++g) {
    uint64_t &writer = shadows.writers[g], &reader = shadows.readers[g];
    if (Owner::trivially<shared>(writer, now) && Owner::trivially<shared>(reader, now)) {
      (access == Access::Read ? reader : writer) = now;
      continue;
    }
    if (!Owner::ordered<shared>(writer, now))
      return reportRace(place, now, writer, true);
    if (access == Access::Read) {
      reader = Owner::merge<shared>(reader, now);
      continue;
    }
    if (!Owner::ordered<shared>(reader, now))
      return reportRace(place, now, reader, false);
    // Atomics do not exclude each other: all that came stay on record.
    writer = writer & now & Owner::atomic ? Owner::merge<shared>(writer, now) : now;
  }
}

void Checker::reportRace(const Place &place, uint64_t now, uint64_t other, bool otherWrote) {
  bool global = place.space == Space::Global;
  reportFinding(
      warp, at, Owner::threadOf(now) % warpLanes, global ? FindingKind::GlobalRace : FindingKind::SharedRace, [&] {
        bool otherBlock = global && Owner::scopeOf(now) != Owner::scopeOf(other);
        std::string who = fmt::format("thread {}", Owner::threadOf(other));
        if (otherBlock)
          who += fmt::format(" of block {}", Owner::scopeOf(other));
        return fmt::format("{} {}, which {} {} with no {} between", access == Access::Read ? "reads" : "writes",
                           describe(warp, place), who, otherWrote ? "wrote" : "read", otherBlock ? "order" : "barrier");
      });
}

void Checker::checkWritten(const Place &place, unsigned lane, uint64_t bytes) {
  Core &core = *warp.core;
  bool fine = true;
  if (place.space == Space::Global) {
    const Region &region = *core.launch.regions[place.region];
    fine = region.complete || !std::memchr(&region.written[place.offset], 0, bytes);
  } else if (place.space == Space::Shared) {
    unsigned shift = core.launch.sharedShift;
    for (uint64_t g = place.offset >> shift; g <= (place.offset + bytes - 1) >> shift; ++g)
      fine &= core.sharedWritten[g] == core.blockSerial;
  } else {
    uint64_t start = threadOf(warp, lane) * core.launch.localStride + place.offset;
    fine = !std::memchr(&core.localWritten[start], 0, bytes);
  }
  if (!fine)
    reportFinding(warp, at, lane, FindingKind::UninitializedRead, [&] {
      return fmt::format("reads {} bytes from {}, which nobody has written", bytes, describe(warp, place));
    });
}

void Checker::markWritten(const Place &place, unsigned lane, uint64_t bytes) {
  Core &core = *warp.core;
  if (place.space == Space::Global) {
    Region &region = *core.launch.regions[place.region];
    if (!region.complete)
      std::memset(&region.written[place.offset], 1, bytes);
  } else if (place.space == Space::Shared) {
    unsigned shift = core.launch.sharedShift;
    for (uint64_t g = place.offset >> shift; g <= (place.offset + bytes - 1) >> shift; ++g)
      core.sharedWritten[g] = core.blockSerial;
  } else {
    uint64_t start = threadOf(warp, lane) * core.launch.localStride + place.offset;
    std::memset(&core.localWritten[start], 1, bytes);
  }
}

uint32_t Checker::clashes(uint32_t mask, const uint64_t *addresses, const uint8_t *in, unsigned width) {
  // A small hash table of the lanes seen so far, by address.
  constexpr unsigned slots = 64;
  uint8_t table[slots];
  std::memset(table, 0xff, sizeof table);
  uint64_t bytes = uint64_t(width) * at.count;
  uint32_t repeated = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = llvm::countr_zero(rest);
    unsigned slot = unsigned(addresses[lane] / bytes * 0x9e3779b97f4a7c15ull >> 58);
    while (table[slot] != 0xff && addresses[table[slot]] != addresses[lane])
      slot = (slot + 1) % slots;
    unsigned other = table[slot];
    if (other == 0xff) {
      table[slot] = uint8_t(lane);
      continue;
    }
    bool same = true;
    for (unsigned e = 0; e < at.count; ++e)
      same &= !std::memcmp(in + (e * warpLanes + lane) * width, in + (e * warpLanes + other) * width, width);
    Place place;
    locate(at.space, addresses[lane], place);
    if (place.space == Space::Local) // each lane has its own
      continue;
    repeated |= 1u << lane;
    if (same)
      continue;
    bool shared = place.space == Space::Shared;
    if (!shared && place.region >= warp.core->launch.regions.size())
      continue;
    reportFinding(warp, at, lane, shared ? FindingKind::SharedRace : FindingKind::GlobalRace, [&] {
      return fmt::format("writes {} bytes at {}, where lane {} writes another value at the same time", bytes,
                         describe(warp, place), other);
    });
  }
  return repeated;
}

} // namespace hloc::emulator
