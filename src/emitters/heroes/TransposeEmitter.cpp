#include "emitters/heroes/TransposeEmitter.h"

namespace hloc {

llvm::LogicalResult emitHero(const TransposePlan &, KernelBuilder &) { return mlir::failure(); }

} // namespace hloc
