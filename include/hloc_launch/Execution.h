#pragma once
// The steps of a module, issued one by one.

#include "Module.h"

namespace hloc_launch {

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
  friend class Graph;
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
  Status parameters(const Kernel &kernel, std::vector<DevicePointer> &values, std::vector<void *> &pointers);
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
  std::vector<void *> pointers;
  for (const Slice &slice : step.slices)
    values.push_back(address(slice));
  if (Status status = parameters(kernel, values, pointers); !status.ok())
    return status;
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
        module->driver->launchKernelEx(&configuration, module->functions[step.kernel], pointers.data(), nullptr);
    return result ? module->driver->failure(result, "launching kernel `" + kernel.name + "` (cuLaunchKernelEx)")
                  : Status();
  }
  const int result =
      module->driver->launchKernel(module->functions[step.kernel], grid[0], grid[1], grid[2], block[0], block[1],
                                   block[2], kernel.dynamicSharedBytes, stream, pointers.data(), nullptr);
  return result ? module->driver->failure(result, "launching kernel `" + kernel.name + "` (cuLaunchKernel)") : Status();
}

/// What the driver takes: `pointers` to `values`, the address of each parameter, or to tensor maps of these.
inline Status Execution::parameters(const Kernel &kernel, std::vector<DevicePointer> &values,
                                    std::vector<void *> &pointers) {
  if (maps.size() > mostMaps)
    maps.clear();
  for (size_t i = 0; i < values.size(); ++i) {
    pointers.push_back(&values[i]);
    if (const auto &map = kernel.parameters[i].map) {
      EncodedMap *encoded = nullptr;
      if (Status status = encode(kernel, *map, values[i], encoded); !status.ok())
        return status;
      pointers.back() = encoded;
    }
  }
  return {};
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
