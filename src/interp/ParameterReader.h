#pragma once
// What the ops with scalar functions share: reading operands as the function's parameters, and their results.

#include "interp/LaneOp.h"
#include "interp/ScalarFunction.h"

namespace hloc::interp {

/// Reads lanes of an array as the type a function's parameter has (which may be a float of another precision).
class ParameterReader {
public:
  ParameterReader(const Literal &literal, ElementType as)
      : elements(literal.bytes().data()), type(literal.shape().elementType()), load(loadFunction(type)) {
    if (computeType(type) != computeType(as))
      convert = convertKernel(type, as);
  }
  const void *read(int64_t start, int64_t count) {
    const uint8_t *from = elements + start * hostBytes(type);
    if (isNative(type) && !convert)
      return from;
    load(from, loaded.bytes, count);
    if (!convert)
      return loaded.bytes;
    Lanes lanes;
    lanes.operands[0] = loaded.bytes;
    lanes.result = converted.bytes;
    lanes.count = count;
    lanes.bits = 64;
    convert(lanes);
    return converted.bytes;
  }

private:
  const uint8_t *elements;
  ElementType type;
  Load load;
  Kernel convert = nullptr;
  LaneBuffer loaded, converted;
};

/// Zero-filled results of an op that gives an array or a tuple of arrays.
inline std::vector<Literal> newResults(const Shape &shape) {
  std::vector<Literal> results;
  if (!shape.isTuple())
    results.emplace_back(shape);
  else
    for (const Shape &element : shape.elements())
      results.emplace_back(element);
  return results;
}

} // namespace hloc::interp
