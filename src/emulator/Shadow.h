#pragma once
// Who touched a piece of memory last, packed into a word, and what may follow without a race.
//
//             thread in block   scope    epoch    many lanes, warps, blocks   atomic   set
//   global    0..9              10..41   42..58   59, 60, 61                  62       63
//   shared    0..9              10..23            29, 30                      31
//
// Global memory: scope is the block, epoch counts its barriers. Shared memory: scope is a number that is new after each
// barrier, so everything of another scope is past, and shadows are cleared only when the numbers run out.
// Two accesses of which one writes are in order if they come from one thread, or have a barrier of the whole block
// between them; anything else is a race, unless both are atomic. Kernels that order by other means need Causality.h.
// A record stands for one access, or, with a `many` bit, for several reads or several atomics of which the last is
// named; the broadcast read of a whole warp is such a record too.
//
//   thread 3 reads, thread 5 of the same warp reads, thread 5 writes: the record of the reads is {5, many lanes}, which
//   does not order the write after the read of thread 3: a race.

#include <cstdint>
#include <thread>
#include <type_traits>

namespace hloc::emulator {

template <bool shared> struct Owner {
  using Word = std::conditional_t<shared, uint32_t, uint64_t>;

  static constexpr Word ones(unsigned count, unsigned shift) { return ((Word(1) << count) - 1) << shift; }
  static constexpr unsigned scopeShift = 10, epochShift = 42;
  static constexpr Word laneBits = 31;
  static constexpr Word threadBits = ones(10, 0);
  static constexpr Word warpBits = threadBits & ~laneBits;
  static constexpr Word scopeBits = ones(shared ? 14 : 32, scopeShift);
  static constexpr Word epochBits = shared ? 0 : ones(17, epochShift % (8 * sizeof(Word)));
  static constexpr Word manyLanes = Word(1) << (shared ? 29 : 59), manyWarps = manyLanes << 1;
  static constexpr Word manyBlocks = shared ? 0 : manyLanes << 2;
  static constexpr Word atomic = Word(1) << (8 * sizeof(Word) - (shared ? 1 : 2));
  static constexpr Word set = shared ? 0 : atomic << 1; ///< shared memory has no scope 0
  static constexpr Word manyBits = manyLanes | manyWarps | manyBlocks;
  static constexpr uint64_t lastScope = scopeBits >> scopeShift;

  static Word make(uint32_t thread, uint64_t scope, uint32_t epoch, bool isAtomic) {
    return Word(set | (isAtomic ? atomic : 0) | (uint64_t(epoch) << epochShift & epochBits) |
                (scope << scopeShift & scopeBits) | thread);
  }
  static unsigned threadOf(Word owner) { return unsigned(owner & threadBits); }
  static uint64_t scopeOf(Word owner) { return (owner & scopeBits) >> scopeShift; }

  /// Whether nothing needs a closer look: nobody was here, it is past, or it was this very thread alone.
  static bool trivially(Word before, Word now) {
    Word different = before ^ now;
    if constexpr (shared)
      return (different & scopeBits) || !((different & threadBits) | ((before | now) & manyBits));
    return !before || !((different & (scopeBits | threadBits)) | ((before | now) & manyBits));
  }

  /// Whether the access `now` may follow `before`, where one of them writes.
  static bool ordered(Word before, Word now) {
    Word different = before ^ now;
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
    return !(((before | now) & manyLanes) | (different & threadBits));
  }

  /// Whether no other block had a part in `before`.
  static bool sameBlock(Word before, Word now) {
    return shared || !((before & manyBlocks) || ((before ^ now) & scopeBits));
  }

  /// The record of reads, or of atomics, or of writes of one value, `before` and then `now`.
  static Word merge(Word before, Word now) {
    Word different = before ^ now;
    if (!before || (shared && (different & scopeBits)))
      return now;
    Word merged = now & ~(atomic & ~before);
    if (!shared && ((before & manyBlocks) || (different & scopeBits)))
      return merged | manyBlocks;
    if (!shared && (different & epochBits))
      return now;
    if ((before & manyWarps) || (different & warpBits))
      return merged | manyWarps;
    return (before & manyLanes) || (different & threadBits) ? merged | manyLanes : merged;
  }
};

/// The last write and the last read of one place.
template <bool shared> struct Owners {
  using Word = typename Owner<shared>::Word;
  Word writer = 0, reader = 0;

  enum class Verdict : uint8_t { Fine, AfterWrite, AfterRead };

  /// Puts an access on record unless it races.
  Verdict enter(Word now, bool reads) {
    using Who = Owner<shared>;
    if (Who::trivially(writer, now) && Who::trivially(reader, now)) {
      (reads ? reader : writer) = now;
      return Verdict::Fine;
    }
    if (!Who::ordered(writer, now))
      return Verdict::AfterWrite;
    if (reads) {
      reader = Who::merge(reader, now);
      return Verdict::Fine;
    }
    if (!Who::ordered(reader, now))
      return Verdict::AfterRead;
    // Atomics do not exclude each other: all that came stay on record.
    writer = writer & now & Who::atomic ? Who::merge(writer, now) : now;
    return Verdict::Fine;
  }

  /// Puts a write on record that leaves all bytes as they are, and so need not be in order with other writes.
  Verdict enterRewrite(Word now) {
    if (!Owner<shared>::ordered(reader, now))
      return Verdict::AfterRead;
    writer = Owner<shared>::merge(writer, now);
    return Verdict::Fine;
  }
};

/// Global memory goes by lines of 32 granules, since most requests are whole warps that touch 32 granules, or twice,
/// four times, ... as many, in order. While all accesses of a line were such parts of a warp, dealt to the granules in
/// the same way, one record stands for the line: that of its first granule, with the bit of half the number of lanes
/// that share the line set in the thread. (The first lane is a multiple of that number, so lower bits are free.)
///
///   32 lanes of warp 2 write a granule each:       thread 64, bit 16 set     granule g is thread 64 + g's
///   lanes 8..15 of warp 2 write 4 granules each:   thread 72, bit 4 set      granule g is thread 72 + g / 4's
///
/// Two records with the same lane bits compare like the owners of each granule do. Any other access spells the line
/// out: from then on every granule has a record of its own.
///
/// Blocks on several host threads share lines, and a line changes its form under them: whoever looks at one holds it.
struct Lines {
  using Who = Owner<false>;
  using Word = Who::Word;
  static constexpr uint64_t granulesOfLine = 32;

