#pragma once
// cuBLASLt, opened at run time, with every function that is used found, or the reason why it cannot be used.

#include "CublasLtApi.h"
#include "CudaApi.h"
#include "hloc/kernel/LibraryCall.h"
#include "hloc/support/DynamicLibrary.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hloc {

class CublasLt {
  using Handle = cublaslt::Handle;
  using MatmulDesc = cublaslt::MatmulDesc;
  using MatrixLayout = cublaslt::MatrixLayout;
  using Preference = cublaslt::Preference;
  using Algorithm = cublaslt::Algorithm;
  using HeuristicResult = cublaslt::HeuristicResult;

public:
  /// `path`: its file; empty: by name, where the loader looks and in `folders`. Needs a current CUDA context.
  static std::unique_ptr<CublasLt> open(const std::string &path, const std::vector<std::string> &folders,
                                        std::string &error);
  ~CublasLt();

  /// Queues the product. `reads`: a, b, then c and the bias where there are; `writes`: d, workspace. The algorithm is
  /// the library's first choice, and kept for later calls of the same configuration with memory of the same alignment.
  bool multiply(const MatmulCall &call, const std::string &configuration, const std::vector<cuda::DevicePointer> &reads,
                const std::vector<cuda::DevicePointer> &writes, uint64_t workspaceBytes, cuda::Stream stream,
                std::string &error);

private:
  /// A call with all that the library has to know of it.
  struct Prepared {
    MatmulDesc desc = nullptr;
    MatrixLayout a = nullptr, b = nullptr, c = nullptr, d = nullptr;
    HeuristicResult algorithm = {};
  };

  explicit CublasLt(const std::vector<std::string> &names) : library(names) {}
  bool findFunctions(std::string &error);
  bool check(int status, const std::string &doing, std::string &error) const;
  void release(Prepared &made) const;
  bool makeLayout(const MatmulCall &call, const MatmulCall::Matrix &matrix, MatrixLayout &layout, std::string &error);
  bool describe(const MatmulCall &call, Prepared &made, std::string &error);
  bool choose(const MatmulCall &call, const std::vector<uint32_t> &alignments, uint64_t workspaceBytes, Prepared &made,
              std::string &error);

#define HLOC_CUBLASLT_FUNCTION(symbol, result, parameters) result(*symbol) parameters = nullptr;
#include "CublasLtFunctions.def"

  DynamicLibrary library;
  Handle handle = nullptr;
  std::map<std::string, Prepared> prepared; ///< by configuration and alignments
};

} // namespace hloc
