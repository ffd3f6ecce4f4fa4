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
void issue(const CollectiveCall &call) {
  AsyncCopies &copies = call.warp.copies;
  call.forEachLane([&](unsigned lane) {
    AsyncCopies::Copy copy{};
    copy.at = &call.at;
    copy.to = call.value(0, lane);
    copy.group = copies.committed[lane];
    copy.lane = uint8_t(lane);
    copy.bytes = uint8_t(call.value(2, lane));
    const uint64_t wanted = call.at.ignoreSource ? (call.value(3, lane) ? 0 : copy.bytes) : call.value(3, lane);
    const uint64_t read = std::min<uint64_t>(wanted, copy.bytes);
    if (read) {
      // The address is aligned to the whole copy; of a shorter one only what is read need exist.
      const uint64_t from = call.value(1, lane);
      uint64_t step = copy.bytes;
      while (read % step)
        step /= 2;
      for (uint64_t i = 0; i < read; i += step) {
        Place place = accessLane(call.warp, call.at, Space::Global, lane, from + i, step, Access::Read);
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
