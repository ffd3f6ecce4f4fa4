#pragma once
// What somebody who knows the compiler would try next with a module, as far as it is worth it: each is tried, which
// means that the module is compiled so, and estimated (WhatIf.h). Nothing is guessed, and what saves little is not
// mentioned.
//
//   `t` reads `q` in another order than it has: as f32[1000,512]{0,1} it saves 3.41 of 18.53 us on h100 [layout]
//   --fast-math=divide-by-constant, which applies 3 times, saves 1.20 of 18.53 us on h100 [fast-math]

#include "hloc/run/WhatIf.h"

#include <functional>

namespace hloc {

struct Advice {
  DiagnosticKind kind; ///< of a remark
  SourceRange range;   ///< in the module's text; invalid: the whole
  std::string message;
  double now, then; ///< seconds of the whole module
};

struct AdviceOptions {
  std::function<bool(DiagnosticKind)> isWanted; ///< of kinds of advice
  std::string about = ".";                      ///< an instruction or kernel; `.`: all
};

/// Kinds of remarks that are advice.
bool isAdvice(DiagnosticKind kind);
/// How many compilations that takes is bounded by the size of the module. `way`: how it is compiled. None if it cannot
/// be.
std::vector<Advice> adviseOn(const HloModule &module, const CompiledWay &way, const AdviceOptions &options,
                             const Toolchain &toolchain);

} // namespace hloc
