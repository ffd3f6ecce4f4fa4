#pragma once
// Names from HLO as names of other things. HLO takes nearly every character in a name; PTX, MLIR and file systems do
// not.

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace hloc {

/// `name` as an identifier of PTX and MLIR: `fusion.1` becomes `fusion_1`, `7x` becomes `k_7x`. Different names may
/// become equal.
std::string identifierOf(llvm::StringRef name);

/// `name` as the name of one file or folder, which no character of it leaves: `a/b` becomes `a_b`, `..` becomes `_..`.
std::string fileNameOf(llvm::StringRef name);

/// Gives every name once: `f`, then `f_1`, `f_2`, ...
class UniqueNames {
public:
  std::string unique(llvm::StringRef name);

private:
  llvm::StringSet<> taken;
};

} // namespace hloc
