#pragma once
#include "hloc/hlo/HloInstruction.h"

#include <optional>

namespace hloc {

/// How often a while goes round, where a counter of its state tells; whatever its text says of it.
std::optional<uint64_t> countRounds(const HloInstruction &loop);

} // namespace hloc
