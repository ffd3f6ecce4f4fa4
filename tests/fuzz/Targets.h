#pragma once
// What each fuzz target does with its bytes. A target fails by crashing, by a sanitizer report, or by HLOC_CHECK where
// a property does not hold (what was accepted must print and read back as the same thing).

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace hloc {

struct FuzzTarget {
  const char *name;
  void (*run)(llvm::StringRef bytes);
};

#define HLOC_FUZZ_TARGET(function, name) void function(llvm::StringRef bytes);
#include "fuzz/Targets.def"

llvm::ArrayRef<FuzzTarget> fuzzTargets();
const FuzzTarget *findFuzzTarget(llvm::StringRef name);

} // namespace hloc
