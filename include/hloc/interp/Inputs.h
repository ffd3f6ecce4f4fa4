#pragma once
// Generated arguments for a module: the same for the same seed everywhere, and such that the module's promises hold.
//
//   for (const ArgumentSet &set : argumentSets(module))
//     FailureOr<std::vector<Literal>> arguments = makeArguments(module, diagnostics, seed, set);
//
// In all regimes unique_indices are unique and sorted ones sorted, the init of a sum is 0, a matrix to be factorised is
// positive definite. What each regime is for: src/interp/README.md.

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Support/LogicalResult.h"

#include <optional>

namespace hloc {

enum class Regime {
  Ordinary, ///< moderate floats with all their bits, so that sums stay finite and products near 1; indices inside
  Exact,    ///< small integers and powers of two: no order of summation makes a difference
  Special,  ///< NaN, infinities, both zeros, subnormals and extremes, at places that leave some results ordinary
  Index,    ///< indices outside on both sides, wherever the ops promise nothing else
  Ties,     ///< few values, halves among them, where ops compare, choose or round to whole numbers
};
inline constexpr Regime allRegimes[] = {Regime::Ordinary, Regime::Exact, Regime::Special, Regime::Index, Regime::Ties};
llvm::StringRef regimeName(Regime regime); ///< "ordinary", ...
std::optional<Regime> findRegime(llvm::StringRef name);

/// Small arrays have no room for all that a regime wants to show: it takes several rounds then.
struct ArgumentSet {
  Regime regime = Regime::Ordinary;
  unsigned round = 0;
  bool scatterInside = false; ///< indices of a scatter stay inside in all regimes
};

/// What has to be tried, in order. Without `wanted`: all regimes that apply to the module and that its size allows
/// (over `maxElementsOfAllRegimes` elements in arguments and result: the ordinary one alone). Wanted regimes that do
/// not apply are left out, unless nothing would be left.
std::vector<ArgumentSet> argumentSets(const HloModule &module, llvm::ArrayRef<Regime> wanted = {},
                                      bool scatterInside = false);
inline constexpr int64_t maxElementsOfAllRegimes = int64_t(1) << 20;

/// Reports parameters that have no values (dynamic, opaque) and arguments of more than `maxBytes` in total.
llvm::FailureOr<std::vector<Literal>> makeArguments(const HloModule &module, DiagnosticEngine &diagnostics,
                                                    uint64_t seed = 0, ArgumentSet set = {},
                                                    uint64_t maxBytes = uint64_t(8) << 30);

} // namespace hloc
