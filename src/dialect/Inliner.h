#pragma once
// What MLIR's inliner may do with xla_gpu calls: paste helpers in where that lets later passes share or vectorize work,
// without letting kernels with thousands of helpers explode.

#include "mlir/Transforms/InliningUtils.h"

namespace hloc::xla_gpu {

struct CallInliner : mlir::DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(mlir::Operation *call, mlir::Operation *callable, bool wouldBeCloned) const final;
  /// Ops of this dialect may be inlined anywhere.
  bool isLegalToInline(mlir::Operation *, mlir::Region *, bool, mlir::IRMapping &) const final { return true; }
  bool isLegalToInline(mlir::Region *, mlir::Region *, bool, mlir::IRMapping &) const final { return true; }
};

} // namespace hloc::xla_gpu
