#pragma once
// The five properties, each over the accesses of a kernel.

#include "prove/Accesses.h"
#include "prove/Decide.h"

#include "hloc/prove/Prove.h"

namespace hloc::prove {

PropertyProof proveWrittenOnce(KernelAccesses &kernel, const KernelSpec &spec, llvm::ArrayRef<unsigned> filled,
                               std::vector<unsigned> &untouched);
PropertyProof proveInBounds(const KernelAccesses &kernel);
/// `writtenOnce`: whether that is proved.
PropertyProof proveOrdered(KernelAccesses &kernel, bool writtenOnce);
PropertyProof proveFitsWidth(const KernelAccesses &kernel);
PropertyProof proveBarriersReached(const KernelAccesses &kernel);

inline PropertyProof unknownProof(ProofProperty property, std::string reason) {
  return {property, ProofVerdict::Unknown, std::move(reason), std::nullopt};
}

/// The thread at a point.
ProofWitness::Place placeAt(const KernelAccesses &kernel, const Point &point);

} // namespace hloc::prove
