#pragma once
// The weaker check: where no bounds are known of an element, how far do roundings carry it in a few disturbed runs?
// src/decisions/0010 says what it is, and what it can miss.

#include "hloc/interp/Bounds.h"

#include <string>

namespace hloc {

/// An element without bounds that is not the expected one, and what is found of it.
struct OpenElement {
  size_t leaf = 0;        ///< among the arrays of the result
  int64_t element = 0;    ///< linear index
  bool isBounded = false; ///< it has bounds, however wide, and is within them
  enum class Verdict { Unknown, Accepted, Rejected } verdict = Verdict::Unknown;
  std::string range; ///< "about [low, high]" that was accepted, or that what was rejected is outside of
};

struct WeakCheckInput {
  const HloModule &module;
  llvm::ArrayRef<Literal> arguments;
  const Literal &expected, &actual;
  llvm::ArrayRef<AdmissibleArray> leaves; ///< for their paths
  llvm::ArrayRef<int64_t> numOpen;        ///< elements without bounds in each, those that are as expected among them
  Backend backend;
  const InterpreterOptions &options;
  uint64_t mostLoopSteps; ///< of the reference
  /// The results are those of a right kernel or of a wrong one of the same steps; else of anything.
  bool isOfKernel;
  bool wantsAccepted;    ///< it matters whether what is not rejected is accepted or unknown
  const Literal *proven; ///< what is known to be right: see compareRun; or null
};

/// Sets the verdict of each of the elements, which are in order of leaf and element.
void checkWeakly(const WeakCheckInput &input, std::vector<OpenElement> &elements);

} // namespace hloc
