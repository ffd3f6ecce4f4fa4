// scan: a computation over slices along one dimension, with carried values.

#include "interp/Ops.h"
#include "interp/Strided.h"

namespace hloc::interp {

namespace {

void placeAt(const Literal &slice, unsigned dim, int64_t index, Literal &result) {
  Index box(result.shape().dims().begin(), result.shape().dims().end()), start(box.size(), 0);
  box[dim] = 1;
  start[dim] = index;
  copyStrided(box, hostBytes(result.shape().elementType()), targetAt(result, start),
              {slice.bytes().data(), rowMajorStrides(box)});
}

} // namespace

/// (outputs..., carries...) := to_apply(slices..., carries...) for each step. A computation that gives one value where
/// an output and a carry are wanted gives it for both.
llvm::FailureOr<Value> evaluateScan(Step &step) {
  const HloComputation &body = *step.instr.computation(AttributeKey::ToApply);
  auto numCarries = size_t(step.instr.intOr(AttributeKey::NumCarries, 0));
  auto dim = unsigned(step.instr.ints(AttributeKey::Dimensions)[0]);
  size_t numInputs = step.operands.size() - numCarries;
  // A single result, of the scan or of the computation, may be a tuple of one.
  llvm::ArrayRef<Shape> shapes = step.shape().isTuple() ? step.shape().elements() : llvm::ArrayRef(step.shape());
  if (numInputs == 0 || shapes.size() < numCarries)
    return step.unsupported("a scan without inputs or with fewer results than carries");
  size_t numOutputs = shapes.size() - numCarries;
  std::vector<Literal> outputs;
  for (size_t i = 0; i < numOutputs; ++i)
    outputs.emplace_back(shapes[i]);
  std::vector<Value> carries(step.operands.begin() + numInputs, step.operands.end());
  int64_t length = step.array(0).shape().dim(dim);
  for (int64_t t = 0; t < length; ++t) {
    int64_t at = step.instr.flag(AttributeKey::IsReverse) ? length - 1 - t : t;
    std::vector<Value> arguments;
    for (size_t i = 0; i < numInputs; ++i)
      arguments.push_back(Value(sliceAt(step.array(unsigned(i)), dim, at)));
    for (Value &carry : carries)
      arguments.push_back(std::move(carry));
    llvm::FailureOr<Value> result = step.machine.run(body, std::move(arguments));
    if (llvm::failed(result))
      return llvm::failure();
    if (!body.root()->shape().isTuple())
      *result = Value::tuple({*result});
    if (result->elements().size() != numOutputs + numCarries)
      return step.unsupported("the computation's signature does not fit", DiagnosticKind::InvalidCallee);
    for (size_t i = 0; i < numOutputs; ++i)
      placeAt(result->element(unsigned(i)).array(), dim, at, outputs[i]);
    for (size_t i = 0; i < numCarries; ++i)
      carries[i] = result->element(unsigned(numOutputs + i));
  }
  std::vector<Value> results;
  for (Literal &output : outputs)
    results.push_back(Value(std::move(output)));
  for (Value &carry : carries)
    results.push_back(std::move(carry));
  return step.shape().isTuple() ? Value::tuple(std::move(results)) : results[0];
}

} // namespace hloc::interp
