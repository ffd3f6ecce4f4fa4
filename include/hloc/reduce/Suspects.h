#pragma once
// Which of the passes that a compilation can do without is to blame? The one without which all is well.
//
//   {cse, licm, vectorize}     without licm: wrong   without vectorize: right   ->  vectorize
//
// Without what gives a wrong pass its chance all is well, too: of several the last is to blame, as of those it is the
// one behind which nothing has to go wrong any more.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>
#include <vector>

namespace hloc {

struct Blame {
  std::vector<std::string> guilty;   ///< one, or several none of which alone is enough; empty: none of them is to blame
  std::vector<std::string> alsoHide; ///< without one of these all is well as well
};

/// Says for each set of names whether all is well without them.
using WithoutThese = llvm::function_ref<std::vector<bool>(llvm::ArrayRef<std::vector<std::string>> sets)>;

/// `suspects` in the order in which they run.
Blame findBlame(llvm::ArrayRef<std::string> suspects, WithoutThese isWell);

} // namespace hloc
