#pragma once

#include "hloc/hlo/Opcode.h"

namespace hloc {

/// Why no kernel contains this opcode, one clause; null if kernels do. For `--list-ops`; what decides is the emitter.
const char *kernelRefusal(Opcode opcode);

} // namespace hloc
