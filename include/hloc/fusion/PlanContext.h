#pragma once
// PlanContext: what plans of any number of fusions are made with, one after the other.

#include <memory>

namespace mlir {
class MLIRContext;
}

namespace hloc {

class PlanContext {
public:
  /// `given`: outlives it.
  explicit PlanContext(mlir::MLIRContext *given = nullptr);
  ~PlanContext();
  /// The one given, or its own, made when it is first needed: that takes longer than most plans.
  mlir::MLIRContext *mlir();

private:
  std::unique_ptr<mlir::MLIRContext> own;
  mlir::MLIRContext *context;
};

} // namespace hloc
