#pragma once
// A module on the device, of its manifest and image.

#include "Conditions.h"
#include "Manifest.h"

#include <functional>
#include <map>
#include <memory>
#include <tuple>

namespace hloc_launch {

/// A step that whoever runs the module carries out: it may enqueue work on `stream`, or wait for that and do it.
struct ExternalCall {
  const std::string &name, &function, &configuration;            ///< `all-reduce`, and what the HLO says of it
  std::vector<std::pair<DevicePointer, uint64_t>> reads, writes; ///< addresses, and how many bytes
  Stream stream;
};

struct Options {
  int device = 0;                      ///< whose primary context is used where no context is current
  const char *driver = "libcuda.so.1"; ///< file of the driver; the first that is opened serves the whole process
  /// By the function of external steps and of library calls (`cublasLtMatmul`): who carries them out.
  std::map<std::string, std::function<Status(const ExternalCall &)>> callbacks;
  /// Functions of which the callback does no more than enqueue on `stream` what CUDA can capture. A Graph has it called
  /// while `stream` is captured: once, and once more for each update that changes its addresses. With others it is
  /// refused.
  std::set<std::string> capturable;
};

/// PTX, cubin or fatbin.
struct Image {
  const void *data = nullptr;
  size_t bytes = 0;
};

/// An array that a module reads or makes.
struct Array {
  std::string shape;          ///< `f32[12,1000]{1,0}`
  uint32_t parameter = 0;     ///< of an input
  std::vector<uint32_t> leaf; ///< of the parameter's or the result's tuple
  uint64_t bytes = 0;         ///< to allocate
  uint32_t buffer = 0;        ///< of the manifest
  bool isDonated = false;     ///< an input that is overwritten
  bool isBound = false;       ///< a result that steps write where the caller wants it; others are copied there
};

/// A tensor map as the driver makes it, which kernels are passed by value.
struct alignas(128) EncodedMap {
  unsigned char bytes[128] = {};
};

class Execution;
class Graph;

/// A loaded module. Copies are the same module, which lives as long as one of them or of its executions.
class Module {
public:
  /// Errors: no manifest, steps that nobody carries out, no driver or device, an image that the driver refuses.
  static Status load(std::string_view manifest, Image image, const Options &options, Module &module) {
    auto made = std::make_shared<State>();
    Status status = ManifestReader::read(manifest, made->manifest);
    made->callbacks = options.callbacks;
    made->capturable = options.capturable;
    for (auto step : {&State::arrange, &State::findCallbacks})
      if (status.ok())
        status = (made.get()->*step)();
    if (status.ok())
      status = Driver::open(made->driver, options.driver);
    if (status.ok())
      status = made->findContext(options.device);
    if (!status.ok())
      return status;
    CurrentContext current(*made->driver, made->context);
    status = current.status();
    if (status.ok())
      status = made->loadImage(image);
    for (size_t i = 0; status.ok() && i < made->manifest.kernels.size(); ++i)
      status = made->findFunction(made->manifest.kernels[i]);
    if (status.ok())
      status = made->uploadConstants();
    if (status.ok())
      module.state = std::move(made);
    return status;
  }
  bool isLoaded() const { return state != nullptr; }
  // Of a module that is loaded:
  const Manifest &manifest() const { return state->manifest; }
  const std::vector<Array> &inputs() const { return state->inputs; }
  const std::vector<Array> &results() const { return state->results; }
  /// Bytes of the memory that each execution has.
  uint64_t scratchBytes() const { return state->scratchBytes; }
  const Driver &driver() const { return *state->driver; }
  Context context() const { return state->context; }

private:
  friend class Execution;
  friend class Graph;
  struct State {
    Manifest manifest;
    std::map<std::string, std::function<Status(const ExternalCall &)>> callbacks;
    std::set<std::string> capturable;
    std::vector<Array> inputs, results;
    std::vector<uint64_t> places; ///< of each buffer in the scratch memory, or of constants in theirs
    std::vector<CUfunc_st *> functions;
    uint64_t scratchBytes = 0, constantBytes = 0;
    const Driver *driver = nullptr;
    Context context = nullptr;
    int device = 0;
    bool isRetained = false;
    CUmod_st *module = nullptr;
    DevicePointer constants = 0;
    // Kernels that decide for graphs, loaded with the first of these that has loops or branches.
    std::mutex conditionsMutex;
    CUmod_st *conditions = nullptr;
    CUfunc_st *takesBranch = nullptr, *goesRound = nullptr;

