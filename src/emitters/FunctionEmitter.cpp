#include "emitters/FunctionEmitter.h"

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Elementwise.h"
#include "emitters/ScalarComputation.h"
#include "emitters/Unsupported.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/support/Check.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {

Location locationOf(const HloInstruction &instr, MLIRContext *context) {
  StringRef file = "-";
  LineColumn where{1, 1};
  if (const std::shared_ptr<const SourceFile> &source = instr.parent()->module().source()) {
    file = source->name();
    if (instr.range().isValid())
      where = source->lineColumn(instr.range().begin);
  }
  Location place = FileLineColLoc::get(context, file, where.line, where.column);
  return NameLoc::get(StringAttr::get(context, instr.name()), place);
}

FunctionEmitter::FunctionEmitter(const FusionCode &code, const Subgraph &subgraph, func::FuncOp function)
    : code(code), subgraph(subgraph), function(function), b(function.getLoc(), function.getContext()) {
  b.setInsertionPointToEnd(function.addEntryBlock());
  nameArguments();
  for (const InjectedValue &value : subgraph.injected) {
    Values &results = values[value.instr];
    results.resize(value.instr->numResults());
    results[value.result] = fromStorage(b, injectedArgument(value), value.shape().elementType());
  }
}

/// Dumps name values after the locations they have; an index belongs to no instruction.
void FunctionEmitter::nameArguments() {
  Block::BlockArgListType arguments = function.getArguments();
  for (auto [instr, argument] : llvm::zip(code.graph.parameters(), arguments))
    argument.setLoc(locationOf(*instr, b.getContext()));
  arguments = arguments.drop_front(code.graph.parameters().size());
  for (Value index : arguments.take_front(subgraph.indexSizes.size()))
    index.setLoc(UnknownLoc::get(b.getContext()));
  arguments = arguments.drop_front(subgraph.indexSizes.size());
  for (auto [value, argument] : llvm::zip_equal(subgraph.injected, arguments))
    argument.setLoc(locationOf(*value.instr, b.getContext()));
}

Value FunctionEmitter::injectedArgument(const InjectedValue &value) {
  const auto *found = llvm::find(subgraph.injected, value);
  HLOC_CHECK(found != subgraph.injected.end(), "a value is read by a function that it is not injected into");
  unsigned firstInjected = code.graph.parameters().size() + subgraph.indexSizes.size();
  return function.getArgument(firstInjected + unsigned(found - subgraph.injected.begin()));
}

LogicalResult FunctionEmitter::emitBody() {
  unsigned numParameters = code.graph.parameters().size();
  ValueRange indices = function.getArguments().slice(numParameters, subgraph.indexSizes.size());
  SmallVector<Value> results;
  for (const FunctionRoot &root : subgraph.roots) {
    SmallVector<Value> rootIndices = applyMap(b, root.map, indices);
    Result rootValues = emit(*root.instr, rootIndices);
    if (failed(rootValues))
      return failure();
    ElementType type = root.instr->resultShape(root.result).elementType();
    locate(*root.instr);
    results.push_back(toStorage(b, (*rootValues)[root.result], type));
  }
  func::ReturnOp::create(b, results);
  return success();
}

void FunctionEmitter::locate(const HloInstruction &instr) { b.setLoc(locationOf(instr, b.getContext())); }

FunctionEmitter::Result FunctionEmitter::unsupportedFeature(const HloInstruction &instr, const llvm::Twine &what) {
  return hloc::unsupportedFeature(instr, what, code.diagnostics);
}

/// What has been computed for `instr` and can be used here. Values are remembered by instruction alone: within a
/// function every instruction is read at one index (the partitioner's invariant), so who asks does not matter, only
/// where: a value made inside a branch or a loop dominates nothing outside.
const FunctionEmitter::Values *FunctionEmitter::remembered(const HloInstruction &instr) const {
  auto found = values.find(&instr);
  if (found == values.end())
    return nullptr;
  // A value made in a branch or loop body is not there outside of it.
  Region *here = b.getInsertionBlock()->getParent();
  for (Value value : found->second)
    if (value && !value.getParentRegion()->isAncestor(here)) // null: a result that is not injected
      return nullptr;
  return &found->second;
}

