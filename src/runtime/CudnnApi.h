#pragma once
// The part of cuDNN's binary interface that is used, written from its public documentation: types and values are those
// of versions 8 and 9 (tests/scripts/check-cuda-libraries compares them with NVIDIA's headers).

#include <cstddef>
#include <cstdint>

namespace hloc::cudnn {

using Handle = struct HandleOpaque *;
using TensorDescriptor = struct TensorOpaque *;
using FilterDescriptor = struct FilterOpaque *;
using ConvolutionDescriptor = struct ConvolutionOpaque *;

/// Of all three kinds of convolutions.
struct AlgorithmResult {
  int algorithm;
  int status;
  float time;
  size_t workspaceBytes;
  int determinism;
  int mathType;
  int reserved[3];
};

enum Status : int { Success = 0 };
// cudnnMathType_t; the default lets f32 be rounded to tf32
enum MathType : int { DefaultMath = 0, TensorOpMath = 1, FmaMath = 3 };
// cudnnConvolutionMode_t
enum Mode : int { ModeConvolution = 0, ModeCrossCorrelation = 1 };
// cudnnTensorFormat_t
enum Format : int { FormatNchw = 0, FormatNhwc = 1 };
// cudnnConvolutionFwdAlgo_t, ...BwdDataAlgo_t, ...BwdFilterAlgo_t: those that add products, and round the sum once
enum ForwardAlgorithm : int { ImplicitGemm = 0, ImplicitPrecompGemm = 1, Gemm = 2, Direct = 3 };
enum BackwardDataAlgorithm : int { BackwardData1 = 1 };
enum BackwardFilterAlgorithm : int { BackwardFilter1 = 1 };

} // namespace hloc::cudnn
