#pragma once
// What cuDNN is told of a convolution in a step of kind library, beside what LibraryCall.h says of such steps.
//
//   y = f32[n,k,h',w'] convolution(f32[n,c,h,w] x, f32[k,c,3,3] kernel)
//     function `cudnnConvolutionForward`, reads {x, kernel}, writes {y, workspace}
//     configuration {"type": "f32", "compute": "f32", "x": [n, c, h, w], "x_strides": [c*h*w, h*w, w, 1],
//       "kernel": [k, c, 3, 3], "kernel_features_last": false, "y": [n, k, h', w'], "y_strides": [...],
//       "padding": [1, 1], "strides": [1, 1], "dilations": [1, 1], "groups": 1, "flipped": false}
//
// Gradients have the configuration of the convolution whose gradients they are: `cudnnConvolutionBackwardData` reads
// {kernel, dy} and writes dx, `cudnnConvolutionBackwardFilter` reads {x, dy} and writes dkernel.

#include "hloc/kernel/LibraryCall.h"

#include <vector>

namespace hloc {

struct LibraryConvolution {
  enum class Kind : uint8_t { Forward, InputGradient, KernelGradient };
  enum class Compute : uint8_t { F32, Tf32, F64 };
  using Sizes = std::vector<uint64_t>;

  Kind kind = Kind::Forward;
  LibraryType type = LibraryType::F32; ///< of all three arrays
  Compute compute = Compute::F32;
  Sizes x, kernel, y;       ///< [batch, features, spatial...], [out features, in features of a group, spatial...]
  Sizes xStrides, yStrides; ///< in elements
  bool kernelFeaturesLast = false;   ///< in memory: [out features, spatial..., in features] instead of the order above
  Sizes padding, strides, dilations; ///< spatial; padding is the same on both sides
  uint64_t groups = 1;
  bool flipped = false; ///< a convolution as mathematics has it, instead of a cross-correlation
  bool operator==(const LibraryConvolution &) const = default;

  llvm::StringRef function() const;
  static std::optional<Kind> kindOf(llvm::StringRef function);
  size_t spatial() const { return padding.size(); }
  Sizes kernelStrides() const;
  uint64_t reachOfX() const;
  uint64_t reachOfKernel() const;
  uint64_t reachOfY() const;

  std::string configuration() const;
  /// Nothing, with `error`, if the text is no configuration or sizes do not fit each other.
  static std::optional<LibraryConvolution> parse(Kind kind, llvm::StringRef configuration, std::string &error);
};

LibraryCost libraryCost(const LibraryConvolution &convolution, const DeviceModel &device);

} // namespace hloc
