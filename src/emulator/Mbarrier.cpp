#include "Mbarrier.h"

#include "Cluster.h"
#include "CollectiveParts.h"
#include "Fiber.h"
#include "Scheduler.h"

#include "fmt/format.h"

#include <cstdlib>

namespace hloc::emulator {

namespace {

constexpr uint64_t objectBytes = 8;
constexpr uint32_t mostArrivals = (1u << 20) - 1;
constexpr int64_t mostBytes = (1 << 20) - 1;

} // namespace

Mbarrier &Mbarriers::create(uint64_t offset) {
  const auto [entry, isNew] = objects.try_emplace(offset);
  Mbarrier &object = entry->second;
  const uint32_t number = isNew ? count++ : object.number;
  const uint32_t dated = isNew ? 0 : object.dated + uint32_t(object.phase) + 1;
  object = Mbarrier();
  object.number = number;
  object.dated = dated;
  return object;
}

const Mbarrier *Mbarriers::overlapping(uint64_t offset, uint64_t bytes, uint64_t &at) const {
  auto next = objects.lower_bound(offset > objectBytes ? offset - objectBytes + 1 : 0);
  for (; next != objects.end() && next->first < offset + bytes; ++next)
    if (next->second.initializedAt) {
      at = next->first;
      return &next->second;
    }
  return nullptr;
}

std::string describeWait(const Core &core, uint64_t offset) {
  const Mbarrier *object = const_cast<Core &>(core).mbarriers.find(offset);
  if (!object)
    return fmt::format("for the mbarrier at byte {} of shared memory, which is no more", offset);
  std::string text = fmt::format("for phase {} of the mbarrier at byte {} of shared memory: {} of {} arrivals",
                                 object->phase, offset, object->pending, object->expected);
  if (object->bytes > 0)
    return text + fmt::format(" and {} bytes are missing", object->bytes);
  if (object->bytes < 0)
    return text + fmt::format(" are missing, and {} bytes came that were never expected", -object->bytes);
  return text + " are missing";
}

namespace {

using Report = llvm::function_ref<void(std::string)>;

/// The running phase is complete once nothing is missing.
void completeIfDone(Core &core, uint64_t offset, Mbarrier &object, Report report) {
  if (object.pending || object.bytes)
    return;
  const uint32_t date = object.date(core.blockIndex).clock;
  const Transfer *underWay = nullptr;
  for (const std::unique_ptr<Core> &issuer : core.cluster.blocks)
    for (const Transfer &transfer : issuer->transfers.pending)
      if (!transfer.landed && transfer.target == &core && transfer.mbarrier == offset && transfer.phase == date)
        underWay = &transfer;
  if (underWay)
    report(
        fmt::format("completes phase {} of the mbarrier at byte {} of shared memory while a copy of {} bytes (line {}) "
                    "is under way to it: their number was not expected",
                    object.phase, offset, underWay->bytes, underWay->at->line));
  const Trace over = object.date(core.blockIndex);
  object.complete.join(object.arrived);
  object.complete.known = View::with(object.complete.known, over.block, over.warp, over.lanes, over.clock);
  object.arrived = Handover();
  ++object.phase;
  object.pending = object.expected;
  core.wake(offset);
}

/// One instruction of some lanes that is about the mbarrier at one address.
struct Operation {
  const CollectiveCall &call;
  uint32_t lanes;
  Core &core;
  uint64_t offset;
  Mbarrier &object;

