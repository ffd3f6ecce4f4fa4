#include "CudaDeviceImpl.h"
#include "TensorMaps.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hloc {

using namespace cuda;

namespace {

constexpr unsigned unwrittenByte = 0xA5; // the emulator's
constexpr uint64_t sharedWithoutOptIn = 48 * 1024;

} // namespace

bool CudaDevice::Impl::openDevice(int ordinal, std::string &error) {
  int count = 0;
  if (!check(driver->cuDeviceGetCount(&count), "counting devices (cuDeviceGetCount)", error))
    return false;
  if (ordinal < 0 || ordinal >= count) {
    error = count == 0 ? "the CUDA driver `" + driver->name() + "` finds no device"
                       : "there is no device " + std::to_string(ordinal) + ", only " + std::to_string(count);
    return false;
  }
  char text[256] = {};
  if (!check(driver->cuDeviceGet(&device, ordinal), "opening device " + std::to_string(ordinal) + " (cuDeviceGet)",
             error) ||
      !check(driver->cuDeviceGetName(text, sizeof text - 1, device), "asking for the device's name (cuDeviceGetName)",
             error))
    return false;
  name = text;
  return readAttribute(ComputeCapabilityMajor, major, error) && readAttribute(ComputeCapabilityMinor, minor, error) &&
         readAttribute(MaxSharedMemoryPerBlockOptin, maxShared, error);
}

bool CudaDevice::Impl::openContext(std::string &error) {
  return check(driver->cuDevicePrimaryCtxRetain(&context, device),
               "making a context on `" + name + "` (cuDevicePrimaryCtxRetain)", error) &&
         check(driver->cuCtxSetCurrent(context), "using the context (cuCtxSetCurrent)", error) &&
         check(driver->cuStreamCreate(&stream, 0), "making a stream (cuStreamCreate)", error) &&
         check(driver->cuEventCreate(&begin, 0), "making an event (cuEventCreate)", error) &&
         check(driver->cuEventCreate(&end, 0), "making an event (cuEventCreate)", error);
}

CudaDevice::CudaDevice() : impl(std::make_unique<Impl>()) {}

std::unique_ptr<CudaDevice> CudaDevice::open(const CudaOptions &options, std::string &error) {
  std::unique_ptr<CudaDevice> device(new CudaDevice());
  device->impl->options = options;
  device->impl->driver = Driver::open(options.driver, error);
  if (!device->impl->driver || !device->impl->openDevice(options.ordinal, error) || !device->impl->openContext(error))
    return nullptr;
  return device;
}

/// Results are not looked at: after a failed kernel every call fails, and there is nobody to tell.
CudaDevice::~CudaDevice() {
  if (!impl->context)
    return;
  impl->cublasLt.reset();
  impl->cudnn.reset();
  impl->buffers.push_back(impl->shared);
  for (const CudaAllocation &buffer : impl->buffers)
    if (buffer.address && !buffer.isPart)
      impl->driver->cuMemFree_v2(buffer.address);
  if (impl->module)
    impl->driver->cuModuleUnload(impl->module);
  for (Event event : {impl->begin, impl->end})
    if (event)
      impl->driver->cuEventDestroy_v2(event);
  if (impl->stream)
    impl->driver->cuStreamDestroy_v2(impl->stream);
  impl->driver->cuDevicePrimaryCtxRelease_v2(impl->device);
}

const std::string &CudaDevice::name() const { return impl->name; }
const std::string &CudaDevice::driverName() const { return impl->driver->name(); }
int CudaDevice::driverVersion() const { return impl->driver->version(); }
std::string CudaDevice::target() const { return "sm_" + std::to_string(impl->major * 10 + impl->minor); }
bool CudaDevice::isTooOld() const { return impl->tooOld; }

