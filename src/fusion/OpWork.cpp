#include "fusion/OpWork.h"

#include "hloc/hlo/BesideOne.h"
#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/OpcodeTable.h"
#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc {
namespace {

/// Work of an elementwise op on floats of up to 32 bits, of 64, and on integers. What is no single instruction is a
/// call or a sequence of code, which takes more on complex numbers and on integers of 64 bits. A special function is as
/// long as it keeps its unit busy.
struct ElementwiseWork {
  double floats, doubles = floats, integers = floats;
};
constexpr ElementwiseWork plain{1};

const ElementwiseWork &elementwiseRow(Opcode opcode) {
  using enum Opcode;
  static constexpr OpcodeTable<ElementwiseWork> works(
      isElementwise, {
                         {{Abs,
                           Ceil,
                           CountLeadingZeros,
                           Floor,
                           Imag,
                           IsFinite,
                           Negate,
                           Not,
                           PopulationCount,
                           Real,
                           RoundNearestAfz,
                           RoundNearestEven,
                           Sign,
                           BitcastConvert,
                           ReducePrecision,
                           StochasticConvert,
                           Add,
                           And,
                           Complex,
                           Maximum,
                           Minimum,
                           MultiplyHigh,
                           Multiply,
                           Or,
                           ShiftLeft,
                           ShiftRightArithmetic,
                           ShiftRightLogical,
                           Subtract,
                           Xor,
                           Compare,
                           Clamp,
                           Select},
                          plain},
                         {{Convert}, plain}, // but of narrow types
                         {{Divide}, {6, 24, 20}},
                         {{Remainder}, {44, 67, 25}},
                         {{Sqrt, Rsqrt}, {6, 24}},
                         {{Exponential}, {8, 42}},
                         {{Logistic}, {13, 47}},
                         {{Cbrt, Cosh}, {16, 49}},
                         {{Tanh, Erf}, {18, 55}},
                         {{ExponentialMinusOne, Log, LogPlusOne, Sinh, Asin, Acos}, {26, 62}},
                         {{Atan2, Atanh}, {35, 78}},
                         {{Asinh, Acosh}, {42, 98}},
                         {{Sine, Cosine, Tan}, {76, 60}},
                         {{Power}, {95, 51}},
                     });
  return works[opcode];
}

double elementwiseWork(const HloInstruction &instr) {
  const ElementType type = instr.shape().isArray() ? instr.shape().elementType() : ElementType::F32;
  if (instr.opcode() == Opcode::Convert)
    return deviceBits(type) < 16 ? 6 : 1;
  if (isTanhBesideOne(instr))
    return 6; // a product, a power, a reciprocal
  const ElementwiseWork &row = elementwiseRow(instr.opcode());
  if (row.floats == 1)
    return isComplex(type) ? 4 : 1;
  if (isComplex(type))
    return row.floats * (deviceBits(type) == 64 ? 4 : 6);
  if (isFloat(type))
    return deviceBits(type) == 64 ? row.doubles : row.floats;
  return row.integers * (deviceBits(type) == 64 ? 4 : 1);
}

/// Instructions of what is applied to elements, parameters aside.
double calleeWork(const HloInstruction &instr) {
  double work = 0;
  for (const HloComputation *callee : instr.calledComputations())
    for (const HloInstruction *inner : callee->instructions())
      if (inner->numOperands() > 0)
        work += isElementwise(inner->opcode()) ? elementwiseWork(*inner) : 1;
  return work;
}

/// Those of a window that are elements of the base, not what dilates it.
double elementsOf(const WindowDim &dim) {
  return double(llvm::divideCeil(dim.size, std::max<int64_t>(dim.baseDilation, 1)));
}

double windowElements(const HloInstruction &instr) {
  double elements = 1;
  for (const WindowDim &dim : instr.windowOr(instr.resultShape().rank()).dims)
    elements *= elementsOf(dim);
  return elements;
}

/// Elements of a window of which it is not known without a test whether they lie in the padding.
double testedElements(const HloInstruction &instr) {
  double untested = 1;
  for (const WindowDim &dim : instr.windowOr(instr.resultShape().rank()).dims) {
    const int64_t padding = std::max<int64_t>(dim.padLow, 0) + std::max<int64_t>(dim.padHigh, 0);
    untested *=
        std::max(0.0, elementsOf(dim) - double(llvm::divideCeil(padding, std::max<int64_t>(dim.windowDilation, 1))));
  }
  return windowElements(instr) - untested;
}

double windowsOfElement(const HloInstruction &instr) {
  double windows = 1;
  for (const WindowDim &dim : instr.windowOr(instr.resultShape().rank()).dims)
    windows *= double((dim.size + dim.stride - 1) / std::max<int64_t>(dim.stride, 1));
  return windows;
}

double ratio(int64_t of, int64_t to) { return double(of) / double(std::max<int64_t>(to, 1)); }

/// Steps of a contraction for each element of the result.
double contractedElements(const HloInstruction &instr) {
  if (instr.opcode() == Opcode::Convolution) {
    const Shape &weights = instr.operand(1)->shape();
    const auto *labels = instr.find(AttributeKey::DimLabels);
    double steps =
        labels ? ratio(weights.numElements(), weights.dim(std::get<const ConvolutionLabels *>(*labels)->rhsOutput))
               : double(weights.numElements());
    for (const WindowDim &dim : instr.windowOr(instr.resultShape().rank()).dims)
      steps *= elementsOf(dim) / double(std::max<int64_t>(dim.size, 1));
    return steps;
  }
  const Shape &lhs = instr.operand(0)->shape();
  double steps = 1;
  for (int64_t dim : instr.ints(AttributeKey::LhsContractingDims))
    steps *= double(lhs.dim(dim));
  return steps;
}

// What one element of the result is made of: elements of operand `number`, on average.
using Reads = double (*)(const HloInstruction &instr, unsigned number);

double one(const HloInstruction &, unsigned) { return 1; }
double ofReduced(const HloInstruction &instr, unsigned number) {
  return number < instr.numOperands() / 2
             ? ratio(instr.operand(number)->shape().numElements(), instr.resultShape().numElements())
             : 1;
}
double ofWindow(const HloInstruction &instr, unsigned number) {
  return number < instr.numOperands() / 2 ? windowElements(instr) : 1;
}
double ofProducts(const HloInstruction &instr, unsigned number) { return number < 2 ? contractedElements(instr) : 1; }
/// All elements of all windows that an element is in.
double ofAllWindows(const HloInstruction &instr, unsigned number) {
  return number < 2 ? windowElements(instr) * windowsOfElement(instr) : 1;
}
double ofPart(const HloInstruction &instr, unsigned number) {
  return std::min(1.0, ratio(instr.operand(number)->shape().numElements(), instr.resultShape().numElements()));
}
double ofUpdate(const HloInstruction &instr, unsigned number) {
  return number == 1 ? ratio(instr.operand(number)->shape().numElements(), instr.resultShape().numElements()) : 1;
}

double reduced(const HloInstruction &instr) { return readsPerElement(instr, 0) * std::max(1.0, calleeWork(instr)); }
double read(const HloInstruction &instr) { return readsPerElement(instr, 0); }
double operands(const HloInstruction &instr) { return double(instr.numOperands()); }
/// A move to registers; complex numbers are four, as in elementwise ops.
double moved(const HloInstruction &instr) {
  return instr.shape().isArray() && isComplex(instr.shape().elementType()) ? 4 : 1;
}

/// Of an op that is not elementwise.
struct OpWork {
  Reads reads;
  double work;
  double (*times)(const HloInstruction &) = nullptr; ///< one
};

const OpWork &workOf(Opcode opcode) {
  using enum Opcode;
  static constexpr OpcodeTable<OpWork> works(
      [](Opcode each) { return !isElementwise(each); },
      {
          {{Reduce}, {ofReduced, 1, reduced}},
          {{ReduceWindow}, {ofWindow, 1, reduced}},
          {{Convolution}, {ofProducts, 5, contractedElements}},
          {{Dot, ScaledDot, RaggedDot}, {ofProducts, 3, contractedElements}},
          {{SelectAndScatter}, {ofAllWindows, 6, read}},
          {{Map}, {one, 1, calleeWork}},
          {{Gather, DynamicSlice}, {one, 4}},
          {{DynamicUpdateSlice}, {ofUpdate, 4}},
          {{Concatenate}, {ofPart, 2, operands}},
          {{Pad}, {ofPart, 2}},
          {{Reverse, Transpose}, {one, 2}},
          {{Reshape, Bitcast, Broadcast, Slice}, {one, 0.25}},
          {{Scatter}, {one, 8}},
          {{Sort}, {one, 64}},
          {{Parameter, Constant, Iota, ReplicaId, PartitionId, RngGetAndUpdateState}, {one, 0.5}},
          {{Copy, OptimizationBarrier, Domain, AddDependency, Tuple, GetTupleElement, GetDimensionSize,
            SetDimensionSize},
           {one, 1, moved}},
          // No part of kernels (OpcodeRoles.cpp).
          {{DynamicReshape,
            TopK,
            Scan,
            BatchNormTraining,
            BatchNormInference,
            BatchNormGrad,
            Fft,
            Cholesky,
            TriangularSolve,
            Rng,
            RngBitGenerator,
            Call,
            While,
            Conditional,
            Fusion,
            CustomCall,
            AfterAll,
            Infeed,
            Outfeed,
            Send,
            SendDone,
            Recv,
            RecvDone,
            AllReduce,
            AllReduceStart,
            AllReduceDone,
            ReduceScatter,
            AllGather,
            AllGatherStart,
            AllGatherDone,
            AllToAll,
            RaggedAllToAll,
            CollectiveBroadcast,
            CollectivePermute,
            CollectivePermuteStart,
            CollectivePermuteDone,
            CopyStart,
            CopyDone,
            AsyncStart,
            AsyncUpdate,
            AsyncDone},
           {one, 1}},
      });
  return works[opcode];
}

} // namespace

