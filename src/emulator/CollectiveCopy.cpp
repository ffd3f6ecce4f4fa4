// cp.async and its groups.
#include "CollectiveParts.h"

#include <cstring>

namespace hloc::emulator {
namespace {

/// Writes what the lanes in `mask` copied in groups before the last `open` ones of each lane.
void complete(const CollectiveCall &call, uint32_t mask, uint32_t open, bool alsoUncommitted) {
  AsyncCopies &copies = call.warp.copies;
  auto isDone = [&](const AsyncCopies::Copy &copy) {
    const uint32_t committed = copies.committed[copy.lane];
    return (mask >> copy.lane & 1) && (alsoUncommitted || (copy.group < committed && committed - copy.group > open));
  };
  for (const AsyncCopies::Copy &copy : copies.pending)
    if (isDone(copy)) {
      Place to = accessLane(call.warp, *copy.at, Space::Shared, copy.lane, copy.to, copy.bytes, Access::Write);
      if (to.data)
        std::memcpy(to.data, copy.data, copy.bytes);
    }
  std::erase_if(copies.pending, isDone);
}

/// {shared address, global address, bytes, bytes that are read, or whether none are}: the rest is zeros.
CopiedLanes operandsOf(const CollectiveCall &call) {
  CopiedLanes copies;
  copies.bytes = unsigned(call.value(2, 0));
  call.forEachLane([&](unsigned lane) {
    copies.to[lane] = call.value(0, lane);
    copies.from[lane] = call.value(1, lane);
    const uint64_t wanted = call.at.ignoreSource ? (call.value(3, lane) ? 0 : copies.bytes) : call.value(3, lane);
    copies.read[lane] = unsigned(std::min<uint64_t>(wanted, copies.bytes));
  });
  return copies;
}

void issue(const CollectiveCall &call) {
  AsyncCopies &copies = call.warp.copies;
  const CopiedLanes lanes = operandsOf(call);
  if (call.warp.core->launch.options.countEvents)
    countCopies(call.warp, call.mask, lanes);
  call.forEachLane([&](unsigned lane) {
    AsyncCopies::Copy copy{};
    copy.at = &call.at;
    copy.to = lanes.to[lane];
    copy.group = copies.committed[lane];
    copy.lane = uint8_t(lane);
    copy.bytes = uint8_t(lanes.bytes);
    if (const unsigned read = lanes.read[lane]) {
      // The address is aligned to the whole copy; of a shorter one only what is read need exist.
      unsigned step = lanes.bytes;
      while (read % step)
        step /= 2;
      for (unsigned i = 0; i < read; i += step) {
        Place place = accessLane(call.warp, call.at, Space::Global, lane, lanes.from[lane] + i, step, Access::Read);
        if (place.data)
          std::memcpy(copy.data + i, place.data, step);
      }
    }
    copies.pending.push_back(copy);
  });
}

} // namespace

void runAsyncCopy(const CollectiveCall &call) {
  switch (call.at.mode) {
  case Mode::Commit:
    return call.forEachLane([&](unsigned lane) { ++call.warp.copies.committed[lane]; });
  case Mode::WaitGroup:
    return complete(call, call.mask, uint32_t(call.source(0).value), false);
  case Mode::WaitAll:
    return complete(call, call.mask, 0, true);
  default:
    return issue(call);
  }
}

} // namespace hloc::emulator
