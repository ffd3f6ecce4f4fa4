// Elements of constants.
#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/ScalarComputation.h"
#include "emitters/Unsupported.h"

#include "hloc/hlo/Literal.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {
namespace {

/// One element of a literal as an attribute of its storage type.
mlir::Attribute elementAttribute(const Literal &literal, int64_t index, Type storage, ElementType type) {
  if (auto floatType = dyn_cast<FloatType>(storage)) {
    llvm::APInt bits(floatType.getWidth(), literal.getBits(index));
    return FloatAttr::get(floatType, llvm::APFloat(floatType.getFloatSemantics(), bits));
  }
  uint64_t bits = literal.getBits(index);
  return IntegerAttr::get(storage, llvm::APInt(storage.getIntOrFloatBitWidth(), bits, false, /*implicitTrunc=*/true));
}

Value scalarConstant(CodeBuilder &b, const Literal &literal, int64_t index, ElementType type) {
  if (isComplex(type)) {
    std::complex<double> value = literal.getComplex(index);
    Type component = valueType(componentType(type), b.getContext());
    return b.complex(b.floating(component, value.real()), b.floating(component, value.imag()));
  }
  if (isPred(type))
    return b.boolean(literal.getInt(index) != 0);
  Type storage = storageType(type, b.getContext());
  return arith::ConstantOp::create(b, cast<TypedAttr>(elementAttribute(literal, index, storage, type)));
}

/// A dense tensor constant in logical order.
DenseElementsAttr denseConstant(const Literal &literal, RankedTensorType type, ElementType element) {
  if (auto complexType = dyn_cast<mlir::ComplexType>(type.getElementType())) {
    SmallVector<std::complex<llvm::APFloat>> values;
    const llvm::fltSemantics &semantics = cast<FloatType>(complexType.getElementType()).getFloatSemantics();
    bool ignored = false;
    auto component = [&](double x) {
      llvm::APFloat value(x);
      value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &ignored);
      return value;
    };
    for (int64_t i = 0; i < literal.numElements(); ++i) {
      std::complex<double> value = literal.getComplex(i);
      values.push_back({component(value.real()), component(value.imag())});
    }
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<mlir::Attribute> values;
  for (int64_t i = 0; i < literal.numElements(); ++i)
    values.push_back(elementAttribute(literal, i, type.getElementType(), element));
  return DenseElementsAttr::get(type, values);
}

} // namespace

Value zeroElement(ElementType type, CodeBuilder &b) { return scalarConstant(b, Literal(Shape::scalar(type)), 0, type); }

llvm::FailureOr<Value> emitConstantElement(const HloInstruction &instr, ValueRange indices, CodeBuilder &b,
                                           DiagnosticEngine &diagnostics) {
  if (!instr.shape().isArray())
    return unsupportedFeature(instr, "a tuple constant", diagnostics);
  const Literal &literal = instr.literal();
  ElementType type = instr.shape().elementType();
  if (!isEmittable(type))
    return unsupportedType(instr, "type " + text(type), diagnostics);
  if (literal.isElided()) // the parser has warned: taken as zeros
    return zeroElement(type, b);
  if (literal.numElements() == 1 || literal.isSplat())
    return scalarConstant(b, literal, 0, type);
  // Constants are ours to lay out: row-major, whatever the text says.
  auto tensor = tensorType(instr.shape().withDefaultLayout(), b.getContext());
  Value constant = arith::ConstantOp::create(b, denseConstant(literal, tensor, type));
  return fromStorage(b, tensor::ExtractOp::create(b, constant, indices), type);
}

} // namespace hloc
