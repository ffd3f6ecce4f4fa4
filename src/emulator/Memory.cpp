// Loads and stores of a warp: where the bytes lie, whether they may be touched, who touched them before.
#include "Machine.h"

#include "fmt/format.h"
#include "llvm/ADT/bit.h"

#include <cstring>

namespace hloc::emulator {

namespace {

constexpr uint64_t setBit = uint64_t(1) << 63, atomicBit = uint64_t(1) << 58;
constexpr unsigned blockShift = 10, epochShift = 42;
constexpr uint64_t epochMask = 0xffff;

uint64_t makeOwner(const Warp &warp, unsigned lane, bool atomic) {
  uint64_t thread = warp.warp * warpLanes + lane;
  return setBit | (atomic ? atomicBit : 0) | (uint64_t(warp.core->blockEpoch) & epochMask) << epochShift |
         (warp.core->blockIndex & 0xffffffff) << blockShift | thread;
}

/// Whether an access of `now` may follow one of `before` without a barrier.
bool ordered(uint64_t before, uint64_t now) {
  if (!(before & setBit) || (before & now & atomicBit))
    return true;
  constexpr uint64_t blockBits = ((uint64_t(1) << 32) - 1) << blockShift, threadBits = (uint64_t(1) << blockShift) - 1;
  if ((before ^ now) & blockBits)
    return false;
  return !((before ^ now) & threadBits) || ((before ^ now) & (epochMask << epochShift));
}

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

std::string describe(const Warp &warp, const Place &place) {
  if (place.space == Space::Global)
    return fmt::format("byte {} of `{}`", place.offset, warp.core->launch.regions[place.region]->name);
  return fmt::format("byte {} of {} memory", place.offset, spaceName(place.space));
}

void reportRace(Warp &warp, const Decoded &at, unsigned lane, FindingKind kind, const Place &place, uint64_t otherBlock,
                unsigned otherThread, bool otherWrote, bool writes) {
  std::string other = kind == FindingKind::GlobalRace && otherBlock != warp.core->blockIndex
                          ? fmt::format("thread {} of block {}", otherThread, otherBlock)
                          : fmt::format("thread {}", otherThread);
  reportFinding(warp, at, lane, kind,
                fmt::format("{} {}, which {} {} with no barrier between", writes ? "writes" : "reads",
                            describe(warp, place), other, otherWrote ? "wrote" : "read"));
}

void trackGlobal(Warp &warp, const Decoded &at, unsigned lane, const Place &place, uint64_t bytes, Access access) {
  Launch &launch = warp.core->launch;
  Window &window = launch.windows[place.region];
  uint64_t now = makeOwner(warp, lane, access == Access::Atomic || at.strong || launch.firstGuesses.contains(&at));
  bool writes = access != Access::Read;
  uint64_t first = place.offset >> launch.globalShift, last = (place.offset + bytes - 1) >> launch.globalShift;
  auto complain = [&](uint64_t other, bool wrote) {
    reportRace(warp, at, lane, FindingKind::GlobalRace, place, (other >> blockShift) & 0xffffffff,
               unsigned(other & ((1u << blockShift) - 1)), wrote, writes);
  };
  for (uint64_t g = first; g <= last; ++g) {
    if (uint64_t other = window.writers[g]; !ordered(other, now))
      return complain(other, true);
    if (writes) {
      if (uint64_t other = window.readers[g]; !ordered(other, now))
        return complain(other, false);
      window.writers[g] = now;
    } else {
      window.readers[g] = now;
    }
  }
}

void trackShared(Warp &warp, const Decoded &at, unsigned lane, const Place &place, uint64_t bytes, Access access) {
  Core &core = *warp.core;
  uint16_t thread = uint16_t(warp.warp * warpLanes + lane);
  bool writes = access != Access::Read, atomic = access == Access::Atomic;
  unsigned shift = core.launch.sharedShift;
  auto clash = [&](uint64_t epoch, uint32_t warpEpoch, uint16_t other) {
    if (epoch != core.epoch || other == thread)
      return false;
    return other / warpLanes != warp.warp || warpEpoch == warp.epoch;
  };
  for (uint64_t g = place.offset >> shift; g <= (place.offset + bytes - 1) >> shift; ++g) {
    SharedShadow &shadow = core.sharedShadow[g];
    if (clash(shadow.writeEpoch, shadow.writeWarpEpoch, shadow.writer) && !(atomic && shadow.writeAtomic))
      return reportRace(warp, at, lane, FindingKind::SharedRace, place, 0, shadow.writer, true, writes);
    if (!writes) {
      bool same = shadow.readEpoch == core.epoch;
      shadow.manyReaders = same && (shadow.manyReaders || shadow.reader / warpLanes != warp.warp);
      shadow.readEpoch = core.epoch;
      shadow.readWarpEpoch = warp.epoch;
      shadow.reader = thread;
      continue;
    }
    bool otherWarpRead = shadow.readEpoch == core.epoch && shadow.manyReaders;
    if (otherWarpRead || clash(shadow.readEpoch, shadow.readWarpEpoch, shadow.reader))
      return reportRace(warp, at, lane, FindingKind::SharedRace, place, 0, shadow.reader, false, true);
    shadow.writeEpoch = core.epoch;
    shadow.writeWarpEpoch = warp.epoch;
    shadow.writer = thread;
    shadow.writeAtomic = atomic;
  }
}

void checkWritten(Warp &warp, const Decoded &at, unsigned lane, const Place &place, uint64_t bytes) {
  Core &core = *warp.core;
  bool fine = true;
  if (place.space == Space::Global) {
    const Region &region = *core.launch.regions[place.region];
    fine = region.complete || !std::memchr(&region.written[place.offset], 0, bytes);
  } else if (place.space == Space::Shared) {
    for (uint64_t g = place.offset >> core.launch.sharedShift;
         g <= (place.offset + bytes - 1) >> core.launch.sharedShift; ++g)
      fine &= core.sharedWritten[g] >= core.blockStart;
  } else {
    uint64_t thread = warp.warp * warpLanes + lane;
    fine = !std::memchr(&core.localWritten[thread * core.launch.kernel.localBytes + place.offset], 0, bytes);
  }
  if (!fine)
    reportFinding(warp, at, lane, FindingKind::UninitializedRead,
                  fmt::format("reads {} bytes from {}, which nobody has written", bytes, describe(warp, place)));
}

void markWritten(Warp &warp, unsigned lane, const Place &place, uint64_t bytes) {
  Core &core = *warp.core;
  if (place.space == Space::Global) {
    Region &region = *core.launch.regions[place.region];
    if (!region.complete)
      std::memset(&region.written[place.offset], 1, bytes);
  } else if (place.space == Space::Shared) {
    for (uint64_t g = place.offset >> core.launch.sharedShift;
         g <= (place.offset + bytes - 1) >> core.launch.sharedShift; ++g)
      core.sharedWritten[g] = core.epoch;
  } else {
    uint64_t thread = warp.warp * warpLanes + lane;
    std::memset(&core.localWritten[thread * core.launch.kernel.localBytes + place.offset], 1, bytes);
  }
}

/// The state space and offset behind an address.
bool locate(Space space, uint64_t address, Place &place) {
  place.space = space;
  place.offset = address;
  if (space == Space::Generic) {
    uint64_t window = address >> regionShift << regionShift;
    if (window == sharedWindow || window == localWindow) {
      place.space = window == sharedWindow ? Space::Shared : Space::Local;
      place.offset = address - window;
      return true;
    }
    place.space = Space::Global;
  }
  if (place.space != Space::Global)
    return true;
  uint64_t region = address >> regionShift;
  place.offset = address & ((uint64_t(1) << regionShift) - 1);
  place.region = uint32_t(region - 1);
  return region != 0 && region <= UINT32_MAX;
}

/// The slice that holds the bytes; a writable one if there is any, since a buffer may be argument twice.
const Window::Slice *findSlice(const Window &window, uint64_t offset, uint64_t bytes) {
  const Window::Slice *found = nullptr;
  for (const Window::Slice &slice : window.slices)
    if (offset >= slice.begin && bytes <= slice.end - slice.begin &&
        offset - slice.begin <= slice.end - slice.begin - bytes && (!found || slice.writable))
      found = &slice;
  return found;
}

/// Resolves `bytes` bytes; null data if they are not there. `lane` owns local memory.
bool resolve(Warp &warp, const Decoded &at, unsigned lane, uint64_t address, uint64_t bytes, Access access,
             Place &place) {
  Core &core = *warp.core;
  Launch &launch = core.launch;
  auto outside = [&](const std::string &what) {
    reportFinding(warp, at, lane, FindingKind::OutOfBounds,
                  fmt::format("{} {} bytes at {}", access == Access::Read ? "reads" : "writes", bytes, what));
    return false;
  };
  if (place.space == Space::Shared) {
    if (place.offset > launch.sharedBytes || bytes > launch.sharedBytes - place.offset)
      return outside(fmt::format("byte {} of shared memory, which has {}", place.offset, launch.sharedBytes));
    place.data = core.shared.data() + place.offset;
    return true;
  }
  if (place.space == Space::Local) {
    uint64_t size = launch.kernel.localBytes;
    if (place.offset > size || bytes > size - place.offset)
      return outside(fmt::format("byte {} of local memory, which has {}", place.offset, size));
    place.data = core.local.data() + (uint64_t(warp.warp) * warpLanes + lane) * size + place.offset;
    return true;
  }
  if (place.space != Space::Global || place.region >= launch.regions.size())
    return outside(fmt::format("address {:#x}, where no buffer is", address));
  Region &region = *launch.regions[place.region];
  if (place.offset > region.bytes || bytes > region.bytes - place.offset)
    return outside(
        fmt::format("byte {} of `{}`, which has {}", int64_t(place.offset << 24) >> 24, region.name, region.bytes));
  if (launch.options.checkBounds && place.region != 0) {
    const Window::Slice *slice = findSlice(launch.windows[place.region], place.offset, bytes);
    if (!slice)
      return outside(fmt::format("byte {} of `{}`, outside what the kernel was given", place.offset, region.name));
    if (access != Access::Read && !slice->writable) {
      reportFinding(warp, at, lane, FindingKind::ReadOnlyWrite,
                    fmt::format("writes byte {} of `{}`, which the kernel may only read", place.offset, region.name));
      return false;
    }
  }
  place.data = region.data + place.offset;
  return true;
}

bool tracksRaces(const Launch &launch, const Place &place) {
  return launch.options.checkRaces &&
         (place.space == Space::Shared || (place.space == Space::Global && launch.windows[place.region].tracked));
}

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

void track(Warp &warp, const Decoded &at, unsigned lane, const Place &place, uint64_t bytes, Access access) {
  const EmulatorOptions &options = warp.core->launch.options;
  if (options.checkUninit && access != Access::Write && !mayReadUnwritten(warp.core->launch, at))
    checkWritten(warp, at, lane, place, bytes);
  if (options.checkUninit && access != Access::Read)
    markWritten(warp, lane, place, bytes);
  if (tracksRaces(warp.core->launch, place)) {
    if (place.space == Space::Shared)
      trackShared(warp, at, lane, place, bytes, access);
    else
      trackGlobal(warp, at, lane, place, bytes, access);
  }
}

/// lanes x elements -> elements x lanes, and back.
template <typename T> void deinterleave(const uint8_t *from, uint8_t *to, unsigned count) {
  const T *in = reinterpret_cast<const T *>(from);
  T *out = reinterpret_cast<T *>(to);
  for (unsigned e = 0; e < count; ++e)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      out[e * warpLanes + lane] = in[lane * count + e];
}
template <typename T> void interleave(const uint8_t *from, uint8_t *to, unsigned count) {
  const T *in = reinterpret_cast<const T *>(from);
  T *out = reinterpret_cast<T *>(to);
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    for (unsigned e = 0; e < count; ++e)
      out[lane * count + e] = in[e * warpLanes + lane];
}

void moveAll(const uint8_t *from, uint8_t *to, unsigned width, unsigned count, bool toLanes) {
  if (count == 1) {
    std::memcpy(to, from, size_t(width) * warpLanes);
    return;
  }
  switch (width) {
  case 1:
    return toLanes ? deinterleave<uint8_t>(from, to, count) : interleave<uint8_t>(from, to, count);
  case 2:
    return toLanes ? deinterleave<uint16_t>(from, to, count) : interleave<uint16_t>(from, to, count);
  case 4:
    return toLanes ? deinterleave<uint32_t>(from, to, count) : interleave<uint32_t>(from, to, count);
  default:
    return toLanes ? deinterleave<uint64_t>(from, to, count) : interleave<uint64_t>(from, to, count);
  }
}

/// Races of a whole warp that touches `32 * bytes` bytes in lane order; true if nothing was wrong.
bool trackRun(Warp &warp, const Place &place, uint64_t bytes, bool writes, bool atomic) {
  Launch &launch = warp.core->launch;
  if (place.space == Space::Shared)
    return false;
  Window &window = launch.windows[place.region];
  uint64_t perLane = bytes >> launch.globalShift, first = place.offset >> launch.globalShift;
  uint64_t *writers = &window.writers[first], *readers = &window.readers[first];
  uint64_t owner = makeOwner(warp, 0, atomic);
  uint64_t any = 0;
  for (uint64_t g = 0; g < perLane * warpLanes; ++g)
    any |= writes ? writers[g] | readers[g] : writers[g];
  if (any)
    return false; // somebody was here before: look closely
  uint64_t *owners = writes ? writers : readers;
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    for (uint64_t g = 0; g < perLane; ++g)
      owners[lane * perLane + g] = owner + lane;
  return true;
}

/// The common case: all 32 lanes, one after the other in one buffer. True if it was handled.
bool accessRun(Warp &warp, const Decoded &at, uint32_t mask, const uint64_t *addresses, uint64_t bytes, Access access,
               Place &place) {
  if (mask != ~0u)
    return false;
  uint64_t different = 0;
  for (unsigned lane = 1; lane < warpLanes; ++lane)
    different |= addresses[lane] ^ (addresses[0] + lane * bytes);
  if (different || addresses[0] % bytes)
    return false;
  Launch &launch = warp.core->launch;
  if (!locate(at.space, addresses[0], place) || place.space == Space::Local)
    return false;
  uint64_t whole = bytes * warpLanes;
  if (place.space == Space::Shared) {
    if (place.offset > launch.sharedBytes || whole > launch.sharedBytes - place.offset)
      return false;
    if (launch.options.checkUninit || launch.options.checkRaces)
      for (unsigned lane = 0; lane < warpLanes; ++lane) {
        Place part = place;
        part.offset += lane * bytes;
        track(warp, at, lane, part, bytes, access);
      }
    place.data = warp.core->shared.data() + place.offset;
    return true;
  }
  if (place.region >= launch.regions.size())
    return false;
  Region &region = *launch.regions[place.region];
  if (place.offset > region.bytes || whole > region.bytes - place.offset)
    return false;
  if (launch.options.checkBounds && place.region != 0) {
    const Window::Slice *slice = findSlice(launch.windows[place.region], place.offset, whole);
    if (!slice || (access != Access::Read && !slice->writable))
      return false;
  }
  if (launch.options.checkUninit && !region.complete) {
    if (access == Access::Read && std::memchr(&region.written[place.offset], 0, whole))
      return false;
    if (access == Access::Write)
      std::memset(&region.written[place.offset], 1, whole);
  }
  if (tracksRaces(launch, place) && !trackRun(warp, place, bytes, access == Access::Write, at.strong))
    for (unsigned lane = 0; lane < warpLanes; ++lane) {
      Place part = place;
      part.offset += lane * bytes;
      trackGlobal(warp, at, lane, part, bytes, access);
    }
  place.data = region.data + place.offset;
  return true;
}

/// Two lanes of one store that write different values to one place: which one stays is open.
void checkStoreClash(Warp &warp, const Decoded &at, uint32_t mask, const uint64_t *addresses, const uint8_t *in,
                     unsigned width) {
  uint64_t bytes = uint64_t(width) * at.count;
  uint32_t rest = mask;
  while (rest) {
    unsigned lane = llvm::countr_zero(rest);
    rest &= rest - 1;
    for (uint32_t others = rest; others; others &= others - 1) {
      unsigned other = llvm::countr_zero(others);
      if (addresses[lane] != addresses[other])
        continue;
      bool same = true;
      for (unsigned e = 0; e < at.count; ++e)
        same &= !std::memcmp(in + (e * warpLanes + lane) * width, in + (e * warpLanes + other) * width, width);
      Place place;
      if (same || !locate(at.space, addresses[lane], place) || place.space == Space::Local)
        continue;
      reportFinding(warp, at, other, place.space == Space::Shared ? FindingKind::SharedRace : FindingKind::GlobalRace,
                    fmt::format("writes {} bytes at {}, where lane {} writes another value at the same time", bytes,
                                describe(warp, place), lane));
      return;
    }
  }
}

/// Whether any two active lanes share an address; cheap filter for checkStoreClash. Equal addresses of local memory are
/// different places.
bool mayClash(Space space, uint32_t mask, const uint64_t *addresses) {
  bool local = space == Space::Generic && mask &&
               addresses[llvm::countr_zero(mask)] >> regionShift == localWindow >> regionShift;
  if (local || space == Space::Local)
    return false;
  uint64_t previous = ~uint64_t(0);
  bool ascending = true;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint64_t address = addresses[llvm::countr_zero(rest)];
    ascending &= previous == ~uint64_t(0) || address > previous;
    previous = address;
  }
  return !ascending;
}

} // namespace

