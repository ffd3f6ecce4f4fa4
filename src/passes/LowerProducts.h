#pragma once
// Products of a warpgroup's tiles in shared memory: wgmma, which LLVM knows no function for.

#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace hloc {

/// Of `op`, whose first factors are at these addresses of shared memory: the sums, which are known when they were
/// awaited.
llvm::SmallVector<mlir::Value> multiplyTiles(xla_gpu::MultiplyTilesOp op, mlir::Value lhs, mlir::Value rhs,
                                             mlir::OpBuilder &builder);
llvm::SmallVector<mlir::Value> multiplyHeld(xla_gpu::MultiplyHeldOp op, mlir::Value rhs, mlir::OpBuilder &builder);
/// Sums pass through a line behind the wait, so that nobody looks at them before.
llvm::SmallVector<mlir::Value> awaitProducts(xla_gpu::AwaitProductsOp op, mlir::OpBuilder &builder);
/// What the thread wrote to shared memory is seen by the asynchronous proxy.
void publishTiles(mlir::Location loc, mlir::OpBuilder &builder);

// --- barriers in shared memory and bulk copies; addresses of shared memory are pointers to it

void initBarriers(xla_gpu::InitBarriersOp op, mlir::Value barriers, mlir::OpBuilder &builder);
void arrive(xla_gpu::ArriveOp op, mlir::Value barrier, mlir::OpBuilder &builder);
void awaitPhase(xla_gpu::AwaitPhaseOp op, mlir::Value barrier, mlir::OpBuilder &builder);
void copyBox(xla_gpu::CopyBoxOp op, mlir::Value map, mlir::Value dest, mlir::Value barrier, mlir::OpBuilder &builder);
void setRegisters(xla_gpu::SetRegistersOp op, mlir::OpBuilder &builder);
void keep(xla_gpu::KeepOp op, mlir::OpBuilder &builder);
void syncCluster(mlir::Location loc, mlir::OpBuilder &builder);
/// Of the block's threads that come here, so many; `each`: groups of so many neighbours, each by itself.
void syncThreads(mlir::Location loc, int64_t threads, bool each, mlir::OpBuilder &builder);

} // namespace hloc
