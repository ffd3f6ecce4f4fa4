#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

namespace hloc {

PassResult eraseDeadCode(HloModule &module, HloPassContext &context) {
  size_t computations = module.eraseUnreachable();
  size_t instructions = 0;
  for (const auto &computation : module.computations())
    instructions += HloEditor(*computation).eraseDead();
  // What is gone may have held the only call of a computation.
  if (instructions)
    computations += module.eraseUnreachable();
  context.statistics.add("dead-code.computations", computations);
  context.statistics.add("dead-code.instructions", instructions);
  return changedIf(computations + instructions > 0);
}

} // namespace hloc
