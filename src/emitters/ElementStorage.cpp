#include "emitters/ElementStorage.h"

#include "hloc/support/Check.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace hloc {

bool isEmittable(ElementType type) { return isArrayType(type) && type != ElementType::S1 && type != ElementType::U1; }

Type storageType(ElementType type, MLIRContext *context) {
  switch (type) {
  case ElementType::F16:
    return Float16Type::get(context);
  case ElementType::BF16:
    return BFloat16Type::get(context);
  case ElementType::F32:
    return Float32Type::get(context);
  case ElementType::F64:
    return Float64Type::get(context);
  default:
    break;
  }
  if (isComplex(type))
    return mlir::ComplexType::get(storageType(componentType(type), context));
  HLOC_CHECK(isArrayType(type), "element type without elements");
  return IntegerType::get(context, deviceBits(type));
}

Type valueType(ElementType type, MLIRContext *context) {
  return isPred(type) ? IntegerType::get(context, 1) : storageType(type, context);
}

RankedTensorType tensorType(const Shape &shape, MLIRContext *context) {
  mlir::Attribute encoding;
  if (!shape.hasDefaultLayout()) {
    llvm::ArrayRef<int64_t> order = shape.minorToMajor();
    auto type = RankedTensorType::get({int64_t(order.size())}, IntegerType::get(context, 64));
    encoding = DenseIntElementsAttr::get(type, order);
  }
  return RankedTensorType::get(shape.dims(), storageType(shape.elementType(), context), encoding);
}

} // namespace hloc
