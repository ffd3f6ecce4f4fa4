// What the interpreter does with each opcode. One that is not elementwise and has no row does not compile.

#include "interp/Ops.h"

#include "hloc/hlo/OpcodeTable.h"

namespace hloc::interp {

namespace {

constexpr const char *severalDevices = "it exchanges data between devices, and the interpreter runs one";
constexpr const char *hostTransfer = "it transfers data between host and device, and the interpreter has no host queue";
constexpr const char *dynamicShapes = "it makes a dynamic shape";

} // namespace

OpcodeRule opcodeRule(Opcode opcode) {
  using enum Opcode;
  // Of elementwise ops those that are more than a function of lanes.
  static constexpr OpcodeTable<OpcodeRule> table(
      [](Opcode each) { return !isElementwise(each) || each == Convert || each == BitcastConvert || each == Select; },
      {
          {{Convert}, {evaluateConvert, nullptr}},
          {{BitcastConvert}, {evaluateBitcastConvert, nullptr}},
          {{Copy}, {evaluateIdentity, nullptr}},
          {{Select}, {evaluateSelect, nullptr}},
          {{Parameter}, {nullptr, "parameters are bound by the caller"}},
          {{Constant}, {evaluateConstant, nullptr}},
          {{Iota}, {evaluateIota, nullptr}},
          {{ReplicaId, PartitionId}, {evaluateDeviceZero, nullptr}},
          {{Bitcast}, {evaluateBitcast, nullptr}},
          {{Broadcast}, {evaluateBroadcast, nullptr}},
          {{Concatenate}, {evaluateConcatenate, nullptr}},
          {{DynamicReshape}, {nullptr, dynamicShapes}},
          {{DynamicSlice}, {evaluateDynamicSlice, nullptr}},
          {{DynamicUpdateSlice}, {evaluateDynamicUpdateSlice, nullptr}},
          {{Gather}, {evaluateGather, nullptr}},
          {{Pad}, {evaluatePad, nullptr}},
          {{Reshape}, {evaluateReshape, nullptr}},
          {{Reverse}, {evaluateReverse, nullptr}},
          {{Slice}, {evaluateSlice, nullptr}},
          {{Transpose}, {evaluateTranspose, nullptr}},
          {{GetDimensionSize}, {evaluateGetDimensionSize, nullptr}},
          {{SetDimensionSize}, {nullptr, dynamicShapes}},
          {{Scatter}, {evaluateScatter, nullptr}},
          {{Sort}, {evaluateSort, nullptr}},
          {{TopK}, {evaluateTopK, nullptr}},
          {{Reduce}, {evaluateReduce, nullptr}},
          {{ReduceWindow}, {evaluateReduceWindow, nullptr}},
          {{SelectAndScatter}, {evaluateSelectAndScatter, nullptr}},
          {{Map}, {evaluateMap, nullptr}},
          {{Scan}, {evaluateScan, nullptr}},
          {{Dot}, {evaluateDot, nullptr}},
          {{ScaledDot}, {evaluateScaledDot, nullptr}},
          {{RaggedDot}, {evaluateRaggedDot, nullptr}},
          {{Convolution}, {evaluateConvolution, nullptr}},
          {{BatchNormTraining}, {evaluateBatchNormTraining, nullptr}},
          {{BatchNormInference}, {evaluateBatchNormInference, nullptr}},
          {{BatchNormGrad}, {evaluateBatchNormGrad, nullptr}},
          {{Fft}, {evaluateFft, nullptr}},
          {{Cholesky}, {evaluateCholesky, nullptr}},
          {{TriangularSolve}, {evaluateTriangularSolve, nullptr}},
          {{Rng}, {evaluateRng, nullptr}},
          {{RngBitGenerator}, {evaluateRngBitGenerator, nullptr}},
          {{RngGetAndUpdateState}, {evaluateRngGetAndUpdateState, nullptr}},
          {{Tuple}, {evaluateTuple, nullptr}},
          {{GetTupleElement}, {evaluateGetTupleElement, nullptr}},
          {{Call}, {evaluateCall, nullptr}},
          {{While}, {evaluateWhile, nullptr}},
          {{Conditional}, {evaluateConditional, nullptr}},
          {{Fusion}, {evaluateCall, nullptr}},
          {{CustomCall}, {evaluateCustomCall, nullptr}},
          {{OptimizationBarrier, Domain, AddDependency}, {evaluateIdentity, nullptr}},
          {{AfterAll}, {evaluateToken, nullptr}},
          {{Infeed, Outfeed, Send, SendDone, Recv, RecvDone}, {nullptr, hostTransfer}},
          {{AllReduce}, {evaluateCollective, nullptr}},
          {{AllReduceStart}, {evaluateCollectiveStart, nullptr}},
          {{AllReduceDone}, {evaluateIdentity, nullptr}},
          {{ReduceScatter, AllGather}, {evaluateCollective, nullptr}},
          {{AllGatherStart}, {evaluateCollectiveStart, nullptr}},
          {{AllGatherDone}, {evaluateAsyncDone, nullptr}},
          {{AllToAll}, {evaluateCollective, nullptr}},
          {{RaggedAllToAll}, {nullptr, severalDevices}},
          {{CollectiveBroadcast, CollectivePermute}, {evaluateCollective, nullptr}},
          {{CollectivePermuteStart}, {evaluateCollectiveStart, nullptr}},
          {{CollectivePermuteDone}, {evaluateAsyncDone, nullptr}},
          {{CopyStart}, {evaluateCopyStart, nullptr}},
          {{CopyDone}, {evaluateCopyDone, nullptr}},
          {{AsyncStart}, {evaluateAsyncStart, nullptr}},
          {{AsyncUpdate}, {evaluateIdentity, nullptr}},
          {{AsyncDone}, {evaluateAsyncDone, nullptr}},
      });
  return table.contains(opcode) ? table[opcode] : OpcodeRule{evaluateElementwise, nullptr};
}

} // namespace hloc::interp