bool CudaDevice::load(const std::string &image, std::string &error) {
  std::vector<char> log(16384, '\0');
  int options[] = {ErrorLogBuffer, ErrorLogBufferSizeBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)}; // sizes are passed as pointers
  impl->functions.clear();
  ++impl->loads;
  // PTX must end with a null character: std::string's does.
  int result = impl->driver->cuModuleLoadDataEx(&impl->module, image.c_str(), 2, options, values);
  if (impl->check(result, "loading the module on `" + impl->name + "` (cuModuleLoadDataEx)", error))
    return true;
  impl->module = nullptr;
  impl->tooOld = result == UnsupportedPtxVersion || result == NoBinaryForGpu;
  if (impl->tooOld)
    error += "; the device is " + target() + ", its driver serves CUDA " + versionText(driverVersion());
  if (log.front())
    error += "\n" + std::string(log.data());
  return false;
}

bool CudaDevice::allocate(const DeviceBuffer &buffer, std::string &error) {
  ++impl->generation;
  CudaAllocation made{buffer.name, buffer.bytes, 0};
  if (buffer.place) {
    CudaAllocation &shared = impl->shared;
    if (!shared.address) {
      DeviceBuffer all;
      all.name = "temporaries";
      all.bytes = buffer.place->allBytes;
      if (!allocate(all, error))
        return false;
      shared = impl->buffers.back();
      impl->buffers.pop_back();
    }
    if (buffer.place->offset > shared.bytes || buffer.bytes > shared.bytes - buffer.place->offset) {
      error = "`" + buffer.name + "` leaves the memory of the temporaries";
      return false;
    }
    made.address = shared.address + buffer.place->offset;
    made.isPart = true;
    impl->buffers.push_back(made);
    return true;
  }
  uint64_t bytes = std::max<uint64_t>(buffer.bytes, 1); // the driver refuses 0
  std::string what = std::to_string(bytes) + " bytes for `" + buffer.name + "`";
  if (!impl->check(impl->driver->cuMemAlloc_v2(&made.address, bytes), "allocating " + what + " (cuMemAlloc)", error))
    return false;
  impl->buffers.push_back(made);
  if (buffer.contents != DeviceBuffer::Contents::Unwritten)
    return true;
  return impl->check(impl->driver->cuMemsetD8Async(made.address, unwrittenByte, bytes, impl->stream),
                     "filling " + what + " (cuMemsetD8Async)", error);
}

bool CudaDevice::Impl::address(const BufferSlice &slice, cuda::DevicePointer &result, std::string &error) {
  if (slice.buffer >= buffers.size()) {
    error = "there is no buffer " + std::to_string(slice.buffer);
    return false;
  }
  const CudaAllocation &buffer = buffers[slice.buffer];
  if (slice.offset > buffer.bytes || slice.bytes > buffer.bytes - slice.offset) {
    error = std::to_string(slice.bytes) + " bytes from " + std::to_string(slice.offset) + " of `" + buffer.name +
            "`, which has " + std::to_string(buffer.bytes);
    return false;
  }
  result = buffer.address + slice.offset;
  return true;
}

bool CudaDevice::reset(std::string &error) {
  ++impl->generation;
  impl->buffers.push_back(std::exchange(impl->shared, CudaAllocation()));
  for (const CudaAllocation &buffer : impl->buffers)
    if (buffer.address && !buffer.isPart &&
        !impl->check(impl->driver->cuMemFree_v2(buffer.address), "freeing `" + buffer.name + "` (cuMemFree)", error))
      return false;
  impl->buffers.clear();
  impl->tensorMaps.clear();
  return true;
}

bool CudaDevice::upload(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &error) {
  cuda::DevicePointer to;
  if (!impl->address({buffer, 0, numBytes}, to, error))
    return false;
  if (!numBytes)
    return true;
  std::string doing = "copying " + std::to_string(numBytes) + " bytes to `" + impl->buffers[buffer].name + "`";
  return impl->check(impl->driver->cuMemcpyHtoDAsync_v2(to, bytes, numBytes, impl->stream),
                     doing + " (cuMemcpyHtoDAsync)", error) &&
         impl->check(impl->driver->cuStreamSynchronize(impl->stream), doing + " (cuStreamSynchronize)", error);
}

