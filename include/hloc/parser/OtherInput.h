#pragma once
// What an input is that is no HLO text: other forms of programs, and files that are no text at all.

#include "llvm/ADT/StringRef.h"

#include <string>

namespace hloc {

/// What it is and how to come by what hloc reads, as a sentence; empty if nothing is recognised, as of HLO text.
///
///   "\x7f" "ELF..."   ->   "this is an ELF file, such as a cubin or a program, not HLO text"
std::string otherInput(llvm::StringRef text);

/// Of text that is read as MLIR: StableHLO, which is MLIR of dialects that hloc does not have.
std::string otherMlir(llvm::StringRef text);

} // namespace hloc
