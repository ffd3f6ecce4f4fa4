// cp.async and its groups.
#include "CollectiveParts.h"
#include "Lanes.h"
#include "Scheduler.h"

#include "fmt/format.h"

#include <algorithm>
#include <cstring>

namespace hloc::emulator {
namespace {

using Request = AsyncCopies::Request;

Place placeOf(Core &core, const Request &request, unsigned lane) {
  const uint64_t offset = request.to[lane];
  return {core.shared.data() + offset, Space::Shared, 0, offset, 0, &core};
}

void land(Core &core, Request &request, uint32_t lanes) {
  forEachLane(lanes & request.landing, [&](unsigned lane) {
    std::memcpy(core.shared.data() + request.to[lane], request.data[lane], request.bytes);
  });
  request.landing &= ~lanes;
}

/// Which part of a request lands at once, and when the rest does.
void schedule(Warp &warp, Request &request) {
  const Launch &launch = warp.core->launch;
  const Schedule &schedule = launch.options.schedule;
  if (schedule.order == Schedule::Order::Ascending)
    return;
  uint32_t early = ~0u;
  if (schedule.order == Schedule::Order::Shuffled) {
    constexpr uint64_t mostSteps = 8;
    const uint64_t number = (warp.core->blockIndex * 32 + warp.warp) << 32 | warp.copies.issued;
    const uint64_t bits = randomBits(schedule, number);
    early = uint32_t(bits);
    request.steps = uint32_t((bits >> 32) % mostSteps);
  }
  land(*warp.core, request, early);
}

void countOpen(Core &core, const Request &request, unsigned lane, int by) {
  if (core.sharedOpen.empty())
    return;
  const unsigned shift = core.launch.sharedShift;
  for (uint64_t g = request.to[lane] >> shift; g <= (request.to[lane] + request.bytes - 1) >> shift; ++g)
    core.sharedOpen[g] = uint16_t(core.sharedOpen[g] + by);
  core.numOpen += uint64_t(int64_t(by));
}

/// The lanes have waited: what they copied is there for their own threads.
void complete(Warp &warp, Request &request, uint32_t lanes) {
  Core &core = *warp.core;
  land(core, request, lanes);
  Checker writes(warp, *request.at, Access::Write), reads(warp, *request.at, Access::Read);
  forEachLane(lanes & request.open, [&](unsigned lane) {
    countOpen(core, request, lane, -1);
    writes.completeCopy(placeOf(core, request, lane), lane, request.bytes);
    // The source, too, was read at any time until now.
    Place from;
    locate(Space::Global, request.from[lane], from);
    if (from.region < core.launch.windows.size() && core.launch.windows[from.region].tracked)
      reads.touch(from, lane, request.bytes);
  });
  request.open &= ~lanes;
}

/// Completes what the lanes in `mask` copied in groups before the last `left` ones of each lane.
void wait(const CollectiveCall &call, uint32_t left, bool alsoUncommitted) {
  AsyncCopies &copies = call.warp.copies;
  for (Request &request : copies.pending) {
    uint32_t done = 0;
    forEachLane(request.open & call.mask, [&](unsigned lane) {
      const uint32_t committed = copies.committed[lane], group = request.group[lane];
      if (alsoUncommitted || (group < committed && committed - group > left))
        done |= 1u << lane;
    });
    if (done)
      complete(call.warp, request, done);
  }
  std::erase_if(copies.pending, [](const Request &request) { return !request.open; });
  if (left)
    return;
  for (auto &[date, lanes] : copies.handedOver) {
    observe(call.warp, lanes & call.mask, date);
    lanes &= ~call.mask;
  }
  std::erase_if(copies.handedOver, [](const auto &handed) { return !handed.second; });
}

/// {shared address, global address, bytes, bytes that are read, or whether none are}: the rest is zeros.
CopiedLanes operandsOf(const CollectiveCall &call) {
  CopiedLanes copies;
  copies.bytes = unsigned(call.value(2, unsigned(llvm::countr_zero(call.mask))));
  call.forEachLane([&](unsigned lane) {
    copies.to[lane] = call.value(0, lane);
    copies.from[lane] = call.value(1, lane);
    const uint64_t wanted = call.at.ignoreSource ? (call.value(3, lane) ? 0 : copies.bytes) : call.value(3, lane);
    copies.read[lane] = unsigned(std::min<uint64_t>(wanted, copies.bytes));
  });
  return copies;
}

/// The address is aligned to the whole copy; of a shorter one only what is read need exist.
void readSource(const CollectiveCall &call, Checker &checker, const CopiedLanes &lanes, unsigned lane, uint8_t *data) {
  const unsigned read = lanes.read[lane];
  unsigned step = lanes.bytes;
  while (read % step)
    step /= 2;
  for (unsigned i = 0; i < read; i += step) {
    const Place place = placeLane(call.warp, call.at, Space::Global, lane, lanes.from[lane] + i, step, Access::Read);
    if (!place.data)
      continue;
    if (call.warp.core->launch.windows[place.region].watched)
      checker.lane(place, lane, step);
    std::memcpy(data + i, place.data, step);
  }
}

void issue(const CollectiveCall &call) {
  Core &core = *call.warp.core;
  AsyncCopies &copies = call.warp.copies;
  const CopiedLanes lanes = operandsOf(call);
  if (core.launch.options.countEvents)
    countCopies(call.warp, call.at, call.mask, lanes);
  copies.pending.emplace_back();
  Request &request = copies.pending.back();
  request.at = &call.at;
  request.bytes = lanes.bytes;
  ++copies.issued;
  Checker writes(call.warp, call.at, Access::Write), reads(call.warp, call.at, Access::Read);
  call.forEachLane([&](unsigned lane) {
    std::memset(request.data[lane], 0, sizeof request.data[lane]);
    readSource(call, reads, lanes, lane, request.data[lane]);
    const Place to = placeLane(call.warp, call.at, Space::Shared, lane, lanes.to[lane], lanes.bytes, Access::Write);
    if (!to.data)
      return;
    request.to[lane] = lanes.to[lane];
    request.from[lane] = lanes.read[lane] == lanes.bytes ? lanes.from[lane] : 0;
    request.group[lane] = copies.committed[lane];
    writes.issueCopy(to, lane, lanes.bytes, request.data[lane]);
    countOpen(core, request, lane, 1);
    request.open |= 1u << lane;
  });
  request.landing = request.open;
  schedule(call.warp, request);
  if (core.launch.together)
    ++core.launch.progress;
}

} // namespace

void landCopies(Warp &warp) {
  for (Request &request : warp.copies.pending)
    if (request.steps && !--request.steps)
      land(*warp.core, request, ~0u);
}

void completeCopies(Warp &warp, uint32_t lanes, const Trace &date) {
  uint32_t handed = 0;
  for (Request &request : warp.copies.pending) {
    const uint32_t done = request.open & lanes;
    handed |= done;
    if (done)
      complete(warp, request, done);
    forEachLane(done,
                [&](unsigned lane) { recordWrite(warp, lane, *request.at, request.to[lane], request.bytes, date); });
  }
  if (handed && warp.core->launch.causal)
    warp.copies.handedOver.push_back({date, handed});
  std::erase_if(warp.copies.pending, [](const Request &request) { return !request.open; });
}

void abandonCopies(Warp &warp) {
  Core &core = *warp.core;
  for (Request &request : warp.copies.pending) {
    if (core.launch.stop)
      break;
    if (core.launch.options.checkRaces)
      reportFinding(warp, *request.at, unsigned(llvm::countr_zero(request.open)), FindingKind::OpenCopy, [&] {
        const Place to = placeOf(core, request, unsigned(llvm::countr_zero(request.open)));
        return fmt::format("ends without having waited for its copy to {}", describe(warp, to));
      });
    complete(warp, request, request.open);
  }
  warp.copies.pending.clear();
}

OpenCopy findOpenCopy(const Core &core, uint64_t offset, uint64_t bytes, const uint8_t *unless) {
  for (const Warp &warp : core.warps)
    for (const Request &request : warp.copies.pending)
      for (uint32_t rest = request.open; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(llvm::countr_zero(rest));
        const uint64_t to = request.to[lane];
        if (to >= offset + bytes || offset >= to + request.bytes)
          continue;
        const bool same =
            unless && to == offset && bytes == request.bytes && !std::memcmp(request.data[lane], unless, request.bytes);
        if (!same)
          return {request.at, warp.warp * warpLanes + lane};
      }
  return {};
}

void runAsyncCopy(const CollectiveCall &call) {
  landCopies(call.warp);
  switch (call.at.mode) {
  case Mode::Commit:
    return call.forEachLane([&](unsigned lane) { ++call.warp.copies.committed[lane]; });
  case Mode::WaitGroup:
    return wait(call, uint32_t(call.source(0).value), false);
  case Mode::WaitAll:
    return wait(call, 0, true);
  default:
    return issue(call);
  }
}

} // namespace hloc::emulator
