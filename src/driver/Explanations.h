#pragma once
// What `--explain` prints: which values are read inside the kernels that make them, and why others are stored.

#include "hloc/run/Advice.h"
#include "hloc/transforms/HloPass.h"

#include <string>

namespace hloc {

/// A line for each edge of the program: producer, reader, what became of it, why, and what the step saved or would have
/// saved. `name`: of an instruction, with or without `%`, whose edges alone are wanted; `.`: all. Then `tiles`.
///
///   exp -> sum  fused   one kernel computes both; saves 32.0 MiB, 9.61 us
std::string printExplanation(const FusionExplanation &explanation, llvm::StringRef name, const std::string &tiles);

/// Of the contraction `name`, or the fusion that has it: all tiles that its kernel could have, the fastest by the cost
/// model first; and what one of f32 would gain by tf32. Of attention: whether its scores are multiplied more than once.
/// Empty if it is neither.
///
///   tile, us on h100 warps parts   blocks  shared registers   memory    issue   passes  latency     total  bound
///   128x256x32/3       2x4     1      512   90624       216   167.28   225.77   199.62   160.85    280.54  issue
std::string printTiles(const HloModule &fused, llvm::StringRef name, const TargetInfo &target);

/// All of that as JSON, two-space indented: `decisions`, `kernels`, `tiles` and `advice`. What a decision saves is
/// negative where it would cost.
std::string printExplanationAsJson(const FusionExplanation &explanation, llvm::StringRef name, const HloModule &fused,
                                   const TargetInfo &target, const std::vector<Advice> &advice);

/// What is worth trying next, a line each: `next: ... [layout]`.
std::string printAdvice(const std::vector<Advice> &advice);

} // namespace hloc
