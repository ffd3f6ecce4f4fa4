#pragma once
// Runs what hloc has compiled: a manifest (`hloc X.hlo --manifest=X.json`) and its PTX, cubin or fatbin, through the
// CUDA driver. One header for C++17 and later, without exceptions; it needs neither hloc nor the CUDA toolkit.
//
//   hloc_launch::Module module;
//   hloc_launch::Execution execution;
//   hloc_launch::Status status = hloc_launch::Module::load(manifestText, {ptx.data(), ptx.size()}, {}, module);
//   if (status.ok()) status = hloc_launch::Execution::create(module, execution);
//   if (status.ok()) status = execution.run({x, y}, {sum}, stream); // x, y, sum: addresses on the device
//   if (!status.ok()) fprintf(stderr, "%s\n", status.message().c_str());
//
// Inputs are the arrays of the entry's parameters in order (of tuples: their leaves), results those of its result. A
// Module belongs to the context that is current when it is loaded, and may be used by several threads at once; each
// stream needs an Execution of its own, since that has the memory for values in between.
//
// By default the driver is opened at run time (libcuda.so.1; link with -ldl before glibc 2.34). With
// HLOC_LAUNCH_LINK_CUDA defined, in all files of a program, its functions are those of <cuda.h>, and the program is
// linked with -lcuda.

// It is installed as one file: src/library/cmake/JoinLauncher.cmake.
#include "hloc_launch/Manifest.h"

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

