#include "Causality.h"

#include "Lanes.h"
#include "Liveness.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc::emulator {

/// A strong load or store of what may be shared memory: barriers of the block do not tell in which order lanes come.
static bool mayNeedLaneOrder(const Decoded &d) {
  return d.strong && (d.opcode == Opcode::Ld || d.opcode == Opcode::St) &&
         (isShared(d.space) || d.space == Space::Generic);
}

bool needsCausality(const Kernel &kernel) {
  return llvm::any_of(kernel.code, [](const Decoded &d) {
    switch (d.opcode) {
    case Opcode::Fence:
    case Opcode::Membar:
      return d.acquires || d.releases;
    case Opcode::Bar:
    case Opcode::Barrier: { // of some lanes, or some warps: with a count of threads that is not 0
      if (d.mode == Mode::All)
        return true;
      const Source &count = d.operands[d.results + 1u];
      return count.kind != Source::Kind::Constant || count.value != 0;
    }
    case Opcode::ClusterBarrier:
      return true;
    case Opcode::Ld:
    case Opcode::St:
    case Opcode::Atom:
    case Opcode::Red:
      return d.acquires || d.releases || (d.strong && d.scope != Scope::Device && !isShared(d.space)) ||
             mayNeedLaneOrder(d);
    default:
      return isAsynchronous(d);
    }
  });
}

bool isAsynchronous(const Decoded &d) {
  switch (d.opcode) {
  case Opcode::AsyncStore:
  case Opcode::Mbarrier:
  case Opcode::Bulk:
  case Opcode::Wgmma:
    return true;
  case Opcode::Cp:
    return d.mode == Mode::TensorLoad || d.mode == Mode::TensorStore || d.mode == Mode::TensorReduce;
  default:
    return false;
  }
}

Trace asynchronousDate(uint64_t block, uint16_t actor, unsigned lane, uint32_t clock) {
  Trace trace;
  trace.block = block;
  trace.epoch = ~0u; // no barrier of the block says anything about it
  trace.clock = clock;
  trace.lanes = 1u << lane;
  trace.warp = actor;
  return trace;
}

namespace {

bool readsStrongly(const Decoded &d) {
  return (d.opcode == Opcode::Ld || d.opcode == Opcode::Atom) && (d.strong || d.acquires);
}

/// Data of memory that an address computed from the value leads to is no part of it.
bool passesValues(const Decoded &d) {
  return d.opcode != Opcode::Ld && d.opcode != Opcode::Atom && d.opcode != Opcode::Ldmatrix;
}

bool isCollectiveOfValues(const Decoded &d) {
  return d.opcode == Opcode::Shfl || d.opcode == Opcode::Vote || d.opcode == Opcode::Match || d.opcode == Opcode::Redux;
}

} // namespace

llvm::DenseSet<const Decoded *> findTellingCollectives(const Kernel &kernel) {
  std::vector<llvm::SmallVector<const Decoded *, 2>> users(kernel.registers);
  std::vector<bool> marked(kernel.registers);
  std::vector<uint32_t> work;
  auto mark = [&](const Decoded &d) {
    forEachDefinition(d, [&](const Source &r) {
      if (!marked[r.slot])
        work.push_back(r.slot);
      marked[r.slot] = true;
    });
  };
  for (const Decoded &d : kernel.code) {
    if (readsStrongly(d))
      mark(d);
    if (passesValues(d))
      forEachUse(d, [&](const Source &r) { users[r.slot].push_back(&d); });
  }
  while (!work.empty()) {
    const uint32_t slot = work.back();
    work.pop_back();
    for (const Decoded *user : users[slot])
      mark(*user);
  }
  llvm::DenseSet<const Decoded *> telling;
  for (const Decoded &d : kernel.code) {
    if (!isCollectiveOfValues(d))
      continue;
    bool tells = false;
    forEachRegister(d.operands[d.results], [&](const Source &r) { tells |= marked[r.slot]; });
    if (tells)
      telling.insert(&d);
  }
  return telling;
}

// Views.

const View::BlockTimes *View::find(uint64_t block) const {
  uint64_t number = block / blocksOfChunk;
  auto found = llvm::lower_bound(chunks, number, [](const auto &chunk, uint64_t n) { return chunk.first < n; });
  return found == chunks.end() || found->first != number ? nullptr : &found->second->blocks[block % blocksOfChunk];
}

bool View::hasBegun(uint64_t block) const {
  const BlockTimes *times = find(block);
  return times && (times->epochs || times->warps);
}

