#pragma once
// Kernels as the pass pipeline leaves them, for tests of the stages after it.

namespace hloc::tests {

/// gelu, 4 elements of bf16 a thread: 8-byte loads and stores, tanh from libdevice.
inline constexpr const char *geluMlir = R"(
module {
  llvm.func @__nv_tanhf(f32) -> f32
  llvm.func @gelu(%in: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 25165824 : i64},
                  %out: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 25165824 : i64})
      attributes {xla_gpu.block = array<i32: 128, 1, 1>, xla_gpu.grid = array<i32: 24576, 1, 1>} {
    %half = llvm.mlir.constant(dense<5.0e-01> : vector<4xf32>) : vector<4xf32>
    %one = llvm.mlir.constant(dense<1.0> : vector<4xf32>) : vector<4xf32>
    %c0 = llvm.mlir.constant(dense<4.47150e-02> : vector<4xf32>) : vector<4xf32>
    %c1 = llvm.mlir.constant(dense<7.978845e-01> : vector<4xf32>) : vector<4xf32>
    %four = llvm.mlir.constant(4 : i32) : i32
    %block = llvm.mlir.constant(128 : i32) : i32
    %i0 = llvm.mlir.constant(0 : i32) : i32
    %i1 = llvm.mlir.constant(1 : i32) : i32
    %i2 = llvm.mlir.constant(2 : i32) : i32
    %i3 = llvm.mlir.constant(3 : i32) : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %ctaid = nvvm.read.ptx.sreg.ctaid.x : i32
    %base = llvm.mul %ctaid, %block : i32
    %thread = llvm.add %base, %tid : i32
    %index = llvm.mul %thread, %four : i32
    %from = llvm.getelementptr inbounds %in[%index] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    %to = llvm.getelementptr inbounds %out[%index] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    %loaded = llvm.load %from invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
    %x = llvm.fpext %loaded : vector<4xbf16> to vector<4xf32>
    %x2 = llvm.fmul %x, %x : vector<4xf32>
    %x3 = llvm.fmul %x2, %x : vector<4xf32>
    %a = llvm.fmul %x3, %c0 : vector<4xf32>
    %b = llvm.fadd %x, %a : vector<4xf32>
    %c = llvm.fmul %b, %c1 : vector<4xf32>
    %e0 = llvm.extractelement %c[%i0 : i32] : vector<4xf32>
    %e1 = llvm.extractelement %c[%i1 : i32] : vector<4xf32>
    %e2 = llvm.extractelement %c[%i2 : i32] : vector<4xf32>
    %e3 = llvm.extractelement %c[%i3 : i32] : vector<4xf32>
    %t0 = llvm.call @__nv_tanhf(%e0) : (f32) -> f32
    %t1 = llvm.call @__nv_tanhf(%e1) : (f32) -> f32
    %t2 = llvm.call @__nv_tanhf(%e2) : (f32) -> f32
    %t3 = llvm.call @__nv_tanhf(%e3) : (f32) -> f32
    %v = llvm.mlir.poison : vector<4xf32>
    %v0 = llvm.insertelement %t0, %v[%i0 : i32] : vector<4xf32>
    %v1 = llvm.insertelement %t1, %v0[%i1 : i32] : vector<4xf32>
    %v2 = llvm.insertelement %t2, %v1[%i2 : i32] : vector<4xf32>
    %v3 = llvm.insertelement %t3, %v2[%i3 : i32] : vector<4xf32>
    %d = llvm.fadd %v3, %one : vector<4xf32>
    %e = llvm.fmul %x, %half : vector<4xf32>
    %f = llvm.fmul %e, %d : vector<4xf32>
    %r = llvm.fptrunc %f : vector<4xf32> to vector<4xbf16>
    llvm.store %r, %to {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr
    llvm.return
  }
}
)";

/// out[i] = OP(in[i]) with one thread an element and a table in global memory; OP is a line of LLVM dialect that
/// defines %r from %x, both f32.
inline constexpr const char *unaryHead = R"(
module {
  llvm.mlir.global private constant @table.0(dense<[1.0, 2.0, 3.0, 5.0]> : tensor<4xf32>) {addr_space = 0 : i32} : !llvm.array<4 x f32>
  llvm.func @unary(%in: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64}, %out: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64})
      attributes {xla_gpu.block = array<i32: 64, 1, 1>, xla_gpu.grid = array<i32: 3, 1, 1>} {
    %three = llvm.mlir.constant(3 : i32) : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %tidy = nvvm.read.ptx.sreg.tid.y : i32
    %index = llvm.add %tid, %tidy : i32
    %from = llvm.getelementptr inbounds %in[%index] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %to = llvm.getelementptr inbounds %out[%index] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %which = llvm.and %index, %three : i32
    %address = llvm.mlir.addressof @table.0 : !llvm.ptr
    %entry = llvm.getelementptr inbounds %address[0, %which] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<4 x f32>
    %t = llvm.load %entry : !llvm.ptr -> f32
    %y = llvm.load %from : !llvm.ptr -> f32
    %x = llvm.fadd %y, %t : f32
)";
inline constexpr const char *unaryTail = R"(
    llvm.store %r, %to : f32, !llvm.ptr
    llvm.return
  }
}
)";

} // namespace hloc::tests
