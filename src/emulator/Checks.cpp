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
  case Space::SharedCluster:
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
  std::string text = fmt::format("byte {} of {} memory", place.offset, spaceName(place.space));
  if (place.owner && place.owner != warp.core)
    text += fmt::format(" of block {}", place.owner->blockIndex);
  return text;
}

Checker::Checker(Warp &warp, const Decoded &at, Access access, const uint8_t *stored)
    : warp(warp), at(at), access(access), stored(stored), uninit(warp.core->launch.options.checkUninit),
      races(warp.core->launch.options.checkRaces) {
  const Launch &launch = warp.core->launch;
  synchronizes =
      access == Access::Atomic || at.strong || launch.firstGuesses.contains(&at) || launch.updateTests.contains(&at);
  ofUpdate = mayReadUnwritten(launch, at);
  readsMatter = uninit && (!ofUpdate || launch.options.checkUpdates);
}

/// Puts the access on record, by `track`, and has `check` look whether ld.global.nc and a write meet there. Blocks run
/// on several host threads: a load leaves its mark and looks for writes before it is on record, a write looks for marks
/// once it is. Of the two, whichever comes first to the line, one finds the other.
template <class Track, class Check> void Checker::record(const Place &place, Track track, Check check) {
  const bool isRead = access == Access::Read;
  if (isRead && mayBeIncoherent(place))
    check();
  track();
  if (!isRead && mayBeIncoherent(place))
    check();
}

/// Whether two threads may meet there.
bool Checker::tracks(const Place &place) const {
  return races && (place.space == Space::Shared ||
                   (place.space == Space::Global && warp.core->launch.windows[place.region].tracked));
}

template <bool shared> typename Owner<shared>::Word Checker::owner(unsigned lane) const {
  const Core &core = *warp.core;
  uint64_t scope = shared ? core.epoch : core.blockIndex;
  return Owner<shared>::make(threadOf(warp, lane), scope, core.blockEpoch, synchronizes);
}

void Checker::avoidCopies(const Place &place, unsigned lane, uint64_t bytes, const uint8_t *copied) {
  Core &core = home(place);
  if (!core.numOpen || place.space != Space::Shared)
    return;
  const unsigned shift = core.launch.sharedShift;
  bool isOpen = false;
  for (uint64_t g = place.offset >> shift; g <= (place.offset + bytes - 1) >> shift; ++g)
    isOpen |= core.sharedOpen[g] != 0;
  if (!isOpen)
    return;
  const OpenCopy copy = findOpenCopy(core, place.offset, bytes, copied);
  if (copy.at)
    reportFinding(warp, at, lane, FindingKind::SharedRace, [&] {
      return fmt::format("{} {}, which the copy of thread {} in line {} may write at any time until that thread waits "
                         "for it",
                         access == Access::Read ? "reads" : "writes", describe(warp, place), copy.thread,
                         copy.at->line);
    });
}

void Checker::touch(const Place &place, unsigned lane, uint64_t bytes) {
  if (tracks(place) && warp.core->launch.causal)
    follow(place, bytes, 1u << lane);
  else if (tracks(place))
    track(place, bytes, lane, false);
}

void Checker::issueCopy(const Place &place, unsigned lane, uint64_t bytes, const uint8_t *data) {
  avoidCopies(place, lane, bytes, data);
  touch(place, lane, bytes);
}

void Checker::completeCopy(const Place &place, unsigned lane, uint64_t bytes) {
  if (uninit)
    markWritten(place, lane, bytes);
  touch(place, lane, bytes);
}

void Checker::lane(const Place &place, unsigned lane, uint64_t bytes) {
  avoidCopies(place, lane, bytes);
  if (isEarly(place))
    avoidEarlierGrids(warp, at, lane, place, bytes, access);
  if (readsMatter && access != Access::Write)
    checkWritten(place, lane, bytes);
  if (uninit && access != Access::Read)
    markWritten(place, lane, bytes);
  record(place, [&] { touch(place, lane, bytes); }, [&] { checkCoherence(place, lane, bytes); });
}

