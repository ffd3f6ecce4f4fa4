#pragma once
// Random programs as people write them: plain ops between which loops and conditionals stand, whose computations are
// programs of the same kind; computations that several call; tuples; values that many read; results that lie in
// parameters. The same seed always gives the same module.
//
//   auto module = generateProgram(7);
//   // main { p0 = f32[3,5] parameter(0)  call.1 = call(p0), to_apply=region1  while.4 = while(tuple.3), ...
//   //        ROOT tuple.9 = tuple(...) }, input_output_alias={ {1}: (0, {}, may-alias) }

#include "hloc/hlo/HloModule.h"

#include <memory>

namespace hloc {

/// Verified by construction, as far as shapes go. Loops count to three at most, whatever the arguments are.
std::unique_ptr<HloModule> generateProgram(uint64_t seed);

} // namespace hloc
