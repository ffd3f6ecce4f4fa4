#pragma once
#include "hloc/hlo/CloneComputations.h"
#include "hloc/hlo/HloEditor.h"

namespace hloc {

/// What a kernel computes on the way, at no cost but its own: elementwise ops, what moves elements, and structure.
bool isLight(const HloInstruction &instr);

/// One more of `instr`, which may be in another computation and reads nothing but what is in this, with a name of its
/// own.
HloInstruction *placeAnother(const HloInstruction &instr, HloEditor &editor, HloInstruction *before);

} // namespace hloc
