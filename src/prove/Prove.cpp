#include "hloc/prove/Prove.h"

#include "prove/Properties.h"

namespace hloc {

using namespace prove;

KernelProof proveKernel(mlir::ModuleOp emitted, const KernelSpec &spec, llvm::ArrayRef<unsigned> filled) {
  KernelProof proof;
  auto property = [&](ProofProperty which) -> PropertyProof & { return proof.properties[unsigned(which)]; };
  if (spec.grid.count() == 0 || spec.grid.count() != spec.grid.x || spec.block.count() != spec.block.x) {
    for (unsigned i = 0; i < numProofProperties; ++i)
      proof.properties[i] = unknownProof(ProofProperty(i), "the launch is not of blocks and threads along x");
    return proof;
  }
  KernelAccesses kernel = accessesOf(emitted, spec);
  if (!kernel.unknown.empty()) {
    for (unsigned i = 0; i < numProofProperties; ++i)
      proof.properties[i] = unknownProof(ProofProperty(i), kernel.unknown);
    return proof;
  }
  property(ProofProperty::FitsWidth) = proveFitsWidth(kernel);
  property(ProofProperty::InBounds) = proveInBounds(kernel);
  PropertyProof &once = property(ProofProperty::WrittenOnce);
  once = proveWrittenOnce(kernel, spec, filled, proof.untouched);
  property(ProofProperty::Ordered) = proveOrdered(kernel, once.verdict == ProofVerdict::Proved);
  property(ProofProperty::BarriersReached) = proveBarriersReached(kernel);
  // What others rest on: indices that are what they are said to be, in every loop; and elements that are those of their
  // dimensions.
  auto restsOn = [&](ProofProperty which, ProofProperty base) {
    if (property(which).verdict == ProofVerdict::Proved && property(base).verdict != ProofVerdict::Proved)
      property(which) = unknownProof(which, "as " + std::string(text(base)) + " is not proved");
  };
  restsOn(ProofProperty::WrittenOnce, ProofProperty::InBounds);
  restsOn(ProofProperty::Ordered, ProofProperty::InBounds);
  for (unsigned i = 0; i < numProofProperties; ++i)
    restsOn(ProofProperty(i), ProofProperty::FitsWidth);
  return proof;
}

} // namespace hloc
