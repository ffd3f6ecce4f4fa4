#include "emitters/FunctionEmitter.h"

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Elementwise.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/support/Check.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {

Location locationOf(const HloInstruction &instr, MLIRContext *context) {
  StringRef file = "-";
  LineColumn where{1, 1};
  if (const std::shared_ptr<const SourceFile> &source = instr.parent()->module().source();
      source && instr.range().isValid()) {
    file = source->name();
    where = source->lineColumn(instr.range().begin);
  }
  Location place = FileLineColLoc::get(context, file, where.line, where.column);
  return NameLoc::get(StringAttr::get(context, instr.name()), place);
}

FunctionEmitter::FunctionEmitter(const FusionCode &code, const Subgraph &subgraph, func::FuncOp function)
    : code(code), subgraph(subgraph), function(function), b(function.getLoc(), function.getContext()) {
  b.setInsertionPointToEnd(function.addEntryBlock());
  unsigned firstInjected = code.graph.parameters().size() + subgraph.indexSizes.size();
  for (auto [i, instr] : llvm::enumerate(subgraph.injected)) {
    Value argument = function.getArgument(firstInjected + i);
    values[instr] = {fromStorage(b, argument, instr->shape().elementType())};
  }
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
    const Shape &shape = root.instr->shape();
    ElementType type = shape.isTuple() ? shape.element(root.result).elementType() : shape.elementType();
    locate(*root.instr);
    results.push_back(toStorage(b, (*rootValues)[root.result], type));
  }
  func::ReturnOp::create(b, results);
  return success();
}

void FunctionEmitter::locate(const HloInstruction &instr) { b.setLoc(locationOf(instr, b.getContext())); }

FunctionEmitter::Result FunctionEmitter::unsupportedOpcode(const HloInstruction &instr) {
  code.diagnostics.report(DiagnosticKind::UnsupportedOpcode, instr.range(),
                          "opcode `" + text(instr.opcode()).str() + "` is not supported in a kernel");
  return failure();
}

FunctionEmitter::Result FunctionEmitter::unsupportedFeature(const HloInstruction &instr, const std::string &what) {
  code.diagnostics.report(DiagnosticKind::UnsupportedFeature, instr.range(), what + " is not supported in a kernel");
  return failure();
}

const FunctionEmitter::Values *FunctionEmitter::remembered(const HloInstruction &instr) const {
  auto found = values.find(&instr);
  if (found == values.end())
    return nullptr;
  // A value made in a branch or loop body is not there outside of it.
  Region *here = b.getInsertionBlock()->getParent();
  for (Value value : found->second)
    if (!value.getParentRegion()->isAncestor(here))
      return nullptr;
  return &found->second;
}

FunctionEmitter::Result FunctionEmitter::emit(const HloInstruction &requested, ValueRange indices) {
  const HloInstruction &instr = behindTuple(requested);
  if (isLeaf(instr))
    return emitLeaf(instr, indices);
  bool injected = llvm::is_contained(subgraph.injected, &instr);
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
  auto call = xla_gpu::PureCallOp::create(b, callee, arguments);
  Values results;
  for (auto [i, value] : llvm::enumerate(call.getResults())) {
    const Shape &shape = instr.shape();
    results.push_back(fromStorage(b, value, shape.isTuple() ? shape.element(i).elementType() : shape.elementType()));
  }
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
    return emitComputation(*instr.computation(AttributeKey::ToApply), operands);
  llvm::FailureOr<Value> value = emitElementwise(ElementwiseOp{instr, operands, b, code.diagnostics});
  if (failed(value))
    return failure();
  return Values{*value};
}

FunctionEmitter::Result FunctionEmitter::emitComputation(const HloComputation &computation, ValueRange arguments) {
  llvm::DenseMap<const HloInstruction *, Values> results;
  for (const HloInstruction *instr : computation.instructions()) {
    SmallVector<Value> operands;
    for (const HloInstruction *operand : instr->operands())
      llvm::append_range(operands, results[operand]);
    if (instr->shape().isArray() && instr->shape().rank() != 0)
      return unsupportedFeature(*instr, "an array in a computation that is applied to scalars");
    Values &value = results[instr];
    locate(*instr);
    if (instr->opcode() == Opcode::Parameter) {
      value = {arguments[instr->parameterNumber()]};
    } else if (instr->opcode() == Opcode::Tuple) {
      value.assign(operands.begin(), operands.end());
    } else if (instr->opcode() == Opcode::GetTupleElement) {
      // Tuples are lists of their leaves.
      size_t start = 0, index = size_t(instr->intOr(AttributeKey::Index, 0));
      for (size_t i = 0; i < index; ++i)
        start += instr->operand(0)->shape().element(unsigned(i)).leaves().size();
      value.assign(operands.begin() + long(start), operands.begin() + long(start + instr->shape().leaves().size()));
    } else if (instr->opcode() == Opcode::Constant || instr->opcode() == Opcode::Call ||
               instr->opcode() == Opcode::Map) {
      Result nested = instr->opcode() == Opcode::Constant
                          ? emitConstant(*instr, {})
                          : emitComputation(*instr->computation(AttributeKey::ToApply), operands);
      if (failed(nested))
        return failure();
      value = *nested;
    } else if (readsOperandsInPlace(*instr)) {
      llvm::FailureOr<Value> computed = emitElementwise(ElementwiseOp{*instr, operands, b, code.diagnostics});
      if (failed(computed))
        return failure();
      value = {*computed};
    } else {
      return unsupportedOpcode(*instr);
    }
  }
  return results[computation.root()];
}

