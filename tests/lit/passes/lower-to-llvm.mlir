// RUN: hloc opt %s --hloc-lower-to-llvm | FileCheck %s

module attributes {xla_gpu.index_bits = 32 : i32} {
  // The launch stays, what only passes read goes; ids are 32-bit reads with their range.
  // CHECK: llvm.func @k(%arg0: !llvm.ptr {llvm.noalias}) attributes {xla_gpu.block = array<i32: 64, 1, 1>, xla_gpu.entry, xla_gpu.grid = array<i32: 7, 1, 1>}
  func.func @k(%p: !llvm.ptr {llvm.noalias, xla_gpu.invariant})
      attributes {xla_gpu.entry, xla_gpu.block = array<i32: 64, 1, 1>, xla_gpu.grid = array<i32: 7, 1, 1>} {
    // CHECK: %[[T:.*]] = nvvm.read.ptx.sreg.tid.x range <i32, 0, 64> : i32
    // CHECK: %[[B:.*]] = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 7> : i32
    %t = gpu.thread_id x {xla_gpu.range = [0 : index, 63 : index]}
    %b = gpu.block_id x {xla_gpu.range = [0 : index, 6 : index]}
    // CHECK: llvm.add %[[T]], %[[B]] : i32
    %s = arith.addi %t, %b : index
    // CHECK: nvvm.barrier0
    gpu.barrier
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    %i = arith.index_cast %s : index to i32
    // CHECK: nvvm.shfl.sync down %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32 -> i32
    %v, %valid = gpu.shuffle down %i, %c16, %c32 : i32
    llvm.store %v, %p : i32, !llvm.ptr
    return
  }

  // Two words, which one instruction joins.
  // CHECK-LABEL: llvm.func @wide_shuffle(
  func.func @wide_shuffle(%w: i64) -> i64 {
    // CHECK-COUNT-2: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32 -> i32
    // CHECK: llvm.call_intrinsic "llvm.nvvm.lohi.i2d"(%{{.*}}, %{{.*}}) : (i32, i32) -> f64
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %v, %valid = gpu.shuffle xor %w, %c1, %c32 : i64
    return %v : i64
  }

  // CHECK-LABEL: llvm.func @warp(
  func.func @warp(%w: i32, %t: i1, %f: f32) -> (i32, i32, i1, i1, f32) {
    // CHECK: %[[ALL:.*]] = llvm.mlir.constant(-1 : i32)
    // CHECK: nvvm.redux.sync add %{{.*}}, %[[ALL]]
    %sum = gpu.subgroup_reduce add %w uniform : (i32) -> i32
    // CHECK: nvvm.redux.sync umin
    %least = gpu.subgroup_reduce minui %w uniform : (i32) -> i32
    // CHECK: nvvm.vote.sync all
    %all = gpu.subgroup_reduce and %t uniform : (i1) -> i1
    // CHECK: nvvm.vote.sync any
    %any = gpu.subgroup_reduce or %t uniform : (i1) -> i1
    // CHECK: nvvm.redux.sync fmax %{{.*}}, %{{.*}} {nan = true}
    %greatest = gpu.subgroup_reduce maximumf %f uniform : (f32) -> f32
    return %sum, %least, %all, %any, %greatest : i32, i32, i1, i1, f32
  }

  // An instruction, for which libdevice need not be read; f64 has none.
  // CHECK-LABEL: llvm.func @powers(
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%{{.*}}) : (f32) -> f32
  // CHECK: llvm.fpext %{{.*}} : f16 to f32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%{{.*}}) : (f32) -> f32
  // CHECK: llvm.call @__nv_exp2(%{{.*}}) : (f64) -> f64
  func.func @powers(%x: f32, %y: f16, %z: f64) -> (f32, f16, f64) {
    %a = math.exp2 %x : f32
    %b = math.exp2 %y : f16
    %c = math.exp2 %z : f64
    return %a, %b, %c : f32, f16, f64
  }
}
