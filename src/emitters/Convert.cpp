#include "emitters/Convert.h"

#include "emitters/ElementStorage.h"

#include <cmath>

using namespace mlir;

namespace hloc {
namespace {

using IPred = CodeBuilder::IPred;
using FPred = CodeBuilder::FPred;

/// Truncates towards zero, saturates, NaN becomes 0.
Value floatToInteger(CodeBuilder &b, Value value, ElementType to) {
  Type type = valueType(to, b.getContext());
  unsigned width = bitWidth(to);
  bool toSigned = isSigned(to);
  // Out of range the conversion itself is undefined; its result is not selected then.
  Type wide = b.getIntegerType(std::max(width, 32u));
  Value converted = toSigned ? arith::FPToSIOp::create(b, wide, value).getResult()
                             : arith::FPToUIOp::create(b, wide, value).getResult();
  Value result = b.castI(converted, type, toSigned);
  double limit = std::ldexp(1.0, toSigned ? width - 1 : width); // first value that is too large
  int64_t largest = int64_t(~uint64_t(0) >> (64 - width + (toSigned ? 1 : 0)));
  int64_t smallest = toSigned ? -largest - 1 : 0;
  Value tooSmall = b.cmpF(FPred::OLE, value, toSigned ? -limit : 0.0);
  result = b.select(tooSmall, b.integer(type, smallest), result);
  result = b.select(b.cmpF(FPred::OGE, value, limit), b.integer(type, largest), result);
  return b.select(b.isNan(value), b.integer(type, 0), result);
}

/// f64 to f32 with the last bit set where bits were lost: rounded once more to fewer bits it gives what one rounding
/// would.
Value roundToOdd(CodeBuilder &b, Value value) {
  Type i32 = b.getI32Type();
  Value nearest = b.castF(value, b.getF32Type());
  Value back = b.castF(nearest, b.getF64Type());
  Value bits = b.bitcast(nearest, i32);
  Value isInexact = b.cmpF(FPred::ONE, back, value);
  Value isEven = b.cmpI(IPred::eq, b.andI(bits, 1), 0);
  Value isBelow = b.cmpF(FPred::OLT, b.absF(back), b.absF(value));
  Value odd = b.addI(bits, b.select(isBelow, b.integer(i32, 1), b.integer(i32, -1)));
  return b.bitcast(b.select(b.andI(isInexact, isEven), odd, bits), b.getF32Type());
}

/// Rounded to odd if f64 does not hold it, which is exact enough for all narrower types.
Value integerToDouble(CodeBuilder &b, Value value, bool isSigned) {
  constexpr int lost = 64 - 53;
  if (value.getType().getIntOrFloatBitWidth() == 64) {
    Value sticky = b.select(b.cmpI(IPred::ne, b.andI(value, (1 << lost) - 1), 0), b.integerLike(value, 1 << lost),
                            b.integerLike(value, 0));
    Value collapsed = b.orI(b.andI(value, ~int64_t((1 << lost) - 1)), sticky);
    constexpr int64_t limit = int64_t(1) << 53;
    Value isSmall = isSigned ? b.cmpI(IPred::ult, b.addI(value, limit), 2 * limit) : b.cmpI(IPred::ult, value, limit);
    value = b.select(isSmall, value, collapsed);
  }
  if (isSigned)
    return arith::SIToFPOp::create(b, b.getF64Type(), value);
  return arith::UIToFPOp::create(b, b.getF64Type(), value);
}

Value integerToFloat(CodeBuilder &b, Value value, ElementType from, ElementType to) {
  Type compute = computeType(to, b.getContext());
  // Narrow widths first become one that the machine converts.
  Type wide = b.getIntegerType(std::max(value.getType().getIntOrFloatBitWidth(), 32u));
  Value extended = b.castI(value, wide, isSigned(from));
  // Powers of two reach beyond 2^24, from where on f32 rounds. So does bf16, which has instructions of its own on some
  // targets, and is expanded in a pass on others.
  if (to == ElementType::F8E8M0FNU && bitWidth(from) >= 32)
    return fromCompute(b, integerToDouble(b, extended, isSigned(from)), to);
  Value converted = isSigned(from) ? arith::SIToFPOp::create(b, compute, extended).getResult()
                                   : arith::UIToFPOp::create(b, compute, extended).getResult();
  return fromCompute(b, converted, to);
}

Value toPred(CodeBuilder &b, Value value, ElementType from) {
  if (isPred(from))
    return value;
  if (isFloat(from))
    return b.cmpF(FPred::UNE, toCompute(b, value, from), 0.0);
  if (isComplex(from))
    return b.orI(b.cmpF(FPred::UNE, b.real(value), 0.0), b.cmpF(FPred::UNE, b.imag(value), 0.0));
  return b.cmpI(IPred::ne, value, 0);
}

Value toComplex(CodeBuilder &b, Value value, ElementType from, ElementType to) {
  ElementType component = componentType(to);
  Type type = valueType(component, b.getContext());
  if (isComplex(from))
    return b.complex(b.castF(b.real(value), type), b.castF(b.imag(value), type));
  return b.complex(convertElement(b, value, from, component), b.floating(type, 0.0));
}

} // namespace

Type computeType(ElementType type, MLIRContext *context) {
  if (type == ElementType::F64)
    return Float64Type::get(context);
  return Float32Type::get(context);
}

Value toCompute(CodeBuilder &b, Value value, ElementType type) {
  if (isPatternFloat(type)) {
    Value pattern = b.castI(value, b.getIntegerType(bitWidth(type)), /*isSigned=*/false);
    value = b.bitcast(pattern, patternFloatType(type, b.getContext()));
  }
  return b.castF(value, computeType(type, b.getContext()));
}

Value fromCompute(CodeBuilder &b, Value value, ElementType type) {
  if (type == ElementType::F64)
    return b.castF(value, b.getF64Type());
  if (type == ElementType::F16)
    return b.castF(value, b.getF16Type());
  // LLVM rounds once from f64 to bf16: by an instruction from sm_90 on, before that to odd first.
  if (value.getType().isF64() && type == ElementType::BF16)
    return b.castF(value, b.getBF16Type());
  if (value.getType().isF64() && type != ElementType::F32)
    value = roundToOdd(b, value);
  value = b.castF(value, b.getF32Type());
  if (isPatternFloat(type)) {
    // Zero and what is below are no powers of two. LLVM's and MLIR's folding of constants does not know.
    if (floatFormat(type).specials == FloatFormat::Specials::PowerOfTwo)
      value = b.select(b.cmpF(FPred::OLE, value, 0.0), b.quietNan(b.getF32Type()), value);
    // Nor that infinity becomes the largest number where there is none.
    if (floatFormat(type).specials == FloatFormat::Specials::None) {
      const double largest = largestFinite(floatFormat(type));
      value = b.minF(b.maxF(value, b.floating(b.getF32Type(), -largest)), b.floating(b.getF32Type(), largest));
    }
    Value narrow = b.castF(value, patternFloatType(type, b.getContext()));
    Value pattern = b.bitcast(narrow, b.getIntegerType(bitWidth(type)));
    return b.castI(pattern, valueType(type, b.getContext()), /*isSigned=*/false);
  }
  return b.castF(value, valueType(type, b.getContext()));
}

Value convertElement(CodeBuilder &b, Value value, ElementType from, ElementType to) {
  if (from == to)
    return value;
  if (isPred(to))
    return toPred(b, value, from);
  if (isComplex(to))
    return toComplex(b, value, from, to);
  if (isComplex(from))
    return convertElement(b, b.real(value), componentType(from), to);
  if (isFloat(from)) {
    Value computed = toCompute(b, value, from);
    return isFloat(to) ? fromCompute(b, computed, to) : floatToInteger(b, computed, to);
  }
  if (isFloat(to))
    return integerToFloat(b, value, from, to);
  return b.castI(value, valueType(to, b.getContext()), isSigned(from));
}

Value fromStorage(CodeBuilder &b, Value value, ElementType type) {
  return isPred(type) ? b.cmpI(IPred::ne, value, 0) : value;
}

Value toStorage(CodeBuilder &b, Value value, ElementType type) {
  return isPred(type) ? arith::ExtUIOp::create(b, b.getI8Type(), value).getResult() : value;
}

} // namespace hloc
