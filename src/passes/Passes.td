// The passes of the kernel pipeline, in pipeline order. codegen/Pipeline.cpp puts them together.
#ifndef HLOC_PASSES
#define HLOC_PASSES

include "mlir/Pass/PassBase.td"

def Inline : Pass<"hloc-inline", "::mlir::ModuleOp"> {
  let summary = "Pastes helpers into the functions that call them, and merges what is equal";
}

def PeelLoops : Pass<"hloc-peel-loops", "::mlir::func::FuncOp"> {
  let summary = "Splits the last iteration off xla_gpu.loop where that frees the rest of its bounds check";
}

def LowerXlaGpuToScf : Pass<"hloc-lower-xla-gpu-to-scf", "::mlir::func::FuncOp"> {
  let summary = "xla_gpu.loop, predicated accesses and shuffle_reduce to scf and gpu.shuffle";
  let description = [{
    A loop becomes a nest of scf.for; each constraint becomes an scf.if as far out as the range variables it mentions
    allow, so that a check that does not depend on the inner loop is outside of it. A reduction of a whole warp's
    numbers is one gpu.subgroup_reduce where the hardware has it.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::complex::ComplexDialect"];
  let options = [Option<"computeCapability", "sm", "int64_t", "90", "compute capability times ten">,
                 Option<"reducesFloats", "float-redux", "bool", "false", "redux.sync takes f32: sm_100a, sm_103a">];
}

def Cse : Pass<"hloc-cse", "::mlir::ModuleOp"> {
  let summary = "Equal expressions are computed once";
}

def PropagateSliceIndices : Pass<"hloc-propagate-slice-indices", "::mlir::ModuleOp"> {
  let summary = "Gives the arguments of helpers the buffer identity of what the entry passes them";
}

def FlattenTensors : Pass<"hloc-flatten-tensors", "::mlir::ModuleOp"> {
  let summary = "Every tensor becomes rank 1 in the order of its bytes; layouts disappear";
  let dependentDialects = ["::hloc::xla_gpu::XlaGpuDialect", "::mlir::arith::ArithDialect"];
}

def VectorizeLoadsStores : Pass<"hloc-vectorize-loads-stores", "::mlir::func::FuncOp"> {
  let summary = "Consecutive accesses of a loop become vector.transfer_read and transfer_write";
  let description = [{
    A load or store moves out of a loop 0..n if its index is base + iv on the whole domain, whatever divisions it went
    through. The vector has all n elements; lower-tensors splits it by what the true alignment of `base` allows.
  }];
  let dependentDialects = ["::mlir::vector::VectorDialect", "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def OptimizeLoops : Pass<"hloc-optimize-loops", "::mlir::func::FuncOp"> {
  let summary = "Unrolls loops with few or cheap iterations";
  let options = [Option<"maxUnrollFactor", "max-unroll-factor", "int64_t", "8",
                        "loops of up to this many iterations are unrolled completely">];
}

def JoinBranches : Pass<"hloc-join-branches", "::mlir::func::FuncOp"> {
  let summary = "Branches on one condition become one branch";
}

def ConvertPureCall : Pass<"hloc-convert-pure-call", "::mlir::func::FuncOp"> {
  let summary = "xla_gpu.pure_call to func.call";
}

def LowerTensors : Pass<"hloc-lower-tensors", "::mlir::ModuleOp"> {
  let summary = "Tensors as handles to pointers: loads, stores, atomics, shared memory, constants";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::complex::ComplexDialect"];
  let options = [Option<"maxVectorBytes", "max-vector-bytes", "int64_t", "16", "widest access of one thread">,
                 Option<"computeCapability", "sm", "int64_t", "90", "compute capability times ten">];
}

def MergePointersToSameSlice : Pass<"hloc-merge-pointers-to-same-slice", "::mlir::ModuleOp"> {
  let summary = "Arguments that are the same buffer become one value; the others get llvm.noalias";
}

def LowerIndex : Pass<"hloc-lower-index", "::mlir::ModuleOp"> {
  let summary = "apply_indexing to unsigned arithmetic, 32 bit wherever the ranges fit";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def Fold : Pass<"hloc-fold", "::mlir::ModuleOp"> {
  let summary = "Ops whose results are operands, constants or known otherwise disappear";
  let description = [{
    Every op once, in order. What is left for canonicalization by MLIR are patterns, which cost ten times as much.
  }];
}

def ConvertComplexToStandard : Pass<"hloc-convert-complex-to-standard", "::mlir::ModuleOp"> {
  let summary = "Complex arithmetic to that of the parts, where there is any";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def ExpandFloats : Pass<"hloc-expand-floats", "::mlir::ModuleOp"> {
  let summary = "Conversions from and to 8, 6 and 4 bit floats, by instruction or by integer arithmetic";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"computeCapability", "sm", "int64_t", "90", "compute capability times ten">];
}

def ExpandMath : Pass<"hloc-expand-math", "::mlir::ModuleOp"> {
  let summary = "Elementary functions to arithmetic and the few intrinsics the hardware has";
  let description = [{
    `afn` says that the result is rounded to bf16 (of exp, also to f16), `arcp` on a division of f32 that its operands
    are numbers of f16 and its result is rounded to a type that narrow. Divisions of bf16 become arithmetic of f32 that rounds
    as the exact quotient does.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"computeCapability", "sm", "int64_t", "90", "compute capability times ten">];
}

def LowerToLlvm : Pass<"hloc-lower-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Everything that is left to the LLVM and NVVM dialects";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif
