// Elementwise ops on whole arrays: run by run through the lane kernels.

#include "interp/LaneOp.h"
#include "interp/Ops.h"

#include <cstring>

namespace hloc::interp {

namespace {

/// Delivers an operand's lanes run by run. Scalars (allowed for clamp bounds and select predicates) are repeated.
class LaneReader {
public:
  LaneReader(const Literal &literal, bool repeat)
      : elements(literal.bytes().data()), type(literal.shape().elementType()), repeat(repeat),
        load(loadFunction(type)) {
    if (!repeat)
      return;
    load(elements, buffer.bytes, 1);
    size_t bytes = laneBytes(computeType(type));
    for (int64_t i = 1; i < maxLanes; ++i)
      std::memcpy(buffer.bytes + size_t(i) * bytes, buffer.bytes, bytes);
  }

  const void *read(int64_t start, int64_t count) {
    if (repeat)
      return buffer.bytes;
    const uint8_t *from = elements + start * hostBytes(type);
    if (isNative(type))
      return from;
    load(from, buffer.bytes, count);
    return buffer.bytes;
  }

private:
  const uint8_t *elements;
  ElementType type;
  bool repeat;
  Load load;
  LaneBuffer buffer;
};

void runOverArray(const LaneOp &op, llvm::MutableArrayRef<LaneReader> operands, Literal &result) {
  ElementType type = op.resultType;
  Store store = storeFunction(type);
  LaneBuffer computed;
  int64_t total = result.numElements();
  for (int64_t start = 0; start < total; start += maxLanes) {
    int64_t count = std::min(maxLanes, total - start);
    uint8_t *to = result.mutableBytes().data() + start * hostBytes(type);
    Lanes lanes;
    for (unsigned i = 0; i < operands.size(); ++i)
      lanes.operands[i] = operands[i].read(start, count);
    lanes.result = isNative(type) ? static_cast<void *>(to) : computed.bytes;
    lanes.count = count;
    lanes.bits = op.bits;
    lanes.exponentBits = op.exponentBits;
    lanes.mantissaBits = op.mantissaBits;
    lanes.randomBits = op.randomBits;
    op.kernel(lanes);
    if (!isNative(type))
      store(computed.bytes, to, count); // rounds
  }
}

template <unsigned Width>
void selectBytes(const Literal &which, const Literal &yes, const Literal &no, Literal &result) {
  struct Element {
    uint8_t bytes[Width];
  };
  auto chosen = which.data<uint8_t>();
  auto y = yes.data<Element>(), n = no.data<Element>();
  auto to = result.mutableData<Element>();
  for (int64_t i = 0, count = result.numElements(); i < count; ++i)
    to[i] = chosen[i] ? y[i] : n[i];
}

} // namespace

llvm::FailureOr<Value> evaluateElementwise(Step &step) {
  std::optional<LaneOp> op = laneOp(step.instr);
  if (!op) {
    std::string types;
    for (const HloInstruction *operand : step.instr.operands())
      types += (types.empty() ? "" : ", ") + operand->shape().toString(false);
    return step.unsupported("it is not defined on " + types + " -> " + step.shape().toString(false),
                            DiagnosticKind::UnsupportedType);
  }
  Literal result(step.shape());
  std::vector<LaneReader> readers;
  for (unsigned i = 0; i < op->numOperands; ++i)
    readers.emplace_back(step.array(i), step.array(i).shape().isScalar());
  runOverArray(*op, readers, result);
  return Value(std::move(result));
}

/// Bytes are moved, not values, so that NaN payloads survive.
llvm::FailureOr<Value> evaluateSelect(Step &step) {
  if (step.array(0).shape().isScalar())
    return step.operands[step.array(0).getInt(0) ? 1 : 2];
  Literal result(step.shape());
  switch (hostBytes(step.shape().elementType())) {
  case 1:
    selectBytes<1>(step.array(0), step.array(1), step.array(2), result);
    break;
  case 2:
    selectBytes<2>(step.array(0), step.array(1), step.array(2), result);
    break;
  case 4:
    selectBytes<4>(step.array(0), step.array(1), step.array(2), result);
    break;
  case 8:
    selectBytes<8>(step.array(0), step.array(1), step.array(2), result);
    break;
  default:
    selectBytes<16>(step.array(0), step.array(1), step.array(2), result);
  }
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateConvert(Step &step) {
  if (step.shape().elementType() == step.array(0).shape().elementType())
    return step.operands[0]; // also keeps NaN payloads
  return evaluateElementwise(step);
}

} // namespace hloc::interp
