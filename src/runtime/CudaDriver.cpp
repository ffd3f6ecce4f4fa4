#include "CudaDriver.h"

namespace hloc::cuda {

/// The first driver whose functions are all found under the names of CudaFunctions.def.
static constexpr int oldestVersion = 11000;

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::unique_ptr<Driver> Driver::open(const std::string &path, std::string &error) {
  std::unique_ptr<Driver> driver(new Driver(path.empty() ? "libcuda.so.1" : path));
  if (!driver->library.isOpen()) {
    error = "there is no CUDA driver here: " + driver->library.error() + "; HLOC_CUDA_DRIVER names another file";
    return nullptr;
  }
  if (!driver->findFunctions(error) || !driver->initialize(error))
    return nullptr;
  return driver;
}

bool Driver::findFunctions(std::string &error) {
  std::string missing;
#define HLOC_CUDA_FUNCTION(symbol, parameters)                                                                         \
  symbol = library.function<int parameters>(#symbol);                                                                  \
  if (!symbol)                                                                                                         \
    missing += (missing.empty() ? "" : ", ") + std::string(#symbol);
#define HLOC_CUDA_NEWER_FUNCTION(symbol, parameters) symbol = library.function<int parameters>(#symbol);
#include "CudaFunctions.def"
  if (missing.empty())
    return true;
  error = "the CUDA driver `" + name() + "` is too old or not one: it lacks " + missing;
  return false;
}

bool Driver::initialize(std::string &error) {
  int result = cuInit(0);
  if (result == NoDevice) {
    error = "the CUDA driver `" + name() + "` finds no device (CUDA_ERROR_NO_DEVICE)";
    return false;
  }
  if (!check(result, "initialising the CUDA driver `" + name() + "` (cuInit)", error) ||
      !check(cuDriverGetVersion(&cudaVersion), "asking for the CUDA driver's version (cuDriverGetVersion)", error))
    return false;
  if (cudaVersion >= oldestVersion)
    return true;
  error = "the CUDA driver `" + name() + "` is too old: it serves CUDA " + versionText(cudaVersion) + ", hloc needs " +
          versionText(oldestVersion);
  return false;
}

bool Driver::check(int result, const std::string &doing, std::string &error) {
  if (result == Success)
    return true;
  const char *errorName = nullptr, *text = nullptr;
  cuGetErrorName(result, &errorName);
  cuGetErrorString(result, &text);
  error = doing + ": " + (errorName ? errorName : "error " + std::to_string(result));
  if (text)
    error += std::string(" (") + text + ")";
  return false;
}

} // namespace hloc::cuda
