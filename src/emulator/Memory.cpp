// Loads and stores of a warp: where the bytes lie and whether they may be touched. Most requests are regular, and are
// judged and moved as a whole:
//
//   a run       all 32 lanes, one after the other           one copy
//   broadcast   active lanes load from one address          one value
//   inside      aligned, all within one slice of a buffer   a gather or scatter without further questions
//
// What is not, or is wrong somewhere, goes lane by lane, which is where findings about places are made.
#include "Cluster.h"
#include "Undefined.h"

#include "fmt/format.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace hloc::emulator {

namespace {

enum class Shape : uint8_t { Irregular, Run, Broadcast, Inside };

/// A regular request: the lowest address of a lane and where it lies.
struct Request {
  Shape shape = Shape::Irregular;
  uint64_t lowest = 0;
  uint64_t laneStride = 0; ///< between the memories of neighbouring lanes, for local memory
  bool distinct = true;    ///< surely no two lanes have one address
  Place place;
};

/// The slice that holds the bytes; a writable one if there is any, since a buffer may be argument twice.
const Window::Slice *findSlice(const Window &window, uint64_t offset, uint64_t bytes) {
  const Window::Slice *found = nullptr;
  for (const Window::Slice &slice : window.slices)
    if (offset >= slice.begin && bytes <= slice.end - slice.begin &&
        offset - slice.begin <= slice.end - slice.begin - bytes && (!found || slice.writable))
      found = &slice;
  return found;
}

bool fits(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

} // namespace

bool admit(const Warp &warp, Place &place, uint64_t bytes, Access access) {
  Core &core = *warp.core;
  const Launch &launch = core.launch;
  switch (place.space) {
  case Space::Shared: {
    const uint32_t rank = place.block ? place.block - 1 : core.rank;
    if (rank >= core.cluster.blocks.size())
      return false;
    place.owner = core.cluster.blocks[rank].get();
    place.data = place.owner->shared.data() + place.offset;
    return !place.owner->ended && fits(place.offset, bytes, launch.sharedBytes);
  }
  case Space::Local:
    place.data = core.local.data() + uint64_t(warp.warp) * warpLanes * launch.localStride + place.offset;
    return fits(place.offset, bytes, launch.kernel.localBytes);
  case Space::Global: {
    if (place.region >= launch.regions.size())
      return false;
    const Window &window = launch.windows[place.region];
    place.data = window.data + place.offset;
    if (!fits(place.offset, bytes, window.bytes))
      return false;
    if (!launch.options.checkBounds)
      return true;
    const Window::Slice *slice = findSlice(window, place.offset, bytes);
    return slice && (access == Access::Read || slice->writable);
  }
  case Space::Param:
    place.data = const_cast<uint8_t *>(launch.parameters.data()) + place.offset;
    return access == Access::Read && fits(place.offset, bytes, launch.kernel.paramBytes);
  case Space::Generic:
  case Space::SharedCluster: // become others
    return false;
  }
  return false;
}

namespace {

/// Whether a load reads what lies behind a buffer in the memory that was allocated for it, or in another part of the
/// buffer: it gets some value there on every machine.
bool isStray(const Warp &warp, const Decoded &at, const Place &place, uint64_t bytes) {
  const Launch &launch = warp.core->launch;
  return at.opcode == Opcode::Ld && place.space == Space::Global && place.region < launch.regions.size() &&
         fits(place.offset, bytes, llvm::alignTo(launch.regions[place.region]->bytes, bufferAlignment));
}

/// Why a place in shared memory may not be touched.
std::string describeRefusal(const Warp &warp, const Decoded &at, const Place &place) {
  const Launch &launch = warp.core->launch;
  const uint64_t blocks = launch.cluster.count();
  if (place.block > blocks)
    return fmt::format("byte {} of shared memory of block {} of its cluster, which has {}", place.offset,
                       place.block - 1, blocks);
  if (place.owner && place.owner->ended)
    return describe(warp, place) + ", which has ended";
  const uint64_t rank = place.offset >> rankShift;
  const bool mapped = at.space == Space::Shared && rank && rank <= blocks;
  return fmt::format("{}, which has {}{}", describe(warp, place), launch.sharedBytes,
                     mapped ? "; only .shared::cluster leads to other blocks" : "");
}

/// Says why `admit` refused.
void reportRefusal(Warp &warp, const Decoded &at, unsigned lane, uint64_t address, const Place &place, uint64_t bytes,
                   Access access) {
  const Launch &launch = warp.core->launch;
  const char *verb = access == Access::Read ? "reads" : "writes";
  bool isBuffer = place.space == Space::Global && place.region < launch.regions.size();
  if (isBuffer && fits(place.offset, bytes, launch.regions[place.region]->bytes) &&
      findSlice(launch.windows[place.region], place.offset, bytes))
    return reportFinding(warp, at, lane, FindingKind::ReadOnlyWrite, [&] {
      return fmt::format("writes {}, which the kernel may only read", describe(warp, place));
    });
  auto describeWhere = [&] {
    std::string what = fmt::format("{} {} bytes at ", verb, bytes);
    if (place.space == Space::Shared)
      return what + describeRefusal(warp, at, place);
    if (place.space == Space::Local)
      return what + fmt::format("byte {} of local memory, which has {}", place.offset, launch.kernel.localBytes);
    if (place.space == Space::Param)
      return what +
             fmt::format("byte {} of the kernel's parameters, which have {}", place.offset, launch.kernel.paramBytes);
    // An offset just below zero is meant for the buffer above.
    bool below = place.offset >> (regionShift - 1) && size_t(place.region) + 1 < launch.regions.size();
    if (below)
      return what + fmt::format("byte {} of `{}`", int64_t(place.offset) - (int64_t(1) << regionShift),
                                launch.regions[place.region + 1]->name);
    if (!isBuffer)
      return what + fmt::format("address {:#x}, where no buffer is", address);
    const Region &region = *launch.regions[place.region];
    if (fits(place.offset, bytes, region.bytes))
      return what + fmt::format("byte {} of `{}`, outside what the kernel was given", place.offset, region.name);
    return what + fmt::format("byte {} of `{}`, which has {}", place.offset, region.name, region.bytes);
  };
  const bool isGone = place.owner && place.owner->ended;
  reportFinding(warp, at, lane, isGone ? FindingKind::AbsentBlock : FindingKind::OutOfBounds, describeWhere,
                isStray(warp, at, place, bytes));
}

/// Whether each lane's address is `stride` after that of the lane before.
bool isStrided(const uint64_t *addresses, uint64_t stride) {
  uint64_t different = 0;
  for (unsigned lane = 1; lane < warpLanes; ++lane)
    different |= addresses[lane] - addresses[lane - 1] - stride;
  return !different;
}

/// Lowest and highest address of the lanes in `mask`, and all their bits.
struct Span {
  uint64_t low, high, bits;
  bool distinct; ///< they rise or fall from lane to lane; else two of them may be the same
};

Span spanOf(uint32_t mask, const uint64_t *addresses) {
  uint64_t previous = addresses[llvm::countr_zero(mask)];
  Span span{previous, previous, previous, true};
  bool rises = true, falls = true;
  for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
    uint64_t address = addresses[llvm::countr_zero(rest)];
    span.low = std::min(span.low, address);
    span.high = std::max(span.high, address);
    span.bits |= address;
    rises &= address > previous;
    falls &= address < previous;
    previous = address;
  }
  span.distinct = rises || falls;
  return span;
}

/// That of all lanes at equal distances, which may be below zero.
Span spanOfStrided(uint64_t first, uint64_t stride) {
  uint64_t last = first + (warpLanes - 1) * stride;
  bool falls = stride >> 63;
  return {falls ? last : first, falls ? first : last, first | stride, stride != 0};
}

/// Judges the request as a whole. `bytes` is a power of two.
Request classify(const Warp &warp, const Decoded &at, uint32_t mask, const uint64_t *addresses, uint64_t bytes,
                 Access access) {
  Request request;
  if (!mask)
    return request;
  Place &place = request.place;
  uint64_t stride = addresses[1] - addresses[0];
  constexpr uint64_t far = uint64_t(1) << regionShift; // so far apart, the last could lie near the first again
  bool strided = mask == ~0u && stride + far < 2 * far && isStrided(addresses, stride);
  Span span = strided ? spanOfStrided(addresses[0], stride) : spanOf(mask, addresses);
  uint64_t reach = span.high - span.low;
  request.lowest = span.low;
  request.distinct = span.distinct;
  // Addresses further apart than any memory is long would wrap the sum of offset and extent around; what lies the
  // wrong way around has wrapped itself.
  if ((span.bits & (bytes - 1)) || span.low > span.high || reach >> regionShift)
    return request;
  if (strided && stride == bytes)
    request.shape = Shape::Run;
  else
    request.shape = !reach && access == Access::Read ? Shape::Broadcast : Shape::Inside;
  locate(at.space, request.lowest, place);
  if (place.space == Space::Local) {
    request.laneStride = warp.core->launch.localStride;
    request.shape = Shape::Inside;
  }
  if (!admit(warp, place, reach + bytes, access))
    request.shape = Shape::Irregular;
  return request;
}

/// Elements of one type between memory and lanes.
template <typename T> struct Mover {
  /// lanes x elements -> elements x lanes.
  static void fromRun(const uint8_t *memory, void *lanes, unsigned count) {
    const T *in = reinterpret_cast<const T *>(memory);
    T *out = static_cast<T *>(lanes);
    if (count == 1)
      std::memcpy(out, in, sizeof(T) * warpLanes);
    for (unsigned e = 0; count > 1 && e < count; ++e)
      for (unsigned lane = 0; lane < warpLanes; ++lane)
        out[e * warpLanes + lane] = in[lane * count + e];
  }
  static void toRun(const void *lanes, uint8_t *memory, unsigned count) {
    const T *in = static_cast<const T *>(lanes);
    T *out = reinterpret_cast<T *>(memory);
    if (count == 1)
      std::memcpy(out, in, sizeof(T) * warpLanes);
    for (unsigned lane = 0; count > 1 && lane < warpLanes; ++lane)
      for (unsigned e = 0; e < count; ++e)
        out[lane * count + e] = in[e * warpLanes + lane];
  }
  static const T *element(const Request &request, const uint64_t *addresses, unsigned lane) {
    return reinterpret_cast<const T *>(request.place.data + (addresses[lane] - request.lowest) +
                                       lane * request.laneStride);
  }
  static void broadcast(const Request &request, uint32_t mask, void *lanes, unsigned count) {
    T *out = static_cast<T *>(lanes);
    for (unsigned e = 0; e < count; ++e) {
      T value = reinterpret_cast<const T *>(request.place.data)[e];
      if (mask == ~0u) {
        std::fill_n(out + e * warpLanes, warpLanes, value);
        continue;
      }
      for (uint32_t rest = mask; rest; rest &= rest - 1)
        out[e * warpLanes + unsigned(llvm::countr_zero(rest))] = value;
    }
  }
  static void gather(const Request &request, uint32_t mask, const uint64_t *addresses, void *lanes, unsigned count) {
    T *out = static_cast<T *>(lanes);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      unsigned lane = unsigned(llvm::countr_zero(rest));
      const T *in = element(request, addresses, lane);
      for (unsigned e = 0; e < count; ++e)
        out[e * warpLanes + lane] = in[e];
    }
  }
  static void scatter(const Request &request, uint32_t mask, const uint64_t *addresses, const void *lanes,
                      unsigned count) {
    const T *in = static_cast<const T *>(lanes);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      unsigned lane = unsigned(llvm::countr_zero(rest));
      T *out = const_cast<T *>(element(request, addresses, lane));
      for (unsigned e = 0; e < count; ++e)
        out[e] = in[e * warpLanes + lane];
    }
  }
};

