#pragma once
// The largest errors of one instruction on one target.

#include "Judge.h"
#include "Samples.h"

namespace hloc::accuracy {

struct Worst {
  double ulps = 0;
  std::string at; ///< operands, exact value, result
};

struct Errors {
  Worst normal, subnormal; ///< by the exact value
  uint64_t specials = 0, zeroSigns = 0;
  std::string firstSpecial;
  double largest() const { return std::max(normal.ulps, subnormal.ulps); }
};

struct Measurement {
  Instruction instruction = {};
  std::string target;
  std::string missing; ///< why there is no kernel; empty if there is one
  Errors kernel, interpreter;
  std::string sample;
};

Measurement measure(const Instruction &instruction, const TargetInfo &target, Effort effort, unsigned seed,
                    bool withInterpreter);

} // namespace hloc::accuracy
