#pragma once
// Control flow between kernels: loops and conditionals of the entry, and of the computations that these run.
//
//   ENTRY e { ... w = while(t), condition=c, body=b }    b { ... k = conditional(p, x, y), true_computation=u, ... }
//   control computations: e, c, b, u, ...; not what fusions, reductions and the like call, loops inside those included

#include "hloc/hlo/HloModule.h"

#include <vector>

namespace hloc {

/// A while or a conditional.
inline bool isControlFlow(const HloInstruction &instr) {
  return instr.opcode() == Opcode::While || instr.opcode() == Opcode::Conditional;
}

/// The entry and what control flow in one of these computations runs, in the order of the module, the entry last.
std::vector<HloComputation *> controlComputations(const HloModule &module);

} // namespace hloc
