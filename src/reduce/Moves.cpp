#include "Moves.h"

namespace hloc::reduction {

llvm::ArrayRef<Move> moves() {
  static constexpr Move all[] = {
      {"attributes", countAttributes, dropAttributes},
      {"sizes", countTargets, shrinkAll, false, /*isOnce=*/true},
      {"instructions", countCuts, cut, /*leavesParts=*/true},
      {"results", countResults, dropResults, /*leavesParts=*/true},
      {"loops", countLoops, dropLoops},
      {"loops, one round", countLoops, unrollLoops},
      {"branches", countBranches, takeBranches, false, /*isOnce=*/true},
      {"calls", countCalls, inlineCallees},
      {"carried values", countCarried, dropCarried},
      {"operands", countBypasses, bypassByFirst},
      {"last operands", countBypasses, bypassByLast},
      {"instructions of fusions", countInner, feedInner},
      {"zeros", countComputed, replaceByZeros},
      {"ones", countComputed, replaceByOnes},
      {"parameters", countEqualParameters, mergeParameters},
      {"sizes of 1", countSizes, sizesToOne},
      {"sizes of 2", countSizes, sizesToTwo},
      {"half sizes", countSizes, halveSizes},
      {"types", countTypes, simplifyTypes},
      {"layouts", countLayouts, resetLayouts},
      {"literals of 0", countOddLiterals, zeroLiterals},
      {"literals of 1", countOddLiterals, unitLiterals},
      {"names", countNames, shortenNames},
  };
  return all;
}

} // namespace hloc::reduction
