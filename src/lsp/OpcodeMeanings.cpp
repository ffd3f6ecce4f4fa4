#include "OpcodeMeanings.h"

#include "hloc/hlo/OpcodeTable.h"

#include "llvm/ADT/StringExtras.h"

namespace hloc::lsp {

namespace {

using enum Opcode;

constexpr bool isAny(Opcode) { return true; }

constexpr OpcodeTable<const char *>
    meanings(isAny,
             {
                 {{Abs}, "absolute value; of complex numbers their magnitude, a real number"},
                 {{Acos}, "arc cosine"},
                 {{Acosh}, "inverse hyperbolic cosine"},
                 {{Asin}, "arc sine"},
                 {{Asinh}, "inverse hyperbolic sine"},
                 {{Atanh}, "inverse hyperbolic tangent"},
                 {{Cbrt}, "cube root"},
                 {{Ceil}, "the least integer that is not less"},
                 {{CountLeadingZeros}, "how many of the highest bits are 0"},
                 {{Cosine}, "cosine"},
                 {{Cosh}, "hyperbolic cosine"},
                 {{Erf}, "error function"},
                 {{Exponential}, "e to the power of the operand"},
                 {{ExponentialMinusOne}, "e to the power of the operand, less 1, exact near 0"},
                 {{Floor}, "the greatest integer that is not greater"},
                 {{Imag}, "imaginary part; 0 of real numbers"},
                 {{IsFinite}, "whether it is neither infinite nor NaN"},
                 {{Log}, "natural logarithm"},
                 {{LogPlusOne}, "natural logarithm of the operand and 1, exact near 0"},
                 {{Logistic}, "1 / (1 + e^-x), the sigmoid function"},
                 {{Negate}, "the operand with the other sign"},
                 {{Not}, "logical or bitwise negation"},
                 {{PopulationCount}, "how many bits are 1"},
                 {{Real}, "real part"},
                 {{RoundNearestAfz}, "nearest integer, of two the one farther from 0"},
                 {{RoundNearestEven}, "nearest integer, of two the even one"},
                 {{Rsqrt}, "1 over the square root"},
                 {{Sign}, "-1, 0 or 1; of complex numbers the operand over its magnitude"},
                 {{Sine}, "sine"},
                 {{Sinh}, "hyperbolic sine"},
                 {{Sqrt}, "square root"},
                 {{Tan}, "tangent"},
                 {{Tanh}, "hyperbolic tangent"},
                 {{Convert}, "the values in another element type"},
                 {{BitcastConvert}, "the bits as another element type"},
                 {{ReducePrecision}, "the values rounded to a float of fewer bits, kept in their type"},
                 {{StochasticConvert}, "the values in a narrower type, rounded at random by the second operand"},
                 {{Copy}, "the operand in memory of its own, with the layout of the result"},
                 {{Add}, "sum, element by element; of pred logical or"},
                 {{And}, "logical or bitwise and"},
                 {{Atan2}, "angle of the point (second, first)"},
                 {{Complex}, "complex numbers of real and imaginary parts"},
                 {{Divide}, "quotient; of integers rounded toward 0"},
                 {{Maximum}, "the greater of the two; NaN if one of them is"},
                 {{Minimum}, "the lesser of the two; NaN if one of them is"},
                 {{MultiplyHigh}, "the high half of the product of integers"},
                 {{Multiply}, "product, element by element; of pred logical and"},
                 {{Or}, "logical or bitwise or"},
                 {{Power}, "the first operand to the power of the second"},
                 {{Remainder}, "remainder of the division, with the sign of the first operand"},
                 {{ShiftLeft}, "bits moved up; 0 if by as many as there are"},
                 {{ShiftRightArithmetic}, "bits moved down, the sign follows"},
                 {{ShiftRightLogical}, "bits moved down, zeros follow"},
                 {{Subtract}, "difference, element by element"},
                 {{Xor}, "logical or bitwise exclusive or"},
                 {{Compare}, "whether the direction holds between the elements"},
                 {{Clamp}, "the middle operand, but no less than the first and no more than the last"},
                 {{Select}, "of the second operand where the first is true, else of the third"},
                 {{Parameter}, "the argument of this number"},
                 {{Constant}, "values that are written in the text"},
                 {{Iota}, "the index along a dimension"},
                 {{ReplicaId}, "number of this replica"},
                 {{PartitionId}, "number of this partition"},
                 {{Bitcast}, "the same memory as another shape and layout"},
                 {{Broadcast}, "the operand repeated; `dimensions` says where its own go"},
                 {{Concatenate}, "the operands one behind the other along a dimension"},
                 {{DynamicReshape}, "other dimensions, whose sizes are operands"},
                 {{DynamicSlice}, "a part that begins where the operands say"},
                 {{DynamicUpdateSlice}, "the first operand with the second in it, where the others say"},
                 {{Gather}, "slices of the first operand that begin where the second says"},
                 {{Pad}, "the operand with the second one around and between its elements"},
                 {{Reshape}, "the elements in the same order, with other dimensions"},
                 {{Reverse}, "the elements in the opposite order along some dimensions"},
                 {{Slice}, "a part that begins and ends where the text says"},
                 {{Transpose}, "dimension i of the result is dimension `dimensions[i]` of the operand"},
                 {{GetDimensionSize}, "the size of a dimension, as s32"},
                 {{SetDimensionSize}, "the operand with a dynamic size of a dimension"},
                 {{Scatter}, "the first operand with updates combined into it, where indices say"},
                 {{Sort}, "sorted along a dimension; further operands are moved like the first"},
                 {{TopK}, "the k greatest (or least) of the last dimension, and their indices"},
                 {{Reduce}, "elements along some dimensions combined by a computation"},
                 {{ReduceWindow}, "elements of a moving window combined by a computation"},
                 {{SelectAndScatter}, "of each window one element is chosen, and gets its part of the source"},
                 {{Map}, "a computation applied to each element"},
                 {{Scan}, "a computation along a dimension that hands on what it carries"},
                 {{Dot}, "sum of products over the contracting dimensions"},
                 {{ScaledDot}, "dot of narrow floats that have scales, of blocks, beside them"},
                 {{RaggedDot}, "dot of groups of rows, each with its own right side"},
                 {{Convolution}, "sums of products over a moving window and the features"},
                 {{BatchNormTraining}, "normalised by the batch's own mean and variance, which it returns as well"},
                 {{BatchNormInference}, "normalised by a given mean and variance"},
                 {{BatchNormGrad}, "gradients of batch-norm-training"},
                 {{Fft}, "discrete Fourier transform of the last dimensions"},
                 {{Cholesky}, "triangular factor of symmetric positive definite matrices"},
                 {{TriangularSolve}, "solves triangular systems of equations"},
                 {{Rng}, "random numbers of a distribution"},
                 {{RngBitGenerator}, "random bits, and the generator's next state"},
                 {{RngGetAndUpdateState}, "the state of the device's generator, which advances"},
                 {{Tuple}, "several values as one"},
                 {{GetTupleElement}, "one of the values of a tuple"},
                 {{Call}, "the result of a computation"},
                 {{While}, "a body applied to a state as long as a condition holds"},
                 {{Conditional}, "the result of the branch that the first operand chooses"},
                 {{Fusion}, "a computation that becomes one kernel, or few"},
                 {{CustomCall}, "what a function outside of HLO makes"},
                 {{OptimizationBarrier}, "its operands, which no optimisation may see through"},
                 {{Domain}, "its operand, at the border of regions with different attributes"},
                 {{AddDependency}, "the first operand, not before the second is there"},
                 {{AfterAll}, "a token that is there once all operands are"},
                 {{Infeed}, "data that the host sends"},
                 {{Outfeed}, "data sent to the host"},
                 {{Send}, "starts to send the operand over a channel"},
                 {{SendDone}, "waits until it is sent"},
                 {{Recv}, "starts to receive from a channel"},
                 {{RecvDone}, "waits for what is received"},
                 {{AllReduce}, "operands of all devices of a group combined, to all of them"},
                 {{AllReduceStart}, "starts an all-reduce"},
                 {{AllReduceDone}, "waits for an all-reduce"},
                 {{ReduceScatter}, "operands of a group combined, to each device a part"},
                 {{AllGather}, "operands of a group one behind the other, to all of them"},
                 {{AllGatherStart}, "starts an all-gather"},
                 {{AllGatherDone}, "waits for an all-gather"},
                 {{AllToAll}, "parts exchanged: each device gets one of every other"},
                 {{RaggedAllToAll}, "parts of different sizes exchanged between all devices"},
                 {{CollectiveBroadcast}, "the operand of the first device of a group, to all of it"},
                 {{CollectivePermute}, "the operand of another device, by pairs of source and target"},
                 {{CollectivePermuteStart}, "starts a collective-permute"},
                 {{CollectivePermuteDone}, "waits for a collective-permute"},
                 {{CopyStart}, "starts to copy its operand"},
                 {{CopyDone}, "waits for a copy"},
                 {{AsyncStart}, "starts a computation that others run beside"},
                 {{AsyncUpdate}, "goes on with an asynchronous computation"},
                 {{AsyncDone}, "waits for an asynchronous computation"},
             });

/// By grammars that have one form for all keys; empty: by their words.
llvm::StringRef example(AttributeGrammar grammar) {
  using enum AttributeGrammar;
  switch (grammar) {
  case Bool:
    return "true|false";
  case Int:
    return "0";
  case Double:
    return "0.001";
  case Ints:
    return "{0,1}";
  case IntLists:
    return "{{0,1},{2,3}}";
  case Enum:
  case EnumList:
  case DotAlgorithm:
  case RandomAlgorithm:
    return "";
  case String:
    return "\"...\"";
  case Raw:
    return "{...}";
  case StringOrRaw:
    return "\"...\" or {...}";
  case Window:
    return "{size=3x3 stride=2x2 pad=1_1x1_1}";
  case Padding:
    return "0_1x2_2_1";
  case Slice:
    return "{[0:4], [1:9:2]}";
  case DimLabels:
    return "b01f_01io->b01f";
  case Computation:
    return "computation";
  case Computations:
    return "{computation, computation}";
  case Instructions:
    return "{instruction, instruction}";
  case ShapeValue:
    return "f32[2]";
  case Shapes:
    return "{f32[2]{0}, s32[]}";
  case ProgramShape:
    return "{(f32[2]{0})->f32[]}";
  case Literal:
    return "f32[2] {1,2}";
  case Alias:
    return "{{0}: (1, {})}";
  case ReplicaGroups:
    return "{{0,1},{2,3}} or [2,2]<=[4]";
  }
  return "";
}

} // namespace

llvm::StringRef meaning(Opcode opcode) { return meanings[opcode]; }

std::string valueForm(AttributeKey key, AttributeGrammar grammar) {
  if (llvm::StringRef form = example(grammar); !form.empty())
    return form.str();
  const std::string words = llvm::join(enumSpellings(enumTypeOf(key, grammar)), "|");
  return grammar == AttributeGrammar::EnumList ? "{" + words + ",...}" : words;
}

} // namespace hloc::lsp
