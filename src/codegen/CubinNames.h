#pragma once
// Renaming the entry of a cubin.

#include "llvm/ADT/StringRef.h"

#include <string>

namespace hloc {

/// Replaces `from` by `to`, which must not be longer, in the names of an ELF file's sections and symbols, in place:
/// what is left over at the end of a string becomes zero bytes. False if `elf` is no 64-bit little-endian ELF file.
bool renameInElf(std::string &elf, llvm::StringRef from, llvm::StringRef to);

} // namespace hloc
