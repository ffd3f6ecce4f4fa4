#pragma once
// ReadMaps: through which indexing maps the instructions of a fusion are read, followed backward from where computing
// starts. Whoever asks how often, in which order or from where something is read asks here: the sectors of loops, the
// operands that concatenates have in common, what is computed again.
//
//   from r = add(x, transpose(x)), f32[8,8]:  x is read through (i, j) -> (i, j) and (i, j) -> (j, i)
//
// Maps are composed as far as operandIndexing() tells; a dynamic offset or the loop of a reduction is part of what
// tells reads apart, since two of them are not the same though their maps look equal.
//
// Two walk by themselves, with the same pool or none: ComputationPartitioner.h, to which reads inside and outside of a
// loop differ also where they do not depend on it, since it says where code is; and ContractionPlan's strides, which
// are asked for by loops that maps here have dropped. What depends on something, forward, is asked of Places.h.

#include "hloc/fusion/FusionGraph.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/PlanContext.h"
#include "hloc/indexing/MapPool.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace hloc {

/// 2^53: how often something is read is counted in doubles, which are exact up to here.
constexpr double mostPoints = 9007199254740992.0;

class ReadMaps {
public:
  struct Read {
    unsigned space = 0;           ///< where it was started from
    unsigned map = MapPool::same; ///< of the pool, from the space's indices to the instruction's
    unsigned loops = 0;           ///< 0: in none that the map depends on, and behind no offset
    double count = 1;             ///< points of the space and of the loops at which it is read
    bool isSameAs(const Read &other) const { return space == other.space && loops == other.loops && map == other.map; }
  };

  /// Of more than `most` ways in which an instruction is read, all others are forgotten: their number can double with
  /// each instruction.
  ReadMaps(const FusionGraph &graph, PlanContext &plans, size_t most = SIZE_MAX);

  mlir::MLIRContext *context() { return plans.mlir(); }
  MapPool &maps() { return pool; }
  /// Spaces of their own have what is read in a way that no map describes.
  unsigned newSpace() { return ++lastSpace; }
  /// `instr` is read; of an element of a tuple, what it is made of.
  void read(const HloInstruction &instr, Read read);
  /// Operand `number` is read for all elements of `instr` that `reads` tell of.
  void readOperand(const HloInstruction &instr, unsigned number, llvm::ArrayRef<Read> reads);
  void readOperands(const HloInstruction &instr, llvm::ArrayRef<Read> reads);

  /// Calls `visit` for each instruction that is read, users before operands, with all its reads; it says what is read
  /// of the operands.
  void follow(llvm::function_ref<void(const HloInstruction &, llvm::ArrayRef<Read>)> visit);

private:
  const FusionGraph &graph;
  PlanContext &plans;
  size_t most;
  MapPool pool;
  std::vector<std::vector<Read>> known; ///< by id, of those not yet visited
  /// Numbers of loops and offsets inside of others.
  llvm::DenseMap<std::pair<unsigned, const HloInstruction *>, unsigned> loopNumbers;
  unsigned lastSpace = 0;
};

} // namespace hloc