Place accessLane(Warp &warp, const Decoded &at, Space space, unsigned lane, uint64_t address, uint64_t bytes,
                 Access access) {
  Place place;
  bool found = locate(space, address, place);
  if (address % bytes) {
    reportFinding(warp, at, lane, FindingKind::Misaligned,
                  fmt::format("{} bytes at {:#x} are not aligned to their size", bytes,
                              place.space == Space::Global ? place.offset : address));
    return {};
  }
  if (!found)
    place.region = UINT32_MAX;
  if (!resolve(warp, at, lane, address, bytes, access, place))
    return {};
  track(warp, at, lane, place, bytes, access);
  return place;
}

Place accessLane(Warp &warp, const Decoded &at, unsigned lane, uint64_t address, uint64_t bytes, Access access) {
  return accessLane(warp, at, at.space, lane, address, bytes, access);
}

void machineLoad(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, void *out) {
  Warp &warp = warpOf(context);
  unsigned width = at->type.bytes();
  uint64_t bytes = uint64_t(width) * at->count;
  uint8_t *to = static_cast<uint8_t *>(out);
  if (warp.core->launch.options.countEvents)
    countRequest(warp, *at, at->space, mask, addresses, unsigned(bytes), false);
  Place place;
  if (accessRun(warp, *at, mask, addresses, bytes, Access::Read, place)) {
    moveAll(place.data, to, width, at->count, true);
    return;
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = llvm::countr_zero(rest);
    Place from = accessLane(warp, *at, lane, addresses[lane], bytes, Access::Read);
    for (unsigned e = 0; e < at->count; ++e) {
      uint8_t *element = to + (e * warpLanes + lane) * width;
      if (from.data)
        std::memcpy(element, from.data + e * width, width);
      else
        std::memset(element, 0, width);
    }
  }
}

