#pragma once
// The verifier: does a module mean something? Every rule has a label (VerifierRules.def) that diagnostics name and
// src/hlo/SEMANTICS.md explains. Layouts of intermediate results are free, as in dumps of scheduled modules.
//
//   bad.hlo:4:3: error: add: operand shapes `f32[4]` and `f32[5]` differ in their dimensions [shape-mismatch]
//     bad.hlo: note: rule `binary_c1`: Both operands have the same dimensions; there is no implicit broadcast.

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace hloc {

class HloComputation;
class HloModule;

enum class VerifierRule : uint8_t {
#define HLOC_RULE(label, kind, sentence) label,
#include "hloc/hlo/VerifierRules.def"
};

llvm::StringRef text(VerifierRule rule);     ///< the label
llvm::StringRef sentence(VerifierRule rule); ///< what must hold
DiagnosticKind kindOf(VerifierRule rule);
unsigned numVerifierRules();

/// Reports every instruction, computation and header attribute that breaks a rule (the first rule of each). True if
/// there was none. A module that passes can be interpreted or compiled without further checks of shapes and attributes;
/// what hloc does not support is for those stages to say.
bool verify(const HloModule &module, DiagnosticEngine &diagnostics);

/// The rules of single instructions alone, of a computation that may lack others: a text with errors elsewhere. What it
/// calls must be complete.
bool verifyInstructions(const HloComputation &computation, DiagnosticEngine &diagnostics);

} // namespace hloc