bool View::has(const Trace &trace) const {
  const BlockTimes *times = find(trace.block);
  if (!times)
    return false;
  if (trace.epoch < times->epochs)
    return true;
  if (!times->warps)
    return false;
  for (const WarpTimes::Row &row : times->warps->rows)
    if (row.warp == trace.warp) {
      bool all = true;
      forEachLane(trace.lanes, [&](unsigned lane) { all &= row.clocks[lane] >= trace.clock; });
      return all;
    }
  return false;
}

View::WarpTimesRef View::join(const WarpTimesRef &a, const WarpTimesRef &b) {
  if (!b || a == b)
    return a;
  if (!a)
    return b;
  auto joined = llvm::makeIntrusiveRefCnt<WarpTimes>();
  bool isA = true;
  auto x = a->rows.begin(), y = b->rows.begin();
  while (x != a->rows.end() || y != b->rows.end()) {
    if (y == b->rows.end() || (x != a->rows.end() && x->warp < y->warp)) {
      joined->rows.push_back(*x++);
      continue;
    }
    if (x == a->rows.end() || y->warp < x->warp) {
      joined->rows.push_back(*y++);
      isA = false;
      continue;
    }
    joined->rows.push_back(*x);
    for (unsigned lane = 0; lane < 32; ++lane)
      if (y->clocks[lane] > x->clocks[lane]) {
        joined->rows.back().clocks[lane] = y->clocks[lane];
        isA = false;
      }
    ++x;
    ++y;
  }
  return isA ? a : WarpTimesRef(joined);
}

/// Details of epochs that are past add nothing: clocks of warps only rise.
View::BlockTimes View::join(const BlockTimes &a, const BlockTimes &b) {
  if (a.epochs != b.epochs && (a.epochs < b.epochs ? !a.warps : !b.warps))
    return a.epochs < b.epochs ? b : a;
  return {std::max(a.epochs, b.epochs), join(a.warps, b.warps)};
}

View::ChunkRef View::join(const ChunkRef &a, const ChunkRef &b) {
  if (a == b)
    return a;
  auto joined = llvm::makeIntrusiveRefCnt<Chunk>();
  bool isA = true, isB = true;
  for (unsigned i = 0; i < blocksOfChunk; ++i) {
    const BlockTimes &x = a->blocks[i], &y = b->blocks[i];
    BlockTimes &times = joined->blocks[i];
    times = join(x, y);
    isA &= times.epochs == x.epochs && times.warps == x.warps;
    isB &= times.epochs == y.epochs && times.warps == y.warps;
  }
  return isA ? a : isB ? b : ChunkRef(joined);
}

ViewRef View::join(const ViewRef &a, const ViewRef &b) {
  if (!b || a == b)
    return a;
  if (!a)
    return b;
  auto joined = llvm::makeIntrusiveRefCnt<View>();
  bool isA = true, isB = true;
  auto x = a->chunks.begin(), y = b->chunks.begin();
  while (x != a->chunks.end() || y != b->chunks.end()) {
    if (y == b->chunks.end() || (x != a->chunks.end() && x->first < y->first)) {
      joined->chunks.push_back(*x++);
      isB = false;
    } else if (x == a->chunks.end() || y->first < x->first) {
      joined->chunks.push_back(*y++);
      isA = false;
    } else {
      joined->chunks.emplace_back(x->first, join(x->second, y->second));
      isA &= joined->chunks.back().second == x->second;
      isB &= joined->chunks.back().second == y->second;
      ++x;
      ++y;
    }
  }
  return isA ? a : isB ? b : ViewRef(joined);
}

ViewRef View::withBlock(const ViewRef &view, uint64_t block, const BlockTimes &times) {
  auto chunk = llvm::makeIntrusiveRefCnt<Chunk>();
  chunk->blocks[block % blocksOfChunk] = times;
  auto alone = llvm::makeIntrusiveRefCnt<View>();
  alone->chunks.emplace_back(block / blocksOfChunk, ChunkRef(chunk));
  return join(view, alone);
}

ViewRef View::with(const ViewRef &view, uint64_t block, uint32_t warp, uint32_t lanes, uint32_t clock) {
  auto times = llvm::makeIntrusiveRefCnt<WarpTimes>();
  times->rows.push_back({warp, {}});
  forEachLane(lanes, [&](unsigned lane) { times->rows[0].clocks[lane] = clock; });
  return withBlock(view, block, {0, WarpTimesRef(times)});
}