  Owners<false> *lines, *granules;
  bool concurrent = true; ///< other host threads may be here

  /// One line, which nobody else sees while this lives.
  class Held {
  public:
    Held(const Lines &shadow, uint64_t line) : shadow(shadow), line(line), record(shadow.lines[line]) {
      if (!shadow.concurrent)
        return;
      while ((record.writer = __atomic_exchange_n(&place().writer, locked, __ATOMIC_ACQUIRE)) == locked)
        std::this_thread::yield();
      record.reader = place().reader;
    }
    ~Held() {
      place().reader = record.reader;
      __atomic_store_n(&place().writer, record.writer, __ATOMIC_RELEASE);
    }
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;

    /// Lets `lanes` lanes touch the line, each its part, unless a closer look is needed: then nothing is recorded.
    bool enterWhole(Word ownerOfFirst, unsigned lanes, bool reads) {
      Word now = ownerOfFirst | lanes / 2;
      auto comparable = [&](Word before) { return !before || !((before ^ now) & Who::laneBits); };
      return comparable(record.writer) && comparable(record.reader) &&
             record.enter(now, reads) == Owners<false>::Verdict::Fine;
    }

    /// The record of a granule of this line; spells the line out.
    Owners<false> &at(uint64_t granule) {
      if (record.writer != spelledOut) {
        Owners<false> *first = shadow.granules + line * granulesOfLine;
        spell(record.writer, &Owners<false>::writer, first);
        spell(record.reader, &Owners<false>::reader, first);
        record = {spelledOut, spelledOut};
      }
      return shadow.granules[granule];
    }

  private:
    Owners<false> &place() const { return shadow.lines[line]; }

    const Lines &shadow;
    uint64_t line;
    Owners<false> record;
  };

private:
  static constexpr Word spelledOut = Who::set; ///< no lane bit: never the record of a line
  static constexpr Word locked = ~Word(0);     ///< several lane bits: neither

  static void spell(Word record, Word Owners<false>::*field, Owners<false> *first) {
    if (!record)
      return;
    Word half = record & -record & Who::laneBits, owner = record & ~half;
    for (uint64_t g = 0; g < granulesOfLine; ++g)
      first[g].*field = owner + g * (2 * half) / granulesOfLine;
  }
};

} // namespace hloc::emulator
