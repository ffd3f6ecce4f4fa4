#pragma once
// Do two modules compute the same? Bit for bit, but for the payloads of NaNs, on arguments of all kinds.
#include "hloc/interp/Bounds.h"
#include "hloc/interp/Inputs.h"

#include <string>

namespace hloc::test {

inline std::string literalDifference(const Literal &expected, const Literal &actual) {
  if (!expected.shape().compatible(actual.shape()))
    return "shapes " + expected.shape().toString() + " and " + actual.shape().toString();
  if (expected.isTuple()) {
    for (size_t i = 0; i < expected.elements().size(); ++i)
      if (std::string found = literalDifference(expected.element(i), actual.element(i)); !found.empty())
        return "{" + std::to_string(i) + "} " + found;
    return "";
  }
  AdmissibleArray exact{{}, expected, {}, {}};
  for (int64_t i = 0; i < expected.numElements(); ++i)
    if (!exact.admits(i, actual, i))
      return "element " + std::to_string(i);
  return "";
}

/// Empty: none.
inline std::string resultDifference(const HloModule &expected, const HloModule &actual, uint64_t seed = 0) {
  DiagnosticEngine diagnostics;
  for (const ArgumentSet &set : argumentSets(expected)) {
    auto arguments = makeArguments(expected, diagnostics, seed, set);
    if (failed(arguments))
      return "no arguments";
    auto before = interpret(expected, *arguments, diagnostics);
    if (failed(before))
      return "not interpreted";
    auto after = interpret(actual, *arguments, diagnostics);
    std::string found = failed(after) ? "refused" : literalDifference(*before, *after);
    if (!found.empty())
      return "regime " + regimeName(set.regime).str() + ": " + found;
  }
  return "";
}

} // namespace hloc::test