/// Calls `move` with the Mover of the width.
template <typename Move> void withMover(unsigned width, Move move) {
  switch (width) {
  case 1:
    return move(Mover<uint8_t>());
  case 2:
    return move(Mover<uint16_t>());
  case 4:
    return move(Mover<uint32_t>());
  default:
    return move(Mover<uint64_t>());
  }
}

/// Whether anything needs to be looked at in this place: else all checks are off, or nobody else can write there.
bool isWatched(const Warp &warp, const Place &place) {
  const Launch &launch = warp.core->launch;
  if (place.space == Space::Global)
    return launch.windows[place.region].watched;
  if (place.space == Space::Param)
    return false;
  return launch.options.checkUninit || (launch.options.checkRaces && place.space == Space::Shared);
}

void checkLoad(Checker &checker, const Request &request, uint32_t mask, const uint64_t *addresses, uint64_t bytes) {
  if (request.shape == Shape::Run)
    return checker.run(request.place, bytes);
  if (request.shape == Shape::Broadcast)
    return checker.broadcast(request.place, mask, bytes);
  if (request.place.space == Space::Shared && !request.distinct)
    return checker.broadcasts(request.place, request.lowest, mask, addresses, bytes);
  checker.lanes(request.place, request.lowest, mask, addresses, bytes);
}

