#pragma once
#include "hloc/hlo/HloEditor.h"

#include "llvm/ADT/Twine.h"

namespace hloc {

/// What a kernel computes on the way, at no cost but its own: elementwise ops, what moves elements, and structure.
bool isLight(const HloInstruction &instr);

/// Copies what `callee` computes of `arguments`, one for each parameter, in front of `before`, named
/// `<prefix>.<instruction>`; its result.
HloInstruction *placeComputation(const HloComputation &callee, llvm::ArrayRef<HloInstruction *> arguments,
                                 const llvm::Twine &prefix, HloInstruction &before, HloEditor &editor);

/// One more of `instr`, which may be in another computation and reads nothing but what is in this, with a name of its
/// own.
HloInstruction *placeAnother(const HloInstruction &instr, HloEditor &editor, HloInstruction *before);

} // namespace hloc
