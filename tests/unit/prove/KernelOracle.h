#pragma once
// A kernel's indices carried out, thread by thread: what the prover says is compared with what happens. It knows
// nothing of how the prover goes about it.

#include "hloc/kernel/KernelSpec.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <string>

namespace hloc::testing {

struct Happened {
  bool decided = true;    ///< no index and no condition depends on values of memory
  bool untouched = false; ///< nothing is written of some output
  /// By ProofProperty: what was wrong first; empty: nothing.
  std::array<std::string, 5> wrong;
};

/// `filled`: as proveKernel has it.
Happened carryOut(mlir::ModuleOp module, const KernelSpec &spec, llvm::ArrayRef<unsigned> filled);

} // namespace hloc::testing