View::WarpTimesRef View::actorsOf(const WarpTimesRef &times) {
  if (!times || times->rows.back().warp < firstActor)
    return nullptr;
  auto actors = llvm::makeIntrusiveRefCnt<WarpTimes>(*times);
  llvm::erase_if(actors->rows, [](const WarpTimes::Row &row) { return row.warp < firstActor; });
  return actors;
}

ViewRef View::withEpochs(const ViewRef &view, uint64_t block, uint32_t epoch) {
  ViewRef joined = withBlock(view, block, {epoch, nullptr});
  // What was known of its warps is all past; what the asynchronous proxy does has no epoch.
  auto copy = llvm::makeIntrusiveRefCnt<View>(*joined);
  for (auto &[number, chunk] : copy->chunks)
    if (number == block / blocksOfChunk) {
      auto changed = llvm::makeIntrusiveRefCnt<Chunk>(*chunk);
      BlockTimes &times = changed->blocks[block % blocksOfChunk];
      times = {epoch, actorsOf(times.warps)};
      chunk = ChunkRef(changed);
    }
  return copy;
}

ViewRef View::begun(const ViewRef &view, uint64_t block) { return withBlock(view, block, {firstEpoch, nullptr}); }

ViewRef View::withoutWarp(const ViewRef &view, uint64_t block, uint32_t warp) {
  const BlockTimes *times = view ? view->find(block) : nullptr;
  auto isIt = [&](const WarpTimes::Row &row) { return row.warp == warp; };
  if (!times || !times->warps || llvm::none_of(times->warps->rows, isIt))
    return view;
  auto others = llvm::makeIntrusiveRefCnt<WarpTimes>(*times->warps);
  llvm::erase_if(others->rows, isIt);
  auto copy = llvm::makeIntrusiveRefCnt<View>(*view);
  for (auto &[number, chunk] : copy->chunks)
    if (number == block / blocksOfChunk) {
      auto changed = llvm::makeIntrusiveRefCnt<Chunk>(*chunk);
      changed->blocks[block % blocksOfChunk].warps = others->rows.empty() ? nullptr : WarpTimesRef(others);
      chunk = ChunkRef(changed);
    }
  return copy;
}

// Threads.

void BlockCausality::begin(uint64_t linear, unsigned numWarps, llvm::ArrayRef<uint64_t> blocks) {
  block = linear;
  cluster.assign(blocks.begin(), blocks.end());
  epoch = View::firstEpoch;
  warps.clear();
  warps.resize(numWarps);
  barriers.fill(Knowledge());
}

bool BlockCausality::isWithin(Scope scope, uint64_t otherBlock) const {
  return scope == Scope::Device || otherBlock == block ||
         (scope == Scope::Cluster && llvm::is_contained(cluster, otherBlock));
}

Trace BlockCausality::date(uint32_t warp, uint32_t lanes) const {
  Trace trace;
  trace.block = block;
  trace.epoch = epoch;
  trace.clock = warps[warp].clock;
  trace.lanes = lanes;
  trace.warp = uint16_t(warp);
  return trace;
}

const BlockCausality::Knowledge &BlockCausality::of(uint32_t warp, unsigned lane) const {
  const WarpKnowledge &w = warps[warp];
  return w.uniform ? w.common : (*w.lanes)[lane];
}

BlockCausality::Knowledge &BlockCausality::change(uint32_t warp, unsigned lane) {
  WarpKnowledge &w = warps[warp];
  if (w.uniform) {
    if (!w.lanes)
      w.lanes = std::make_unique<std::array<Knowledge, 32>>();
    w.lanes->fill(w.common);
    w.uniform = false;
  }
  return (*w.lanes)[lane];
}

bool BlockCausality::knows(uint32_t warp, unsigned lane, const Trace &trace) const {
  Trace others = trace;
  if (trace.block == block && trace.warp == warp)
    others.lanes &= ~(1u << lane);
  const ViewRef &known = of(warp, lane).known;
  return !others.lanes || (known && known->has(others));
}

bool BlockCausality::guesses(uint32_t warp, unsigned lane, const Trace &trace) const {
  const ViewRef &seen = of(warp, lane).seen;
  return seen && seen->has(trace);
}

ViewRef BlockCausality::open(const Released &released, uint32_t warp, uint32_t lanes) const {
  return released.clock ? View::with(released.view, block, warp, lanes, released.clock) : released.view;
}

