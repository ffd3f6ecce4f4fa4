#include "hloc/compare/Compare.h"

namespace hloc {

std::optional<Tolerance> parseTolerance(llvm::StringRef text) {
  Tolerance tolerance;
  if (text == "exact")
    return tolerance;
  double both = 0;
  if (!text.getAsDouble(both) && both >= 0) {
    tolerance.absolute = tolerance.relative = both;
    return tolerance;
  }
  llvm::SmallVector<llvm::StringRef, 4> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [key, value] = part.split('=');
    double *bound = key == "abs" || key == "absolute"   ? &tolerance.absolute
                    : key == "rel" || key == "relative" ? &tolerance.relative
                    : key == "ulps"                     ? &tolerance.ulps
                    : key == "largest"                  ? &tolerance.ofLargest
                                                        : nullptr;
    bool bad = key == "int" ? value.getAsInteger(10, tolerance.integers) || tolerance.integers < 0
                            : !bound || value.getAsDouble(*bound) || *bound < 0;
    if (bad)
      return std::nullopt;
  }
  return tolerance;
}

} // namespace hloc
