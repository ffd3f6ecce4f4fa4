#pragma once

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace hloc {

/// math ops to the LLVM intrinsics NVPTX has an instruction for, and to libdevice calls otherwise. Never makes one of
/// the llvm.* intrinsics NVPTX gives up on (exp, log, pow, sin, ...). f16 and bf16 functions are computed in f32.
void populateMathToLlvmPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns);

} // namespace hloc