void BlockCausality::merge(Knowledge &into, const Knowledge &from) const {
  into.known = View::join(into.known, from.known);
  into.fenced = View::join(into.fenced, from.fenced);
  for (unsigned s = 0; s < numScopes; ++s) {
    into.released[s].view = View::join(into.released[s].view, from.released[s].view);
    into.read[s] = View::join(into.read[s], from.read[s]);
  }
  into.seen = View::join(into.seen, from.seen);
}

/// Fences count for those that meet their threads later: each thread fences what it stored, all meet, one tells others.
BlockCausality::Knowledge BlockCausality::gather(uint32_t warp, uint32_t lanes) const {
  const WarpKnowledge &w = warps[warp];
  Knowledge sum;
  auto add = [&](Knowledge part, uint32_t which) {
    part.known = View::with(part.known, block, warp, which, w.clock);
    for (Released &released : part.released)
      released = {open(released, warp, which), 0};
    merge(sum, part);
  };
  if (w.uniform)
    add(w.common, lanes);
  else
    forEachLane(lanes, [&](unsigned lane) { add((*w.lanes)[lane], 1u << lane); });
  return sum;
}

void BlockCausality::fence(uint32_t warp, uint32_t lanes, bool whole, const Decoded &at) {
  WarpKnowledge &w = warps[warp];
  auto apply = [&](Knowledge &k) {
    for (unsigned s = 0; at.acquires && s <= unsigned(at.scope); ++s)
      k.known = View::join(k.known, k.read[s]);
    for (unsigned s = 0; at.releases && s <= unsigned(at.scope); ++s)
      k.released[s] = {k.known, w.clock};
  };
  if (w.uniform && whole)
    apply(w.common);
  else
    forEachLane(lanes, [&](unsigned lane) { apply(change(warp, lane)); });
  ++w.clock;
}

void BlockCausality::syncLanes(uint32_t warp, uint32_t lanes, bool whole) {
  WarpKnowledge &w = warps[warp];
  Knowledge sum = gather(warp, lanes);
  if (whole) {
    w.common = std::move(sum);
    w.uniform = true;
  } else {
    forEachLane(lanes, [&](unsigned lane) { change(warp, lane) = sum; });
  }
  ++w.clock;
}

void BlockCausality::endReads(uint32_t warp, const LaneSources &sources) {
  using Table = std::array<WarpKnowledge::Clocks, 32>;
  WarpKnowledge &w = warps[warp];
  if (!w.heard)
    w.heard = std::make_unique<Table>();
  const Table before = *w.heard;
  for (unsigned lane = 0; lane < 32; ++lane)
    forEachLane(sources[lane], [&](unsigned from) {
      WarpKnowledge::Clocks &clocks = (*w.heard)[lane];
      for (unsigned other = 0; other < 32; ++other)
        clocks[other] = std::max(clocks[other], before[from][other]);
      clocks[from] = w.clock;
    });
  ++w.clock;
}

bool BlockCausality::isReadOver(uint32_t warp, unsigned lane, const Trace &trace) const {
  if (trace.block != block || trace.warp != warp || !warps[warp].heard)
    return false;
  const WarpKnowledge::Clocks &clocks = (*warps[warp].heard)[lane];
  bool over = true;
  forEachLane(trace.lanes & ~(1u << lane), [&](unsigned other) { over &= clocks[other] >= trace.clock; });
  return over;
}

void BlockCausality::tellLanes(uint32_t warp, const LaneSources &sources) {
  if (warps[warp].uniform)
    return;
  std::array<ViewRef, 32> ofLane, told;
  std::array<Knowledge, 32> &lanes = *warps[warp].lanes;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const bool asBefore = lane && lanes[lane].known == lanes[lane - 1].known;
    ofLane[lane] = asBefore ? ofLane[lane - 1] : View::withoutWarp(lanes[lane].known, block, warp);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (lane && sources[lane] == sources[lane - 1])
      told[lane] = told[lane - 1];
    else
      forEachLane(sources[lane], [&](unsigned from) { told[lane] = View::join(told[lane], ofLane[from]); });
  }
  for (unsigned lane = 0; lane < 32; ++lane)
    lanes[lane].known = View::join(lanes[lane].known, told[lane]);
}

void BlockCausality::arrive(uint32_t barrier, uint32_t warp, uint32_t lanes) {
  merge(barriers[barrier], gather(warp, lanes));
  ++warps[warp].clock;
}

