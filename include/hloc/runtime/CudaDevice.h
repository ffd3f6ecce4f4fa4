#pragma once
// An NVIDIA GPU as a Device, through the CUDA driver opened at run time: a program that includes this starts on
// machines without a GPU, a driver or the toolkit, and says so when asked to open one.
//
//   std::string error;
//   std::unique_ptr<CudaDevice> device = CudaDevice::open({}, error);   // null: `error` says what was looked for
//   device->load(ptxOrCubin, error) && device->allocate(...) && device->launch(...) && device->synchronize(error)

#include "hloc/kernel/Device.h"

#include <memory>
#include <string>
#include <vector>

namespace hloc {

struct CudaOptions {
  /// Path or file name of the driver library; empty: libcuda.so.1. Messages say that hloc takes it from
  /// HLOC_CUDA_DRIVER.
  std::string driver;
  int ordinal = 0; ///< which device, as CUDA_VISIBLE_DEVICES leaves them
  /// Files of cuBLASLt and cuDNN, opened at the first call of them; empty: by their names of all versions that are
  /// known, where the loader looks and in `libraryFolders`. Messages say that hloc takes them from HLOC_CUBLASLT and
  /// HLOC_CUDNN.
  std::string cublasLt = {}, cudnn = {};
  std::vector<std::string> libraryFolders = {};
};

/// Uses the device's primary context, one stream and one module. Buffers that nobody has written are filled with 0xA5,
/// as the emulator does, so that results which a kernel forgot are the same wrong bytes in every run.
class CudaDevice : public Device {
public:
  static std::unique_ptr<CudaDevice> open(const CudaOptions &options, std::string &error);
  ~CudaDevice() override;

  /// PTX is compiled by the driver; its log is part of `error`.
  bool load(const std::string &image, std::string &error) override;
  bool allocate(const DeviceBuffer &buffer, std::string &error) override;
  /// Variables of the module keep their values.
  bool reset(std::string &error) override;
  bool upload(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &error) override;
  bool address(const BufferSlice &slice, uint64_t &result, std::string &error) override;
  bool download(const BufferSlice &slice, void *bytes, std::string &error) override;
  bool copy(const CopyStep &copy, std::string &error) override;
  bool fill(const FillStep &fill, std::string &error) override;
  bool launch(const DeviceLaunch &launch, std::string &error) override;
  bool call(const CallStep &call, std::string &error) override;
  /// Opens the libraries that the steps call, which is done at their first call otherwise.
  bool openLibraries(const Steps &steps, std::string &error);
  bool synchronize(std::string &error) override;
  bool time(const std::function<bool()> &work, double &milliseconds, std::string &error) override;
  bool isTooOld() const override;

  const std::string &name() const;       ///< `NVIDIA H200`
  std::string target() const;            ///< `sm_90`, by the compute capability
  const std::string &driverName() const; ///< library that was opened
  int driverVersion() const;             ///< 1000 * major + 10 * minor of the CUDA version it serves

private:
  friend class CudaGraph;
  CudaDevice();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hloc
