// What must hold between the parts of a manifest before anything may be launched by it.

#include "ManifestText.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

#include <set>

namespace hloc::manifest_text {

namespace {

/// CUDA's limits on every architecture hloc knows.
constexpr uint64_t maxThreadsPerBlock = 1024;
constexpr Dim3 maxBlock = {1024, 1024, 64};
constexpr Dim3 maxGrid = {2147483647, 65535, 65535};
constexpr uint64_t maxBlocksPerCluster = 16;

bool exceeds(const Dim3 &extents, const Dim3 &limit) {
  return extents.x > limit.x || extents.y > limit.y || extents.z > limit.z;
}

bool isPtxIdentifier(llvm::StringRef name) {
  auto isRest = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; };
  return !name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, isRest);
}

std::string checkCluster(const Dim3 &cluster, const Dim3 &grid) {
  const std::string text = fmt::format("clusters of {} x {} x {} blocks", cluster.x, cluster.y, cluster.z);
  if (std::max({cluster.x, cluster.y, cluster.z}) > maxBlocksPerCluster || cluster.count() > maxBlocksPerCluster)
    return text + " are too large";
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return fmt::format("{} do not make up its grid of {} x {} x {}", text, grid.x, grid.y, grid.z);
  return "";
}

/// Whether all that is said of two parameters is the same, but whether they are maps.
bool areOfOneBuffer(const KernelParameter &a, const KernelParameter &b) {
  return a.role == b.role && a.index == b.index && a.shape == b.shape && a.bytes == b.bytes &&
         a.alignment == b.alignment && a.written == b.written && a.alias == b.alias;
}

std::string checkMap(const KernelSpec &kernel, const KernelParameter &parameter) {
  const TensorMapRecipe &map = *parameter.tensorMap;
  const std::optional<size_t> pointer = findPointer(kernel, parameter);
  if (!pointer)
    return fmt::format("a tensor map of {} {}, to which no parameter points", name(parameter.role).str(),
                       parameter.index);
  if (!areOfOneBuffer(kernel.parameters[*pointer], parameter))
    return fmt::format("a tensor map of a buffer of which parameters[{}] says something else", *pointer);
  if (std::string why = findTensorMapError(map, 0); !why.empty())
    return "the driver would refuse this tensor map: " + why;
  if (parameter.alignment % alignmentOf(map))
    return fmt::format("a tensor map of a buffer aligned to {} bytes; maps need {}", parameter.alignment,
                       alignmentOf(map));
  if (extentOf(map) > parameter.bytes)
    return fmt::format("a tensor map of {} bytes of a buffer of {}", extentOf(map), parameter.bytes);
  return "";
}

std::string checkParameter(const KernelSpec &kernel, size_t i) {
  const KernelParameter &parameter = kernel.parameters[i];
  if (!llvm::has_single_bit(parameter.alignment))
    return fmt::format("alignment {} is not a power of two", parameter.alignment);
  if (parameter.alias && (*parameter.alias >= kernel.parameters.size() || *parameter.alias == i ||
                          kernel.parameters[*parameter.alias].tensorMap))
    return fmt::format("alias {} is no other parameter that is a pointer", *parameter.alias);
  if (parameter.tensorMap)
    return checkMap(kernel, parameter);
  return i > 0 && kernel.parameters[i - 1].tensorMap ? "a pointer behind a tensor map" : "";
}

std::string checkKernel(const KernelSpec &kernel) {
  if (!isPtxIdentifier(kernel.name))
    return "its name is not a PTX identifier";
  if (exceeds(kernel.block, maxBlock) || kernel.block.count() > maxThreadsPerBlock)
    return fmt::format("a block of {} x {} x {} threads is too large", kernel.block.x, kernel.block.y, kernel.block.z);
  if (exceeds(kernel.grid, maxGrid))
    return fmt::format("a grid of {} x {} x {} blocks is too large", kernel.grid.x, kernel.grid.y, kernel.grid.z);
  if (std::string why = kernel.cluster ? checkCluster(*kernel.cluster, kernel.grid) : ""; !why.empty())
    return why;
  for (size_t i = 0; i < kernel.parameters.size(); ++i)
    if (std::string why = checkParameter(kernel, i); !why.empty())
      return fmt::format("parameters[{}]: {}", i, why);
  return "";
}

} // namespace

std::optional<size_t> findPointer(const KernelSpec &kernel, const KernelParameter &map) {
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const KernelParameter &one = kernel.parameters[i];
    if (!one.tensorMap && one.role == map.role && one.index == map.index)
      return i;
  }
  return std::nullopt;
}

std::string findContradiction(const Manifest &manifest) {
  std::set<std::string> names;
  for (size_t i = 0; i < manifest.kernels.size(); ++i) {
    std::string why = checkKernel(manifest.kernels[i]);
    if (why.empty() && !names.insert(manifest.kernels[i].name).second)
      why = fmt::format("a second kernel named `{}`", manifest.kernels[i].name);
    if (!why.empty())
      return fmt::format("kernels[{}]: {}", i, why);
  }
  for (size_t i = 0; i < manifest.buffers.size(); ++i) {
    const ModuleBuffer &buffer = manifest.buffers[i];
    if (buffer.kind == ModuleBuffer::Kind::Constant && buffer.constantData.size() != buffer.bytes)
      return fmt::format("buffers[{}]: {} bytes of data for {} bytes", i, buffer.constantData.size(), buffer.bytes);
    if (buffer.offset && buffer.kind != ModuleBuffer::Kind::Temporary)
      return fmt::format("buffers[{}]: only temporaries share memory", i);
    if (buffer.offset && (*buffer.offset % bufferPlacement || buffer.bytes > UINT64_MAX / 2 - bufferPlacement ||
                          *buffer.offset > UINT64_MAX / 2))
      return fmt::format("buffers[{}]: offset {} is not a multiple of {}, or too large", i, *buffer.offset,
                         bufferPlacement);
    if (buffer.donated && buffer.kind != ModuleBuffer::Kind::Parameter)
      return fmt::format("buffers[{}]: only parameters are donated", i);
    if (buffer.kind != ModuleBuffer::Kind::Constant && !buffer.constantData.empty())
      return fmt::format("buffers[{}]: only constants have data", i);
  }
  if (std::string why = checkSteps(manifest, manifest.steps, "steps"); !why.empty())
    return why;
  for (size_t i = 0; i < manifest.results.size(); ++i)
    if (std::string why = checkSlice(manifest, manifest.results[i].slice); !why.empty())
      return fmt::format("results[{}].slice: {}", i, why);
  return "";
}

} // namespace hloc::manifest_text
