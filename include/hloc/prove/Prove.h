#pragma once
// Proofs about a kernel, from the dialect as emitted: whoever breaks a plan, a map or an emitter is refuted before
// anything is lowered or run.
//
//   KernelSpec spec = describeKernel(...);
//   KernelProof proof = proveKernel(*emitKernel(...), spec);
//   proof.properties[unsigned(ProofProperty::InBounds)].verdict
//
// `proved` holds for all inputs. `refuted` comes with a witness whose indices and conditions were computed at that very
// thread. What depends on values in memory, or is beyond what is decided in bounded time, is `unknown`.

#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/Proofs.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>

namespace hloc {

struct KernelProof {
  std::array<PropertyProof, numProofProperties> properties; ///< in the order of ProofProperty
  /// Positions, among the kernel's parameters, of outputs that it writes nothing of: another kernel has to.
  std::vector<unsigned> untouched;
};

/// `emitted`: a module as emitKernel leaves it. `spec`: the launch and the parameters of its entry.
/// `filled`: positions of
/// parameters whose memory somebody else writes, too: a copy or a kernel before it.
KernelProof proveKernel(mlir::ModuleOp emitted, const KernelSpec &spec, llvm::ArrayRef<unsigned> filled = {});

} // namespace hloc
