#pragma once
// What the search asks of opcodes: which of them can be part of a larger kernel, and for which the hero is asked for.

#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/Opcode.h"

#include <optional>

namespace hloc {

enum class PartOfKernel : uint8_t { Never, IfArray, Always };
/// Does an instruction decide, or help to decide, which hero makes a kernel that it is part of?
enum class DecidesHero : uint8_t {
  No,
  IfLayoutChanges, ///< of a copy
  Yes,
};

struct OpcodeRole {
  PartOfKernel part = PartOfKernel::Never;
  DecidesHero decides = DecidesHero::No;
  std::optional<Hero> own; ///< that alone makes it well, or in place
};
OpcodeRole roleOf(Opcode opcode);

} // namespace hloc
