#pragma once
// `backend_config` of custom calls, which is JSON.

#include "llvm/Support/JSON.h"

namespace hloc {

/// The object that the text is; an empty one if it is none.
llvm::json::Object readBackendConfig(llvm::StringRef text);

} // namespace hloc
