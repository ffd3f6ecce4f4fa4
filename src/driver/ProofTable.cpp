#include "ProofTable.h"

#include "fmt/format.h"

namespace hloc {

std::string printProofs(const Manifest &manifest, DiagnosticEngine &diagnostics) {
  size_t nameWidth = 6;
  for (const KernelSpec &kernel : manifest.kernels)
    nameWidth = std::max(nameWidth, kernel.name.size());
  std::string out = fmt::format("{:<{}} {:<20}", "kernel", nameWidth, "emitter");
  for (unsigned i = 0; i < numProofProperties; ++i)
    out += fmt::format(" {:<{}}", text(ProofProperty(i)), i + 1 == numProofProperties ? 0 : 12);
  out += "\n";
  for (const KernelSpec &kernel : manifest.kernels) {
    std::string marks, reasons;
    for (const PropertyProof &proof : kernel.proofs) {
      const bool isLast = &proof == &kernel.proofs.back();
      marks += fmt::format(" {:<{}}", text(proof.verdict), isLast ? 0 : 12);
      const std::string where = proof.witness ? ": " + proof.witness->toString() : "";
      if (!proof.reason.empty())
        reasons += fmt::format("  {}: {}{}\n", text(proof.property), proof.reason, where);
      if (proof.verdict == ProofVerdict::Refuted)
        diagnostics.report(DiagnosticKind::ProofRefuted,
                           fmt::format("kernel `{}`: `{}` does not hold: {}{}", kernel.name, text(proof.property),
                                       proof.reason, where));
    }
    out += fmt::format("{:<{}} {:<20}{}\n", kernel.name, nameWidth, kernel.hero.empty() ? "-" : kernel.hero, marks) +
           reasons;
  }
  return out;
}

} // namespace hloc
