// RUN: hloc opt %s --hloc-peel-loops --mlir-print-local-scope | FileCheck %s

// The example of the pass: seven unchecked iterations, then the last one with a check that does not need s0.
#one = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 125], s0 in [0, 7], d0 * 8 + s0 in [0, 1006]">
// CHECK-LABEL: func @last_iteration
func.func @last_iteration(%d: index, %t: tensor<1008xf32>, %v: f32) -> tensor<1008xf32> {
  // CHECK: %[[MAIN:.*]] = xla_gpu.loop {{.*}} in #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 125], s0 in [0, 6]"> iter_args(%{{.*}} = %arg1)
  // CHECK: xla_gpu.loop {{.*}} in #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 8 + 7), domain: d0 in [0, 124], s0 in [7, 7]"> iter_args(%{{.*}} = %[[MAIN]])
  // CHECK-NOT: xla_gpu.loop
  %r = xla_gpu.loop (%d)[%s] -> (%i) in #one iter_args(%acc = %t) -> (tensor<1008xf32>) {
    %n = tensor.insert %v into %acc[%i] : tensor<1008xf32>
    xla_gpu.yield %n : tensor<1008xf32>
  }
  return %r : tensor<1008xf32>
}

// Dropping one iteration does not free the others; and what has no constraint has nothing to peel.
#many = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 125], s0 in [0, 7], d0 * 8 + s0 in [0, 1001]">
#none = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 125], s0 in [0, 7]">
// CHECK-LABEL: func @nothing_to_gain
// CHECK-COUNT-2: xla_gpu.loop
// CHECK-NOT: xla_gpu.loop
func.func @nothing_to_gain(%d: index, %x: index) -> index {
  %r = xla_gpu.loop (%d)[%s] -> (%i) in #many iter_args(%a = %x) -> (index) {
    xla_gpu.yield %i : index
  }
  %q = xla_gpu.loop (%d)[%s] -> (%i) in #none iter_args(%a = %r) -> (index) {
    xla_gpu.yield %i : index
  }
  return %q : index
}

// Nor is a loop with a ring's barriers in it, which is nearly all of a kernel.
#turns = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 * 126 + d0), domain: d0 in [0, 125], s0 in [0, 7], s0 * 126 + d0 in [0, 1006]">
// CHECK-LABEL: func @ring
// CHECK: xla_gpu.loop {{.*}} s0 in [0, 7]
// CHECK-NOT: xla_gpu.loop
func.func @ring(%d: index, %x: index, %p: i32, %b: tensor<4xi64>) -> index {
  %r = xla_gpu.loop (%d)[%s] -> (%i) in #turns iter_args(%a = %x) -> (index) {
    xla_gpu.await_phase %b[%a], %p : tensor<4xi64>
    xla_gpu.yield %i : index
  }
  return %r : index
}
