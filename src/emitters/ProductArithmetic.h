#pragma once
// ProductArithmetic: sums of products whose result has one element type, floats in their compute type.

#include "emitters/CodeBuilder.h"
#include "hloc/hlo/ElementType.h"

namespace hloc {

class ProductArithmetic {
public:
  ProductArithmetic(CodeBuilder &b, ElementType type) : b(b), type(type) {}

  mlir::Value zero();
  /// A value of type `from`, as a factor.
  mlir::Value factor(mlir::Value value, ElementType from);
  mlir::Value multiply(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, mlir::Value y);
  /// A sum as a value of the result's type.
  mlir::Value result(mlir::Value sum);

private:
  CodeBuilder &b;
  ElementType type;
};

} // namespace hloc
