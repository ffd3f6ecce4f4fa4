#pragma once
// Kernels of a module that are equal as emitted, but for names: one of them goes through passes and LLVM.
//
// Fusions whose computations are equal have one kernel by plan. These are others: instructions in another order, or
// kernels that sum parts of results which differ only in what is made of the sums. In a large model they are a third.

#include "llvm/ADT/StringMap.h"

#include "mlir/IR/BuiltinOps.h"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// Each kernel is one of the numbers below the number of kernels, and its functions are called from one thread at a
/// time; those of different kernels from any.
class EqualKernels {
public:
  explicit EqualKernels(size_t count) : kernels(count) {}

  /// Notes kernel `number` as emitted; `text` is its generic form. True if one noted before is equal: its PTX will do,
  /// unless `ptxOf` has none.
  bool isKnown(size_t number, llvm::StringRef name, mlir::ModuleOp emitted, llvm::StringRef text);

  /// The number of the first kernel that is equal; of a kernel that was not noted its own.
  size_t firstOf(size_t number) const { return kernels[number].first.value_or(number); }

  /// What `number` would be compiled to, given the PTX of the first that is equal. Nothing if something in it is named
  /// after a helper, whose name may be another.
  std::optional<std::string> ptxOf(size_t number, llvm::StringRef ptxOfFirst) const;

private:
  struct Kernel {
    std::string name;
    std::vector<std::string> helpers;
    std::optional<size_t> first;
  };
  std::vector<Kernel> kernels;
  std::mutex mutex;                ///< of the table
  llvm::StringMap<size_t> numbers; ///< by digests of texts without names
};

/// MLIR in generic form whose functions are called by their order in it: `@#0`. They are `functions`.
std::string withoutNames(llvm::StringRef text, llvm::ArrayRef<std::string> functions);

} // namespace hloc