bool CudaDevice::download(const BufferSlice &slice, void *bytes, std::string &error) {
  cuda::DevicePointer from;
  if (!impl->address(slice, from, error))
    return false;
  if (!slice.bytes)
    return synchronize(error);
  std::string doing =
      "copying " + std::to_string(slice.bytes) + " bytes from `" + impl->buffers[slice.buffer].name + "`";
  return impl->check(impl->driver->cuMemcpyDtoHAsync_v2(bytes, from, slice.bytes, impl->stream),
                     impl->after(doing) + " (cuMemcpyDtoHAsync)", error) &&
         synchronize(error);
}

bool CudaDevice::copy(const CopyStep &copy, std::string &error) {
  cuda::DevicePointer from, to;
  if (!impl->address(copy.from, from, error) || !impl->address(copy.to, to, error))
    return false;
  if (copy.from.bytes != copy.to.bytes) {
    error = "a copy of " + std::to_string(copy.from.bytes) + " bytes to " + std::to_string(copy.to.bytes);
    return false;
  }
  if (!copy.from.bytes)
    return true;
  return impl->check(impl->driver->cuMemcpyDtoDAsync_v2(to, from, copy.from.bytes, impl->stream),
                     impl->after("copying on the device") + " (cuMemcpyDtoDAsync)", error);
}

bool CudaDevice::fill(const FillStep &fill, std::string &error) {
  cuda::DevicePointer to;
  if (!impl->address(fill.to, to, error))
    return false;
  return !fill.to.bytes || impl->check(impl->driver->cuMemsetD8Async(to, fill.value, fill.to.bytes, impl->stream),
                                       impl->after("filling a buffer") + " (cuMemsetD8Async)", error);
}

/// More than 48 KiB of shared memory must be asked for, function by function.
bool CudaDevice::Impl::prepareFunction(Function function, const DeviceKernel &launched, std::string &error) {
  std::string kernel = "kernel `" + launched.name + "`";
  int maxThreads = 0, staticShared = 0;
  if (!check(driver->cuFuncGetAttribute(&maxThreads, MaxThreadsPerBlock, function),
             "asking how many threads " + kernel + " can have (cuFuncGetAttribute)", error) ||
      !check(driver->cuFuncGetAttribute(&staticShared, SharedSizeBytes, function),
             "asking for the shared memory of " + kernel + " (cuFuncGetAttribute)", error))
    return false;
  if (launched.block.count() > uint64_t(maxThreads)) {
    error = kernel + " is launched with " + std::to_string(launched.block.count()) +
            " threads a block; its registers " + "leave room for " + std::to_string(maxThreads);
    return false;
  }
  uint64_t shared = uint64_t(staticShared) + launched.dynamicSharedBytes;
  if (shared <= sharedWithoutOptIn)
    return true;
  if (shared > uint64_t(maxShared)) {
    error = kernel + " needs " + std::to_string(shared) + " bytes of shared memory, `" + name + "` has " +
            std::to_string(maxShared) + " for a block";
    return false;
  }
  return check(driver->cuFuncSetAttribute(function, MaxDynamicSharedSizeBytes, int(launched.dynamicSharedBytes)),
               "asking for " + std::to_string(shared) + " bytes of shared memory for " + kernel +
                   " (cuFuncSetAttribute)",
               error);
}

bool CudaDevice::Impl::functionOf(const DeviceKernel &kernel, Function &function, std::string &error) {
  const auto found = functions.find(kernel.name);
  if (found != functions.end() && found->second.threads == kernel.block.count() &&
      found->second.sharedBytes == kernel.dynamicSharedBytes) {
    function = found->second.function;
    return true;
  }
  if (!check(driver->cuModuleGetFunction(&function, module, kernel.name.c_str()),
             "looking for kernel `" + kernel.name + "` (cuModuleGetFunction)", error) ||
      !prepareFunction(function, kernel, error))
    return false;
  functions[kernel.name] = {function, kernel.block.count(), kernel.dynamicSharedBytes};
  return true;
}

