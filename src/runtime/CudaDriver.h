#pragma once
// The driver library with every function that is used found, or the reason why it cannot be used.

#include "CudaApi.h"
#include "CudaGraphApi.h"
#include "hloc/support/DynamicLibrary.h"

#include <memory>
#include <string>

namespace hloc::cuda {

class Driver {
public:
  /// Opens `path`, or what CudaOptions::driver says for an empty one, finds every symbol, and initialises it.
  static std::unique_ptr<Driver> open(const std::string &path, std::string &error);

  /// True for Success; else `error` becomes "DOING: NAME (text)".
  bool check(int result, const std::string &doing, std::string &error);

  const std::string &name() const { return library.name(); }
  int version() const { return cudaVersion; }

#define HLOC_CUDA_FUNCTION(symbol, parameters) int(*symbol) parameters = nullptr;
#include "CudaFunctions.def"

private:
  explicit Driver(const std::string &path) : library({path}) {}
  bool findFunctions(std::string &error);
  bool initialize(std::string &error);

  DynamicLibrary library;
  int cudaVersion = 0;
};

/// "12.4" of 12040.
std::string versionText(int version);

} // namespace hloc::cuda
