// Compiles where what src/runtime says of cuBLASLt's binary interface is what NVIDIA's headers say: values, structures,
// and how many parameters of which size functions have. tests/scripts/check-cuda-libraries compiles it.
#include <cublasLt.h>

#include "runtime/CublasLtApi.h"

#include <array>
#include <type_traits>

namespace theirs {
template <typename Result, typename... Parameters> constexpr auto sizes(Result (*)(Parameters...)) {
  return std::array<size_t, sizeof...(Parameters) + 1>{sizeof(Result), sizeof(Parameters)...};
}
} // namespace theirs

namespace hloc::cublaslt {

#define HLOC_CUBLASLT_FUNCTION(symbol, result, parameters)                                                             \
  static_assert(theirs::sizes(static_cast<result(*) parameters>(nullptr)) ==                                           \
                    theirs::sizes(static_cast<decltype(&::symbol)>(nullptr)),                                          \
                #symbol);
#include "runtime/CublasLtFunctions.def"

constexpr int cudaTypes[][2] = {
#define HLOC_LIBRARY_TYPE(name, text, bytes, cuda, cudnn) {bytes, cuda},
#include "hloc/kernel/LibraryTypes.def"
};
constexpr int theirTypes[][2] = {{2, CUDA_R_16F}, {2, CUDA_R_16BF}, {4, CUDA_R_32F},     {8, CUDA_R_64F},
                                 {1, CUDA_R_8I},  {4, CUDA_R_32I},  {1, CUDA_R_8F_E4M3}, {1, CUDA_R_8F_E5M2}};
constexpr bool haveSameTypes() {
  for (size_t i = 0; i < std::size(theirTypes); ++i)
    for (int part : {0, 1})
      if (cudaTypes[i][part] != theirTypes[i][part])
        return false;
  return std::size(cudaTypes) == std::size(theirTypes);
}
static_assert(haveSameTypes());

static_assert(int(Success) == CUBLAS_STATUS_SUCCESS);
static_assert(int(Compute32F) == CUBLAS_COMPUTE_32F && int(Compute64F) == CUBLAS_COMPUTE_64F &&
              int(Compute32I) == CUBLAS_COMPUTE_32I && int(Compute32FFastTf32) == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(int(OpN) == CUBLAS_OP_N && int(OpT) == CUBLAS_OP_T);
static_assert(int(EpilogueDefault) == CUBLASLT_EPILOGUE_DEFAULT && int(EpilogueRelu) == CUBLASLT_EPILOGUE_RELU &&
              int(EpilogueBias) == CUBLASLT_EPILOGUE_BIAS && int(EpilogueReluBias) == CUBLASLT_EPILOGUE_RELU_BIAS &&
              int(EpilogueGelu) == CUBLASLT_EPILOGUE_GELU && int(EpilogueGeluBias) == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(int(LayoutBatchCount) == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              int(LayoutStridedBatchOffset) == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(int(DescTransA) == CUBLASLT_MATMUL_DESC_TRANSA && int(DescTransB) == CUBLASLT_MATMUL_DESC_TRANSB &&
              int(DescEpilogue) == CUBLASLT_MATMUL_DESC_EPILOGUE &&
              int(DescBiasPointer) == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(int(PrefMaxWorkspaceBytes) == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              int(PrefReductionSchemeMask) == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
              int(PrefMinAlignmentA) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              int(PrefMinAlignmentB) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
              int(PrefMinAlignmentC) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
              int(PrefMinAlignmentD) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(int(ReductionComputeType) == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(HeuristicResult, workspaceBytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(HeuristicResult, state) == offsetof(cublasLtMatmulHeuristicResult_t, state) &&
              offsetof(HeuristicResult, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

} // namespace hloc::cublaslt
