// What the interpreter does with each opcode. One that is not elementwise and has no row does not compile.

#include "interp/Ops.h"

#include <array>

namespace hloc::interp {

namespace {

constexpr const char *severalDevices = "it exchanges data between devices, and the interpreter runs one";
constexpr const char *hostTransfer = "it transfers data between host and device, and the interpreter has no host queue";
constexpr const char *dynamicShapes = "it makes a dynamic shape";

} // namespace

OpcodeRule opcodeRule(Opcode opcode) {
  static constexpr auto table = [] {
    using enum OpcodeTrait;
    std::array<OpcodeRule, numOpcodes()> rules{};
    auto at = [&](Opcode opcode) -> OpcodeRule & { return rules[static_cast<size_t>(opcode)]; };
#define HLOC_OPCODE(name, text, minOperands, maxOperands, family, shape, traits, attributes)                           \
  if (includes(traits, Elementwise))                                                                                   \
    at(Opcode::name) = {&evaluateElementwise, nullptr};
#include "hloc/hlo/Opcodes.def"
#define HLOC_EVALUATE(name, function) at(Opcode::name) = {&function, nullptr};
#define HLOC_REFUSE(name, reason) at(Opcode::name) = {nullptr, reason};
    HLOC_EVALUATE(Convert, evaluateConvert)
    HLOC_EVALUATE(BitcastConvert, evaluateBitcastConvert)
    HLOC_EVALUATE(Copy, evaluateIdentity)
    HLOC_EVALUATE(Select, evaluateSelect)
    HLOC_REFUSE(Parameter, "parameters are bound by the caller")
    HLOC_EVALUATE(Constant, evaluateConstant)
    HLOC_EVALUATE(Iota, evaluateIota)
    HLOC_EVALUATE(ReplicaId, evaluateDeviceZero)
    HLOC_EVALUATE(PartitionId, evaluateDeviceZero)
    HLOC_EVALUATE(Bitcast, evaluateBitcast)
    HLOC_EVALUATE(Broadcast, evaluateBroadcast)
    HLOC_EVALUATE(Concatenate, evaluateConcatenate)
    HLOC_REFUSE(DynamicReshape, dynamicShapes)
    HLOC_EVALUATE(DynamicSlice, evaluateDynamicSlice)
    HLOC_EVALUATE(DynamicUpdateSlice, evaluateDynamicUpdateSlice)
    HLOC_EVALUATE(Gather, evaluateGather)
    HLOC_EVALUATE(Pad, evaluatePad)
    HLOC_EVALUATE(Reshape, evaluateReshape)
    HLOC_EVALUATE(Reverse, evaluateReverse)
    HLOC_EVALUATE(Slice, evaluateSlice)
    HLOC_EVALUATE(Transpose, evaluateTranspose)
    HLOC_EVALUATE(GetDimensionSize, evaluateGetDimensionSize)
    HLOC_REFUSE(SetDimensionSize, dynamicShapes)
    HLOC_EVALUATE(Scatter, evaluateScatter)
    HLOC_EVALUATE(Sort, evaluateSort)
    HLOC_EVALUATE(TopK, evaluateTopK)
    HLOC_EVALUATE(Reduce, evaluateReduce)
    HLOC_EVALUATE(ReduceWindow, evaluateReduceWindow)
    HLOC_EVALUATE(SelectAndScatter, evaluateSelectAndScatter)
    HLOC_EVALUATE(Map, evaluateMap)
    HLOC_EVALUATE(Scan, evaluateScan)
    HLOC_EVALUATE(Dot, evaluateDot)
    HLOC_EVALUATE(ScaledDot, evaluateScaledDot)
    HLOC_EVALUATE(RaggedDot, evaluateRaggedDot)
    HLOC_EVALUATE(Convolution, evaluateConvolution)
    HLOC_EVALUATE(BatchNormTraining, evaluateBatchNormTraining)
    HLOC_EVALUATE(BatchNormInference, evaluateBatchNormInference)
    HLOC_EVALUATE(BatchNormGrad, evaluateBatchNormGrad)
    HLOC_EVALUATE(Fft, evaluateFft)
    HLOC_EVALUATE(Cholesky, evaluateCholesky)
    HLOC_EVALUATE(TriangularSolve, evaluateTriangularSolve)
    HLOC_EVALUATE(Rng, evaluateRng)
    HLOC_EVALUATE(RngBitGenerator, evaluateRngBitGenerator)
    HLOC_EVALUATE(RngGetAndUpdateState, evaluateRngGetAndUpdateState)
    HLOC_EVALUATE(Tuple, evaluateTuple)
    HLOC_EVALUATE(GetTupleElement, evaluateGetTupleElement)
    HLOC_EVALUATE(Call, evaluateCall)
    HLOC_EVALUATE(While, evaluateWhile)
    HLOC_EVALUATE(Conditional, evaluateConditional)
    HLOC_EVALUATE(Fusion, evaluateCall)
    HLOC_EVALUATE(CustomCall, evaluateCustomCall)
    HLOC_EVALUATE(OptimizationBarrier, evaluateIdentity)
    HLOC_EVALUATE(Domain, evaluateIdentity)
    HLOC_EVALUATE(AddDependency, evaluateIdentity)
    HLOC_EVALUATE(AfterAll, evaluateToken)
    HLOC_REFUSE(Infeed, hostTransfer)
    HLOC_REFUSE(Outfeed, hostTransfer)
    HLOC_REFUSE(Send, hostTransfer)
    HLOC_REFUSE(SendDone, hostTransfer)
    HLOC_REFUSE(Recv, hostTransfer)
    HLOC_REFUSE(RecvDone, hostTransfer)
    HLOC_EVALUATE(AllReduce, evaluateCollective)
    HLOC_EVALUATE(AllReduceStart, evaluateCollectiveStart)
    HLOC_EVALUATE(AllReduceDone, evaluateIdentity)
    HLOC_EVALUATE(ReduceScatter, evaluateCollective)
    HLOC_EVALUATE(AllGather, evaluateCollective)
    HLOC_EVALUATE(AllGatherStart, evaluateCollectiveStart)
    HLOC_EVALUATE(AllGatherDone, evaluateAsyncDone)
    HLOC_EVALUATE(AllToAll, evaluateCollective)
    HLOC_REFUSE(RaggedAllToAll, severalDevices)
    HLOC_EVALUATE(CollectiveBroadcast, evaluateCollective)
    HLOC_EVALUATE(CollectivePermute, evaluateCollective)
    HLOC_EVALUATE(CollectivePermuteStart, evaluateCollectiveStart)
    HLOC_EVALUATE(CollectivePermuteDone, evaluateAsyncDone)
    HLOC_EVALUATE(CopyStart, evaluateCopyStart)
    HLOC_EVALUATE(CopyDone, evaluateCopyDone)
    HLOC_EVALUATE(AsyncStart, evaluateAsyncStart)
    HLOC_EVALUATE(AsyncUpdate, evaluateIdentity)
    HLOC_EVALUATE(AsyncDone, evaluateAsyncDone)
#undef HLOC_REFUSE
#undef HLOC_EVALUATE
    return rules;
  }();
  static_assert(
      [] {
        for (const OpcodeRule &rule : table)
          if (!rule.evaluate && !rule.refusal)
            return false;
        return true;
      }(),
      "an opcode that is not elementwise has no row here");
  return table[static_cast<size_t>(opcode)];
}

} // namespace hloc::interp
