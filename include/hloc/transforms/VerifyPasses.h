#pragma once
// Which pass changes what a module computes? The module is interpreted after each pass that has changed it.
//
//   std::vector<PassInput> inputs = {{"ordinary", arguments}};
//   if (!verifyEachPass(*module, hloPipeline(), inputs, context)) ...   // pass `x` changes the result ...

#include "hloc/hlo/Literal.h"
#include "hloc/transforms/HloPass.h"

#include <string>
#include <vector>

namespace hloc {

struct PassInput {
  std::string name; ///< for the report: the regime
  std::vector<Literal> arguments;
};

/// Runs `passes` on a copy of the module. False after a report: the first pass after which a result differs in a bit
/// (payloads and signs of NaNs aside), on which input and in which element; or that a pass or the interpreter refuses
/// the module. Where HloPass::rounds, a result also passes that a right kernel of the module may give.
bool verifyEachPass(const HloModule &module, llvm::ArrayRef<HloPass> passes, llvm::ArrayRef<PassInput> inputs,
                    HloPassContext &context);

} // namespace hloc
