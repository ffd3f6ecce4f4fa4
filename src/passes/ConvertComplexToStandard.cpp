// MLIR's pass of this name. It looks for a way to convert every op, which takes as long as all other passes over
// scalars together; few kernels have complex numbers.
#include "passes/PassDetail.h"

#include "mlir/Conversion/ComplexToStandard/ComplexToStandard.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Pass/PassManager.h"

namespace hloc {
#define GEN_PASS_DEF_CONVERTCOMPLEXTOSTANDARD
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;

namespace {

bool hasComplexNumbers(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa_and_nonnull<complex::ComplexDialect>(op->getDialect()) ? WalkResult::interrupt()
                                                                          : WalkResult::advance();
      })
      .wasInterrupted();
}

struct ConvertComplexToStandardPass : hloc::impl::ConvertComplexToStandardBase<ConvertComplexToStandardPass> {
  void runOnOperation() override {
    if (!hasComplexNumbers(getOperation()))
      return;
    OpPassManager conversion(ModuleOp::getOperationName());
    conversion.addPass(createConvertComplexToStandardPass());
    if (failed(runPipeline(conversion, getOperation())))
      signalPassFailure();
  }
};

} // namespace
