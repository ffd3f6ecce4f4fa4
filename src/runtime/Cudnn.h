#pragma once
// cuDNN's convolutions, opened at run time, with every function that is used found, or the reason why they cannot be
// used.

#include "CudaApi.h"
#include "CudnnApi.h"
#include "hloc/kernel/LibraryConvolution.h"
#include "hloc/support/DynamicLibrary.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hloc {

class Cudnn {
  using Handle = cudnn::Handle;
  using TensorDescriptor = cudnn::TensorDescriptor;
  using FilterDescriptor = cudnn::FilterDescriptor;
  using ConvolutionDescriptor = cudnn::ConvolutionDescriptor;
  using AlgorithmResult = cudnn::AlgorithmResult;

public:
  /// `path`: its file; empty: by name, where the loader looks and in `folders`. Needs a current CUDA context.
  static std::unique_ptr<Cudnn> open(const std::string &path, const std::vector<std::string> &folders,
                                     std::string &error);
  ~Cudnn();

  /// Queues the convolution. `reads`: the two that the function reads; `writes`: its result, workspace. The algorithm
  /// is the library's first choice of those that add products, and kept for later calls.
  bool convolve(const LibraryConvolution &convolution, const std::string &configuration,
                const std::vector<cuda::DevicePointer> &reads, const std::vector<cuda::DevicePointer> &writes,
                uint64_t workspaceBytes, cuda::Stream stream, std::string &error);

private:
  /// A convolution with all that the library has to know of it.
  struct Prepared {
    TensorDescriptor x = nullptr, y = nullptr;
    FilterDescriptor kernel = nullptr;
    ConvolutionDescriptor convolution = nullptr;
    AlgorithmResult algorithm = {};
  };

  explicit Cudnn(const std::vector<std::string> &names) : library(names) {}
  bool findFunctions(std::string &error);
  bool check(int status, const std::string &doing, std::string &error) const;
  void release(Prepared &made) const;
  bool describe(const LibraryConvolution &convolution, Prepared &made, std::string &error);
  bool choose(const LibraryConvolution &convolution, uint64_t workspaceBytes, Prepared &made, std::string &error);

#define HLOC_CUDNN_FUNCTION(symbol, result, parameters) result(*symbol) parameters = nullptr;
#include "CudnnFunctions.def"

  DynamicLibrary library;
  Handle handle = nullptr;
  std::map<std::string, Prepared> prepared; ///< by function and configuration
};

} // namespace hloc
