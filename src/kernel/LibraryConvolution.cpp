// The configuration of a convolution by cuDNN: writing it, and reading what nobody vouches for.

#include "hloc/kernel/LibraryConvolution.h"

#include "ConfigurationReader.h"

#include <array>
#include <limits>

namespace hloc {

namespace {

using Sizes = LibraryConvolution::Sizes;

constexpr std::array<llvm::StringLiteral, 3> functionNames = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                                              "cudnnConvolutionBackwardFilter"};
constexpr std::array<llvm::StringLiteral, 3> computeNames = {"f32", "tf32", "f64"};
constexpr uint64_t limit = std::numeric_limits<int32_t>::max(); // the library's sizes are int

uint64_t reach(const Sizes &dims, const Sizes &strides, LibraryType type) {
  uint64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    last += (dims[i] - 1) * strides[i];
  return (last + 1) * bytesOf(type);
}

std::string findContradiction(const LibraryConvolution &c) {
  const size_t rank = c.x.size();
  if (rank < 3 || rank > 5 || c.kernel.size() != rank || c.y.size() != rank || c.xStrides.size() != rank ||
      c.yStrides.size() != rank || c.padding.size() != rank - 2 || c.strides.size() != rank - 2 ||
      c.dilations.size() != rank - 2)
    return "its lists differ in length, or have none of 3 to 5 dimensions";
  for (const Sizes *list : {&c.x, &c.kernel, &c.y, &c.strides, &c.dilations})
    for (uint64_t size : *list)
      if (size == 0 || size > limit)
        return "a size of " + std::to_string(size);
  uint64_t elements = 1;
  for (uint64_t size : c.kernel)
    if ((elements *= size) > limit)
      return "its kernel is too large";
  if (!areApart(c.x, c.xStrides, limit) || !areApart(c.y, c.yStrides, limit))
    return "elements of an array lie in one place, or too far apart";
  if (c.groups == 0 || c.groups > limit || c.x[1] != c.kernel[1] * c.groups || c.kernel[0] % c.groups ||
      c.y[1] != c.kernel[0] || c.x[0] != c.y[0])
    return "its batches, features or groups do not fit each other";
  for (size_t i = 0; i + 2 < rank; ++i) {
    const uint64_t pad = c.padding[i], wide = (c.kernel[i + 2] - 1) * c.dilations[i] + 1;
    if (pad > limit || wide > limit || c.x[i + 2] + 2 * pad < wide ||
        c.y[i + 2] != (c.x[i + 2] + 2 * pad - wide) / c.strides[i] + 1)
      return "its window does not give as many results";
  }
  return "";
}

} // namespace

llvm::StringRef LibraryConvolution::function() const { return functionNames[size_t(kind)]; }

std::optional<LibraryConvolution::Kind> LibraryConvolution::kindOf(llvm::StringRef function) {
  for (size_t i = 0; i < functionNames.size(); ++i)
    if (function == functionNames[i])
      return Kind(i);
  return std::nullopt;
}

LibraryConvolution::Sizes LibraryConvolution::kernelStrides() const {
  Sizes strides(kernel.size(), 1);
  uint64_t stride = 1;
  auto take = [&](size_t dim) {
    strides[dim] = stride;
    stride *= kernel[dim];
  };
  if (kernelFeaturesLast)
    take(1);
  for (size_t dim = kernel.size() - 1; dim >= 2; --dim)
    take(dim);
  if (!kernelFeaturesLast)
    take(1);
  take(0);
  return strides;
}

uint64_t LibraryConvolution::reachOfX() const { return reach(x, xStrides, type); }
uint64_t LibraryConvolution::reachOfKernel() const { return reach(kernel, kernelStrides(), type); }
uint64_t LibraryConvolution::reachOfY() const { return reach(y, yStrides, type); }

std::string LibraryConvolution::configuration() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  llvm::json::OStream json(os);
  auto print = [&](llvm::StringRef key, const Sizes &sizes) {
    json.attributeArray(key, [&] {
      for (uint64_t size : sizes)
        json.value(int64_t(size));
    });
  };
  json.object([&] {
    json.attribute("type", text(type));
    json.attribute("compute", computeNames[size_t(compute)]);
    print("x", x);
    print("x_strides", xStrides);
    print("kernel", kernel);
    json.attribute("kernel_features_last", kernelFeaturesLast);
    print("y", y);
    print("y_strides", yStrides);
    print("padding", padding);
    print("strides", strides);
    print("dilations", dilations);
    json.attribute("groups", int64_t(groups));
    json.attribute("flipped", flipped);
  });
  return result;
}

std::optional<LibraryConvolution> LibraryConvolution::parse(Kind kind, llvm::StringRef configuration,
                                                            std::string &error) {
  LibraryConvolution made;
  made.kind = kind;
  const bool isRead = ConfigurationReader::read(configuration, error, [&](ConfigurationReader &reader) {
    std::string type, compute;
    if (!reader.text("type", type) || !reader.text("compute", compute) || !reader.counts("x", made.x) ||
        !reader.counts("x_strides", made.xStrides) || !reader.counts("kernel", made.kernel) ||
        !reader.flag("kernel_features_last", made.kernelFeaturesLast) || !reader.counts("y", made.y) ||
        !reader.counts("y_strides", made.yStrides) || !reader.counts("padding", made.padding) ||
        !reader.counts("strides", made.strides) || !reader.counts("dilations", made.dilations) ||
        !reader.count("groups", made.groups) || !reader.flag("flipped", made.flipped))
      return false;
    std::optional<LibraryType> found = findLibraryType(type);
    if (!found)
      return reader.fail("`" + type + "` is no type of a library");
    made.type = *found;
    for (size_t i = 0; i < computeNames.size(); ++i)
      if (compute == computeNames[i]) {
        made.compute = Compute(i);
        return reader.isAll();
      }
    return reader.fail("`" + compute + "` is no `compute`");
  });
  if (isRead)
    error = findContradiction(made);
  return isRead && error.empty() ? std::optional(std::move(made)) : std::nullopt;
}

} // namespace hloc