/// Whether a store leaves other bytes in memory than there were, but for memory of its thread alone.
bool changesMemory(const Warp &warp, const Decoded &at, uint32_t mask, const uint64_t *addresses, const uint8_t *from) {
  unsigned width = at.type.bytes();
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = unsigned(llvm::countr_zero(rest));
    Place to;
    locate(at.space, addresses[lane], to);
    if (to.space == Space::Local || !admit(warp, to, uint64_t(width) * at.count, Access::Write))
      continue;
    for (unsigned e = 0; e < at.count; ++e)
      if (std::memcmp(to.data + e * width, from + (e * warpLanes + lane) * width, width))
        return true;
  }
  return false;
}

void loadByLane(Warp &warp, const Decoded &at, uint32_t mask, const uint64_t *addresses, uint8_t *to) {
  unsigned width = at.type.bytes();
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = unsigned(llvm::countr_zero(rest));
    Place from = accessLane(warp, at, lane, addresses[lane], uint64_t(width) * at.count, Access::Read);
    for (unsigned e = 0; e < at.count; ++e) {
      uint8_t *element = to + (e * warpLanes + lane) * width;
      if (from.data)
        std::memcpy(element, from.data + e * width, width);
      else
        fillUndefined(warp.core->launch.options, addresses[lane] + e * width, element, width, 0);
    }
  }
}

} // namespace

