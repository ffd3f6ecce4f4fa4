#pragma once
// The part of cuBLASLt's binary interface that is used, written from its public documentation: types and values are
// those of versions 11 to 13 (tests/scripts/check-cuda-libraries compares them with NVIDIA's headers).

#include <cstddef>
#include <cstdint>

namespace hloc::cublaslt {

using Handle = struct HandleOpaque *;
using MatmulDesc = struct MatmulDescOpaque *;
using MatrixLayout = struct MatrixLayoutOpaque *;
using Preference = struct PreferenceOpaque *;

struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspaceBytes;
  int state;
  float waves;
  int reserved[4];
};

enum Status : int { Success = 0 };

// cublasComputeType_t
enum ComputeType : int { Compute32F = 68, Compute64F = 70, Compute32I = 72, Compute32FFastTf32 = 77 };
// cublasOperation_t
enum Operation : int { OpN = 0, OpT = 1 };
// cublasLtEpilogue_t
enum EpilogueType : int {
  EpilogueDefault = 1,
  EpilogueRelu = 2,
  EpilogueBias = 4,
  EpilogueReluBias = 6,
  EpilogueGelu = 32,
  EpilogueGeluBias = 36
};
// cublasLtMatrixLayoutAttribute_t
enum LayoutAttribute : int { LayoutBatchCount = 5, LayoutStridedBatchOffset = 6 };
// cublasLtMatmulDescAttributes_t
enum DescAttribute : int { DescTransA = 3, DescTransB = 4, DescEpilogue = 7, DescBiasPointer = 8 };
// cublasLtMatmulPreferenceAttributes_t
enum PreferenceAttribute : int {
  PrefMaxWorkspaceBytes = 1,
  PrefReductionSchemeMask = 3,
  PrefMinAlignmentA = 5,
  PrefMinAlignmentB = 6,
  PrefMinAlignmentC = 7,
  PrefMinAlignmentD = 8
};
// cublasLtReductionScheme_t: partial sums are added in the type that they are computed in, and rounded once
enum ReductionScheme : uint32_t { ReductionComputeType = 2 };

} // namespace hloc::cublaslt