  unsigned lane() const { return unsigned(llvm::countr_zero(lanes)); }
  void report(std::string message) const {
    reportFinding(call.warp, call.at, lane(), FindingKind::BrokenMbarrier, std::move(message));
  }
  void complete() const {
    completeIfDone(core, offset, object, [&](std::string message) { report(std::move(message)); });
  }
  std::string name() const { return fmt::format("the mbarrier at byte {} of shared memory", offset); }
};

void expect(const Operation &op, int64_t bytes) {
  op.object.bytes += bytes;
  if (std::abs(op.object.bytes) > mostBytes || std::abs(bytes) > mostBytes)
    op.report(fmt::format("expects {} bytes at {}, more than it can count", op.object.bytes, op.name()));
}

void arrive(const Operation &op, unsigned lane, uint32_t count, bool drops) {
  Mbarrier &object = op.object;
  if (!count || count > object.pending) {
    op.report(fmt::format("arrives {} times at {}, where {} of {} arrivals are missing", count, op.name(),
                          object.pending, object.expected));
    return;
  }
  if (op.call.at.results && op.call.at.operands[0].kind != Source::Kind::None)
    op.call.setResult(lane, (object.phase & 0xffffffff) | uint64_t(object.pending) << 32);
  object.pending -= count;
  if (drops)
    object.expected -= std::min(count, object.expected);
  if (op.call.at.partial && !object.pending && !object.bytes && op.call.at.mode != Mode::ArriveOnCopies)
    op.report(fmt::format("completes a phase of {} though it says .noComplete", op.name()));
  op.complete();
}

void runArrive(const Operation &op) {
  const CollectiveCall &call = op.call;
  Warp &warp = call.warp;
  const bool expects = call.at.combine == Mode::ExpectTransfer, counted = !expects && call.at.operands.size() > 2;
  if (warp.core->launch.causal && call.at.releases)
    warp.core->causality.release(warp.warp, op.lanes, op.object.arrived);
  for (uint32_t rest = op.lanes; rest; rest &= rest - 1) {
    const unsigned lane = unsigned(llvm::countr_zero(rest));
    if (expects)
      expect(op, int64_t(call.value(1, lane)));
    arrive(op, lane, counted ? uint32_t(call.value(1, lane)) : 1, call.at.mode == Mode::ArriveDrop);
  }
}

/// Copies of sm_80 that the lanes have issued are over with the phase: whoever sees it sees what they wrote. The
/// asynchronous proxy does, too: no kernel of CUTLASS has a proxy fence there.
void runArriveOnCopies(const Operation &op) {
  Warp &warp = op.call.warp;
  completeCopies(warp, op.lanes, op.object.date(op.core.blockIndex));
  if (warp.core->launch.causal) {
    warp.core->causality.fenceProxies(warp.warp, op.lanes, op.lanes == warp.live);
    warp.core->causality.release(warp.warp, op.lanes, op.object.arrived);
  }
  // Without .noinc an arrival is added before, so that none is used up.
  if (op.call.at.partial)
    for (uint32_t rest = op.lanes; rest; rest &= rest - 1)
      arrive(op, unsigned(llvm::countr_zero(rest)), 1, false);
}

bool isOver(const CollectiveCall &call, const Mbarrier &object, unsigned lane) {
  const uint64_t which = call.value(1, lane);
  return call.at.byParity ? object.isOver(uint32_t(which)) : uint32_t(object.phase) != uint32_t(which);
}

/// A try_wait may fail for nothing, and a loop around it has to do with that. All warps that wait for a phase fail
/// alike: of a warpgroup, who waited tells the others. At once: if what is waited for could land or others go on first,
/// it would be over as a rule, and who asks but once not be found.
bool failsForNothing(const Operation &op) {
  Launch &launch = op.core.launch;
  if (op.call.at.mode != Mode::TryWait || launch.options.schedule.order != Schedule::Order::Shuffled)
    return false;
  Mbarrier &object = op.object;
  if (object.drawnFor != object.phase + 1) {
    object.drawnFor = object.phase + 1;
    object.willFail = oneInFour(launch) || oneInFour(launch) ? ~uint32_t(0) : 0;
  }
  const uint32_t own = uint32_t(1) << op.call.warp.warp; // a block has 32 warps at most
  const bool fails = object.willFail & own;
  // Once for each warp: who asks for several phases in turns comes to an end.
  object.willFail &= ~own;
  return fails;
}

/// Blocks the warp until the phase is over; false: it went on without.
bool waitFor(const Operation &op) {
  Warp &warp = op.call.warp;
  const unsigned lane = op.lane();
  while (!isOver(op.call, op.object, lane)) {
    if (op.core.launch.stop)
      return false;
    if (failsForNothing(op))
      return false;
    if (landFor(op.core, op.offset))
      continue;
    if (op.call.at.mode == Mode::TestWait) {
      warp.fiber->suspend(); // what it waits for may be another warp's to do
      return isOver(op.call, op.object, lane);
    }
    warp.waitsFor = op.offset;
    warp.waitsAt = &op.call.at;
    warp.state = WarpState::Blocked;
    warp.fiber->suspend();
    if (!op.object.initializedAt)
      return false;
  }
  return true;
}

/// A loop that has seen the same so often sees it for ever.
void checkProgress(const Operation &op, bool over) {
  constexpr uint64_t patience = 1 << 16;
  LastWait &last = op.call.warp.lastWait;
  const bool same =
      last.at == &op.call.at && last.offset == op.offset && last.phase == op.object.phase && last.over == over;
  last = {&op.call.at, op.offset, op.object.phase, over, same ? last.count + 1 : 0};
  if (last.count < patience)
    return;
  reportFinding(op.call.warp, op.call.at, op.lane(), FindingKind::NoProgress, [&] {
    return fmt::format("asks {} times {}, which has completed {} phases all the while", last.count, op.name(),
                       op.object.phase);
  });
  op.core.launch.stop = true;
  op.call.warp.fiber->suspend();
}

void runWait(const Operation &op) {
  Warp &warp = op.call.warp;
  const bool over = waitFor(op);
  checkProgress(op, over);
  for (uint32_t rest = op.lanes; rest; rest &= rest - 1)
    op.call.setResult(unsigned(llvm::countr_zero(rest)), over);
  if (!over)
    return;
  op.object.observed = std::max(op.object.observed, op.object.phase);
  if (op.core.launch.causal && op.call.at.acquires)
    warp.core->causality.acquire(warp.warp, op.lanes, op.lanes == warp.live, op.object.complete);
}

void runOn(const Operation &op) {
  const CollectiveCall &call = op.call;
  switch (call.at.mode) {
  case Mode::Invalidate:
    op.object.initializedAt = nullptr;
    return;
  case Mode::ExpectTransfer:
  case Mode::CompleteTransfer:
    for (uint32_t rest = op.lanes; rest; rest &= rest - 1) {
      const int64_t bytes = int64_t(call.value(1, unsigned(llvm::countr_zero(rest))));
      expect(op, call.at.mode == Mode::ExpectTransfer ? bytes : -bytes);
      if (call.at.mode == Mode::CompleteTransfer)
        op.complete();
    }
    return;
  case Mode::Arrive:
  case Mode::ArriveDrop:
    return runArrive(op);
  case Mode::ArriveOnCopies:
    return runArriveOnCopies(op);
  default:
    return runWait(op);
  }
}

bool isWait(const Decoded &at) { return at.mode == Mode::TestWait || at.mode == Mode::TryWait; }

void initialize(const CollectiveCall &call, unsigned lane, const Place &place) {
  const uint64_t count = call.value(1, lane);
  Core &core = *call.warp.core;
  if (!count || count > mostArrivals)
    reportFinding(call.warp, call.at, lane, FindingKind::BrokenMbarrier,
                  fmt::format("initializes an mbarrier for {} arrivals: 1 to {} can be counted", count, mostArrivals));
  if (core.mbarriers.find(place.offset))
    reportFinding(call.warp, call.at, lane, FindingKind::BrokenMbarrier,
                  fmt::format("initializes the mbarrier at byte {} of shared memory, which is one already and was not "
                              "invalidated",
                              place.offset));
  Mbarrier &object = core.mbarriers.create(place.offset);
  object.initializedAt = &call.at;
  object.expected = object.pending = uint32_t(count);
}

/// Lanes of `mask` that have the same value of an operand as its lowest one.
uint32_t sameOperand(const CollectiveCall &call, unsigned operand, uint32_t mask) {
  const uint64_t value = call.value(operand, unsigned(llvm::countr_zero(mask)));
  uint32_t same = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const unsigned lane = unsigned(llvm::countr_zero(rest));
    same |= uint32_t(call.value(operand, lane) == value) << lane;
  }
  return same;
}

Place placeObject(const CollectiveCall &call, unsigned lane, uint64_t address, Space space) {
  const Place place =
      placeLane(call.warp, call.at, space, lane, address, objectBytes, isWait(call.at) ? Access::Read : Access::Write);
  if (place.data && place.space != Space::Shared) {
    reportFinding(call.warp, call.at, lane, FindingKind::OutOfBounds, "has an mbarrier that is not in shared memory");
    return {};
  }
  return place;
}

/// The block whose shared memory it is.
Core &homeOf(const CollectiveCall &call, const Place &place) { return place.owner ? *place.owner : *call.warp.core; }

Mbarrier *findObject(const CollectiveCall &call, unsigned lane, const Place &place) {
  Mbarrier *object = homeOf(call, place).mbarriers.find(place.offset);
  if (!object)
    reportFinding(call.warp, call.at, lane, FindingKind::BrokenMbarrier, [&] {
      return fmt::format("uses byte {} of shared memory as an mbarrier, which was not initialized", place.offset);
    });
  return object;
}

/// Without its mbarrier a thread would wait for ever.
void giveUp(const CollectiveCall &call) {
  if (!isWait(call.at))
    return;
  call.forEachLane([&](unsigned lane) { call.setResult(lane, 0); });
  call.warp.core->launch.stop = true;
  call.warp.fiber->suspend();
}

void runOnAddress(const CollectiveCall &call, uint32_t lanes) {
  const unsigned lane = unsigned(llvm::countr_zero(lanes));
  const Place place = placeObject(call, lane, call.value(0, lane), call.at.space);
  if (!place.data)
    return giveUp(call);
  const bool plain = call.at.mode == Mode::Init || call.at.mode == Mode::Invalidate;
  Checker checker(call.warp, call.at, plain ? Access::Write : isWait(call.at) ? Access::Read : Access::Atomic);
  if (call.at.mode == Mode::Init)
    initialize(call, lane, place);
  Mbarrier *object = findObject(call, lane, place);
  if (!object)
    return giveUp(call);
  checker.markWritten(place, lane, objectBytes);
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    checker.touch(place, unsigned(llvm::countr_zero(rest)), objectBytes);
  if (call.at.mode != Mode::Init)
    runOn({call, lanes, homeOf(call, place), place.offset, *object});
}

} // namespace