/// Addresses and tensor maps where a structure has them.
bool CudaDevice::Impl::fill(const std::vector<AddressPiece> &pieces, std::string &bytes, std::string &error) {
  for (const AddressPiece &piece : pieces) {
    uint64_t at = 0;
    if (!address(piece.slice, at, error))
      return false;
    if (!piece.map)
      std::memcpy(&bytes[piece.at], &at, sizeof at);
    else if (!tensorMaps.encode(*driver, *piece.map, at, reinterpret_cast<uint8_t *>(&bytes[piece.at]), error))
      return false;
  }
  return true;
}

bool CudaDevice::Impl::allowClusters(const DeviceKernel &kernel, Function function, std::string &error) {
  constexpr uint64_t portable = 8; // what every device with clusters has
  return kernel.cluster.value_or(Dim3()).count() <= portable ||
         check(driver->cuFuncSetAttribute(function, NonPortableClusterSizeAllowed, 1),
               "asking for large clusters for kernel `" + kernel.name + "` (cuFuncSetAttribute)", error);
}

bool CudaDevice::Impl::launchExtended(const DeviceKernel &kernel, Function function, void **parameters,
                                      std::string &error) {
  if (!driver->cuLaunchKernelEx) {
    error = "the CUDA driver `" + driver->name() + "` is too old for clusters and programmatic launches: it lacks " +
            "cuLaunchKernelEx";
    return false;
  }
  const Dim3 &grid = kernel.grid, &block = kernel.block, cluster = kernel.cluster.value_or(Dim3());
  if (!allowClusters(kernel, function, error))
    return false;
  std::vector<LaunchAttribute> attributes;
  if (kernel.cluster)
    attributes.push_back({ClusterDimension, {cluster.x, cluster.y, cluster.z}, {}});
  if (kernel.programmatic)
    attributes.push_back({ProgrammaticStreamSerialization, {1, 0, 0}, {}});
  const LaunchConfiguration configuration{{grid.x, grid.y, grid.z},  {block.x, block.y, block.z},
                                          kernel.dynamicSharedBytes, stream,
                                          attributes.data(),         unsigned(attributes.size())};
  return check(driver->cuLaunchKernelEx(&configuration, function, parameters, nullptr),
               "launching kernel `" + kernel.name + "` (cuLaunchKernelEx)", error);
}

bool CudaDevice::address(const BufferSlice &slice, uint64_t &result, std::string &error) {
  return impl->address(slice, result, error);
}

bool CudaDevice::Impl::argumentsOf(const LaunchStep &launch, std::vector<std::string> &arguments, std::string &error) {
  arguments.clear();
  for (const StepArgument &argument : launch.arguments) {
    std::string &bytes = arguments.emplace_back();
    uint64_t value = 0; // little endian: short scalars lie in the first bytes
    if (const auto *structure = std::get_if<StructureValue>(&argument)) {
      bytes = structure->data;
      if (!fill(structure->pieces, bytes, error))
        return false;
    } else if (const auto *map = std::get_if<TensorMapSlice>(&argument)) {
      bytes.resize(tensorMapBytes);
      if (!fill({{0, map->slice, false, map->recipe}}, bytes, error))
        return false;
    } else if (const auto *slice = std::get_if<BufferSlice>(&argument)) {
      if (!address(*slice, value, error))
        return false;
      bytes.assign(reinterpret_cast<const char *>(&value), sizeof value);
    } else {
      value = std::get<ScalarValue>(argument).value;
      bytes.assign(reinterpret_cast<const char *>(&value), sizeof value);
    }
  }
  return true;
}

