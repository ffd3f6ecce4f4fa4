#include "Traces.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::emulator {

Traces::Sharers &Traces::sharersOf(Cell &cell) {
  if (!cell.others) {
    pool.emplace_back();
    cell.others = uint32_t(pool.size());
    if (cell.write.lanes) {
      cell.write.serial = pool.back().serial = 1;
      pool.back().writes.push_back(cell.write);
    }
  }
  return pool[cell.others - 1];
}

/// Strong accesses whose scopes hold both threads.
bool Traces::mayMeet(const Access &access, const Trace &before) {
  const Trace &now = access.now;
  if (before.needsLaneOrder && now.needsLaneOrder && before.block == now.block && before.warp == now.warp)
    return false;
  return before.strong && now.strong && access.causality.isWithin(std::min(before.scope, now.scope), before.block);
}

/// What other proxies read, and what the asynchronous one did itself, need only be known to be over; what threads
/// wrote it sees once a proxy fence stands between.
bool Traces::isOrderedForProxy(const Access &access, const Trace &before, bool beforeWrote) {
  const Access::Issuer &issuer = *access.issuer;
  if (!issuer.knows(access.causality, before))
    return false;
  return !issuer.otherProxy || !beforeWrote || isAsynchronous(before) || issuer.isFenced(access.causality, before);
}

Traces::Conflict Traces::look(const Cell &cell, const Access &access) const {
  auto isPast = [&](const Trace &before, bool wrote) {
    return mayMeet(access, before) || isOrderedForProxy(access, before, wrote);
  };
  if (!cell.others)
    return cell.write.lanes && !isPast(cell.write, true) ? Conflict{cell.write, true} : Conflict{};
  const Sharers &sharers = pool[cell.others - 1];
  for (const Trace &write : sharers.writes)
    if (!isPast(write, true))
      return {write, true};
  for (const Trace &read : sharers.reads)
    if (access.writes && !isPast(read, false))
      return {read, false};
  return {};
}

/// An atomic that finds out that others are done, and reads their results without a fence: the control flow keeps it
/// from reading too early, and it reads what is new, unless its multiprocessor has kept the place from an earlier read.
bool Traces::isOrdered(const Sharers &sharers, const Access &access, const Trace &before) {
  const Trace &now = access.now;
  if (access.issuer) // look() has found no conflict
    return true;
  const unsigned lane = unsigned(llvm::countr_zero(now.lanes));
  // Of several lanes each must know: the one that wrote what all read knows its own write.
  uint32_t knowing = now.lanes;
  if (before.block != now.block || before.warp != now.warp)
    knowing &= -knowing;
  while (knowing && access.causality.knows(now.warp, unsigned(llvm::countr_zero(knowing)), before))
    knowing &= knowing - 1;
  if (!knowing)
    return true;
  if (!access.causality.guesses(now.warp, lane, before))
    return false;
  auto isOwn = [&](const Trace &trace) { return trace.block == now.block && !trace.strong; };
  return !llvm::is_contained(sharers.visitors, now.block) && llvm::none_of(sharers.writes, isOwn) &&
         llvm::none_of(sharers.reads, isOwn);
}

/// A lane that has got a value from those that read may write: they have read already, unless the compiler moved the
/// read behind the collective. Cooperative groups use the shared memory of a tile again like this.
bool Traces::mayOverwrite(const Sharers &sharers, const Access &access, const Trace &read) {
  const unsigned lane = unsigned(llvm::countr_zero(access.now.lanes));
  return mayMeet(access, read) || isOrdered(sharers, access, read) ||
         (access.shared && access.causality.isReadOver(access.now.warp, lane, read));
}

/// The last of the writes that strong accesses known to this one have seen: all up to it are past.
uint32_t Traces::lastSeen(const Sharers &sharers, const Access &access) {
  uint32_t last = 0;
  auto consider = [&](const Trace &trace) {
    if (trace.strong && trace.serial > last && isOrdered(sharers, access, trace))
      last = trace.serial;
  };
  for (const Trace &write : sharers.writes)
    if (write.readsToo)
      consider(write);
  for (const Trace &read : sharers.reads)
    consider(read);
  return last;
}

void Traces::visit(Sharers &sharers, uint64_t block) {
  constexpr size_t most = 256;
  if (!llvm::is_contained(sharers.visitors, block) && sharers.visitors.size() < most)
    sharers.visitors.push_back(block);
}

void Traces::add(llvm::SmallVectorImpl<Trace> &list, const Trace &now) {
  constexpr size_t recent = 8;
  for (size_t i = list.size(); i && list.size() - i < recent; --i) {
    Trace &before = list[i - 1];
    if (before.block != now.block || before.warp != now.warp || before.strong != now.strong ||
        before.scope != now.scope || before.readsToo != now.readsToo || before.needsLaneOrder != now.needsLaneOrder)
      continue;
    if (!(before.lanes & ~now.lanes)) { // whoever comes after what these lanes do now comes after what they did before
      before = now;
      return;
    }
    if (before.clock == now.clock && before.epoch == now.epoch) {
      before.lanes |= now.lanes;
      before.serial = now.serial;
      return;
    }
  }
  if (list.size() >= longest)
    list.erase(list.begin(), list.begin() + longest / 2);
  list.push_back(now);
}

Traces::Conflict Traces::enter(Cell &cell, const Access &access) {
  Trace now = access.now;
  const unsigned lane = unsigned(llvm::countr_zero(now.lanes));
  if (access.issuer)
    if (Conflict conflict = look(cell, access); conflict.other.lanes)
      return conflict;
  if (!cell.others && access.writes && !now.strong && !access.issuer &&
      (!cell.write.lanes ||
       (cell.write.block == now.block && !cell.write.strong && access.causality.knows(now.warp, lane, cell.write)))) {
    cell.write = now;
    return {};
  }
  Sharers &sharers = sharersOf(cell);
  std::optional<uint32_t> seen;
  for (const Trace &write : sharers.writes) {
    if (mayMeet(access, write) || isOrdered(sharers, access, write) || (access.rewrites && write.block == now.block))
      continue;
    if (!seen)
      seen = lastSeen(sharers, access);
    if (!write.strong || write.serial > *seen)
      return {write, true};
  }
  if (!access.writes) {
    now.serial = sharers.serial;
    add(sharers.reads, now);
    return {};
  }
  for (const Trace &read : sharers.reads)
    if (!mayOverwrite(sharers, access, read))
      return {read, false};
  // What is in order with this write need not be compared with later ones, unless those may meet this one only.
  auto isPast = [&](const Trace &before) {
    return (before.strong || !now.strong) && isOrdered(sharers, access, before);
  };
  constexpr size_t few = 64;
  for (auto *list : {&sharers.writes, &sharers.reads}) {
    if (now.strong && (list->size() + 1) % few) // now and then is enough
      continue;
    llvm::SmallVector<Trace, 2> left;
    for (const Trace &before : *list)
      if (!isPast(before))
        left.push_back(before);
    for (const Trace &before : *list)
      if (!before.strong && before.block != now.block)
        visit(sharers, before.block);
    *list = std::move(left);
  }
  now.serial = ++sharers.serial;
  now.readsToo = access.reads;
  add(sharers.writes, now);
  return {};
}

} // namespace hloc::emulator
