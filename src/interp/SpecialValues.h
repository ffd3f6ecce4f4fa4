#pragma once
// The special regime: what is put into which argument, and in how many rounds.

#include "Demands.h"
#include "ValueStream.h"

#include "hloc/hlo/Literal.h"

namespace hloc::interp {

/// Special values in one element of every argument would make a reduction's results all NaN. An array that is reduced
/// over some of its dimensions has groups of elements that meet in one result: each has one kind of special values, and
/// some have none. An array that is one group, or a scalar, gets special values in rounds of its own.
class SpecialPlan {
public:
  SpecialPlan(const HloModule &module, llvm::ArrayRef<Demand> demands);
  unsigned numRounds() const { return localRounds + spreadingRounds; }
  /// Overwrites some of the values of an argument.
  void fill(Literal &literal, unsigned leaf, const Demand &demand, ValueStream &stream, uint64_t seed,
            unsigned round) const;

private:
  enum class Role {
    None,     ///< without special values
    Local,    ///< they reach some results
    Spreading ///< they reach all
  };
  llvm::SmallVector<Role> roles; ///< by leaf
  llvm::SmallVector<unsigned> spreading;
  unsigned localRounds = 0, spreadingRounds = 0, numLocal = 0;
  bool mayBeNan = true;     ///< else no infinities either, which become NaN
  bool mayOverflow = false; ///< numbers near the largest: products of them may be infinite or not, as one contracts
};

} // namespace hloc::interp
