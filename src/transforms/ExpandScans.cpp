// scan -> a loop over the positions of its dimension, which carries what the scan does and writes outputs in place.

#include "Expansion.h"
#include "Rewriter.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Value = Expansion::Value;
using Values = Expansion::Values;

/// (outputs..., carries...) := to_apply(slices..., carries...), which may be a tuple of one where that is one value.
HloInstruction *expandScan(HloInstruction &instr, HloRewriter &rewriter) {
  const HloComputation &step = *instr.computation(AttributeKey::ToApply);
  auto numCarries = size_t(instr.intOr(AttributeKey::NumCarries, 0));
  size_t numInputs = instr.numOperands() - numCarries, numResults = instr.numResults();
  const HloInstruction &root = *step.root();
  if (numInputs == 0 || numResults < numCarries || root.numResults() != numResults)
    return nullptr;
  size_t numOutputs = numResults - numCarries;
  auto dim = unsigned(instr.ints(AttributeKey::Dimensions).front());
  int64_t length = instr.operand(0)->shape().dim(dim);
  bool isReverse = instr.flag(AttributeKey::IsReverse);
  Expansion x(rewriter.builder(), instr);
  Values state;
  for (size_t i = 0; i < numOutputs; ++i) {
    const Shape &shape = instr.resultShape(unsigned(i));
    state.push_back(x.filled(shape.elementType(), shape.dims(), 0));
  }
  for (size_t i = 0; i < numCarries; ++i)
    state.push_back(x.plain(instr.operand(unsigned(numInputs + i))));
  for (size_t i = 0; i < numInputs; ++i)
    state.push_back(x.plain(instr.operand(unsigned(i))));
  auto round = [&](Expansion &x, Value counter, llvm::ArrayRef<Value> state) {
    Value at = isReverse ? x.subtract(x.scalar(ElementType::S32, double(length - 1)), counter) : counter;
    Values arguments;
    for (Value input : state.drop_front(numResults)) {
      llvm::SmallVector<int64_t> rest(input->shape().dims());
      rest.erase(rest.begin() + dim);
      arguments.push_back(x.reshape(x.at(input, dim, at), rest));
    }
    llvm::append_range(arguments, state.slice(numOutputs, numCarries));
    Values results = x.apply(step, arguments), next;
    for (size_t i = 0; i < numOutputs; ++i) {
      llvm::SmallVector<int64_t> part(state[i]->shape().dims());
      part[dim] = 1;
      next.push_back(x.withAt(state[i], x.reshape(x.plain(results[i]), part), dim, at));
    }
    for (size_t i = numOutputs; i < numResults; ++i)
      next.push_back(x.plain(results[i]));
    llvm::append_range(next, state.drop_front(numResults));
    return next;
  };
  Values last = x.repeat(length, state, "scan", round), results;
  for (size_t i = 0; i < numResults; ++i)
    results.push_back(x.result(last[i], instr.resultShape(unsigned(i))));
  return instr.shape().isTuple() ? x.builder().tuple(results) : results.front();
}

constexpr RewriteRule rules[] = {{"expand-scans", Opcode::Scan, expandScan}};

} // namespace

PassResult expandScans(HloModule &module, HloPassContext &context) { return rewriteModule(module, rules, context); }

} // namespace hloc
