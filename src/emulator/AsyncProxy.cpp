#include "AsyncProxy.h"

#include "Cluster.h"
#include "CollectiveParts.h"
#include "Scheduler.h"

#include "fmt/format.h"

#include <cstring>

namespace hloc::emulator {

namespace {

constexpr uint64_t lineBytes = uint64_t(1) << AsyncShadow::lineShift;

/// The pieces of a line that hold some of these bytes.
uint32_t piecesOf(uint64_t line, uint64_t offset, uint64_t bytes) {
  const uint64_t begin = std::max(offset, line * lineBytes), end = std::min(offset + bytes, (line + 1) * lineBytes);
  const unsigned first = unsigned(begin % lineBytes >> AsyncShadow::pieceShift);
  const unsigned last = unsigned((end - 1) % lineBytes >> AsyncShadow::pieceShift);
  return uint32_t((uint64_t(2) << last) - (uint64_t(1) << first));
}

/// Reductions may meet.
bool mayMeet(const Decoded &a, const Decoded &b) {
  return a.combine != Mode::None && a.combine == b.combine && a.opcode == b.opcode;
}

uint32_t threadOf(const Warp &warp, unsigned lane) { return warp.warp * warpLanes + lane; }

Place sharedPlace(const Warp &warp, Core &owner, uint64_t offset) {
  const bool own = warp.core == &owner;
  return {owner.shared.data() + offset, Space::Shared, 0, offset, own ? 0 : owner.rank + 1, own ? nullptr : &owner};
}

} // namespace

const char *kindOf(const Decoded &at) {
  return at.opcode == Opcode::Wgmma ? "product" : at.opcode == Opcode::AsyncStore ? "asynchronous store" : "copy";
}

const AsyncShadow::Record *AsyncShadow::enter(const BlockCausality &causality, Traces::Access::Issuer issuer,
                                              uint64_t number, const Record &now) {
  Line &line = lines[number];
  for (const Record &before : line.records)
    if ((before.pieces & now.pieces) && (before.writes || now.writes) && !mayMeet(*before.at, *now.at) &&
        !issuer.knows(causality, before.who))
      return &before;
  used = true;
  // What a write replaces need not be compared with later ones: whoever knows it knows what came before.
  for (Record &before : line.records) {
    const bool sameActor = before.who.warp == now.who.warp && before.who.lanes == now.who.lanes &&
                           before.who.block == now.who.block && !before.writes && before.who.clock <= now.who.clock;
    if ((now.writes || sameActor) && !mayMeet(*before.at, *now.at))
      before.pieces &= ~now.pieces;
  }
  llvm::erase_if(line.records, [](const Record &record) { return !record.pieces; });
  for (Record &before : line.records)
    if (mayMeet(*before.at, *now.at) && before.who.warp == now.who.warp && before.who.lanes == now.who.lanes &&
        before.who.block == now.who.block && before.who.clock == now.who.clock) {
      before.pieces |= now.pieces;
      return nullptr;
    }
  line.records.push_back(now);
  return nullptr;
}

const AsyncShadow::Record *AsyncShadow::meet(const BlockCausality &causality, uint32_t warp, uint32_t lanes,
                                             uint64_t offset, uint64_t bytes, bool writes) const {
  for (uint64_t number = offset >> lineShift; number <= (offset + bytes - 1) >> lineShift; ++number)
    for (const Record &before : lines[number].records) {
      if (!(before.pieces & piecesOf(number, offset, bytes)) || !(before.writes || writes))
        continue;
      for (uint32_t rest = lanes; rest; rest &= rest - 1)
        if (!causality.knows(warp, unsigned(llvm::countr_zero(rest)), before.who))
          return &before;
    }
  return nullptr;
}

void recordWrite(Warp &warp, unsigned lane, const Decoded &at, uint64_t offset, uint64_t bytes, const Trace &date) {
  Core &core = *warp.core;
  if (!core.launch.causal || !bytes)
    return;
  for (uint64_t line = offset >> AsyncShadow::lineShift; line <= (offset + bytes - 1) >> AsyncShadow::lineShift; ++line)
    core.async.enter(core.causality, {warp.warp, lane}, line,
                     {date, &at, threadOf(warp, lane), piecesOf(line, offset, bytes), true});
}

void AsyncAccess::shared(Core &owner, uint64_t offset, uint64_t bytes) {
  const Launch &launch = owner.launch;
  Checker checker(warp, at, writes ? Access::Write : Access::Read);
  if (!writes || at.combine != Mode::None)
    checker.requireWritten(sharedPlace(warp, owner, offset), lane, bytes);
  if (!launch.causal || !bytes)
    return;
  if (&owner != warp.core)
    checkBegun(warp, at, lane, sharedPlace(warp, owner, offset), writes ? Access::Write : Access::Read);
  const BlockCausality &causality = warp.core->causality;
  auto report = [&](const std::string &other) {
    reportFinding(warp, at, lane, FindingKind::SharedRace, [&] {
      return fmt::format("its {} {} {}, {}", kindOf(at), writes ? "writes" : "reads",
                         describe(warp, sharedPlace(warp, owner, offset)), other);
    });
  };
  for (uint64_t line = offset >> AsyncShadow::lineShift; line <= (offset + bytes - 1) >> AsyncShadow::lineShift;
       ++line) {
    AsyncShadow::Record now{date, &at, threadOf(warp, lane), piecesOf(line, offset, bytes), writes};
    if (const auto *other = owner.async.enter(causality, {warp.warp, lane, others}, line, now))
      return report(fmt::format("which the {} of thread {} in line {} {} until it is waited for, and nothing says that "
                                "this is over",
                                kindOf(*other->at), other->thread, other->at->line,
                                other->writes ? "writes" : "reads"));
    if (!owner.async.isGeneric(line))
      continue;
    Traces::Access access{causality, date, !writes, writes};
    access.issuer = {warp.warp, lane, others, at.opcode != Opcode::AsyncStore};
    const uint64_t begin = std::max(offset, line * lineBytes), end = std::min(offset + bytes, (line + 1) * lineBytes);
    for (uint64_t g = begin >> launch.sharedShift; g <= (end - 1) >> launch.sharedShift; ++g)
      if (auto conflict = owner.sharedTraces.look(owner.sharedCells[g], access); conflict.other.lanes) {
        const bool known = access.issuer->knows(causality, conflict.other);
        return report(fmt::format("which thread {} {} with no {} between", conflict.other.thread(),
                                  conflict.otherWrote ? "wrote" : "read", known ? "fence.proxy.async" : "order"));
      }
  }
}

void AsyncAccess::global(const Place &place, uint64_t bytes, bool atomic) {
  Launch &launch = warp.core->launch;
  Window &window = launch.windows[place.region];
  Checker checker(warp, at, writes ? Access::Write : Access::Read);
  if (!writes)
    checker.requireWritten(place, lane, bytes);
  if (!window.earlier.empty())
    avoidEarlierGrids(warp, at, lane, place, bytes, writes ? Access::Write : Access::Read);
  if (!launch.causal || !window.tracked || !bytes)
    return;
  Traces::Access access{warp.core->causality, date, !writes, writes};
  access.issuer = {warp.warp, lane};
  access.reads |= atomic;
  access.now.strong = atomic;
  // A box may begin and end within a granule, the rest of which is another block's: whole ones alone are looked at.
  const uint64_t granule = uint64_t(1) << launch.globalShift;
  for (uint64_t g = (place.offset + granule - 1) >> launch.globalShift;
       g < (place.offset + bytes) >> launch.globalShift; ++g)
    if (auto conflict = launch.traces.enter(window.cells[g], access); conflict.other.lanes) {
      const Trace &other = conflict.other;
      const bool known = warp.core->causality.knows(warp.warp, lane, other);
      return reportFinding(warp, at, lane, FindingKind::GlobalRace, [&] {
        const std::string who = isAsynchronous(other)
                                    ? std::string("another copy")
                                    : fmt::format("thread {} of block {}", other.thread(), other.block);
        return fmt::format("its {} {} {}, which {} {} with no {} between", kindOf(at), writes ? "writes" : "reads",
                           describe(warp, place), who, conflict.otherWrote ? "wrote" : "read",
                           known ? "fence.proxy.async" : "order");
      });
    }
}

// Copies.

namespace {

/// The clock of a thread's bulk groups is over up to a group when that many have been committed and waited for.
Trace dateOfGroup(const Warp &warp, unsigned lane, uint16_t actors, uint32_t groups) {
  return asynchronousDate(warp.core->blockIndex, uint16_t(actors + warp.warp), lane, groups);
}

Place globalPlace(const Core &core, uint64_t address) {
  Place place;
  locate(Space::Global, address, place);
  place.data = core.launch.windows[place.region].data + place.offset;
  return place;
}

bool isStore(const Transfer &transfer) { return transfer.direction == Transfer::Direction::Store; }

/// Elements of `to` and `from` combined, or copied.
void move(const Transfer &transfer, uint8_t *to, const uint8_t *from, uint32_t bytes) {
  if (transfer.reduction == Mode::None) {
    std::memmove(to, from, bytes);
    return;
  }
  const unsigned width = transfer.type.bytes();
  for (uint32_t i = 0; i + width <= bytes; i += width)
    combineInPlace(transfer.type, transfer.reduction, to + i, from + i, transfer.flushes);
}

void landRun(const Transfer &transfer, const Transfer::Run &run) {
  Core &core = *transfer.issuer->core;
  const Place to =
      isStore(transfer) ? globalPlace(core, run.to) : sharedPlace(*transfer.issuer, *transfer.target, run.to);
  Checker(*transfer.issuer, *transfer.at, Access::Write).markWritten(to, transfer.lane, run.bytes);
  const llvm::MutableArrayRef<uint8_t> data(to.data, run.bytes);
  if (run.from == Transfer::registers)
    move(transfer, to.data, transfer.data.data(), run.bytes);
  else if (run.from == Transfer::nowhere)
    fillOutside(*transfer.map, data);
  else if (transfer.direction != Transfer::Direction::Load)
    move(transfer, to.data, core.shared.data() + run.from, run.bytes);
  else {
    move(transfer, to.data, globalPlace(core, run.from).data, run.bytes);
    if (transfer.map)
      convertElements(transfer.map->recipe.type, data);
  }
}

void land(Transfer &transfer) {
  Launch &launch = transfer.issuer->core->launch;
  for (const Transfer::Run &run : transfer.runs)
    landRun(transfer, run);
  transfer.landed = true;
  if (launch.together)
    ++launch.progress;
  if (!isStore(transfer))
    completeTransfer(*transfer.target, transfer.mbarrier, transfer.bytes, *transfer.issuer, transfer.lane,
                     *transfer.at);
}

/// Forgets what nobody has to wait for any more.
void forgetDone(Core &core) {
  Transfers &transfers = core.transfers;
  llvm::erase_if(transfers.pending, [&](const Transfer &t) {
    return t.landed && (!isStore(t) || t.group < transfers.readsOver[t.issuer->warp][t.lane]);
  });
}

/// How many steps from now, or 0: as late as possible. Less than 0: at once.
int stepsUntilLanding(const Core &core) {
  const Schedule &schedule = core.launch.options.schedule;
  if (schedule.order != Schedule::Order::Shuffled)
    return schedule.order == Schedule::Order::Reversed ? -1 : 0;
  constexpr uint64_t mostSteps = 16;
  return int(randomBits(schedule, core.blockIndex << 32 | core.transfers.issued) % mostSteps) - 1;
}

void checkAccesses(const Transfer &transfer, const Trace &readsOver, const Trace &writesOver) {
  Warp &warp = *transfer.issuer;
  AsyncAccess reads(warp, transfer.lane, *transfer.at, readsOver, false);
  AsyncAccess writes(warp, transfer.lane, *transfer.at, writesOver, true);
  for (auto [offset, bytes] : transfer.shared)
    isStore(transfer) ? reads.shared(*warp.core, offset, bytes) : writes.shared(*transfer.target, offset, bytes);
  const bool each = transfer.shared.empty();
  for (const Transfer::Run &run : transfer.runs) {
    const bool ofMemory = run.from != Transfer::nowhere && run.from != Transfer::registers;
    if (ofMemory && transfer.direction == Transfer::Direction::Load)
      reads.global(globalPlace(*warp.core, run.from), run.bytes);
    else if (ofMemory && each)
      reads.shared(*warp.core, run.from, run.bytes);
    if (isStore(transfer))
      writes.global(globalPlace(*warp.core, run.to), run.bytes, transfer.reduction != Mode::None);
    else if (each)
      writes.shared(*transfer.target, run.to, run.bytes);
  }
}

} // namespace

void issueTransfer(Warp &warp, const Decoded &at, unsigned lane, Transfer transfer) {
  Core &core = *warp.core;
  transfer.at = &at;
  transfer.issuer = &warp;
  transfer.lane = lane;
  ++core.transfers.issued;
  if (isStore(transfer)) {
    transfer.group = core.transfers.committed[warp.warp][lane];
    checkAccesses(transfer, dateOfGroup(warp, lane, actorsOfReads, transfer.group + 1),
                  dateOfGroup(warp, lane, actorsOfWrites, transfer.group + 1));
  } else {
    Mbarrier &mbarrier = *transfer.target->mbarriers.find(transfer.mbarrier);
    for (const Transfer::Run &run : transfer.runs)
      transfer.bytes += run.bytes;
    const Trace date = mbarrier.date(transfer.target->blockIndex);
    transfer.phase = date.clock;
    mbarrier.lastCopy = {&at, &warp, lane, mbarrier.phase + 1};
    checkAccesses(transfer, date, date);
  }
  const int steps = stepsUntilLanding(core);
  transfer.steps = uint32_t(std::max(steps, 0));
  core.transfers.pending.push_back(std::move(transfer));
  if (steps < 0)
    land(core.transfers.pending.back());
  forgetDone(core);
}

void issueToBlocks(const CollectiveCall &call, unsigned lane, Transfer transfer, uint64_t mbarrier,
                   std::optional<uint32_t> ranks) {
  Warp &warp = call.warp;
  const auto &blocks = warp.core->cluster.blocks;
  if (!ranks) {
    Core *owner = nullptr;
    if (!findMbarrier(call, lane, mbarrier, owner, transfer.mbarrier))
      return;
    if (owner == transfer.target)
      return issueTransfer(warp, call.at, lane, std::move(transfer));
    return reportFinding(warp, call.at, lane, FindingKind::BrokenMbarrier,
                         "copies into the shared memory of one block and counts on an mbarrier of another");
  }
  if (!*ranks || *ranks >> blocks.size())
    return reportFinding(warp, call.at, lane, FindingKind::OutOfBounds, [&] {
      return fmt::format("copies to the blocks of mask {:#x} of a cluster of {}", *ranks, blocks.size());
    });
  for (uint32_t rest = *ranks; rest; rest &= rest - 1) {
    Transfer one = transfer;
    const unsigned rank = unsigned(llvm::countr_zero(rest));
    one.target = blocks[rank].get();
    Core *owner = nullptr;
    constexpr uint64_t offsets = (uint64_t(1) << rankShift) - 1;
    if (findMbarrier(call, lane, uint64_t(rank + 1) << rankShift | (mbarrier & offsets), owner, one.mbarrier))
      issueTransfer(warp, call.at, lane, std::move(one));
  }
}

void stepTransfers(Core &core) {
  bool any = false;
  for (Transfer &transfer : core.transfers.pending)
    if (!transfer.landed && transfer.steps && !--transfer.steps) {
      land(transfer);
      any = true;
    }
  if (any)
    forgetDone(core);
}

bool landFor(Core &core, uint64_t mbarrier) {
  bool any = false;
  for (const std::unique_ptr<Core> &issuer : core.cluster.blocks) {
    for (Transfer &transfer : issuer->transfers.pending)
      if (!transfer.landed && transfer.target == &core && transfer.mbarrier == mbarrier) {
        land(transfer);
        any = true;
      }
    if (any)
      forgetDone(*issuer);
  }
  return any;
}

bool landOldest(Core &core) {
  for (Transfer &transfer : core.transfers.pending)
    if (!transfer.landed) {
      land(transfer);
      forgetDone(core);
      return true;
    }
  return false;
}

void abandonTransfers(Core &core) {
  auto report = [&](Warp &warp, const Decoded &at, unsigned lane, const char *what) {
    if (core.launch.options.checkRaces)
      reportFinding(warp, at, lane, FindingKind::OpenCopy,
                    [&] { return fmt::format("its block ends without that anybody has waited for {}", what); });
  };
  for (Transfer &transfer : core.transfers.pending) {
    if (isStore(transfer))
      report(*transfer.issuer, *transfer.at, transfer.lane, "its copy, which may still read shared memory");
    if (!transfer.landed)
      land(transfer);
  }
  core.transfers.pending.clear();
  core.mbarriers.forEach([&](const Mbarrier &mbarrier) {
    const auto &last = mbarrier.lastCopy;
    if (last.at && last.phase > mbarrier.observed)
      report(*last.issuer, *last.at, last.lane, "its copy, which may still write shared memory");
  });
}

void observe(Warp &warp, uint32_t lanes, const Trace &date) {
  Core &core = *warp.core;
  if (!core.launch.causal || !lanes)
    return;
  Handover over;
  over.known = View::with(nullptr, date.block, date.warp, date.lanes, date.clock);
  core.causality.acquire(warp.warp, lanes, lanes == warp.live, over);
}

namespace {

/// The bytes that a copy without a tensor map moves; false, with a finding, if there is no such memory.
bool placeBulk(const CollectiveCall &call, unsigned lane, Transfer &transfer) {
  Warp &warp = call.warp;
  const uint64_t bytes = call.value(2, lane), to = call.value(0, lane), from = call.value(1, lane);
  constexpr uint64_t unit = 16;
  if (bytes % unit || to % unit || from % unit) {
    reportFinding(warp, call.at, lane, FindingKind::Misaligned, [&] {
      return fmt::format("copies {} bytes from {:#x} to {:#x}: all of them must be multiples of {}", bytes, from, to,
                         unit);
    });
    return false;
  }
  const bool store = isStore(transfer), load = transfer.direction == Transfer::Direction::Load;
  const Place source = placeRun(warp, call.at, load ? Space::Global : Space::Shared, lane, from, bytes, Access::Read);
  const Place target =
      placeRun(warp, call.at, store ? Space::Global : Space::SharedCluster, lane, to, bytes, Access::Write);
  if (!source.data || !target.data)
    return false;
  if (!store)
    transfer.target = target.owner ? target.owner : warp.core;
  if (bytes)
    transfer.runs.push_back({load ? from : source.offset, store ? to : target.offset, uint32_t(bytes)});
  return true;
}

void issueBulk(const CollectiveCall &call) {
  const bool store = call.at.mode == Mode::BulkStore;
  call.forEachLane([&](unsigned lane) {
    Transfer transfer;
    transfer.direction = store                            ? Transfer::Direction::Store
                         : call.at.mode == Mode::BulkLoad ? Transfer::Direction::Load
                                                          : Transfer::Direction::ToCluster;
    transfer.reduction = call.at.combine;
    transfer.type = call.at.type;
    if (!placeBulk(call, lane, transfer))
      return;
    if (store)
      return issueTransfer(call.warp, call.at, lane, std::move(transfer));
    const bool multicast = call.at.operands.size() > 4;
    issueToBlocks(call, lane, std::move(transfer), call.value(3, lane),
                  multicast ? std::optional<uint32_t>(uint32_t(call.value(4, lane))) : std::nullopt);
  });
}

/// Groups before the last `left` ones of each lane are over.
void waitForGroups(const CollectiveCall &call, uint32_t left) {
  Warp &warp = call.warp;
  Transfers &transfers = warp.core->transfers;
  call.forEachLane([&](unsigned lane) {
    const uint32_t committed = transfers.committed[warp.warp][lane];
    if (committed <= left)
      return;
    const uint32_t over = committed - left;
    for (Transfer &transfer : transfers.pending)
      if (isStore(transfer) && transfer.issuer == &warp && transfer.lane == lane && transfer.group < over &&
          !transfer.landed)
        land(transfer);
    uint32_t &readsOver = transfers.readsOver[warp.warp][lane];
    readsOver = std::max(readsOver, over);
    observe(warp, 1u << lane, dateOfGroup(warp, lane, actorsOfReads, over));
    if (!call.at.partial)
      observe(warp, 1u << lane, dateOfGroup(warp, lane, actorsOfWrites, over));
  });
  forgetDone(*warp.core);
}

} // namespace

void runAsyncStore(const CollectiveCall &call) {
  Warp &warp = call.warp;
  stepTransfers(*warp.core);
  const unsigned width = call.at.type.bytes(), bytes = width * call.at.count;
  uint64_t addresses[warpLanes] = {};
  call.forEachLane([&](unsigned lane) { addresses[lane] = call.value(0, lane); });
  if (warp.core->launch.options.countEvents)
    countRequest(warp, call.at, Space::Shared, call.mask, addresses, bytes, true);
  call.forEachLane([&](unsigned lane) {
    const Place to = placeLane(warp, call.at, call.at.space, lane, addresses[lane], bytes, Access::Write);
    if (!to.data)
      return;
    if (to.space != Space::Shared)
      return reportFinding(warp, call.at, lane, FindingKind::OutOfBounds,
                           [&] { return "stores to " + describe(warp, to) + ", which is not shared memory"; });
    Transfer transfer;
    transfer.direction = Transfer::Direction::ToCluster;
    transfer.reduction = call.at.combine;
    transfer.type = call.at.type;
    transfer.target = to.owner ? to.owner : warp.core;
    const auto *values = static_cast<const uint8_t *>(call.operands[1]);
    for (unsigned e = 0; e < call.at.count; ++e)
      std::memcpy(&transfer.data[e * width], values + (e * warpLanes + lane) * width, width);
    transfer.runs.push_back({Transfer::registers, to.offset, bytes});
    uint64_t mbarrier = call.value(2, lane);
    if (call.at.space == Space::Generic && mbarrier >> regionShift == sharedWindow >> regionShift)
      mbarrier -= sharedWindow;
    issueToBlocks(call, lane, std::move(transfer), mbarrier, std::nullopt);
  });
}

void runBulk(const CollectiveCall &call) {
  Core &core = *call.warp.core;
  stepTransfers(core);
  switch (call.at.mode) {
  case Mode::Commit:
    return call.forEachLane([&](unsigned lane) { ++core.transfers.committed[call.warp.warp][lane]; });
  case Mode::WaitGroup:
    return waitForGroups(call, uint32_t(call.source(0).value));
  default:
    return issueBulk(call);
  }
}

} // namespace hloc::emulator
