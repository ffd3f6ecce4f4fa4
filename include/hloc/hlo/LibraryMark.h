#pragma once
// The mark of a call of cuBLAS or cuDNN that stays a call: a step of kind library, instead of ops (decisions/0023).

#include "hloc/hlo/HloInstruction.h"

namespace hloc {

inline Attribute libraryMarkAttribute() {
  return {AttributeKey::FrontendAttributes, llvm::StringRef("{hloc_library=\"call\"}")};
}

/// The same of a convolution of f32 whose factors may be rounded to tf32.
inline Attribute tf32LibraryMarkAttribute() {
  return {AttributeKey::FrontendAttributes, llvm::StringRef("{hloc_library=\"call\",hloc_library_f32=\"tf32\"}")};
}

/// One of the attributes that other readers of HLO pass on.
inline bool hasLibraryMark(const HloInstruction &instr) {
  return instr.opcode() == Opcode::CustomCall &&
         instr.string(AttributeKey::FrontendAttributes).contains("hloc_library=\"call\"");
}

inline bool hasTf32LibraryMark(const HloInstruction &instr) {
  return hasLibraryMark(instr) && instr.string(AttributeKey::FrontendAttributes).contains("hloc_library_f32=\"tf32\"");
}

} // namespace hloc