bool Checker::readRow(uint64_t offset, unsigned lane) {
  using Who = Owner<true>;
  Core &core = *warp.core;
  const Launch &launch = core.launch;
  if (launch.causal)
    return false;
  const uint64_t first = offset >> launch.sharedShift, count = rowBytes >> launch.sharedShift;
  uint32_t wrong = 0;
  if (core.numOpen)
    for (uint64_t g = first; g < first + count; ++g)
      wrong |= core.sharedOpen[g];
  if (readsMatter)
    for (uint64_t g = first; g < first + count; ++g)
      wrong |= uint32_t(core.sharedWritten[g] ^ core.blockSerial);
  if (!races || wrong)
    return !wrong;
  const uint32_t now = owner<true>(lane);
  const uint32_t *writers = &core.sharedWriters[first];
  for (uint64_t g = 0; g < count; ++g) // nobody wrote there since the last barrier
    wrong |= uint32_t(!((writers[g] ^ now) & Who::scopeBits));
  if (wrong)
    return false;
  uint32_t *readers = &core.sharedReaders[first];
  for (uint64_t g = 0; g < count; ++g)
    readers[g] = (readers[g] ^ now) & Who::scopeBits ? now : Who::merge(readers[g], now);
  return true;
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
    else if (readsMatter)
      forEach([&](const Place &place, unsigned l) { checkWritten(place, l, bytes); });
  }
  if (isEarly(base))
    forEach([&](const Place &place, unsigned l) { avoidEarlierGrids(warp, at, l, place, bytes, access); });
  if (!tracks(base))
    return;
  if (home(base).numOpen && !global)
    forEach([&](const Place &place, unsigned l) { avoidCopies(place, l, bytes); });
  auto track = [&] {
    if (launch.causal) {
      forEach([&](const Place &place, unsigned l) { follow(place, bytes, 1u << l); });
    } else if (global) {
      uint64_t first = owner<false>(0);
      forEach([&](const Place &place, unsigned l) { trackGlobal(place, bytes, first + l); });
    } else {
      uint32_t first = owner<true>(0);
      forEach([&](const Place &place, unsigned l) { trackShared(place, bytes, first + l); });
    }
  };
  record(base, track, [&] { forEach([&](const Place &place, unsigned l) { checkCoherence(place, l, bytes); }); });
}

void Checker::run(const Place &place, uint64_t bytes) {
  Core &core = home(place);
  uint64_t whole = bytes * warpLanes;
  bool written = true;
  if (uninit && place.space == Space::Shared) {
    uint8_t *serials = &core.sharedWritten[place.offset >> core.launch.sharedShift];
    uint64_t granules = whole >> core.launch.sharedShift;
    if (access == Access::Write)
      std::memset(serials, core.blockSerial, granules);
    else
      written = serials[0] == core.blockSerial && !std::memcmp(serials, serials + 1, granules - 1);
  } else if (uninit && !core.launch.regions[place.region]->complete) {
    uint8_t *marks = &core.launch.regions[place.region]->written[place.offset];
    if (access == Access::Write)
      std::memset(marks, 1, whole);
    else
      written = !std::memchr(marks, 0, whole);
  }
  if (!written && readsMatter) {
    Place part = place;
    for (unsigned l = 0; l < warpLanes; ++l, part.offset += bytes)
      checkWritten(part, l, bytes);
  }
  auto forEach = [&](auto visit) {
    Place part = place;
    for (unsigned l = 0; l < warpLanes; ++l, part.offset += bytes)
      visit(part, l);
  };
  if (isEarly(place))
    forEach([&](const Place &part, unsigned l) { avoidEarlierGrids(warp, at, l, part, bytes, access); });
  if (!tracks(place))
    return;
  if (core.numOpen && place.space == Space::Shared)
    forEach([&](const Place &part, unsigned l) { avoidCopies(part, l, bytes); });
  auto track = [&] {
    if (core.launch.causal)
      forEach([&](const Place &part, unsigned l) { follow(part, bytes, 1u << l); });
    else if (place.space == Space::Shared)
      trackSharedRun(place, bytes);
    else
      trackGlobalRun(place, bytes);
  };
  record(place, track, [&] { forEach([&](const Place &part, unsigned l) { checkCoherence(part, l, bytes); }); });
}

/// The whole warp at once if nothing needs a closer look.
void Checker::trackSharedRun(const Place &place, uint64_t bytes) {
  using Who = Owner<true>;
  Core &core = *warp.core;
  uint64_t perLane = bytes >> core.launch.sharedShift, start = place.offset >> core.launch.sharedShift;
  uint32_t *writers = &core.sharedWriters[start], *readers = &core.sharedReaders[start];
  uint32_t *owners = access == Access::Read ? readers : writers;
  uint32_t first = owner<true>(0);
  if (perLane == 1) {
    // As Owner::trivially, without branches.
    uint32_t wrong = 0;
    for (unsigned l = 0; l < warpLanes; ++l) {
      uint32_t byWriter = writers[l] ^ (first + l), byReader = readers[l] ^ (first + l);
      wrong |= byWriter & Who::scopeBits ? 0 : byWriter & (Who::threadBits | Who::manyBits);
      wrong |= byReader & Who::scopeBits ? 0 : byReader & (Who::threadBits | Who::manyBits);
    }
    if (!wrong) {
      for (unsigned l = 0; l < warpLanes; ++l)
        owners[l] = first + l;
      return;
    }
  }
  Place part = place;
  for (unsigned l = 0; l < warpLanes; ++l, part.offset += bytes)
    trackShared(part, bytes, first + l);
}