void machineStore(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *in) {
  Warp &warp = warpOf(context);
  unsigned width = at->type.bytes();
  uint64_t bytes = uint64_t(width) * at->count;
  const uint8_t *from = static_cast<const uint8_t *>(in);
  if (warp.core->launch.options.countEvents)
    countRequest(warp, *at, at->space, mask, addresses, unsigned(bytes), true);
  Place place;
  if (accessRun(warp, *at, mask, addresses, bytes, Access::Write, place)) {
    moveAll(from, place.data, width, at->count, false);
    return;
  }
  bool races = warp.core->launch.options.checkRaces, clash = false;
  if (races && mayClash(at->space, mask, addresses)) {
    clash = true;
    checkStoreClash(warp, *at, mask, addresses, from, width);
  }
  uint64_t done[warpLanes];
  unsigned numDone = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = llvm::countr_zero(rest);
    // Lanes that write one place together count as one access.
    bool repeated = clash && std::find(done, done + numDone, addresses[lane]) != done + numDone;
    done[numDone++] = addresses[lane];
    Place to;
    if (repeated) {
      if (!locate(at->space, addresses[lane], to))
        to.region = UINT32_MAX;
      if (addresses[lane] % bytes || !resolve(warp, *at, lane, addresses[lane], bytes, Access::Write, to))
        continue;
    } else {
      to = accessLane(warp, *at, lane, addresses[lane], bytes, Access::Write);
    }
    if (to.data)
      for (unsigned e = 0; e < at->count; ++e)
        std::memcpy(to.data + e * width, from + (e * warpLanes + lane) * width, width);
  }
}

} // namespace hloc::emulator
