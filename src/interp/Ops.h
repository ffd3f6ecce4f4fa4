#pragma once
// The functions of the opcodes, by file. OpcodeRules.cpp says which opcode has which.

#include "interp/Machine.h"

namespace hloc::interp {

// Elementwise.cpp
llvm::FailureOr<Value> evaluateElementwise(Step &step);
llvm::FailureOr<Value> evaluateSelect(Step &step);
llvm::FailureOr<Value> evaluateConvert(Step &step);
// Movement.cpp
llvm::FailureOr<Value> evaluateBroadcast(Step &step);
llvm::FailureOr<Value> evaluateTranspose(Step &step);
llvm::FailureOr<Value> evaluateReshape(Step &step);
llvm::FailureOr<Value> evaluateBitcast(Step &step);
llvm::FailureOr<Value> evaluateSlice(Step &step);
llvm::FailureOr<Value> evaluateReverse(Step &step);
llvm::FailureOr<Value> evaluateConcatenate(Step &step);
llvm::FailureOr<Value> evaluatePad(Step &step);
llvm::FailureOr<Value> evaluateDynamicSlice(Step &step);
llvm::FailureOr<Value> evaluateDynamicUpdateSlice(Step &step);
llvm::FailureOr<Value> evaluateIota(Step &step);
llvm::FailureOr<Value> evaluateBitcastConvert(Step &step);
llvm::FailureOr<Value> evaluateGetDimensionSize(Step &step);
// Gather.cpp, Sort.cpp
llvm::FailureOr<Value> evaluateGather(Step &step);
llvm::FailureOr<Value> evaluateScatter(Step &step);
/// Of a scatter that overwrites, in whatever order: the least or greatest value that an element may end with. `into`
/// and `updates` are bounds.
Literal endsOfOverwritten(const HloInstruction &scatter, Literal into, const Literal &indices, const Literal &updates,
                          bool highest);
/// A scatter of f64 by any function.
Literal scatterNumbers(const HloInstruction &scatter, Literal into, const Literal &indices, const Literal &updates,
                       llvm::function_ref<double(double, double)> function);
llvm::FailureOr<Value> evaluateSort(Step &step);
llvm::FailureOr<Value> evaluateTopK(Step &step);
llvm::FailureOr<Value> topK(Step &step, int64_t k, bool largest); ///< of operand 0; any results after two stay zero
// Reduce.cpp, ReduceWindow.cpp, Scan.cpp
llvm::FailureOr<Value> evaluateReduce(Step &step);
llvm::FailureOr<Value> evaluateMap(Step &step);
llvm::FailureOr<Value> evaluateReduceWindow(Step &step);
llvm::FailureOr<Value> evaluateSelectAndScatter(Step &step);
llvm::FailureOr<Value> evaluateScan(Step &step);
// Dot.cpp, Convolution.cpp
llvm::FailureOr<Value> evaluateDot(Step &step);
llvm::FailureOr<Value> evaluateScaledDot(Step &step);
llvm::FailureOr<Value> evaluateRaggedDot(Step &step);
llvm::FailureOr<Value> evaluateConvolution(Step &step);
// BatchNorm.cpp, Fft.cpp, LinearAlgebra.cpp
llvm::FailureOr<Value> evaluateBatchNormTraining(Step &step);
llvm::FailureOr<Value> evaluateBatchNormInference(Step &step);
llvm::FailureOr<Value> evaluateBatchNormGrad(Step &step);
llvm::FailureOr<Value> evaluateFft(Step &step);
llvm::FailureOr<Value> evaluateCholesky(Step &step);
/// `info`, if wanted, has an element a matrix: 0, or the order of the first leading minor that is not positive.
Literal cholesky(const Literal &matrices, bool lower, Literal *info);
llvm::FailureOr<Value> evaluateTriangularSolve(Step &step);
// Random.cpp, CustomCall.cpp, ConvolutionCalls.cpp, LibraryCalls.cpp
llvm::FailureOr<Value> evaluateRng(Step &step);
llvm::FailureOr<Value> evaluateRngBitGenerator(Step &step);
llvm::FailureOr<Value> evaluateRngGetAndUpdateState(Step &step);
llvm::FailureOr<Value> evaluateCustomCall(Step &step);
llvm::FailureOr<Value> convolutionCall(Step &step); ///< `__cudnn$conv...`
llvm::FailureOr<Value> gemmCall(Step &step);        ///< hlo/GemmCall.h
llvm::FailureOr<Value> sortCall(Step &step);        ///< hlo/SortCall.h
// Control.cpp
llvm::FailureOr<Value> evaluateConstant(Step &step);
llvm::FailureOr<Value> evaluateIdentity(Step &step);
llvm::FailureOr<Value> evaluateToken(Step &step);
llvm::FailureOr<Value> evaluateDeviceZero(Step &step);
/// Is each device alone in the collective, so that its operand, or the tuple of its operands, is the `result`?
bool receivesOperands(const HloInstruction &collective, const Shape &result);
llvm::FailureOr<Value> evaluateCollective(Step &step);
llvm::FailureOr<Value> evaluateCollectiveStart(Step &step);
llvm::FailureOr<Value> evaluateTuple(Step &step);
llvm::FailureOr<Value> evaluateGetTupleElement(Step &step);
llvm::FailureOr<Value> evaluateCall(Step &step);
llvm::FailureOr<Value> evaluateWhile(Step &step);
llvm::FailureOr<Value> evaluateConditional(Step &step);
/// A predicate takes the first branch for true; an index out of range takes the last.
size_t chosenBranch(const Literal &selector, size_t numBranches);
llvm::FailureOr<Value> evaluateCopyStart(Step &step);
llvm::FailureOr<Value> evaluateCopyDone(Step &step);
llvm::FailureOr<Value> evaluateAsyncStart(Step &step);
llvm::FailureOr<Value> evaluateAsyncDone(Step &step);

} // namespace hloc::interp
