#include "Cudnn.h"

#include <algorithm>
#include <array>

namespace hloc {

using namespace cudnn;

namespace {

using Kind = LibraryConvolution::Kind;
using Sizes = LibraryConvolution::Sizes;

constexpr int cudnnTypes[] = {
#define HLOC_LIBRARY_TYPE(name, text, bytes, cuda, cudnn) cudnn,
#include "hloc/kernel/LibraryTypes.def"
};
int typeOf(LibraryType type) { return cudnnTypes[size_t(type)]; }

MathType mathOf(const LibraryConvolution &convolution) {
  if (convolution.type == LibraryType::F32)
    return convolution.compute == LibraryConvolution::Compute::Tf32 ? DefaultMath : FmaMath;
  return convolution.type == LibraryType::F64 ? DefaultMath : TensorOpMath;
}

/// Those that transform their factors (Fourier, Winograd) are less exact than any order of a sum, and those that add to
/// the result atomically round each time.
bool addsProducts(Kind kind, int algorithm) {
  switch (kind) {
  case Kind::Forward:
    return algorithm == ImplicitGemm || algorithm == ImplicitPrecompGemm || algorithm == Gemm || algorithm == Direct;
  case Kind::InputGradient:
    return algorithm == BackwardData1;
  case Kind::KernelGradient:
    return algorithm == BackwardFilter1;
  }
  return false;
}

/// The library has at least two spatial dimensions: of one it is the second.
std::vector<int> padded(const Sizes &sizes, size_t spatialFrom, int filling) {
  std::vector<int> result(sizes.begin(), sizes.end());
  if (result.size() == spatialFrom + 1)
    result.insert(result.begin() + long(spatialFrom), filling);
  return result;
}

std::vector<std::string> namesOf(const std::string &path, const std::vector<std::string> &folders) {
  if (!path.empty())
    return {path};
  std::vector<std::string> names = {"libcudnn.so.9", "libcudnn.so.8"};
  for (const std::string &folder : folders)
    for (size_t i = 0; i < 2; ++i)
      names.push_back(folder + "/" + names[i]);
  return names;
}

} // namespace

std::unique_ptr<Cudnn> Cudnn::open(const std::string &path, const std::vector<std::string> &folders,
                                   std::string &error) {
  std::unique_ptr<Cudnn> opened(new Cudnn(namesOf(path, folders)));
  if (!opened->library.isOpen()) {
    error = "there is no cuDNN here: " + opened->library.error() + "; HLOC_CUDNN names its file";
    return nullptr;
  }
  if (!opened->findFunctions(error) ||
      !opened->check(opened->cudnnCreate(&opened->handle), "opening cuDNN (cudnnCreate)", error))
    return nullptr;
  return opened;
}

/// As the device's, results are not looked at.
Cudnn::~Cudnn() {
  for (auto &[key, made] : prepared)
    release(made);
  if (handle)
    cudnnDestroy(handle);
}

void Cudnn::release(Prepared &made) const {
  for (TensorDescriptor tensor : {made.x, made.y})
    if (tensor)
      cudnnDestroyTensorDescriptor(tensor);
  if (made.kernel)
    cudnnDestroyFilterDescriptor(made.kernel);
  if (made.convolution)
    cudnnDestroyConvolutionDescriptor(made.convolution);
}

bool Cudnn::findFunctions(std::string &error) {
  std::string missing;
#define HLOC_CUDNN_FUNCTION(symbol, result, parameters)                                                                \
  symbol = library.function<result parameters>(#symbol);                                                               \
  if (!symbol)                                                                                                         \
    missing += (missing.empty() ? "" : ", ") + std::string(#symbol);
#include "CudnnFunctions.def"
  if (missing.empty())
    return true;
  error = "the library `" + library.name() + "` is too old or not cuDNN: it lacks " + missing;
  return false;
}

bool Cudnn::check(int status, const std::string &doing, std::string &error) const {
  if (status == Success)
    return true;
  const char *name = cudnnGetErrorString(status);
  error = doing + ": " + (name ? std::string(name) : "status " + std::to_string(status)) + " of `" + library.name() +
          "`, version " + std::to_string(cudnnGetVersion());
  return false;
}

bool Cudnn::describe(const LibraryConvolution &convolution, Prepared &made, std::string &error) {
  const int type = typeOf(convolution.type);
  const int computeType =
      typeOf(convolution.compute == LibraryConvolution::Compute::F64 ? LibraryType::F64 : LibraryType::F32);
  auto tensor = [&](TensorDescriptor &descriptor, const Sizes &sizes, const Sizes &strides) {
    const std::vector<int> dims = padded(sizes, 2, 1), steps = padded(strides, 2, int(strides.back() * sizes.back()));
    return check(cudnnCreateTensorDescriptor(&descriptor), "describing an array (cudnnCreateTensorDescriptor)",
                 error) &&
           check(cudnnSetTensorNdDescriptor(descriptor, type, int(dims.size()), dims.data(), steps.data()),
                 "describing an array (cudnnSetTensorNdDescriptor)", error);
  };
  const std::vector<int> kernel = padded(convolution.kernel, 2, 1), padding = padded(convolution.padding, 0, 0),
                         strides = padded(convolution.strides, 0, 1), dilations = padded(convolution.dilations, 0, 1);
  return tensor(made.x, convolution.x, convolution.xStrides) && tensor(made.y, convolution.y, convolution.yStrides) &&
         check(cudnnCreateFilterDescriptor(&made.kernel), "describing a kernel (cudnnCreateFilterDescriptor)", error) &&
         check(cudnnSetFilterNdDescriptor(made.kernel, type, convolution.kernelFeaturesLast ? FormatNhwc : FormatNchw,
                                          int(kernel.size()), kernel.data()),
               "describing a kernel (cudnnSetFilterNdDescriptor)", error) &&
         check(cudnnCreateConvolutionDescriptor(&made.convolution),
               "describing a convolution (cudnnCreateConvolutionDescriptor)", error) &&
         check(cudnnSetConvolutionNdDescriptor(
                   made.convolution, int(padding.size()), padding.data(), strides.data(), dilations.data(),
                   convolution.flipped ? ModeConvolution : ModeCrossCorrelation, computeType),
               "describing a convolution (cudnnSetConvolutionNdDescriptor)", error) &&
         check(cudnnSetConvolutionGroupCount(made.convolution, int(convolution.groups)),
               "describing a convolution (cudnnSetConvolutionGroupCount)", error) &&
         check(cudnnSetConvolutionMathType(made.convolution, mathOf(convolution)),
               "describing a convolution (cudnnSetConvolutionMathType)", error);
}

bool Cudnn::choose(const LibraryConvolution &convolution, uint64_t workspaceBytes, Prepared &made, std::string &error) {
  std::array<AlgorithmResult, 16> results = {};
  int found = 0, status = Success;
  switch (convolution.kind) {
  case Kind::Forward:
    status = cudnnGetConvolutionForwardAlgorithm_v7(handle, made.x, made.kernel, made.convolution, made.y,
                                                    int(results.size()), &found, results.data());
    break;
  case Kind::InputGradient:
    status = cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, made.kernel, made.y, made.convolution, made.x,
                                                         int(results.size()), &found, results.data());
    break;
  case Kind::KernelGradient:
    status = cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, made.x, made.y, made.convolution, made.kernel,
                                                           int(results.size()), &found, results.data());
    break;
  }
  if (!check(status,
             "choosing an algorithm for " + convolution.configuration() + " (" + convolution.function().str() + ")",
             error))
    return false;
  const MathType math = mathOf(convolution);
  const auto end = results.begin() + std::min(size_t(std::max(found, 0)), results.size());
  const auto chosen = std::find_if(results.begin(), end, [&](const AlgorithmResult &one) {
    return one.status == Success && one.workspaceBytes <= workspaceBytes &&
           addsProducts(convolution.kind, one.algorithm) && (math != FmaMath || one.mathType != TensorOpMath);
  });
  if (chosen == end) {
    error = "`" + library.name() + "` has no algorithm that adds products for " + convolution.configuration();
    return false;
  }
  made.algorithm = *chosen;
  // Of f32 the default would be tf32.
  return check(cudnnSetConvolutionMathType(made.convolution, math == FmaMath ? FmaMath : chosen->mathType),
               "choosing an algorithm (cudnnSetConvolutionMathType)", error);
}

bool Cudnn::convolve(const LibraryConvolution &convolution, const std::string &configuration,
                     const std::vector<cuda::DevicePointer> &reads, const std::vector<cuda::DevicePointer> &writes,
                     uint64_t workspaceBytes, cuda::Stream stream, std::string &error) {
  auto [place, isNew] = prepared.try_emplace(convolution.function().str() + " " + configuration);
  Prepared &made = place->second;
  if (isNew && (!describe(convolution, made, error) || !choose(convolution, workspaceBytes, made, error))) {
    release(made);
    prepared.erase(place);
    return false;
  }
  if (!check(cudnnSetStream(handle, stream), "choosing a stream (cudnnSetStream)", error))
    return false;
  const float one = 1, zero = 0;
  const double wideOne = 1, wideZero = 0;
  const bool isWide = convolution.type == LibraryType::F64;
  const void *alpha = isWide ? static_cast<const void *>(&wideOne) : &one;
  const void *beta = isWide ? static_cast<const void *>(&wideZero) : &zero;
  auto pointer = [](cuda::DevicePointer address) { return reinterpret_cast<void *>(address); };
  void *first = pointer(reads[0]), *second = pointer(reads[1]), *result = pointer(writes[0]),
       *workspace = pointer(writes[1]);
  int status = Success;
  switch (convolution.kind) {
  case Kind::Forward:
    status = cudnnConvolutionForward(handle, alpha, made.x, first, made.kernel, second, made.convolution,
                                     made.algorithm.algorithm, workspace, workspaceBytes, beta, made.y, result);
    break;
  case Kind::InputGradient:
    status = cudnnConvolutionBackwardData(handle, alpha, made.kernel, first, made.y, second, made.convolution,
                                          made.algorithm.algorithm, workspace, workspaceBytes, beta, made.x, result);
    break;
  case Kind::KernelGradient:
    status =
        cudnnConvolutionBackwardFilter(handle, alpha, made.x, first, made.y, second, made.convolution,
                                       made.algorithm.algorithm, workspace, workspaceBytes, beta, made.kernel, result);
    break;
  }
  return check(status, "convolving by " + configuration + " (" + convolution.function().str() + ")", error);
}

} // namespace hloc