/// A loaded module. Copies are the same module, which lives as long as one of them or of its executions.
class Module {
public:
  /// Errors: no manifest, steps that nobody carries out, no driver or device, an image that the driver refuses.
  static Status load(std::string_view manifest, Image image, const Options &options, Module &module) {
    auto made = std::make_shared<State>();
    Status status = ManifestReader::read(manifest, made->manifest);
    made->callbacks = options.callbacks;
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
  struct State {
    Manifest manifest;
    std::map<std::string, std::function<Status(const ExternalCall &)>> callbacks;
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

    ~State() {
      if (!context)
        return;
      {
        CurrentContext current(*driver, context);
        if (constants)
          driver->memoryFree(constants);
        if (module)
          driver->moduleUnload(module);
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

/// Memory for what lies between the steps of a module, and who issues them. One thread at a time runs it, on one
/// stream; to use another stream, wait for the work on the first.
class Execution {
public:
  Execution() = default;
  Execution(Execution &&other) noexcept { swap(other); }
  Execution &operator=(Execution &&other) noexcept { return swap(other), *this; }
  ~Execution() {
    if (!module || !scratch)
      return;
    CurrentContext current(*module->driver, module->context);
    module->driver->memoryFree(scratch);
  }
  static Status create(const Module &of, Execution &execution) {
    Execution made;
    made.module = of.state;
    if (!made.module)
      return Status::failure("no module is loaded");
    const auto &state = *made.module;
    CurrentContext current(*state.driver, state.context);
    Status status = current.status();
    if (status.ok() && state.scratchBytes)
      status = state.driver->check(state.driver->memoryAllocate(&made.scratch, state.scratchBytes),
                                   "allocating " + std::to_string(state.scratchBytes) +
                                       " bytes for values in between (cuMemAlloc)");
    if (status.ok())
      execution.swap(made);
    return status;
  }

  /// Enqueues the steps; kernels may still run afterwards. Loops and conditionals that are decided on the device wait
  /// for it. `results` that are null are left where they are, which is possible where Array::isBound is false; that of
  /// a donated input is in its place. Errors: addresses that are missing or not aligned, failures of the driver, also
  /// of work that was enqueued before.
  Status run(const std::vector<DevicePointer> &inputs, const std::vector<DevicePointer> &results, Stream stream);

  /// Where a buffer of the manifest lay in the last run.
  DevicePointer address(const Slice &slice) const { return addresses[slice.buffer] + slice.offset; }

private:
  void swap(Execution &other) {
    std::swap(module, other.module);
    std::swap(scratch, other.scratch);
    std::swap(addresses, other.addresses);
    std::swap(maps, other.maps);
  }
  Status bind(const std::vector<DevicePointer> &inputs, const std::vector<DevicePointer> &results);
  Status issue(const std::vector<Step> &steps, Stream stream);
  Status carryOut(const Step &step, Stream stream);
  Status launch(const Step &step, Stream stream);
  Status encode(const Kernel &kernel, const TensorMap &map, DevicePointer tensor, EncodedMap *&encoded);
  Status copy(DevicePointer to, const Slice &from, Stream stream);
  Status fill(const Step &step, Stream stream);
  Status call(const Step &step, Stream stream);
  Status repeat(const Step &step, Stream stream);
  Status choose(const Step &step, Stream stream);
  Status download(const Slice &slice, void *bytes, const Step &step, Stream stream);

  std::shared_ptr<Module::State> module;
  DevicePointer scratch = 0;
  std::vector<DevicePointer> addresses; ///< of each buffer
  /// Tensor maps that have been made, each of one address. There is nothing in them that could be out of date.
  std::map<std::pair<const TensorMap *, DevicePointer>, EncodedMap> maps;
  static constexpr size_t mostMaps = 4096; ///< of arrays that the caller has given up since
};

inline Status Execution::run(const std::vector<DevicePointer> &inputs, const std::vector<DevicePointer> &results,
                             Stream stream) {
  if (!module)
    return Status::failure("no module is loaded");
  Status status = bind(inputs, results);
  if (!status.ok())
    return status;
  CurrentContext current(*module->driver, module->context);
  status = current.status();
  if (status.ok())
    status = issue(module->manifest.steps, stream);
  for (size_t i = 0; status.ok() && i < results.size(); ++i)
    if (!module->results[i].isBound && results[i])
      status = copy(results[i], module->manifest.results[i].slice, stream);
  return status;
}

inline Status Execution::bind(const std::vector<DevicePointer> &inputs, const std::vector<DevicePointer> &results) {
  const auto &buffers = module->manifest.buffers;
  if (inputs.size() != module->inputs.size() || results.size() != module->results.size())
    return Status::failure("`" + module->manifest.module + "` has " + std::to_string(module->inputs.size()) +
                           " inputs and " + std::to_string(module->results.size()) + " results, not " +
                           std::to_string(inputs.size()) + " and " + std::to_string(results.size()));
  addresses.resize(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    addresses[i] = (buffers[i].kind == Buffer::Kind::Constant ? module->constants : scratch) + module->places[i];
  auto take = [&](const char *what, size_t number, const Array &array, DevicePointer address) {
    const Buffer &buffer = buffers[array.buffer];
    addresses[array.buffer] = address;
    if ((address || !buffer.bytes) && address % buffer.alignment == 0)
      return Status();
    return Status::failure(
        what + std::to_string(number) + " (" + array.shape + ") " +
        (address ? "is not aligned to " + std::to_string(buffer.alignment) + " bytes" : "is missing"));
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Status status = take("input ", i, module->inputs[i], inputs[i]); !status.ok())
      return status;
  for (size_t i = 0; i < results.size(); ++i)
    if (module->results[i].isBound)
      if (Status status = take("result ", i, module->results[i], results[i]); !status.ok())
        return status;
  return {};
}

inline Status Execution::issue(const std::vector<Step> &steps, Stream stream) {
  for (const Step &step : steps)
    if (Status status = carryOut(step, stream); !status.ok())
      return status;
  return {};
}

inline Status Execution::carryOut(const Step &step, Stream stream) {
  switch (step.kind) {
  case Step::Kind::Launch:
    return launch(step, stream);
  case Step::Kind::Copy:
    return copy(address(step.to), step.from, stream);
  case Step::Kind::Fill:
    return fill(step, stream);
  case Step::Kind::LibraryCall:
  case Step::Kind::External:
    return call(step, stream);
  case Step::Kind::While:
    return repeat(step, stream);
  case Step::Kind::Conditional:
    return choose(step, stream);
  case Step::Kind::Unsupported:
    break;
  }
  return Status::failure("step `" + step.name + "` was not compiled");
}

inline Status Execution::launch(const Step &step, Stream stream) {
  const Kernel &kernel = module->manifest.kernels[step.kernel];
  std::vector<DevicePointer> values;
  std::vector<void *> parameters;
  values.reserve(step.slices.size()); // parameters point into it
  if (maps.size() > mostMaps)
    maps.clear();
  for (size_t i = 0; i < step.slices.size(); ++i) {
    values.push_back(address(step.slices[i]));
    parameters.push_back(&values.back());
    if (const auto &map = kernel.parameters[i].map) {
      EncodedMap *encoded = nullptr;
      if (Status status = encode(kernel, *map, values.back(), encoded); !status.ok())
        return status;
      parameters.back() = encoded;
    }
  }
  const uint32_t *grid = kernel.grid, *block = kernel.block, *cluster = kernel.cluster;
  if (kernel.isExtended()) {
    LaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (cluster[0])
      attributes[count++] = {4, {cluster[0], cluster[1], cluster[2]}, {}};
    if (kernel.isProgrammatic)
      attributes[count++] = {6, {1, 0, 0}, {}};
    const LaunchConfiguration configuration = {{grid[0], grid[1], grid[2]},
                                               {block[0], block[1], block[2]},
                                               kernel.dynamicSharedBytes,
                                               stream,
                                               attributes,
                                               count};
    const int result =
        module->driver->launchKernelEx(&configuration, module->functions[step.kernel], parameters.data(), nullptr);
    return result ? module->driver->failure(result, "launching kernel `" + kernel.name + "` (cuLaunchKernelEx)")
                  : Status();
  }
  const int result =
      module->driver->launchKernel(module->functions[step.kernel], grid[0], grid[1], grid[2], block[0], block[1],
                                   block[2], kernel.dynamicSharedBytes, stream, parameters.data(), nullptr);
  return result ? module->driver->failure(result, "launching kernel `" + kernel.name + "` (cuLaunchKernel)") : Status();
}

/// Once for each address.
inline Status Execution::encode(const Kernel &kernel, const TensorMap &map, DevicePointer tensor,
                                EncodedMap *&encoded) {
  const auto [known, isNew] = maps.try_emplace({&map, tensor});
  encoded = &known->second;
  if (!isNew)
    return {};
  const Driver &driver = *module->driver;
  void *at = reinterpret_cast<void *>(static_cast<uintptr_t>(tensor));
  const auto rank = unsigned(map.dims.size());
  const int type = int(map.type), interleave = int(map.interleave), swizzle = int(map.swizzle), l2 = int(map.l2),
            fill = int(map.fill);
  const uint64_t none = 0; // drivers want an address even of no strides
  const uint64_t *strides = map.strides.empty() ? &none : map.strides.data();
  const int result = map.isOfPixels
                         ? driver.encodeIm2col(encoded->bytes, type, rank, at, map.dims.data(), strides,
                                               map.lower.data(), map.upper.data(), map.channels, map.pixels,
                                               map.steps.data(), interleave, swizzle, l2, fill)
                         : driver.encodeTiled(encoded->bytes, type, rank, at, map.dims.data(), strides, map.box.data(),
                                              map.steps.data(), interleave, swizzle, l2, fill);
  if (!result)
    return {};
  maps.erase(known);
  return driver.failure(result, "making a tensor map for kernel `" + kernel.name + "` (" +
                                    (map.isOfPixels ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled") + ")");
}

inline Status Execution::copy(DevicePointer to, const Slice &from, Stream stream) {
  if (!from.bytes || to == address(from))
    return {};
  const int result = module->driver->copyOnDevice(to, address(from), from.bytes, stream);
  return result ? module->driver->failure(result, "copying on the device (cuMemcpyDtoDAsync)") : Status();
}

inline Status Execution::fill(const Step &step, Stream stream) {
  const auto value = static_cast<unsigned char>(step.value);
  const int result = step.to.bytes ? module->driver->fill(address(step.to), value, step.to.bytes, stream) : 0;
  return result ? module->driver->failure(result, "step `" + step.name + "`: filling a buffer (cuMemsetD8Async)")
                : Status();
}

inline Status Execution::call(const Step &step, Stream stream) {
  ExternalCall call{step.name, step.function, step.text, {}, {}, stream};
  for (const Slice &slice : step.reads)
    call.reads.emplace_back(address(slice), slice.bytes);
  for (const Slice &slice : step.writes)
    call.writes.emplace_back(address(slice), slice.bytes);
  return module->callbacks.at(step.function)(call);
}

inline Status Execution::repeat(const Step &step, Stream stream) {
  const bool isCounted = !step.choice.bytes;
  uint64_t left = step.parts[1].empty() ? 0 : step.rounds;
  for (;;) {
    unsigned char goesOn = isCounted && left-- > 0;
    Status status = issue(step.parts[0], stream);
    if (status.ok() && !isCounted)
      status = download(step.choice, &goesOn, step, stream);
    if (!status.ok() || !goesOn)
      return status;
    if (status = issue(step.parts[1], stream); !status.ok())
      return status;
  }
}

inline Status Execution::choose(const Step &step, Stream stream) {
  size_t chosen = 0;
  if (step.choice.bytes == 1) {
    unsigned char holds = 0;
    if (Status status = download(step.choice, &holds, step, stream); !status.ok())
      return status;
    chosen = holds ? 0 : 1;
  } else {
    int32_t index = 0;
    if (Status status = download(step.choice, &index, step, stream); !status.ok())
      return status;
    chosen = index < 0 || size_t(index) >= step.parts.size() ? step.parts.size() - 1 : size_t(index);
  }
  return issue(step.parts[chosen], stream);
}

/// Waits for all work before it: what failed may be any kernel so far.
inline Status Execution::download(const Slice &slice, void *bytes, const Step &step, Stream stream) {
  int result = module->driver->copyToHost(bytes, address(slice), slice.bytes, stream);
  if (!result)
    result = module->driver->streamSynchronize(stream);
  return result ? module->driver->failure(result, "step `" + step.name + "`: reading back what decides it") : Status();
}

} // namespace hloc_launch
