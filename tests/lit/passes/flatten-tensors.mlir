// RUN: hloc opt %s --hloc-flatten-tensors --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func @row_major(
// CHECK-SAME: %[[T:[^ :]*]]: tensor<32xf32>, %[[I:[^ :]*]]: index {{[^,]*, [^,]*}}, %[[J:[^ :]*]]: index
// CHECK-SAME: -> tensor<32xf32>
func.func @row_major(%t: tensor<4x8xf32>, %i: index {xla_gpu.range = [0 : index, 3 : index]}, %j: index {xla_gpu.range = [0 : index, 7 : index]}) -> tensor<4x8xf32> {
  // CHECK: %[[L:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]">(%[[I]], %[[J]])
  // CHECK: %[[X:.*]] = tensor.extract %[[T]][%[[L]]] : tensor<32xf32>
  %x = tensor.extract %t[%i, %j] : tensor<4x8xf32>
  // CHECK: tensor.insert %[[X]] into %[[T]][%{{.*}}] : tensor<32xf32>
  %r = tensor.insert %x into %t[%i, %j] : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// The layout decides the order of bytes: dimension 0 is the fastest here.
#layout = dense<[0, 1]> : tensor<2xi64>
// CHECK-LABEL: func @column_major(
func.func @column_major(%t: tensor<4x8xf32, #layout>, %i: index {xla_gpu.range = [0 : index, 3 : index]}, %j: index {xla_gpu.range = [0 : index, 7 : index]}) -> f32 {
  // CHECK: apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1 * 4), domain: d0 in [0, 3], d1 in [0, 7]">(%arg1, %arg2)
  %x = tensor.extract %t[%i, %j] : tensor<4x8xf32, #layout>
  return %x : f32
}

// Divisions that a delinearization made cancel.
#delinear = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]">
// CHECK-LABEL: func @cancels(
// CHECK-SAME: %[[T:[^ :]*]]: tensor<32xf32>, %[[I:[^ :]*]]: index
func.func @cancels(%t: tensor<4x8xf32>, %i: index {xla_gpu.range = [0 : index, 31 : index]}) -> f32 {
  // CHECK: tensor.extract %[[T]][%[[I]]] : tensor<32xf32>
  %k:2 = xla_gpu.apply_indexing #delinear(%i)
  %x = tensor.extract %t[%k#0, %k#1] : tensor<4x8xf32>
  return %x : f32
}

// Scalars, constants (the data follows the layout), loops, branches, calls, shared memory, atomics.
// CHECK-LABEL: func @others(
// CHECK-SAME: tensor<1xf32>
func.func @others(%s: tensor<f32>, %t: tensor<4x8xf32>, %i: index {xla_gpu.range = [0 : index, 1 : index]}, %c: i1) -> tensor<4x8xf32> {
  // CHECK: arith.constant dense<[1.000000e+00, 4.000000e+00, 2.000000e+00, 5.000000e+00, 3.000000e+00, 6.000000e+00]> : tensor<6xf32>
  %k = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32, #layout>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: tensor.extract %{{.*}}[%{{.*}}] : tensor<1xf32>
  %x = tensor.extract %s[] : tensor<f32>
  // CHECK: apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 3), domain: d0 in [0, 1]">
  %z = tensor.extract %k[%i, %i] : tensor<2x3xf32, #layout>
  // CHECK: scf.for {{.*}} -> (tensor<32xf32>)
  %r = scf.for %iv = %c0 to %c1 step %c1 iter_args(%acc = %t) -> (tensor<4x8xf32>) {
    // CHECK: scf.if %{{.*}} -> (tensor<32xf32>)
    %b = scf.if %c -> (tensor<4x8xf32>) {
      %n = tensor.insert %x into %acc[%i, %i] : tensor<4x8xf32>
      scf.yield %n : tensor<4x8xf32>
    } else {
      scf.yield %acc : tensor<4x8xf32>
    }
    scf.yield %b : tensor<4x8xf32>
  }
  // CHECK: pure_call @helper(%{{.*}}) : (tensor<32xf32>) -> f32
  %h = xla_gpu.pure_call @helper(%r) : (tensor<4x8xf32>) -> f32
  // CHECK: allocate_shared : tensor<1056xf32>
  %sh = xla_gpu.allocate_shared : tensor<32x33xf32>
  %sy = xla_gpu.sync_threads %sh : tensor<32x33xf32>
  // CHECK: atomic_rmw %{{.*}}[%{{.*}}] : tensor<32xf32>
  %a = xla_gpu.atomic_rmw %r[%i, %i] : tensor<4x8xf32> {
  ^bb0(%cur: f32):
    %n = arith.addf %cur, %h : f32
    xla_gpu.yield %n : f32
  }
  return %a : tensor<4x8xf32>
}
// CHECK: func private @helper(tensor<32xf32>) -> f32
func.func private @helper(tensor<4x8xf32>) -> f32

// CHECK-LABEL: func @copied(
// CHECK-SAME: %[[T:[^ :]*]]: tensor<32xf32>, %[[I:[^ :]*]]: index {{[^,]*, [^,]*}}, %[[J:[^ :]*]]: index
func.func @copied(%t: tensor<4x8xf32>, %i: index {xla_gpu.range = [0 : index, 3 : index]},
                  %j: index {xla_gpu.range = [0 : index, 7 : index]}) -> tensor<32xf32> {
  %s = xla_gpu.allocate_shared : tensor<32xf32>
  // CHECK: %[[AT:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1)
  // CHECK: xla_gpu.copy_async 1 of %[[T]][%[[AT]]] into %{{.*}}[%[[I]]] : tensor<32xf32>, tensor<32xf32>
  %c = xla_gpu.copy_async 1 of %t[%i, %j] into %s[%i] : tensor<4x8xf32>, tensor<32xf32>
  return %c : tensor<32xf32>
}