void Checker::trackGlobalRun(const Place &place, uint64_t bytes) {
  const Launch &launch = warp.core->launch;
  uint64_t perLane = bytes >> launch.globalShift, start = place.offset >> launch.globalShift;
  unsigned lanes = unsigned(Lines::granulesOfLine / perLane); // that share a line
  uint64_t first = owner<false>(0);
  Lines shadow = launch.windows[place.region].shadow(launch.concurrent);
  bool whole = start % Lines::granulesOfLine == 0 && lanes > 1;
  for (unsigned l = 0; l < warpLanes; ++l) {
    uint64_t line = (start + l * perLane) / Lines::granulesOfLine;
    if (whole && l % lanes == 0 && Lines::Held(shadow, line).enterWhole(first + l, lanes, access == Access::Read)) {
      l += lanes - 1;
      continue;
    }
    Place part = place;
    part.offset += l * bytes;
    trackGlobal(part, bytes, first + l);
  }
}

void Checker::broadcast(const Place &place, uint32_t mask, uint64_t bytes) {
  unsigned last = warpLanes - 1 - unsigned(llvm::countl_zero(mask));
  avoidCopies(place, last, bytes);
  if (isEarly(place))
    for (uint32_t rest = mask; rest; rest &= rest - 1)
      avoidEarlierGrids(warp, at, unsigned(llvm::countr_zero(rest)), place, bytes, access);
  if (readsMatter)
    checkWritten(place, last, bytes);
  auto trackAll = [&] {
    if (tracks(place) && warp.core->launch.causal)
      follow(place, bytes, mask);
    else if (tracks(place))
      track(place, bytes, last, mask & (mask - 1));
  };
  record(place, trackAll, [&] { checkCoherence(place, last, bytes); });
}

void Checker::broadcasts(const Place &base, uint64_t lowest, uint32_t mask, const uint64_t *addresses, uint64_t bytes) {
  Place place = base;
  for (uint32_t rest = mask; rest;) {
    uint64_t address = addresses[llvm::countr_zero(rest)];
    uint32_t same = 0;
    for (unsigned l = 0; l < warpLanes; ++l)
      same |= uint32_t(addresses[l] == address) << l;
    place.offset = base.offset + (address - lowest);
    broadcast(place, same & rest, bytes);
    rest &= ~same;
  }
}

/// `many`: together with other lanes of the warp.
void Checker::track(const Place &place, uint64_t bytes, unsigned lane, bool many) {
  if (place.space == Space::Shared)
    trackShared(place, bytes, owner<true>(lane) | (many ? Owner<true>::manyLanes : 0));
  else
    trackGlobal(place, bytes, owner<false>(lane) | (many ? Owner<false>::manyLanes : 0));
}

/// Whether the lane is about to write what is there already.
bool Checker::rewrites(const Place &place, uint64_t bytes, unsigned lane) const {
  if (!stored)
    return false;
  Core &core = home(place);
  bool isShared = place.space == Space::Shared;
  const uint8_t *memory = (isShared ? core.shared.data() : core.launch.regions[place.region]->data) + place.offset;
  uint64_t width = at.type.bytes();
  for (uint64_t e = 0; e * width < bytes; ++e)
    if (std::memcmp(memory + e * width, stored + (e * warpLanes + lane) * width, width))
      return false;
  return true;
}

/// Threads of a block that hold copies of one value may all store it: whichever comes last, the same bytes stay.
/// Compilers that spread a small tensor over a larger block do so.
template <bool shared>
typename Owners<shared>::Verdict Checker::enter(Owners<shared> &owners, const Place &place, uint64_t bytes,
                                                typename Owner<shared>::Word now) const {
  using Verdict = typename Owners<shared>::Verdict;
  Verdict verdict = owners.enter(now, access == Access::Read);
  if (verdict == Verdict::Fine)
    return verdict;
  if (verdict != Verdict::AfterWrite || !Owner<shared>::sameBlock(owners.writer, now) ||
      !rewrites(place, bytes, Owner<shared>::threadOf(now) % warpLanes))
    return verdict;
  return owners.enterRewrite(now);
}

