#pragma once
// PTX on disk, by the MLIR it was made from: what comes after emission takes nine tenths of compiling a kernel.
//
// The key holds everything else that the PTX depends on: the program (size and time of its file), the target, the level
// of optimisation, libdevice. Locations are not in the MLIR's text, so that nobody may ask for line information. Files
// are those of CubinCache, beside the cubins.

#include "hloc/codegen/CubinCache.h"
#include "hloc/compiler/Compiler.h"

namespace hloc {

class KernelCache {
public:
  /// Nothing is found and nothing kept if the options name no folder, or if the program does not find its own file.
  KernelCache(const CompilerOptions &options, const Toolchain &toolchain, const TargetInfo &target);

  /// Of a kernel as emitted, in generic form; empty if there is no cache.
  std::string keyOf(llvm::StringRef emitted) const;
  std::optional<std::string> load(const std::string &key) const;
  void store(const std::string &key, const std::string &ptx) const;

private:
  CubinCache files;
  std::string circumstances; ///< empty: there is no cache
};

} // namespace hloc