bool CudaDevice::launch(const DeviceLaunch &launch, std::string &error) {
  const DeviceKernel &kernel = launch.kernel;
  if (!impl->module) {
    error = "no module is loaded";
    return false;
  }
  Function function = nullptr;
  std::vector<std::string> arguments;
  if (!impl->functionOf(kernel, function, error) || !impl->argumentsOf(launch.step, arguments, error))
    return false;
  std::vector<void *> parameters;
  for (std::string &argument : arguments)
    parameters.push_back(argument.data());
  const Dim3 &grid = kernel.grid, &block = kernel.block;
  impl->lastWork = "kernel `" + kernel.name + "`";
  if (kernel.cluster || kernel.programmatic)
    return impl->launchExtended(kernel, function, parameters.data(), error);
  return impl->check(impl->driver->cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                  kernel.dynamicSharedBytes, impl->stream, parameters.data(), nullptr),
                     "launching kernel `" + kernel.name + "` (cuLaunchKernel)", error);
}

bool CudaDevice::Impl::openLibrary(const CallStep &call, std::string &error) {
  if (LibraryConvolution::kindOf(call.function)) {
    if (!cudnn)
      cudnn = Cudnn::open(options.cudnn, options.libraryFolders, error);
    return cudnn != nullptr;
  }
  if (!cublasLt)
    cublasLt = CublasLt::open(options.cublasLt, options.libraryFolders, error);
  return cublasLt != nullptr;
}

bool CudaDevice::openLibraries(const Steps &steps, std::string &error) {
  bool isOpen = true;
  forEachStep(steps, [&](const Step &step) {
    const auto *call = std::get_if<CallStep>(&step.action);
    if (isOpen && call && call->kind == CallStep::Kind::Library)
      isOpen = impl->openLibrary(*call, error);
  });
  return isOpen;
}

bool CudaDevice::call(const CallStep &call, std::string &error) {
  if (!impl->openLibrary(call, error))
    return false;
  std::vector<cuda::DevicePointer> reads(call.reads.size()), writes(call.writes.size());
  for (size_t i = 0; i < reads.size(); ++i)
    if (!impl->address(call.reads[i], reads[i], error))
      return false;
  for (size_t i = 0; i < writes.size(); ++i)
    if (!impl->address(call.writes[i], writes[i], error))
      return false;
  impl->lastWork = "kernel `" + call.function + "`";
  const uint64_t workspace = call.writes.back().bytes;
  if (std::optional<LibraryConvolution::Kind> kind = LibraryConvolution::kindOf(call.function)) {
    std::optional<LibraryConvolution> convolution = LibraryConvolution::parse(*kind, call.configuration, error);
    return convolution &&
           impl->cudnn->convolve(*convolution, call.configuration, reads, writes, workspace, impl->stream, error);
  }
  std::optional<MatmulCall> matmul = MatmulCall::parse(call.configuration, error);
  return matmul && impl->cublasLt->multiply(*matmul, call.configuration, reads, writes, workspace, impl->stream, error);
}

bool CudaDevice::synchronize(std::string &error) {
  return impl->check(impl->driver->cuStreamSynchronize(impl->stream),
                     impl->after("waiting for the device") + " (cuStreamSynchronize)", error);
}

bool CudaDevice::time(const std::function<bool()> &work, double &milliseconds, std::string &error) {
  Driver &driver = *impl->driver;
  if (!impl->check(driver.cuEventRecord(impl->begin, impl->stream), "starting the clock (cuEventRecord)", error))
    return false;
  if (!work())
    return false;
  float elapsed = 0;
  if (!impl->check(driver.cuEventRecord(impl->end, impl->stream), "stopping the clock (cuEventRecord)", error) ||
      !impl->check(driver.cuEventSynchronize(impl->end), impl->after("waiting for the clock") + " (cuEventSynchronize)",
                   error) ||
      !impl->check(driver.cuEventElapsedTime(&elapsed, impl->begin, impl->end),
                   "reading the clock (cuEventElapsedTime)", error))
    return false;
  milliseconds = elapsed;
  return true;
}

} // namespace hloc
