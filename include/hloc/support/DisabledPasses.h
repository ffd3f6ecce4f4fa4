#pragma once
// Passes that are not to run, by name: to find out which one a mistake goes away without.
//
//   cse, cse#2, mlir:cse        all runs of the pass; the second; those of one stage (hlo, mlir, llvm) alone
//
// Without an optimisation kernels are slower; without a pass that later ones rely on there are none.

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace hloc {

struct DisabledPasses {
  std::vector<std::string> names;

  bool empty() const { return names.empty(); }
  /// `id`: the name, with a number if the pass runs more than once.
  bool has(llvm::StringRef stage, llvm::StringRef name, llvm::StringRef id = "") const {
    return llvm::any_of(names, [&](llvm::StringRef one) {
      if (auto [ofStage, rest] = one.split(':'); !rest.empty()) {
        if (ofStage != stage)
          return false;
        one = rest;
      }
      return one == name || (!id.empty() && one == id);
    });
  }
  bool operator==(const DisabledPasses &) const = default;
};

} // namespace hloc
