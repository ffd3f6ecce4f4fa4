#include "emitters/ProductArithmetic.h"

#include "emitters/Convert.h"
#include "emitters/Elementwise.h"

using namespace mlir;

namespace hloc {

Value ProductArithmetic::zero() {
  if (isFloat(type))
    return b.floating(computeType(type, b.getContext()), 0.0);
  return convertElement(b, b.boolean(false), ElementType::Pred, type);
}

Value ProductArithmetic::factor(Value value, ElementType from) {
  Value converted = convertElement(b, value, from, type);
  return isFloat(type) ? toCompute(b, converted, type) : converted;
}

Value ProductArithmetic::multiply(Value x, Value y) {
  if (isFloat(type))
    return b.mulF(x, y);
  if (isComplex(type))
    return complexArithmetic(b, Opcode::Multiply, x, y);
  return isPred(type) ? b.andI(x, y) : b.mulI(x, y);
}

Value ProductArithmetic::add(Value x, Value y) {
  if (isFloat(type))
    return b.addF(x, y);
  if (isComplex(type))
    return complexArithmetic(b, Opcode::Add, x, y);
  return isPred(type) ? b.orI(x, y) : b.addI(x, y);
}

Value ProductArithmetic::result(Value sum) { return isFloat(type) ? fromCompute(b, sum, type) : sum; }

} // namespace hloc
