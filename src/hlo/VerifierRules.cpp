#include "hloc/hlo/Verifier.h"

#include <iterator>

namespace hloc {

namespace {

struct RuleRow {
  llvm::StringRef label;
  DiagnosticKind kind;
  llvm::StringRef sentence;
};

const RuleRow rows[] = {
#define HLOC_RULE(label, kind, sentence) {#label, DiagnosticKind::kind, sentence},
#include "hloc/hlo/VerifierRules.def"
};

} // namespace

llvm::StringRef text(VerifierRule rule) { return rows[static_cast<size_t>(rule)].label; }
llvm::StringRef sentence(VerifierRule rule) { return rows[static_cast<size_t>(rule)].sentence; }
DiagnosticKind kindOf(VerifierRule rule) { return rows[static_cast<size_t>(rule)].kind; }
unsigned numVerifierRules() { return std::size(rows); }

} // namespace hloc