FunctionEmitter::Result FunctionEmitter::emit(const HloInstruction &requested, ValueRange indices) {
  const HloInstruction &instr = behindTuple(requested);
  bool injected = llvm::any_of(subgraph.injected, [&](const InjectedValue &value) { return value.instr == &instr; });
  if (!injected && isLeaf(instr))
    return emitLeaf(instr, indices);
  if (!injected && !code.partition.belongsTo(instr, subgraph))
    return emitCall(instr, indices);
  // Within a function an instruction is read through one map, so its value does not depend on who asks.
  if (const Values *known = remembered(instr))
    return *known;
  Result result = readsOperandsInPlace(instr) ? emitElementwiseChain(instr, indices) : emitHere(instr, indices);
  if (succeeded(result))
    values[&instr] = *result;
  return result;
}

llvm::FailureOr<Value> FunctionEmitter::emitOne(const HloInstruction &instr, ValueRange indices) {
  Result result = emit(instr, indices);
  if (failed(result))
    return failure();
  return result->front();
}

FunctionEmitter::Result FunctionEmitter::emitCall(const HloInstruction &instr, ValueRange indices) {
  HLOC_CHECK(code.partition.subgraphOf(instr) >= 0, "call of an instruction that is in no function");
  func::FuncOp callee = code.functionOf(instr);
  locate(instr);
  SmallVector<Value> arguments(function.getArguments().take_front(code.graph.parameters().size()));
  llvm::append_range(arguments, indices);
  for (const InjectedValue &value : code.partition.subgraphs()[code.partition.subgraphOf(instr)].injected)
    arguments.push_back(injectedArgument(value));
  auto call = xla_gpu::PureCallOp::create(b, callee, arguments);
  Values results;
  for (auto [i, value] : llvm::enumerate(call.getResults()))
    results.push_back(fromStorage(b, value, instr.resultShape(i).elementType()));
  return results;
}

FunctionEmitter::Result FunctionEmitter::emitElementwiseChain(const HloInstruction &last, ValueRange indices) {
  SmallVector<const HloInstruction *> pending = {&last};
  while (!pending.empty()) {
    const HloInstruction &instr = *pending.back();
    if (remembered(instr)) {
      pending.pop_back();
      continue;
    }
    size_t before = pending.size();
    for (const HloInstruction *operand : instr.operands())
      if (operand = &behindTuple(*operand); !isLeaf(*operand) && code.partition.belongsTo(*operand, subgraph) &&
                                            readsOperandsInPlace(*operand) && operand->shape().isArray() &&
                                            operand->shape().sameDims(instr.shape()) && !remembered(*operand))
        pending.push_back(operand);
    if (pending.size() != before)
      continue;
    Result result = emitInPlace(instr, indices);
    if (failed(result))
      return failure();
    values[&instr] = *result;
    pending.pop_back();
  }
  return values[&last];
}

FunctionEmitter::Result FunctionEmitter::emitInPlace(const HloInstruction &instr, ValueRange indices) {
  if (!instr.shape().isArray())
    return unsupportedFeature(instr, "`" + text(instr.opcode()).str() + "` of a tuple");
  SmallVector<Value> operands;
  for (const HloInstruction *operand : instr.operands()) {
    if (!operand->shape().isArray())
      return unsupportedFeature(instr, "`" + text(instr.opcode()).str() + "` of a tuple or token");
    bool scalar = operand->shape().rank() == 0;
    llvm::FailureOr<Value> value = emitOne(*operand, scalar ? ValueRange() : indices);
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  locate(instr);
  if (instr.opcode() == Opcode::Map)
    return emitScalarComputation(*instr.computation(AttributeKey::ToApply), operands, b, code.diagnostics);
  llvm::FailureOr<Value> value = emitElementwise(ElementwiseOp{instr, operands, b, code.diagnostics});
  if (failed(value))
    return failure();
  return Values{*value};
}

// What is not in place.
FunctionEmitter::Result FunctionEmitter::emitHere(const HloInstruction &instr, ValueRange indices) {
  const OpcodeEmission &how = emissionOf(instr.opcode());
  if (how.method)
    return (this->*how.method)(instr, indices);
  HLOC_CHECK(how.kind == OpcodeEmission::Kind::Refused || how.kind == OpcodeEmission::Kind::TakenApart,
             "an opcode that is emitted elsewhere");
  return unsupportedOpcode(instr, code.diagnostics);
}

} // namespace hloc
