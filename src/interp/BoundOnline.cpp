// Weights of an online softmax (decisions/0021): exponentials less a maximum that may be another than the row's,
// rounded there, and scaled when their sums are. Which other maximum is nobody's business: at any scale the rounding is
// off by half a unit of the weight, and the way back costs what exponentials and products cost.

#include "interp/BoundElementwise.h"
#include "interp/FloatGrid.h"

#include <cmath>

namespace hloc::interp {

BoundsPtr boundRescaled(const BoundStep &step) {
  // Exponents are split in two differences, each off by its own roundings, and the weight is scaled once a piece.
  constexpr double ofExponent = 0x1p-22, ofScales = 0x1p-19, leastScale = 0.5, mostScale = 0x1p12;
  // Kernels take exponentials below the normal numbers of f32, a scale among them, for zeros.
  constexpr double vanishes = 0x1p-126 * mostScale;
  constexpr int64_t grain = 512;
  const FloatGrid grid(step.value.shape().elementType());
  const double halfUnit = grid.unitRoundoff(), smallest = std::max(grid.ulp(0) / 2 / leastScale, vanishes);
  auto made = std::make_shared<Bounds>(*boundsOrPoint(step.operands[0]));
  auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
  const Literal value = asBound(step.value);
  auto reference = value.data<double>();
  auto off = [&](double x) {
    const double size = std::fabs(x), exponent = std::fabs(std::log(std::max(size, vanishes)));
    return size * (halfUnit + ofScales + exponent * ofExponent) + smallest;
  };
  inParallel(step.value.numElements(), grain, [&](int64_t begin, int64_t end) {
    for (auto i = size_t(begin); i < size_t(end); ++i) {
      if (isUnknown(low[i], high[i]) || std::isnan(low[i]) || (low[i] == 0 && high[i] == 0))
        continue;
      const double least = low[i] < 0 ? -std::numeric_limits<double>::infinity() : 0;
      low[i] = std::min(std::isfinite(low[i]) ? std::max(low[i] - off(low[i]), least) : low[i], reference[i]);
      high[i] = std::max(std::isfinite(high[i]) ? high[i] + off(high[i]) : high[i], reference[i]);
    }
  });
  return nullIfExact(std::move(made));
}

} // namespace hloc::interp