    ~State() {
      if (!context)
        return;
      {
        CurrentContext current(*driver, context);
        if (constants)
          driver->memoryFree(constants);
        if (module)
          driver->moduleUnload(module);
        if (conditions)
          driver->moduleUnload(conditions);
      }
      if (isRetained)
        driver->primaryContextRelease(device);
    }
    Status arrange();
    Status findCallbacks() { return findCallbacks(manifest.steps); }
    Status findCallbacks(const std::vector<Step> &steps);
    Status findContext(int ordinal);
    Status loadImage(Image image);
    Status findFunction(const Kernel &kernel);
    Status findFunctionsOfDriver(const Kernel &kernel) const;
    bool hasParameters(const Kernel &kernel, CUfunc_st *function) const;
    Status uploadConstants();
    Status loadConditions();
  };
  std::shared_ptr<State> state;
};

/// Finds who gives what: which arrays are inputs and results, and where all others lie.
inline Status Module::State::arrange() {
  using Kind = Buffer::Kind;
  auto &buffers = manifest.buffers;
  places.resize(buffers.size());
  std::vector<bool> isGiven(buffers.size());
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (const Buffer &of = buffers[i]; of.kind == Kind::Parameter) {
      isGiven[i] = true;
      inputs.push_back({of.shape, of.parameter, of.leaf, allocationBytes(of.shape, of.bytes), i, of.isDonated, false});
    }
  auto comesFirst = [](const Array &a, const Array &b) {
    return std::tie(a.parameter, a.leaf) < std::tie(b.parameter, b.leaf);
  };
  std::sort(inputs.begin(), inputs.end(), comesFirst);
  for (size_t i = 1; i < inputs.size(); ++i)
    if (!comesFirst(inputs[i - 1], inputs[i]))
      return Status::failure("manifest: two buffers for one parameter");
  for (const Result &of : manifest.results) {
    const Buffer &buffer = buffers[of.slice.buffer];
    const bool isBound = buffer.kind == Kind::Result && !isGiven[of.slice.buffer] && of.slice.bytes == buffer.bytes;
    isGiven[of.slice.buffer] = isGiven[of.slice.buffer] || isBound;
    results.push_back(
        {of.shape, 0, of.leaf, allocationBytes(of.shape, of.slice.bytes), of.slice.buffer, buffer.isDonated, isBound});
  }
  auto end = [](uint64_t begin, const Buffer &buffer) { // also what has no bytes has an address
    return begin + (std::max<uint64_t>(buffer.bytes, 1) + 255) / 256 * 256;
  };
  for (const Buffer &buffer : buffers)
    if (buffer.hasPlace)
      scratchBytes = std::max(scratchBytes, end(buffer.place, buffer));
  for (size_t i = 0; i < buffers.size(); ++i) {
    uint64_t &total = buffers[i].kind == Kind::Constant ? constantBytes : scratchBytes;
    places[i] = buffers[i].hasPlace ? buffers[i].place : total;
    if (!isGiven[i] && !buffers[i].hasPlace)
      total = end(total, buffers[i]);
    if (total >> 62)
      return Status::failure("manifest: its buffers are larger than any memory");
  }
  return {};
}

inline Status Module::State::findCallbacks(const std::vector<Step> &steps) {
  for (const Step &step : steps) {
    if (step.kind == Step::Kind::Unsupported)
      return Status::failure("step `" + step.name + "` was not compiled: " + step.text);
    const bool isCall = step.kind == Step::Kind::LibraryCall || step.kind == Step::Kind::External;
    if (isCall && !callbacks.count(step.function))
      return Status::failure("step `" + step.name + "` calls `" + step.function + "`, for which there is no callback" +
                             (step.kind == Step::Kind::LibraryCall
                                  ? "; compiled with --dots=own and --convolutions=own it is a kernel"
                                  : ""));
    for (const auto &part : step.parts)
      if (Status status = findCallbacks(part); !status.ok())
        return status;
  }
  return {};
}

inline Status Module::State::findContext(int ordinal) {
  Context found = nullptr;
  if (Status status = driver->check(driver->contextGetCurrent(&found), "looking for a context (cuCtxGetCurrent)");
      !status.ok())
    return status;
  if (!found) {
    int count = 0;
    driver->deviceGetCount(&count);
    if (ordinal < 0 || ordinal >= count)
      return Status::failure("there is no CUDA device " + std::to_string(ordinal) + ", only " + std::to_string(count));
    Status status =
        driver->check(driver->primaryContextRetain(&found, ordinal),
                      "making a context on device " + std::to_string(ordinal) + " (cuDevicePrimaryCtxRetain)");
    if (!status.ok())
      return status;
    isRetained = true;
    device = ordinal;
  }
  context = found;
  return {};
}

inline Status Module::State::loadImage(Image image) {
  if (!isRetained)
    if (Status status = driver->check(driver->contextGetDevice(&device), "asking for the device (cuCtxGetDevice)");
        !status.ok())
      return status;
  // The driver finds the end of PTX by a null character; binaries say themselves how long they are.
  std::string text(static_cast<const char *>(image.data), image.bytes);
  std::vector<char> log(16384);
  int options[] = {5, 6}; // CU_JIT_ERROR_LOG_BUFFER and its size, which is passed as a pointer
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  Status status =
      driver->check(driver->moduleLoad(&module, text.c_str(), 2, options, values),
                    "loading module `" + manifest.module + "` for " + manifest.target + " (cuModuleLoadDataEx)");
  if (status.ok())
    return status;
  module = nullptr;
  return Status::failure(status.message() + (log[0] ? "\n" + std::string(log.data()) : ""), status.cudaResult());
}

/// Whether the driver is not too old for how the kernel is launched.
inline Status Module::State::findFunctionsOfDriver(const Kernel &kernel) const {
  auto tooOld = [&](const char *what, const char *function) {
    return Status::failure("kernel `" + kernel.name + "` " + what +
                           ", for which the CUDA driver is too old: it lacks " + function);
  };
  if (kernel.isExtended() && !driver->launchKernelEx)
    return tooOld("is launched in clusters or programmatically", "cuLaunchKernelEx");
  for (const Parameter &parameter : kernel.parameters) {
    if (parameter.map && parameter.map->isOfPixels && !driver->encodeIm2col)
      return tooOld("takes a tensor map", "cuTensorMapEncodeIm2col");
    if (parameter.map && !parameter.map->isOfPixels && !driver->encodeTiled)
      return tooOld("takes a tensor map", "cuTensorMapEncodeTiled");
  }
  return {};
}

/// Whether these are the kernel's parameters, pointers and tensor maps: the driver takes as many as it has from where
/// those of a launch are. Drivers that cannot tell are believed.
inline bool Module::State::hasParameters(const Kernel &kernel, CUfunc_st *function) const {
  size_t offset = 0, bytes = 0;
  if (!driver->functionGetParameter)
    return true;
  for (size_t i = 0; i < kernel.parameters.size(); ++i)
    if (int result = driver->functionGetParameter(function, i, &offset, &bytes);
        result == 1 || (!result && bytes != (kernel.parameters[i].map ? sizeof(EncodedMap) : sizeof(DevicePointer))))
      return false;
  return driver->functionGetParameter(function, kernel.parameters.size(), &offset, &bytes) != 0;
}

/// More than 48 KiB of shared memory must be asked for, function by function.
inline Status Module::State::findFunction(const Kernel &kernel) {
  const std::string what = "kernel `" + kernel.name + "`";
  CUfunc_st *&function = functions.emplace_back();
  int maxThreads = 0, staticShared = 0, maxShared = 0;
  Status status = driver->check(driver->moduleGetFunction(&function, module, kernel.name.c_str()),
                                "looking for " + what + " (cuModuleGetFunction)");
  if (status.ok()) // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, _SHARED_SIZE_BYTES
    status = driver->check(driver->functionGetAttribute(&maxThreads, 0, function),
                           "asking how many threads " + what + " can have (cuFuncGetAttribute)");
  if (status.ok())
    status = driver->check(driver->functionGetAttribute(&staticShared, 1, function),
                           "asking for the shared memory of " + what + " (cuFuncGetAttribute)");
  if (!status.ok())
    return status;
  if (!hasParameters(kernel, function))
    return Status::failure(what + " has other parameters in the image than in the manifest");
  if (status = findFunctionsOfDriver(kernel); !status.ok())
    return status;
  // More blocks than all devices admit have to be asked for: CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED.
  if (kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2] > 8)
    if (status = driver->check(driver->functionSetAttribute(function, 14, 1),
                               "asking for large clusters for " + what + " (cuFuncSetAttribute)");
        !status.ok())
      return status;
  if (const uint64_t threads = uint64_t(kernel.block[0]) * kernel.block[1] * kernel.block[2];
      threads > uint64_t(maxThreads))
    return Status::failure(what + " is launched with " + std::to_string(threads) +
                           " threads a block; its registers leave room for " + std::to_string(maxThreads));
  const uint64_t shared = uint64_t(staticShared) + kernel.dynamicSharedBytes;
  if (shared <= 48 * 1024)
    return status;
  // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  status = driver->check(driver->deviceGetAttribute(&maxShared, 97, device),
                         "asking for the device's shared memory (cuDeviceGetAttribute)");
  if (status.ok() && shared > uint64_t(maxShared))
    return Status::failure(what + " needs " + std::to_string(shared) + " bytes of shared memory, the device has " +
                           std::to_string(maxShared) + " for a block");
  if (status.ok()) // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    status = driver->check(driver->functionSetAttribute(function, 8, int(kernel.dynamicSharedBytes)),
                           "asking for shared memory for " + what + " (cuFuncSetAttribute)");
  return status;
}

