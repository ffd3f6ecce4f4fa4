#pragma once
// Who touched a piece of memory last, packed into 64 bits, and what may follow without a race.
//
//   bits 0..9 thread in block, 10..41 scope, 42..53 epoch, 54..58 warp epoch, 59 many lanes, 60 many warps,
//   61 many blocks, 62 atomic, 63 set
//
// Global memory: scope is the block, epoch counts its barriers. Shared memory: scope is a number that is new after each
// barrier, so everything of another scope is past, and no shadow is ever cleared; epoch is unused.
// Two accesses of which one writes are in order if they come from one thread, or have a barrier between them, or come
// from one warp with a warp-wide synchronisation between; anything else is a race, unless both are atomic.
// A record stands for one access, or, with a `many` bit, for several reads or several atomics of which the last is
// named; the broadcast read of a whole warp is such a record too.
//
//   thread 3 reads, thread 5 of the same warp reads, thread 5 writes: the record of the reads is {5, many lanes}, which
//   does not order the write after the read of thread 3: a race.

#include <cstdint>

namespace hloc::emulator {

struct Owner {
  static constexpr unsigned scopeShift = 10, epochShift = 42, warpEpochShift = 54;
  static constexpr uint64_t threadBits = (uint64_t(1) << scopeShift) - 1;
  static constexpr uint64_t warpBits = threadBits & ~uint64_t(31);
  static constexpr uint64_t scopeBits = uint64_t(UINT32_MAX) << scopeShift;
  static constexpr uint64_t epochBits = uint64_t(0xfff) << epochShift;
  static constexpr uint64_t warpEpochBits = uint64_t(31) << warpEpochShift;
  static constexpr uint64_t manyLanes = uint64_t(1) << 59, manyWarps = uint64_t(1) << 60;
  static constexpr uint64_t manyBlocks = uint64_t(1) << 61, atomic = uint64_t(1) << 62, set = uint64_t(1) << 63;
  static constexpr uint64_t manyBits = manyLanes | manyWarps | manyBlocks;

  static uint64_t make(uint32_t thread, uint64_t scope, uint32_t epoch, uint32_t warpEpoch, bool isAtomic) {
    return set | (isAtomic ? atomic : 0) | (uint64_t(warpEpoch) << warpEpochShift & warpEpochBits) |
           (uint64_t(epoch) << epochShift & epochBits) | (scope << scopeShift & scopeBits) | thread;
  }
  static unsigned threadOf(uint64_t owner) { return unsigned(owner & threadBits); }
  static uint64_t scopeOf(uint64_t owner) { return (owner & scopeBits) >> scopeShift; }

  /// Whether nothing needs a closer look: nobody was here, it is past, or it was this very thread alone.
  template <bool shared> static bool trivially(uint64_t before, uint64_t now) {
    uint64_t different = before ^ now;
    if constexpr (shared)
      return !before || (different & scopeBits) || !((different & threadBits) | ((before | now) & manyBits));
    return !before || !((different & (scopeBits | threadBits)) | ((before | now) & manyBits));
  }

  /// Whether the access `now` may follow `before`, where one of them writes.
  template <bool shared> static bool ordered(uint64_t before, uint64_t now) {
    uint64_t different = before ^ now;
    if (!before || (before & now & atomic))
      return true;
    if constexpr (shared) {
      if (different & scopeBits)
        return true;
    } else {
      if ((before & manyBlocks) || (different & scopeBits))
        return false;
      if (different & epochBits)
        return true;
    }
    if ((before & manyWarps) || (different & warpBits))
      return false;
    return (different & warpEpochBits) || !(((before | now) & manyLanes) | (different & threadBits));
  }

  /// The record of reads, or of atomics, `before` and then `now`.
  template <bool shared> static uint64_t merge(uint64_t before, uint64_t now) {
    uint64_t different = before ^ now;
    if (!before || (shared && (different & scopeBits)))
      return now;
    uint64_t merged = now & ~(atomic & ~before);
    if (!shared && ((before & manyBlocks) || (different & scopeBits)))
      return merged | manyBlocks;
    if (!shared && (different & epochBits))
      return now;
    if ((before & manyWarps) || (different & warpBits))
      return merged | manyWarps;
    if (different & warpEpochBits)
      return now;
    return (before & manyLanes) || (different & threadBits) ? merged | manyLanes : merged;
  }
};

} // namespace hloc::emulator
