// Compiles where what src/runtime says of cuDNN's binary interface is what NVIDIA's headers say.
// tests/scripts/check-cuda-libraries compiles it.
#include <cudnn.h>

#include "runtime/CudnnApi.h"

#include <array>
#include <cstddef>

namespace theirs {
template <typename Result, typename... Parameters> constexpr auto sizes(Result (*)(Parameters...)) {
  return std::array<size_t, sizeof...(Parameters) + 1>{sizeof(Result), sizeof(Parameters)...};
}
} // namespace theirs

namespace hloc::cudnn {

#define HLOC_CUDNN_FUNCTION(symbol, result, parameters)                                                                \
  static_assert(theirs::sizes(static_cast<result(*) parameters>(nullptr)) ==                                           \
                    theirs::sizes(static_cast<decltype(&::symbol)>(nullptr)),                                          \
                #symbol);
#include "runtime/CudnnFunctions.def"

constexpr int cudnnTypes[] = {
#define HLOC_LIBRARY_TYPE(name, text, bytes, cuda, cudnn) cudnn,
#include "hloc/kernel/LibraryTypes.def"
};
static_assert(cudnnTypes[0] == CUDNN_DATA_HALF && cudnnTypes[1] == CUDNN_DATA_BFLOAT16 &&
              cudnnTypes[2] == CUDNN_DATA_FLOAT && cudnnTypes[3] == CUDNN_DATA_DOUBLE);

static_assert(int(Success) == CUDNN_STATUS_SUCCESS);
static_assert(int(DefaultMath) == CUDNN_DEFAULT_MATH && int(TensorOpMath) == CUDNN_TENSOR_OP_MATH &&
              int(FmaMath) == CUDNN_FMA_MATH);
static_assert(int(ModeConvolution) == CUDNN_CONVOLUTION && int(ModeCrossCorrelation) == CUDNN_CROSS_CORRELATION);
static_assert(int(FormatNchw) == CUDNN_TENSOR_NCHW && int(FormatNhwc) == CUDNN_TENSOR_NHWC);
static_assert(int(ImplicitGemm) == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM &&
              int(ImplicitPrecompGemm) == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM &&
              int(Gemm) == CUDNN_CONVOLUTION_FWD_ALGO_GEMM && int(Direct) == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT);
static_assert(int(BackwardData1) == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 &&
              int(BackwardFilter1) == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);

template <typename Theirs>
constexpr bool isSame =
    sizeof(AlgorithmResult) == sizeof(Theirs) && offsetof(AlgorithmResult, algorithm) == offsetof(Theirs, algo) &&
    offsetof(AlgorithmResult, status) == offsetof(Theirs, status) &&
    offsetof(AlgorithmResult, workspaceBytes) == offsetof(Theirs, memory) &&
    offsetof(AlgorithmResult, mathType) == offsetof(Theirs, mathType);
static_assert(isSame<cudnnConvolutionFwdAlgoPerf_t> && isSame<cudnnConvolutionBwdDataAlgoPerf_t> &&
              isSame<cudnnConvolutionBwdFilterAlgoPerf_t>);

} // namespace hloc::cudnn
