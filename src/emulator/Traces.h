#pragma once
// Who touched each granule of memory, for kernels that need Causality: all accesses that no later one replaces. Two
// accesses of which one writes must be in order, unless both are strong and one scope holds both threads. Those of
// lanes of one warp must be even then, if both need their order (Trace::needsLaneOrder).

#include "Causality.h"

#include <deque>

namespace hloc::emulator {

/// One granule.
struct Cell {
  Trace write;         ///< if there is one alone
  uint32_t others = 0; ///< number of the Sharers; 0: none
};

class Traces {
public:
  /// `block`: of the threads that come; `warp`, `lane`: of one of them.
  struct Access {
    const BlockCausality &causality;
    Trace now;
    bool reads, writes;
    bool rewrites = false; ///< leaves the bytes as they are: other threads of the block may write them at any time
    bool shared = false;   ///< in shared memory
    /// An asynchronous access, dated by `now`: whom of the block has it done.
    struct Issuer {
      uint32_t warp;
      unsigned lane;
      const Handover *others = nullptr; ///< what those know that issue it together with this thread
      bool otherProxy = true;           ///< it does not see what threads wrote before a fence stands between
      bool knows(const BlockCausality &causality, const Trace &before) const {
        return causality.knows(warp, lane, before) || (others && others->known && others->known->has(before));
      }
      bool isFenced(const BlockCausality &causality, const Trace &write) const {
        return causality.isFenced(warp, lane, write) || (others && others->fenced && others->fenced->has(write));
      }
    };
    std::optional<Issuer> issuer = std::nullopt;
  };
  struct Conflict {
    Trace other; ///< nobody: no conflict
    bool otherWrote = false;
  };
  /// Puts the access on record unless it is not in order with another.
  Conflict enter(Cell &cell, const Access &access);
  /// As enter() for an asynchronous access, but leaves nothing on record.
  Conflict look(const Cell &cell, const Access &access) const;
  /// Whether some access of this launch wrote there.
  bool isWritten(const Cell &cell) const {
    return cell.others ? !pool[cell.others - 1].writes.empty() : cell.write.lanes != 0;
  }
  /// Forgets all but what is in cells of global memory, which must not be used again.
  void clear() { pool.clear(); }

private:
  /// All writes, oldest first, and all reads since; who touched the granule before.
  struct Sharers {
    llvm::SmallVector<Trace, 2> writes, reads;
    llvm::SmallVector<uint64_t, 2> visitors; ///< blocks
    uint32_t serial = 0;
  };
  static constexpr size_t longest = 1 << 16; ///< traces of a place beyond which the oldest are forgotten

  Sharers &sharersOf(Cell &cell);
  static bool isOrderedForProxy(const Access &access, const Trace &before, bool beforeWrote);
  static bool isOrdered(const Sharers &sharers, const Access &access, const Trace &before);
  static bool mayMeet(const Access &access, const Trace &before);
  static bool mayOverwrite(const Sharers &sharers, const Access &access, const Trace &read);
  static void add(llvm::SmallVectorImpl<Trace> &list, const Trace &now);
  static uint32_t lastSeen(const Sharers &sharers, const Access &access);
  static void visit(Sharers &sharers, uint64_t block);

  std::deque<Sharers> pool;
};

} // namespace hloc::emulator
