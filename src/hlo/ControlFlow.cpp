#include "hloc/hlo/ControlFlow.h"

namespace hloc {

std::vector<HloComputation *> controlComputations(const HloModule &module) {
  return reachableComputations(module, isControlFlow);
}

} // namespace hloc
