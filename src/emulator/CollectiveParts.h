#pragma once
// What the families of collectives share. All take operands and results as runCollective does.

#include "Collective.h"

#include "llvm/ADT/bit.h"

#include <cstring>

namespace hloc::emulator {

/// One call of runCollective. Source operand i is `at.operands[at.results + i]`.
struct CollectiveCall {
  Warp &warp;
  const Decoded &at;
  uint32_t mask;
  const void *const *operands;
  void *const *results;

  const Source &source(unsigned i) const { return at.operands[at.results + i]; }
  /// Bits in memory of an element of an operand; predicates travel in 32.
  static unsigned bitsOf(const Source &s) { return s.bits == 1 ? 32 : s.bits; }
  uint64_t value(unsigned i, unsigned lane) const { return valueIn(operands[i], bitsOf(source(i)), lane); }
  /// Element of a lane vector, zero extended.
  static uint64_t valueIn(const void *vector, unsigned bits, unsigned lane) {
    if (bits == 32)
      return static_cast<const uint32_t *>(vector)[lane];
    uint64_t value = 0;
    std::memcpy(&value, static_cast<const uint8_t *>(vector) + lane * (bits / 8), bits / 8);
    return value;
  }
  static void setIn(void *vector, unsigned bits, unsigned lane, uint64_t value) {
    std::memcpy(static_cast<uint8_t *>(vector) + lane * (bits / 8), &value, bits / 8);
  }
  void setResult(unsigned lane, uint64_t value) const { setIn(results[0], bitsOf(at.operands[0]), lane, value); }

  template <typename Visit> void forEachLane(Visit visit) const {
    for (uint32_t rest = mask; rest; rest &= rest - 1)
      visit(unsigned(llvm::countr_zero(rest)));
  }
  const uint32_t *words(unsigned i) const { return static_cast<const uint32_t *>(operands[i]); }
  uint32_t *resultWords() const { return static_cast<uint32_t *>(results[0]); }
  /// Sets the first and, of a pair, the second result.
  void setPair(unsigned lane, uint32_t value, bool predicate) const;
  /// Reports lanes of the warp that are missing, for instructions that all must execute together.
  void requireWholeWarp() const;
};

void runLoadMatrix(const CollectiveCall &call);
void runStoreMatrix(const CollectiveCall &call);
void runMultiply(const CollectiveCall &call);
void runWarpgroup(const CollectiveCall &call);
void runRegisterCount(const CollectiveCall &call);
void runAsyncCopy(const CollectiveCall &call);
void runMbarrier(const CollectiveCall &call);
void runBulk(const CollectiveCall &call);
/// Where the mbarrier at an address of shared memory of the cluster is; false, with a finding, if there is none.
bool findMbarrier(const CollectiveCall &call, unsigned lane, uint64_t address, Core *&owner, uint64_t &offset);
/// issueTransfer of a copy to shared memory that counts on the mbarrier at an address. `ranks`: to these blocks of the
/// cluster, at the same offsets.
void issueToBlocks(const CollectiveCall &call, unsigned lane, Transfer transfer, uint64_t mbarrier,
                   std::optional<uint32_t> ranks);
/// st.async and red.async.
void runAsyncStore(const CollectiveCall &call);
/// cp.async of these lanes is over, as if they had waited.
/// `date`: others may touch what they wrote when they know it.
void completeCopies(Warp &warp, uint32_t lanes, const Trace &date);
/// Copies of boxes, and what makes tensor maps: replace, cp_fenceproxy, and the fence before their use.
bool isTensorCopy(const Decoded &at);
void runTensorCopy(const CollectiveCall &call);
void runTensormap(const CollectiveCall &call);
void acquireTensorMaps(const CollectiveCall &call);
/// Lane by lane: integers, bits and comparisons; conversions and float extremes.
void runScalar(const CollectiveCall &call);
void runScalarFloat(const CollectiveCall &call);

} // namespace hloc::emulator
