#pragma once
// Control flow between kernels: loops and conditionals of the entry, and of the computations that these run.
//
//   ENTRY e { ... w = while(t), condition=c, body=b }    b { ... k = conditional(p, x, y), true_computation=u, ... }
//   control computations: e, c, b, u, ...; not what fusions, reductions and the like call, loops inside those included

#include "hloc/hlo/HloModule.h"

#include <optional>
#include <vector>

namespace hloc {

/// A while or a conditional.
inline bool isControlFlow(const HloInstruction &instr) {
  return instr.opcode() == Opcode::While || instr.opcode() == Opcode::Conditional;
}

/// The entry and what control flow in one of these computations runs, in the order of the module, the entry last.
std::vector<HloComputation *> controlComputations(const HloModule &module);

/// How often a loop goes round, where its `backend_config` says so: {"known_trip_count":{"n":"8"}}, as XLA has it.
std::optional<uint64_t> knownTripCount(const HloInstruction &loop);
/// The `backend_config` of a loop that goes round so often, beside what it says already.
std::string withTripCount(const HloInstruction &loop, uint64_t count);

} // namespace hloc
