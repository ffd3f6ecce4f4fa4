#include "BufferAssignment.h"

#include "llvm/ADT/STLExtras.h"

#include <tuple>

namespace hloc {

namespace {

class LifetimeFinder {
public:
  LifetimeFinder(size_t numBuffers, DefinesArgument defines) : accesses(numBuffers), defines(defines) {}

  std::vector<std::optional<Lifetime>> run(const Steps &steps) {
    number(steps);
    std::vector<std::optional<Lifetime>> lifetimes;
    for (const std::vector<Access> &each : accesses)
      lifetimes.push_back(each.empty() ? std::nullopt : std::optional(lifetimeOf(each)));
    return lifetimes;
  }

private:
  struct Access {
    uint32_t step;
    bool defines;
  };
  struct Loop {
    uint32_t begin, end;
  };

  void access(const BufferSlice &slice, bool isDefinition) {
    if (!slice.bytes)
      return;
    std::vector<Access> &list = accesses[slice.buffer];
    if (!list.empty() && list.back().step == next)
      list.back().defines &= isDefinition; // read and written by one step
    else
      list.push_back({next, isDefinition});
  }

  void number(const Steps &steps) {
    for (const Step &step : steps) {
      if (const auto *loop = std::get_if<WhileStep>(&step.action)) {
        const uint32_t begin = next;
        number(loop->condition);
        access(loop->predicate, /*isDefinition=*/false);
        ++next;
        number(loop->body);
        loops.push_back({begin, next - 1}); // those inside come first
      } else if (const auto *choice = std::get_if<ConditionalStep>(&step.action)) {
        access(choice->selector, /*isDefinition=*/false);
        ++next;
        for (const Steps &branch : choice->branches)
          number(branch);
      } else {
        numberSimple(step);
        ++next;
      }
    }
  }

  void numberSimple(const Step &step) {
    if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
      for (auto [i, argument] : llvm::enumerate(launch->arguments))
        if (const auto *slice = sliceOf(argument))
          access(*slice, defines(*launch, i));
    } else if (const auto *copy = std::get_if<CopyStep>(&step.action)) {
      access(copy->from, false);
      access(copy->to, true);
    } else if (const auto *fill = std::get_if<FillStep>(&step.action)) {
      access(fill->to, true);
    } else if (const auto *call = std::get_if<CallStep>(&step.action)) {
      numberForeign(*call);
    } else if (const auto *unsupported = std::get_if<UnsupportedStep>(&step.action)) {
      numberForeign(*unsupported);
    }
  }

  /// Of a step that says itself what it reads and writes.
  template <typename Foreign> void numberForeign(const Foreign &step) {
    for (const BufferSlice &slice : step.reads)
      access(slice, false);
    for (const BufferSlice &slice : step.writes)
      access(slice, true);
  }

  Lifetime lifetimeOf(llvm::ArrayRef<Access> all) const {
    Lifetime lifetime{all.front().step, all.back().step};
    for (const Loop &loop : loops) {
      const Access *first = llvm::find_if(all, [&](const Access &one) { return one.step >= loop.begin; });
      if (first == all.end() || first->step > loop.end)
        continue;
      if (all.front().step < loop.begin || all.back().step > loop.end || !first->defines)
        lifetime = {std::min(lifetime.begin, loop.begin), std::max(lifetime.end, loop.end)};
    }
    return lifetime;
  }

  std::vector<std::vector<Access>> accesses; ///< by buffer
  std::vector<Loop> loops;
  DefinesArgument defines;
  uint32_t next = 0; ///< the number of the next step
};

/// In this order, each where the least of a gap is left over, or behind all others.
Packing packInOrder(llvm::ArrayRef<BufferInterval> intervals, llvm::ArrayRef<uint32_t> order) {
  struct Placed {
    uint64_t begin, end;
    Lifetime lifetime;
  };
  Packing packing;
  packing.offsets.resize(intervals.size());
  std::vector<Placed> placed; // by offset
  for (uint32_t i : order) {
    const Lifetime lifetime = intervals[i].lifetime;
    const uint64_t bytes = placementEnd(intervals[i].bytes);
    uint64_t free = 0, best = 0, bestGap = UINT64_MAX;
    for (const Placed &other : placed) {
      if (!other.lifetime.overlaps(lifetime))
        continue;
      const uint64_t gap = other.begin > free ? other.begin - free : 0;
      if (gap >= bytes && gap < bestGap) {
        best = free;
        bestGap = gap;
      }
      free = std::max(free, other.end);
    }
    const uint64_t offset = bestGap == UINT64_MAX ? free : best;
    packing.offsets[i] = offset;
    packing.bytes = std::max(packing.bytes, offset + bytes);
    auto behind = llvm::upper_bound(placed, offset, [](uint64_t at, const Placed &other) { return at < other.begin; });
    placed.insert(behind, {offset, offset + bytes, lifetime});
  }
  return packing;
}

} // namespace

std::vector<std::optional<Lifetime>> findLifetimes(const Steps &steps, size_t numBuffers, DefinesArgument defines) {
  return LifetimeFinder(numBuffers, defines).run(steps);
}

Packing packIntervals(llvm::ArrayRef<BufferInterval> intervals) {
  std::vector<uint32_t> order(intervals.size());
  for (uint32_t i = 0; i < order.size(); ++i)
    order[i] = i;
  auto length = [&](uint32_t i) { return intervals[i].lifetime.end - intervals[i].lifetime.begin; };
  llvm::sort(order, [&](uint32_t a, uint32_t b) {
    return std::tuple(intervals[b].bytes, length(b), a) < std::tuple(intervals[a].bytes, length(a), b);
  });
  Packing largestFirst = packInOrder(intervals, order);
  constexpr size_t mostTriedTwice = 1 << 14; // each pass takes time in the square of their number
  if (intervals.size() > mostTriedTwice)
    return largestFirst;
  llvm::sort(order, [&](uint32_t a, uint32_t b) {
    return std::tuple(length(b), intervals[b].bytes, a) < std::tuple(length(a), intervals[a].bytes, b);
  });
  Packing longestFirst = packInOrder(intervals, order);
  return longestFirst.bytes < largestFirst.bytes ? longestFirst : largestFirst;
}

void placeTemporaries(std::vector<ModuleBuffer> &buffers, const Steps &steps, DefinesArgument defines) {
  std::vector<std::optional<Lifetime>> lifetimes = findLifetimes(steps, buffers.size(), defines);
  std::vector<uint32_t> temporaries;
  std::vector<BufferInterval> intervals;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].kind == ModuleBuffer::Kind::Temporary && buffers[i].bytes && lifetimes[i]) {
      temporaries.push_back(i);
      intervals.push_back({buffers[i].bytes, *lifetimes[i]});
    }
  Packing packing = packIntervals(intervals);
  for (auto [buffer, offset] : llvm::zip_equal(temporaries, packing.offsets))
    buffers[buffer].offset = offset;
}

} // namespace hloc
