#pragma once
// Random valid modules, from the opcode table: every opcode, element type and layout can occur. The same seed and
// options always give the same module. Used for print-parse round trips and for compiler-versus-interpreter runs.
//
//   auto module = generateModule(7, {.instructions = 12});
//   // entry { p0 = bf16[3,2]{0,1} parameter(0)  negate.1 = bf16[3,2]{1,0} negate(p0) ... ROOT tuple ... }

#include "hloc/hlo/HloModule.h"

#include <memory>

namespace hloc {

struct GeneratorOptions {
  unsigned instructions = 16;   ///< ops tried, beside parameters and constants
  int64_t maxElements = 64;     ///< of a generated parameter; results may be larger
  bool singleDeviceOnly = true; ///< leave out collectives, transfers, custom calls, random numbers
  bool randomLayouts = true;    ///< else all default
  bool deadCode = true;         ///< else the root is a tuple of everything unused
  /// Arrays of up to maxElements whose sizes are beside those at which kernels change their form, and ops for them.
  bool edgeSizes = false;
  /// For kernels: types that they have, and comparators that order NaN as well: else results of sorts that meet one are
  /// anybody's.
  bool forKernels = false;
};

/// Verified by construction: shapes come from inferShape.
std::unique_ptr<HloModule> generateModule(uint64_t seed, const GeneratorOptions &options = {});

} // namespace hloc
