#pragma once
// The reference interpreter: what an HLO module computes on one device, written to be read and trusted, not to be fast.
//
//   FailureOr<Literal> result = interpret(*module, {x, y}, diagnostics);
//
// Numerics: src/interp/README.md. The module must have passed the verifier. What has no meaning on one device alone
// (collectives, host transfer, unknown custom calls) or is dynamic in shape is refused with a located diagnostic.

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/WorkProgress.h"

#include "llvm/Support/LogicalResult.h"

namespace hloc {

struct InterpreterOptions {
  /// Arrays alive at one time may take this many bytes; more is refused (`unsupported-feature`).
  uint64_t maxBytes = uint64_t(8) << 30;
  /// A `while` that has taken this many steps is given up (`unsupported-feature`).
  uint64_t maxLoopSteps = uint64_t(1) << 24;
  /// Seed of `rng` and first state of `rng-get-and-update-state`, the ops whose values HLO leaves open.
  uint64_t seed = 0;
  /// Indices that break what their gather or scatter promises of them are refused (`broken-promise`).
  bool checksPromises = false;
  /// Counts operations on elements, if given.
  WorkProgress *progress = nullptr;
};

/// Runs the entry computation. One argument per parameter, compatible with its shape (layouts do not matter: literals
/// are logical). The result has the shape of the entry's root.
llvm::FailureOr<Literal> interpret(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                   DiagnosticEngine &diagnostics, const InterpreterOptions &options = {});

/// Same for any computation of a module.
llvm::FailureOr<Literal> interpret(const HloComputation &computation, llvm::ArrayRef<Literal> arguments,
                                   DiagnosticEngine &diagnostics, const InterpreterOptions &options = {});

/// A gather or scatter that promises something of several indices: that they are unique or sorted.
bool makesPromises(const HloInstruction &instr);

/// Why the interpreter does not evaluate this opcode; null if it does.
const char *interpreterRefusal(Opcode opcode);

} // namespace hloc
