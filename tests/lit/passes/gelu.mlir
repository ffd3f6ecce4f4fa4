// RUN: hloc opt %s --hloc-pipeline | FileCheck %s
// A bf16 gelu as emitted: one 16-byte load and one 16-byte store a thread, no division, no memory in between.

#map = #xla_gpu.indexing_map<"(th_x, bl_x)[s0] -> ((bl_x * 1024 + th_x * 8 + s0) floordiv 2097152, ((bl_x * 1024 + th_x * 8 + s0) floordiv 4096) mod 512, (bl_x * 1024 + th_x * 8 + s0) mod 4096), domain: th_x in [0, 127], bl_x in [0, 12287], s0 in [0, 7]">
!t = tensor<6x512x4096xbf16>

func.func @gelu(%in: !t {xla_gpu.slice_index = 0 : index, xla_gpu.invariant, llvm.align = 16 : index, llvm.dereferenceable = 25165824 : index},
                %out: !t {xla_gpu.slice_index = 1 : index, llvm.align = 16 : index, llvm.dereferenceable = 25165824 : index}) -> !t
    attributes {xla_gpu.entry, xla_gpu.block = array<i32: 128, 1, 1>, xla_gpu.grid = array<i32: 12288, 1, 1>} {
  %t = gpu.thread_id x {xla_gpu.range = [0 : index, 127 : index]}
  %b = gpu.block_id x {xla_gpu.range = [0 : index, 12287 : index]}
  %r = xla_gpu.loop (%t, %b)[%s] -> (%i, %j, %k) in #map iter_args(%acc = %out) -> (!t) {
    %v = xla_gpu.pure_call @gelu_body(%in, %i, %j, %k) : (!t, index, index, index) -> bf16
    %n = tensor.insert %v into %acc[%i, %j, %k] : !t
    xla_gpu.yield %n : !t
  }
  return %r : !t
}
func.func private @gelu_body(%in: !t, %i: index {xla_gpu.range = [0 : index, 5 : index]}, %j: index {xla_gpu.range = [0 : index, 511 : index]}, %k: index {xla_gpu.range = [0 : index, 4095 : index]}) -> bf16 {
  %x = tensor.extract %in[%i, %j, %k] : !t
  %f = arith.extf %x : bf16 to f32
  %c0 = arith.constant 4.471500e-02 : f32
  %c1 = arith.constant 0.797884583 : f32
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %x2 = arith.mulf %f, %f fastmath<contract> : f32
  %x3 = arith.mulf %x2, %f fastmath<contract> : f32
  %p = arith.mulf %x3, %c0 fastmath<contract> : f32
  %q = arith.addf %f, %p fastmath<contract> : f32
  %u = arith.mulf %q, %c1 fastmath<contract> : f32
  %th = math.tanh %u : f32
  %w = arith.addf %th, %one fastmath<contract> : f32
  %h = arith.mulf %f, %half fastmath<contract> : f32
  %y = arith.mulf %h, %w fastmath<contract> : f32
  %z = arith.truncf %y : f32 to bf16
  return %z : bf16
}

// CHECK: llvm.func @gelu(%[[IN:.*]]: !llvm.ptr {llvm.align = 16 : index, {{.*}}llvm.noalias
// CHECK-NOT: llvm.udiv
// CHECK-NOT: llvm.urem
// CHECK: llvm.load {{.*}} invariant {alignment = 16 : i64} : !llvm.ptr -> vector<8xbf16>
// CHECK-NOT: llvm.load
// CHECK-COUNT-8: llvm.fptrunc
// CHECK-NOT: llvm.udiv
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr
// CHECK-NOT: llvm.store
// CHECK-NOT: llvm.func