// What is not elementwise. Opcodes without a case are listed, so that a new one does not compile until it is decided.
FunctionEmitter::Result FunctionEmitter::emitHere(const HloInstruction &instr, ValueRange indices) {
  switch (instr.opcode()) {
  case Opcode::Broadcast:
  case Opcode::Reshape:
  case Opcode::Reverse:
  case Opcode::Slice:
  case Opcode::Transpose:
  case Opcode::GetTupleElement:
    return emitMapped(instr, indices);
  case Opcode::Bitcast:
  case Opcode::BitcastConvert:
    return emitBitcast(instr, indices);
  case Opcode::Concatenate:
    return emitConcatenate(instr, indices, 0, instr.numOperands());
  case Opcode::Pad:
    return emitPad(instr, indices);
  case Opcode::DynamicSlice:
    return emitDynamicSlice(instr, indices);
  case Opcode::Gather:
    return emitGather(instr, indices);
  case Opcode::DynamicUpdateSlice:
    return emitDynamicUpdateSlice(instr, indices);
  case Opcode::Reduce:
  case Opcode::ReduceWindow:
    return emitReduction(instr, indices);
  case Opcode::Dot:
    return emitDot(instr, indices);
  case Opcode::ReplicaId:
  case Opcode::PartitionId:
    locate(instr);
    return Values{b.integer(b.getI32Type(), 0)}; // one device

  // Elementwise: emitElementwiseChain. Leaves: emitLeaf.
  case Opcode::Abs:
  case Opcode::Acos:
  case Opcode::Acosh:
  case Opcode::Asin:
  case Opcode::Asinh:
  case Opcode::Atanh:
  case Opcode::Cbrt:
  case Opcode::Ceil:
  case Opcode::CountLeadingZeros:
  case Opcode::Cosine:
  case Opcode::Cosh:
  case Opcode::Erf:
  case Opcode::Exponential:
  case Opcode::ExponentialMinusOne:
  case Opcode::Floor:
  case Opcode::Imag:
  case Opcode::IsFinite:
  case Opcode::Log:
  case Opcode::LogPlusOne:
  case Opcode::Logistic:
  case Opcode::Negate:
  case Opcode::Not:
  case Opcode::PopulationCount:
  case Opcode::Real:
  case Opcode::RoundNearestAfz:
  case Opcode::RoundNearestEven:
  case Opcode::Rsqrt:
  case Opcode::Sign:
  case Opcode::Sine:
  case Opcode::Sinh:
  case Opcode::Sqrt:
  case Opcode::Tan:
  case Opcode::Tanh:
  case Opcode::Convert:
  case Opcode::ReducePrecision:
  case Opcode::StochasticConvert:
  case Opcode::Copy:
  case Opcode::Add:
  case Opcode::And:
  case Opcode::Atan2:
  case Opcode::Complex:
  case Opcode::Divide:
  case Opcode::Maximum:
  case Opcode::Minimum:
  case Opcode::MultiplyHigh:
  case Opcode::Multiply:
  case Opcode::Or:
  case Opcode::Power:
  case Opcode::Remainder:
  case Opcode::ShiftLeft:
  case Opcode::ShiftRightArithmetic:
  case Opcode::ShiftRightLogical:
  case Opcode::Subtract:
  case Opcode::Xor:
  case Opcode::Compare:
  case Opcode::Clamp:
  case Opcode::Select:
  case Opcode::Map:
  case Opcode::OptimizationBarrier:
  case Opcode::Domain:
  case Opcode::AddDependency:
  case Opcode::Parameter:
  case Opcode::Constant:
  case Opcode::Iota:
    HLOC_UNREACHABLE("emitted elsewhere");

  // Not code of one element.
  case Opcode::DynamicReshape:
  case Opcode::GetDimensionSize:
  case Opcode::SetDimensionSize:
  case Opcode::Scatter:
  case Opcode::Sort:
  case Opcode::TopK:
  case Opcode::SelectAndScatter:
  case Opcode::Scan:
  case Opcode::ScaledDot:
  case Opcode::RaggedDot:
  case Opcode::Convolution:
  case Opcode::BatchNormTraining:
  case Opcode::BatchNormInference:
  case Opcode::BatchNormGrad:
  case Opcode::Fft:
  case Opcode::Cholesky:
  case Opcode::TriangularSolve:
  case Opcode::Rng:
  case Opcode::RngBitGenerator:
  case Opcode::RngGetAndUpdateState:
  case Opcode::Tuple:
  case Opcode::Call:
  case Opcode::While:
  case Opcode::Conditional:
  case Opcode::Fusion:
  case Opcode::CustomCall:
  case Opcode::AfterAll:
  case Opcode::Infeed:
  case Opcode::Outfeed:
  case Opcode::Send:
  case Opcode::SendDone:
  case Opcode::Recv:
  case Opcode::RecvDone:
  case Opcode::AllReduce:
  case Opcode::AllReduceStart:
  case Opcode::AllReduceDone:
  case Opcode::ReduceScatter:
  case Opcode::AllGather:
  case Opcode::AllGatherStart:
  case Opcode::AllGatherDone:
  case Opcode::AllToAll:
  case Opcode::RaggedAllToAll:
  case Opcode::CollectiveBroadcast:
  case Opcode::CollectivePermute:
  case Opcode::CollectivePermuteStart:
  case Opcode::CollectivePermuteDone:
  case Opcode::CopyStart:
  case Opcode::CopyDone:
  case Opcode::AsyncStart:
  case Opcode::AsyncUpdate:
  case Opcode::AsyncDone:
    return unsupportedOpcode(instr);
  }
  HLOC_UNREACHABLE("opcode outside the table");
}

} // namespace hloc