double readsPerElement(const HloInstruction &instr, unsigned number) {
  if (!instr.operand(number)->shape().isArray() || !instr.resultShape().isArray() || isElementwise(instr.opcode()))
    return 1;
  return workOf(instr.opcode()).reads(instr, number);
}

double workPerElement(const HloInstruction &instr) {
  if (isElementwise(instr.opcode()))
    return elementwiseWork(instr);
  const OpWork &row = workOf(instr.opcode());
  return row.times ? row.work * row.times(instr) : row.work;
}

/// Counted in PTX.
double workOfBytes(ElementType type, const TargetInfo &target) {
  if (!isFloat(type) || deviceBits(type) != 8)
    return 0;
  const bool isE4M3 = type == ElementType::F8E4M3FN, isE5M2 = type == ElementType::F8E5M2;
  if (!isE4M3 && !isE5M2)
    return 9;
  return target.atLeast(9, 0) || isE5M2 ? 0.5 : 4;
}

double testsPerElement(const HloInstruction &instr) {
  constexpr double ofTest = 4; // comparison, branch, an address of its own
  return instr.opcode() == Opcode::ReduceWindow ? ofTest * testedElements(instr) : 0;
}

std::optional<int64_t> elementsOfStraightCode(llvm::ArrayRef<const HloInstruction *> instructions) {
  /// Of windows, of windows of windows their product: as many as VectorizeLoadsStores unrolls within a thread's
  /// elements, so that neighbours are loaded together.
  constexpr int64_t maxWindowElements = 16;
  int64_t product = 1;
  for (const HloInstruction *instr : instructions) {
    if (!hasTrait(instr->opcode(), OpcodeTrait::Contracts))
      continue;
    if (instr->opcode() != Opcode::ReduceWindow)
      return std::nullopt;
    for (const WindowDim &dim : instr->windowOr(instr->operand(0)->shape().rank()).dims) {
      if (dim.size > maxWindowElements || product * dim.size > maxWindowElements)
        return std::nullopt;
      product *= dim.size;
    }
  }
  return product;
}

} // namespace hloc
