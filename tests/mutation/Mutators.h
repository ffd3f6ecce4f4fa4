#pragma once
// Mistakes that a compiler could make, put into PTX on purpose: each mutant is one instruction changed or left out.
//
//   setp.gt.u32 %p1, %r1, 719;   ->  widen-bound: setp.gt.u32 %p1, %r1, 720;

#include "hloc/emulator/Ptx.h"

#include <optional>
#include <string>
#include <vector>

namespace hloc::mutation {

struct Mutant {
  std::string mutation; ///< `drop-barrier`, `shift-address`, ...
  size_t function = 0, statement = 0;
  uint32_t line = 0;                           ///< of the instruction in the text that was mutated
  std::optional<ptx::Instruction> replacement; ///< nothing: the instruction is left out

  ptx::Module apply(ptx::Module module) const;
};

/// All mutants of a module in order of lines, the same for the same module.
std::vector<Mutant> mutantsOf(const ptx::Module &module);

/// Whether a failed run has failed for a reason that fits the mutation. `symptom` is a finding's name or `mismatch`.
bool explains(const std::string &mutation, const std::string &symptom);

} // namespace hloc::mutation
