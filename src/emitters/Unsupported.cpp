#include "emitters/Unsupported.h"

namespace hloc {

static llvm::LogicalResult refuse(DiagnosticKind kind, const HloInstruction &instr, const llvm::Twine &what,
                                  DiagnosticEngine &diagnostics) {
  diagnostics.report(kind, instr.range(), (what + " is not supported in a kernel").str());
  return llvm::failure();
}

llvm::LogicalResult unsupportedOpcode(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  return refuse(DiagnosticKind::UnsupportedOpcode, instr, "opcode `" + text(instr.opcode()) + "`", diagnostics);
}

llvm::LogicalResult unsupportedFeature(const HloInstruction &instr, const llvm::Twine &what,
                                       DiagnosticEngine &diagnostics) {
  return refuse(DiagnosticKind::UnsupportedFeature, instr, what, diagnostics);
}

llvm::LogicalResult unsupportedType(const HloInstruction &instr, const llvm::Twine &what,
                                    DiagnosticEngine &diagnostics) {
  return refuse(DiagnosticKind::UnsupportedType, instr, what, diagnostics);
}

} // namespace hloc
