#pragma once

#include "hloc/hlo/HloInstruction.h"

#include <string>

namespace hloc {

/// Why no kernel contains this opcode, one clause; null if kernels do. For `--list-ops`; what decides is the emitter.
const char *kernelRefusal(Opcode opcode);
/// The same as a message about an instruction, `otherwise` where its opcode is none that kernels refuse. Of a custom
/// call it names the target.
std::string kernelRefusal(const HloInstruction &instr, const char *otherwise = "");

} // namespace hloc
