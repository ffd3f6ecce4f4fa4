#pragma once
// Which xla_gpu calls may be inlined at all; whether it pays is decided by the pass (passes/Inline.cpp).

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