/// One allocation for all of them, which no step writes: executions share it.
inline Status Module::State::uploadConstants() {
  if (!constantBytes)
    return {};
  Status status = driver->check(driver->memoryAllocate(&constants, constantBytes),
                                "allocating " + std::to_string(constantBytes) + " bytes for constants (cuMemAlloc)");
  for (size_t i = 0; status.ok() && i < manifest.buffers.size(); ++i)
    if (std::string &data = manifest.buffers[i].data; !data.empty()) {
      status = driver->check(driver->copyToDevice(constants + places[i], data.data(), data.size(), nullptr),
                             "copying constants (cuMemcpyHtoDAsync)");
      if (status.ok())
        status = driver->check(driver->streamSynchronize(nullptr), "copying constants (cuStreamSynchronize)");
      std::string().swap(data);
    }
  return status;
}

/// The context is current.
inline Status Module::State::loadConditions() {
  std::lock_guard<std::mutex> lock(conditionsMutex);
  Status status;
  if (!conditions)
    status = driver->check(driver->moduleLoad(&conditions, conditionPtx, 0, nullptr, nullptr),
                           "loading the kernels that decide (cuModuleLoadDataEx)");
  if (!status.ok())
    conditions = nullptr;
  for (auto [function, name] : {std::pair(&takesBranch, branchKernel), std::pair(&goesRound, roundKernel)})
    if (status.ok() && !*function)
      status = driver->check(driver->moduleGetFunction(function, conditions, name),
                             "looking for a kernel that decides (cuModuleGetFunction)");
  return status;
}

} // namespace hloc_launch
