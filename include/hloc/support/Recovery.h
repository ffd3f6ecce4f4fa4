#pragma once
// Where a call of the library goes on when what it did can neither go on nor return: after a mistake of ours or in
// LLVM, which would end the program. Programs have no such place, and end.

#include "hloc/support/ExitCode.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <string>

namespace hloc {

/// Why `work` came to no end.
struct GivenUp {
  ExitCode code = ExitCode::InternalError;
  std::string what;
};

/// Runs `work` in this thread. What it holds when it is given up stays held: memory, and locks.
std::optional<GivenUp> runRecoverably(llvm::function_ref<void()> work);

/// Whether this thread is inside runRecoverably.
bool isRecoverable();

/// Ends the innermost runRecoverably of this thread; returns where there is none.
void giveUp(GivenUp why);

} // namespace hloc
