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
  /// Keeps the worst; `at` says where.
  void note(const Verdict &verdict, const std::string &at);
};

struct Measurement {
  Instruction instruction = {};
  std::string missing; ///< why there is no kernel; empty if there is one
  struct Variant {
    std::string name; ///< target and seed, or `interpreter`
    Errors errors;
  };
  /// Targets whose kernels are those of an earlier one are left out, and seeds where nothing is approximate.
  std::vector<Variant> kernels;
  Errors interpreter;
  bool isOfEveryFloat = false; ///< over all 2^32 operands
  /// Of all kernels together.
  Worst normal() const;
  Worst subnormal() const;
};

struct Choices {
  std::vector<TargetInfo> targets;
  unsigned numSeeds = 0; ///< besides none
  Effort effort = Effort::Dense;
  bool withInterpreter = false;
};

Measurement measure(const Instruction &instruction, const Choices &choices);

} // namespace hloc::accuracy
