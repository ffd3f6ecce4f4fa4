#pragma once
// What a CudaDevice consists of, for those who make more of it than steps issued to a stream.

#include "CublasLt.h"
#include "CudaDriver.h"
#include "Cudnn.h"
#include "TensorMaps.h"

#include "hloc/runtime/CudaDevice.h"

#include <map>

namespace hloc {

struct CudaAllocation {
  std::string name;
  uint64_t bytes = 0;
  cuda::DevicePointer address = 0;
  bool isPart = false; ///< of memory that is freed with another
};

struct CudaDevice::Impl {
  std::unique_ptr<cuda::Driver> driver;
  cuda::DeviceHandle device = 0;
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  cuda::Event begin = nullptr, end = nullptr;
  cuda::Module module = nullptr;
  std::string name, lastWork; ///< lastWork: "kernel `k`"
  int major = 0, minor = 0, maxShared = 0;
  std::vector<CudaAllocation> buffers;
  CudaAllocation shared;   ///< of the temporaries that have places in it
  uint64_t generation = 0; ///< of the buffers: another one once any has been allocated or freed
  unsigned loads = 0;      ///< modules so far
  bool tooOld = false;

  bool check(int result, const std::string &doing, std::string &error) { return driver->check(result, doing, error); }
  bool openDevice(int ordinal, std::string &error);
  bool openContext(std::string &error);
  bool readAttribute(int attribute, int &value, std::string &error) {
    return check(driver->cuDeviceGetAttribute(&value, attribute, device),
                 "asking the device for attribute " + std::to_string(attribute) + " (cuDeviceGetAttribute)", error);
  }
  /// Work before this call may be what failed: kernels run after the call that launches them has returned.
  std::string after(const std::string &doing) const { return lastWork.empty() ? doing : doing + " after " + lastWork; }
  bool address(const BufferSlice &slice, cuda::DevicePointer &result, std::string &error);
  bool prepareFunction(cuda::Function function, const DeviceKernel &launched, std::string &error);
  /// The function, prepared: once for each kernel of a program, for launches to cost the host as little as they can.
  bool functionOf(const DeviceKernel &kernel, cuda::Function &function, std::string &error);
  /// The bytes of each argument: addresses and tensor maps of the buffers as they are now.
  bool argumentsOf(const LaunchStep &launch, std::vector<std::string> &arguments, std::string &error);
  bool fill(const std::vector<AddressPiece> &pieces, std::string &bytes, std::string &error);
  /// Asks for clusters that not every device has, where the kernel has such.
  bool allowClusters(const DeviceKernel &kernel, cuda::Function function, std::string &error);
  bool launchExtended(const DeviceKernel &kernel, cuda::Function function, void **parameters, std::string &error);
  struct Prepared {
    cuda::Function function;
    uint64_t threads;
    uint32_t sharedBytes;
  };
  std::map<std::string, Prepared> functions; ///< by kernel, as each was launched last
  cuda::TensorMaps tensorMaps;
  CudaOptions options;
  // Once something has called them.
  std::unique_ptr<CublasLt> cublasLt;
  std::unique_ptr<Cudnn> cudnn;
  bool openLibrary(const CallStep &call, std::string &error);
};

} // namespace hloc