void locate(Space space, uint64_t address, Place &place) {
  place.space = space;
  place.offset = address;
  if (space == Space::Generic) {
    uint64_t window = address >> regionShift << regionShift;
    if (window == sharedWindow)
      return locate(Space::SharedCluster, address - window, place);
    if (window == localWindow || window == parameterWindow) {
      place.space = window == localWindow ? Space::Local : Space::Param;
      place.offset = address - window;
      return;
    }
    place.space = Space::Global;
  }
  if (space == Space::SharedCluster) {
    place.space = Space::Shared;
    place.block = uint32_t(address >> rankShift);
    place.offset = address & ((uint64_t(1) << rankShift) - 1);
  }
  if (place.space != Space::Global)
    return;
  uint64_t region = address >> regionShift;
  place.offset = address & ((uint64_t(1) << regionShift) - 1);
  place.region = uint32_t(region - 1); // huge for region 0: there is no such buffer
}

Place placeLane(Warp &warp, const Decoded &at, Space space, unsigned lane, uint64_t address, uint64_t bytes,
                Access access) {
  Place place;
  locate(space, address, place);
  if (address % bytes) {
    reportFinding(warp, at, lane, FindingKind::Misaligned, [&] {
      bool isBuffer = place.space != Space::Global || place.region < warp.core->launch.regions.size();
      return fmt::format("{} {} bytes at {}, not aligned to their size", access == Access::Read ? "reads" : "writes",
                         bytes, isBuffer ? describe(warp, place) : fmt::format("address {:#x}", address));
    });
    return {};
  }
  return placeRun(warp, at, space, lane, address, bytes, access);
}

Place placeRun(Warp &warp, const Decoded &at, Space space, unsigned lane, uint64_t address, uint64_t bytes,
               Access access) {
  Place place;
  locate(space, address, place);
  if (!admit(warp, place, bytes, access)) {
    reportRefusal(warp, at, lane, address, place, bytes, access);
    return {};
  }
  if (place.space == Space::Local)
    place.data += lane * warp.core->launch.localStride;
  return place;
}

