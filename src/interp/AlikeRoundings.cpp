#include "interp/AlikeRoundings.h"

#include <algorithm>
#include <cmath>

namespace hloc::interp {

double alikeRoundings(const TermsOfSum &terms, double magnitude, const FloatGrid &accumulator) {
  // Of partial sums, each half of the one before. What n terms lose to a smaller one, n / 128 of the largest one's
  // units, is less than random roundings come to as long as n is less than 16,000; more have lanes, or blocks, of their
  // own.
  constexpr size_t sizes = 6;
  if (!(magnitude > 0) || !std::isfinite(magnitude))
    return 0;
  // A number that is added and taken away again leaves multiples of its own unit in the last place of f64.
  double units[sizes], shifts[sizes], carried[sizes] = {}, least[sizes] = {}, most[sizes] = {};
  for (size_t size = 0; size < sizes; ++size) {
    units[size] = std::ldexp(2 * accumulator.unitRoundoff(), std::ilogb(magnitude) - int(size));
    shifts[size] = units[size] * 0x1.8p52;
  }
  for (int64_t i = 0; i < terms.count; ++i) {
    const double low = terms.low[i * terms.stride], high = terms.high[i * terms.stride], term = low + (high - low) / 2;
    for (size_t size = 0; size < sizes; ++size) {
      const double rounded = (term + shifts[size]) - shifts[size];
      // (Of what is not known so well, roundings are random.)
      carried[size] += high - low <= units[size] / 2 ? rounded - term : 0;
      least[size] = std::min(least[size], carried[size]);
      most[size] = std::max(most[size], carried[size]);
    }
  }
  // Of four lanes two at most have half of all, or more; all four may have a quarter.
  constexpr double ofLargest = 0.5;
  double farthest = 0;
  for (size_t size = 0; size < sizes; ++size)
    farthest = std::max(farthest, (size == 0 ? ofLargest : 1) * (most[size] - least[size]));
  return farthest;
}

} // namespace hloc::interp
