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

FloatType patternFloatType(ElementType type, MLIRContext *context) {
  switch (type) {
  case ElementType::F4E2M1FN:
    return Float4E2M1FNType::get(context);
  case ElementType::F6E2M3FN:
    return Float6E2M3FNType::get(context);
  case ElementType::F6E3M2FN:
    return Float6E3M2FNType::get(context);
  case ElementType::F8E3M4:
    return Float8E3M4Type::get(context);
  case ElementType::F8E4M3:
    return Float8E4M3Type::get(context);
  case ElementType::F8E4M3B11FNUZ:
    return Float8E4M3B11FNUZType::get(context);
  case ElementType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case ElementType::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case ElementType::F8E5M2:
    return Float8E5M2Type::get(context);
  case ElementType::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case ElementType::F8E8M0FNU:
    return Float8E8M0FNUType::get(context);
  default:
    HLOC_UNREACHABLE("no float of at most 8 bits");
  }
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
