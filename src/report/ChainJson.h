#pragma once
// What led to a wrong element, for the page.

#include "hloc/run/ValueChain.h"

#include "llvm/Support/JSON.h"

namespace hloc {

/// Attributes of the object that `json` is in.
void writeChain(llvm::json::OStream &json, const ValueChain &chain);

} // namespace hloc