void Checker::trackShared(const Place &place, uint64_t bytes, uint32_t now) {
  Core &core = *warp.core;
  unsigned shift = core.launch.sharedShift;
  for (uint64_t g = place.offset >> shift; g <= (place.offset + bytes - 1) >> shift; ++g) {
    Owners<true> owners{core.sharedWriters[g], core.sharedReaders[g]};
    if (auto verdict = enter(owners, place, bytes, now); verdict != Owners<true>::Verdict::Fine)
      return reportRace<true>(place, now, owners, verdict == Owners<true>::Verdict::AfterWrite);
    core.sharedWriters[g] = owners.writer;
    core.sharedReaders[g] = owners.reader;
  }
}

void Checker::trackGlobal(const Place &place, uint64_t bytes, uint64_t now) {
  const Launch &launch = warp.core->launch;
  Lines shadow = launch.windows[place.region].shadow(launch.concurrent);
  unsigned shift = launch.globalShift;
  for (uint64_t g = place.offset >> shift; g <= (place.offset + bytes - 1) >> shift; ++g) {
    Lines::Held held(shadow, g / Lines::granulesOfLine);
    Owners<false> &owners = held.at(g);
    if (auto verdict = enter(owners, place, bytes, now); verdict != Owners<false>::Verdict::Fine)
      return reportRace<false>(place, now, owners, verdict == Owners<false>::Verdict::AfterWrite);
  }
}

template <bool shared>
void Checker::reportRace(const Place &place, typename Owner<shared>::Word now, const Owners<shared> &others,
                         bool otherWrote) {
  using Who = Owner<shared>;
  auto other = otherWrote ? others.writer : others.reader;
  std::optional<uint64_t> otherBlock;
  if (!shared && Who::scopeOf(now) != Who::scopeOf(other))
    otherBlock = Who::scopeOf(other);
  reportRace(place, Who::threadOf(now) % warpLanes, Who::threadOf(other), otherBlock, otherWrote);
}

void Checker::reportRace(const Place &place, unsigned lane, unsigned otherThread, std::optional<uint64_t> otherBlock,
                         bool otherWrote) {
  FindingKind kind = place.space == Space::Shared ? FindingKind::SharedRace : FindingKind::GlobalRace;
  reportFinding(warp, at, lane, kind, [&] {
    std::string who = fmt::format("thread {}", otherThread);
    if (otherBlock)
      who += fmt::format(" of block {}", *otherBlock);
    return fmt::format("{} {}, which {} {} with no {} between", access == Access::Read ? "reads" : "writes",
                       describe(warp, place), who, otherWrote ? "wrote" : "read", otherBlock ? "order" : "barrier");
  });
}

/// Whether the access is an ld.global.nc, or a write where there were some, of memory that the kernel may write.
bool Checker::mayBeIncoherent(const Place &place) const {
  if (place.space != Space::Global)
    return false;
  const NonCoherentReads *reads = warp.core->launch.windows[place.region].nonCoherent.get();
  return reads && (access == Access::Read ? at.nonCoherent : reads->any.load(std::memory_order_relaxed));
}

void Checker::checkCoherence(const Place &place, unsigned lane, uint64_t bytes) {
  Launch &launch = warp.core->launch;
  Window &window = launch.windows[place.region];
  const unsigned shift = launch.globalShift;
  Lines shadow = window.shadow(launch.concurrent);
  bool found = false;
  for (uint64_t g = place.offset >> shift; g <= (place.offset + bytes - 1) >> shift; ++g) {
    std::atomic_ref<uint8_t> mark(window.nonCoherent->granules[g]);
    if (access != Access::Read) {
      found |= mark.load(std::memory_order_relaxed) != 0;
      continue;
    }
    mark.store(1, std::memory_order_relaxed);
    window.nonCoherent->any.store(true, std::memory_order_relaxed);
    found |= launch.causal ? launch.traces.isWritten(window.cells[g])
                           : Lines::Held(shadow, g / Lines::granulesOfLine).at(g).writer != 0;
  }
  if (found)
    reportFinding(warp, at, lane, FindingKind::NonCoherentRead, [&] {
      const char *what = access == Access::Read
                             ? "reads {} by a load that is not coherent (.nc), which the kernel writes"
                             : "writes {}, which the kernel reads by loads that are not coherent (.nc)";
      return fmt::format(fmt::runtime(what), describe(warp, place));
    });
}

void Checker::checkWritten(const Place &place, unsigned lane, uint64_t bytes) {
  Core &core = home(place);
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
    reportFinding(
        warp, at, lane, FindingKind::UninitializedRead,
        [&] { return fmt::format("reads {} bytes from {}, which nobody has written", bytes, describe(warp, place)); },
        /*harmlessIfUnused=*/true, ofUpdate);
}

void Checker::markWritten(const Place &place, unsigned lane, uint64_t bytes) {
  Core &core = home(place);
  if (!uninit)
    return;
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
    if (same || at.strong) // strong stores of several threads are no race
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
