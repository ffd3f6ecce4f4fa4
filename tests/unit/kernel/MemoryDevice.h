#pragma once
// A device that only keeps bytes and whose kernels are functions, by name.

#include "hloc/kernel/Device.h"

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hloc::test {

class MemoryDevice : public Device {
public:
  /// Of the arguments of a launch, in order.
  using Kernel = std::function<void(const std::vector<uint8_t *> &)>;

  std::vector<std::vector<uint8_t>> buffers;
  std::map<std::string, Kernel> kernels; ///< a launch of any other fails, with its name as the error
  std::vector<std::string> launched;

  uint8_t *at(const BufferSlice &slice) { return buffers[slice.buffer].data() + slice.offset; }

  bool load(const std::string &, std::string &) override { return true; }
  bool allocate(const DeviceBuffer &buffer, std::string &) override {
    buffers.emplace_back(buffer.bytes);
    return true;
  }
  bool reset(std::string &) override { return true; }
  bool upload(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &) override {
    std::memcpy(buffers[buffer].data(), bytes, numBytes);
    return true;
  }
  bool address(const BufferSlice &slice, uint64_t &result, std::string &) override {
    result = reinterpret_cast<uintptr_t>(at(slice));
    return true;
  }
  bool download(const BufferSlice &slice, void *bytes, std::string &) override {
    std::memcpy(bytes, at(slice), slice.bytes);
    return true;
  }
  bool copy(const CopyStep &copy, std::string &) override {
    std::memcpy(at(copy.to), at(copy.from), copy.from.bytes);
    return true;
  }
  bool fill(const FillStep &fill, std::string &) override {
    std::memset(at(fill.to), fill.value, fill.to.bytes);
    return true;
  }
  bool launch(const DeviceLaunch &launch, std::string &error) override {
    launched.push_back(launch.kernel.name);
    auto kernel = kernels.find(launch.kernel.name);
    if (kernel == kernels.end()) {
      error = launch.kernel.name;
      return false;
    }
    std::vector<uint8_t *> arguments;
    for (const auto &argument : launch.step.arguments)
      arguments.push_back(at(std::get<BufferSlice>(argument)));
    kernel->second(arguments);
    return true;
  }
  bool synchronize(std::string &) override { return true; }
  bool time(const std::function<bool()> &, double &, std::string &) override { return false; }
};

} // namespace hloc::test
