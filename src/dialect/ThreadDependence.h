#pragma once
// Which values differ between the threads of a block, as far as the function shows: what is computed from thread or
// lane ids, or comes out of a shuffle, does. Arguments of functions do not, nor does memory at an index that does not.
//
//   %c = arith.cmpi ult, %thread, %n : index     depends on the thread
//   scf.if %c { xla_gpu.sync_threads }           not all threads get there: some wait for ever

#include "mlir/IR/Operation.h"

namespace hloc::xla_gpu {

/// The innermost op around `op`, within its function, that only some threads of a block may enter, or not equally
/// often; null if all threads of a block execute `op` together. With `warps`: null, too, if all threads of a warp do,
/// as far as loops over whole warps show it.
mlir::Operation *threadDependentAncestor(mlir::Operation *op, bool warps = false);

} // namespace hloc::xla_gpu