Place accessLane(Warp &warp, const Decoded &at, Space space, unsigned lane, uint64_t address, uint64_t bytes,
                 Access access, std::optional<ByteRange> changed, const uint8_t *stored) {
  const Place place = placeLane(warp, at, space, lane, address, bytes, access);
  if (!place.data || place.space == Space::Param)
    return place;
  Place part = place;
  if (changed)
    part.offset += changed->begin;
  if (uint64_t partBytes = changed ? changed->bytes : bytes)
    Checker(warp, at, access, stored).lane(part, lane, partBytes);
  return place;
}

Place accessLane(Warp &warp, const Decoded &at, unsigned lane, uint64_t address, uint64_t bytes, Access access) {
  return accessLane(warp, at, at.space, lane, address, bytes, access);
}

void machineLoad(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, void *out) {
  Warp &warp = warpOf(context);
  unsigned width = at->type.bytes(), count = at->count;
  uint64_t bytes = uint64_t(width) * count;
  if (at->strong)
    giveWay(warp);
  if (warp.core->launch.options.countEvents)
    countRequest(warp, *at, at->space, mask, addresses, unsigned(bytes), false);
  if (at->strong && warp.core->launch.causal)
    followStrong(warp, *at, mask, addresses, true, false);
  Request request = classify(warp, *at, mask, addresses, bytes, Access::Read);
  if (request.shape == Shape::Irregular)
    return loadByLane(warp, *at, mask, addresses, static_cast<uint8_t *>(out));
  if (isWatched(warp, request.place)) {
    Checker checker(warp, *at, Access::Read);
    checkLoad(checker, request, mask, addresses, bytes);
  }
  withMover(width, [&](auto mover) {
    if (request.shape == Shape::Run)
      mover.fromRun(request.place.data, out, count);
    else if (request.shape == Shape::Broadcast)
      mover.broadcast(request, mask, out, count);
    else
      mover.gather(request, mask, addresses, out, count);
  });
}

void machineStore(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *in) {
  Warp &warp = warpOf(context);
  unsigned width = at->type.bytes(), count = at->count;
  uint64_t bytes = uint64_t(width) * count;
  const uint8_t *from = static_cast<const uint8_t *>(in);
  if (at->strong)
    giveWay(warp);
  if (warp.core->launch.together && changesMemory(warp, *at, mask, addresses, from))
    ++warp.core->launch.progress;
  if (warp.core->launch.options.countEvents)
    countRequest(warp, *at, at->space, mask, addresses, unsigned(bytes), true);
  Request request = classify(warp, *at, mask, addresses, bytes, Access::Write);
  auto tellOthers = llvm::make_scope_exit([&] {
    if (at->strong && warp.core->launch.causal)
      followStrong(warp, *at, mask, addresses, false, true);
  });
  Checker checker(warp, *at, Access::Write, from);
  bool regular = request.shape != Shape::Irregular;
  if (request.shape == Shape::Run) {
    if (isWatched(warp, request.place))
      checker.run(request.place, bytes);
    withMover(width, [&](auto mover) { mover.toRun(from, request.place.data, count); });
    return;
  }
  if (!mask)
    return;
  // Lanes that write one place together count as one access.
  bool clash = warp.core->launch.options.checkRaces && !request.laneStride && !request.distinct;
  uint32_t repeated = clash ? checker.clashes(mask, addresses, from, width) : 0;
  if (regular) {
    if (isWatched(warp, request.place))
      checker.lanes(request.place, request.lowest, mask & ~repeated, addresses, bytes);
    withMover(width, [&](auto mover) { mover.scatter(request, mask, addresses, from, count); });
    return;
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = unsigned(llvm::countr_zero(rest));
    Place to;
    if (repeated >> lane & 1) {
      locate(at->space, addresses[lane], to);
      if (addresses[lane] % bytes || !admit(warp, to, bytes, Access::Write))
        continue; // said already, for the lane that writes the same place
      if (to.space == Space::Local)
        to.data += lane * warp.core->launch.localStride;
    } else {
      to = accessLane(warp, *at, lane, addresses[lane], bytes, Access::Write);
    }
    if (to.data)
      for (unsigned e = 0; e < count; ++e)
        std::memcpy(to.data + e * width, from + (e * warpLanes + lane) * width, width);
  }
}

} // namespace hloc::emulator