bool findMbarrier(const CollectiveCall &call, unsigned lane, uint64_t address, Core *&owner, uint64_t &offset) {
  const Place place = placeObject(call, lane, address, Space::SharedCluster);
  owner = &homeOf(call, place);
  offset = place.offset;
  return place.data && findObject(call, lane, place);
}

void completeTransfer(Core &owner, uint64_t offset, uint64_t bytes, Warp &warp, unsigned lane, const Decoded &at) {
  auto report = [&](std::string message) {
    reportFinding(warp, at, lane, FindingKind::BrokenMbarrier, std::move(message));
  };
  Mbarrier *object = owner.mbarriers.find(offset);
  if (!object)
    return report(fmt::format("its copy counts on the mbarrier at byte {} of shared memory, which is no more", offset));
  object->bytes -= int64_t(bytes);
  if (object->bytes < -mostBytes)
    report(fmt::format("brings more bytes to the mbarrier at byte {} of shared memory than it can count", offset));
  completeIfDone(owner, offset, *object, report);
}

void runMbarrier(const CollectiveCall &call) {
  stepTransfers(*call.warp.core);
  if (call.at.mode == Mode::PendingCount)
    return call.forEachLane([&](unsigned lane) { call.setResult(lane, call.value(0, lane) >> 32); });
  for (uint32_t rest = call.mask; rest;) {
    uint32_t lanes = sameOperand(call, 0, rest);
    if (isWait(call.at)) // for different phases one after the other
      lanes = sameOperand(call, 1, lanes);
    runOnAddress(call, lanes);
    rest &= ~lanes;
  }
}

} // namespace hloc::emulator