void BlockCausality::complete(uint32_t barrier, uint32_t waiting, bool all) {
  Knowledge sum = std::move(barriers[barrier]);
  barriers[barrier] = Knowledge();
  if (all)
    sum.known = View::withEpochs(sum.known, block, ++epoch);
  forEachLane(waiting, [&](unsigned warp) {
    warps[warp].common = sum;
    warps[warp].uniform = true;
  });
}

void BlockCausality::fenceProxies(uint32_t warp, uint32_t lanes, bool whole) {
  WarpKnowledge &w = warps[warp];
  auto apply = [&](Knowledge &k, uint32_t which) {
    k.fenced = View::join(k.fenced, View::with(k.known, block, warp, which, w.clock));
  };
  if (w.uniform && whole)
    // Each lane lets go what it did itself, and they go on in step: no lane is ahead of the others.
    apply(w.common, lanes);
  else
    forEachLane(lanes, [&](unsigned lane) { apply(change(warp, lane), 1u << lane); });
  ++w.clock;
}

bool BlockCausality::isFenced(uint32_t warp, unsigned lane, const Trace &write) const {
  const ViewRef &fenced = of(warp, lane).fenced;
  return fenced && fenced->has(write);
}

void BlockCausality::release(uint32_t warp, uint32_t lanes, Handover &handover) {
  const Knowledge sum = gather(warp, lanes);
  handover.join({sum.known, sum.fenced});
  ++warps[warp].clock;
}

void BlockCausality::acquire(uint32_t warp, uint32_t lanes, bool whole, const Handover &handover) {
  WarpKnowledge &w = warps[warp];
  auto apply = [&](Knowledge &k) {
    k.known = View::join(k.known, handover.known);
    k.fenced = View::join(k.fenced, handover.fenced);
  };
  if (w.uniform && whole)
    apply(w.common);
  else
    forEachLane(lanes, [&](unsigned lane) { apply(change(warp, lane)); });
}

Handover BlockCausality::arriveAtCluster(uint32_t warp, uint32_t lanes, bool releases) {
  const Knowledge sum = gather(warp, lanes);
  ++warps[warp].clock;
  return {View::begun(releases ? sum.known : sum.released[unsigned(Scope::Cluster)].view, block), sum.fenced};
}

ViewRef BlockCausality::knownBy(uint32_t warp, uint32_t lanes) const { return gather(warp, lanes).known; }

bool BlockCausality::knowsBegun(uint32_t warp, unsigned lane, uint64_t other) const {
  const ViewRef &known = of(warp, lane).known;
  return known && known->hasBegun(other);
}

void BlockCausality::receive(uint32_t warp, unsigned lane, const Decoded &at, const Message &message, bool isAtomic) {
  std::array<ViewRef, numScopes> brought;
  for (unsigned s = 0; s <= unsigned(at.scope); ++s)
    if (isWithin(Scope(s), message.block))
      brought[s] = message.views[s];
  if (llvm::none_of(brought, [](const ViewRef &view) { return bool(view); }))
    return;
  Knowledge &k = change(warp, lane);
  if (k.lastAt == &at && k.last == brought)
    return; // polled again
  k.lastAt = &at;
  k.last = brought;
  k.fenced = View::join(k.fenced, message.fenced); // means something once the rest is known
  for (unsigned s = 0; s < numScopes; ++s) {
    k.read[s] = View::join(k.read[s], brought[s]);
    if (at.acquires)
      k.known = View::join(k.known, brought[s]);
    if (isAtomic)
      k.seen = View::join(k.seen, brought[s]);
  }
}

void BlockCausality::send(uint32_t warp, unsigned lane, const Decoded &at, Message &message, bool isAtomic) {
  const Knowledge &k = of(warp, lane);
  WarpKnowledge &w = warps[warp];
  const ViewRef all = at.releases ? View::with(k.known, block, warp, 1u << lane, w.clock) : nullptr;
  const uint32_t thread = warp * 32 + lane;
  // Atomics pass on what they find; a store ends that, unless its thread goes on with its own.
  const bool goesOn = isAtomic || (message.block == block && message.thread == thread);
  for (unsigned s = 0; s < numScopes; ++s) {
    ViewRef own;
    if (s <= unsigned(at.scope))
      own = at.releases ? all : open(k.released[s], warp, 1u << lane);
    message.views[s] = goesOn && isWithin(Scope(s), message.block) ? View::join(message.views[s], own) : own;
  }
  message.fenced = goesOn ? View::join(message.fenced, k.fenced) : k.fenced;
  message.block = block;
  message.thread = thread;
  if (at.releases)
    ++w.clock;
}

} // namespace hloc::emulator
