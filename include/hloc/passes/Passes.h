#pragma once
// The passes between emitted MLIR and LLVM dialect, one file a pass in src/passes (what each does: Passes.td).
// The pipeline that puts them in order is hloc/codegen/Pipeline.h.

#include "hloc/dialect/XlaGpu.h"

#include "mlir/Pass/Pass.h"

namespace mlir {
class DialectRegistry;
namespace NVVM {
class NVVMDialect;
}
} // namespace mlir

namespace hloc {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// The dialects a kernel may consist of at any stage, and what inlining and lowering them needs. For the context of
/// whoever builds or parses kernels.
void registerKernelDialects(mlir::DialectRegistry &registry);
/// The dialect that only the last pass makes, for whoever parses what it has made.
void registerNvvmDialect(mlir::DialectRegistry &registry);

} // namespace hloc
