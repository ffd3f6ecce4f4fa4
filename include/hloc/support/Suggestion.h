#pragma once
// "did you mean ...?"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace hloc {

/// The name at the smallest edit distance; of equally near ones the first in the alphabet. Empty if none is near:
/// within two changes, or a quarter of the letters, and no more than half of them.
llvm::StringRef nearestName(llvm::StringRef wanted, llvm::ArrayRef<llvm::StringRef> names);

/// "; did you mean `near`?", or nothing.
std::string suggestion(llvm::StringRef near);

} // namespace hloc
