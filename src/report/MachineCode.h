#pragma once
// Machine code as text, where NVIDIA's disassembler is.

#include "IrText.h"

#include "hloc/codegen/Toolchain.h"

#include <map>
#include <string>
#include <vector>

namespace hloc {

/// Instructions and labels of each kernel of a cubin, as nvdisasm prints them, with the lines of `hloFile` that they
/// were made for. Empty without nvdisasm, and if it does not take the cubin.
std::map<std::string, std::vector<ShownLine>> disassemble(const std::string &cubin, llvm::StringRef hloFile,
                                                          const Toolchain &toolchain);

/// What nvdisasm has printed.
std::map<std::string, std::vector<ShownLine>> machineCodeOf(llvm::StringRef printed, llvm::StringRef hloFile);

} // namespace hloc
