#pragma once

#include "hloc/codegen/LlvmStage.h"

namespace hloc {

/// Ends the process: with code 70 and a report, or with code 3 where the IR was the user's.
[[noreturn]] void endOnLlvmFailure(const LlvmFailure &failure);

} // namespace hloc
