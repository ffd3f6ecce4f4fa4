#pragma once
// What the target of a PTX text has: forms of instructions (Requirements.def) and static shared memory.
//
//   Target::parse("sm_90a, debug")               ->  {90, 'a'}
//   missing({80}, redux.sync.add.f32 ...)        ->  "sm_100a or sm_100f"

#include "hloc/emulator/Ptx.h"

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace hloc::emulator {

struct Target {
  unsigned architecture = 0; ///< 90 of sm_90a
  char suffix = 0;           ///< 'a', 'f' or none
  /// Nothing for a text that names no sm_ target: then nothing is known about what it may use.
  static std::optional<Target> parse(llvm::StringRef text);
  std::string name() const;
  /// Of one block, without dynamic shared memory.
  uint64_t maxStaticShared() const;
};

/// What would have the instruction, if the target has not.
std::optional<std::string> missing(const Target &target, const ptx::Instruction &instruction);

} // namespace hloc::emulator
