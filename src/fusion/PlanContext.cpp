#include "hloc/fusion/PlanContext.h"

#include "mlir/IR/MLIRContext.h"

namespace hloc {

PlanContext::PlanContext(mlir::MLIRContext *given) : context(given) {}

PlanContext::~PlanContext() = default;

mlir::MLIRContext *PlanContext::mlir() {
  if (!context) {
    own = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    context = own.get();
  }
  return context;
}

} // namespace hloc
