// RUN: hloc opt %s --hloc-vectorize-loads-stores --mlir-print-local-scope | FileCheck %s

// Through div and mod: a vector that starts at a multiple of 4 never leaves a bucket of 64.
#swizzled = #xla_gpu.indexing_map<"(d0, d1) -> (((d0 * 4 + d1) floordiv 64) * 128 + (d0 * 4 + d1) mod 64), domain: d0 in [0, 63], d1 in [0, 3]">
// CHECK-LABEL: func @through_div(
func.func @through_div(%t: tensor<512xf32>, %out: tensor<512xf32>, %i: index {xla_gpu.range = [0 : index, 63 : index]}) -> tensor<512xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // CHECK: %[[BASE:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> {{.*}}, domain: d0 in [0, 63]">
  // CHECK: %[[V:.*]] = vector.transfer_read %{{.*}}[%[[BASE]]], %{{.*}} {in_bounds = [true]} : tensor<512xf32>, vector<4xf32>
  // CHECK: %[[LOOP:.*]]:2 = scf.for %[[IV:.*]] = {{.*}} iter_args(%[[T:.*]] = %{{.*}}, %[[ACC:.*]] = %{{.*}}) -> (tensor<512xf32>, vector<4xf32>)
  // CHECK:   vector.extract %[[V]][%[[IV]]]
  // CHECK:   %[[N:.*]] = vector.insert %{{.*}}, %[[ACC]] [%[[IV]]]
  // CHECK:   scf.yield %[[T]], %[[N]]
  // CHECK: vector.transfer_write %[[LOOP]]#1, %{{.*}}[%{{.*}}] {in_bounds = [true]} : vector<4xf32>, tensor<512xf32>
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %out) -> (tensor<512xf32>) {
    %k = xla_gpu.apply_indexing #swizzled(%i, %iv)
    %x = tensor.extract %t[%k] : tensor<512xf32>
    %y = arith.negf %x : f32
    %n = tensor.insert %y into %acc[%k] : tensor<512xf32>
    scf.yield %n : tensor<512xf32>
  }
  return %r : tensor<512xf32>
}

// A vector of 4 may cross a bucket of 6; odd starts have no vector; the iv must step by one.
#crosses = #xla_gpu.indexing_map<"(d0, d1) -> (((d0 * 4 + d1) floordiv 6) * 8 + (d0 * 4 + d1) mod 6), domain: d0 in [0, 31], d1 in [0, 3]">
#odd = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 3 + d1), domain: d0 in [0, 31], d1 in [0, 3]">
#strided = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1 * 2), domain: d0 in [0, 31], d1 in [0, 3]">
// CHECK-LABEL: func @not_consecutive(
// CHECK-NOT: vector
func.func @not_consecutive(%t: tensor<512xf32>, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %z: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %z) -> (f32) {
    %k0 = xla_gpu.apply_indexing #crosses(%i, %iv)
    %k1 = xla_gpu.apply_indexing #odd(%i, %iv)
    %k2 = xla_gpu.apply_indexing #strided(%i, %iv)
    %x0 = tensor.extract %t[%k0] : tensor<512xf32>
    %x1 = tensor.extract %t[%k1] : tensor<512xf32>
    %x2 = tensor.extract %t[%k2] : tensor<512xf32>
    %a = arith.addf %acc, %x0 : f32
    %b = arith.addf %a, %x1 : f32
    %c = arith.addf %b, %x2 : f32
    scf.yield %c : f32
  }
  return %r : f32
}

// Broadcast: the same element for all iterations is loaded once, as a scalar. A tensor written in the loop stays.
#bucket = #xla_gpu.indexing_map<"(d0, d1) -> ((d0 * 4 + d1) floordiv 8), domain: d0 in [0, 31], d1 in [0, 3]">
#unit = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 31], d1 in [0, 3]">
// CHECK-LABEL: func @broadcast(
func.func @broadcast(%t: tensor<16xf32>, %out: tensor<128xf32>, %i: index {xla_gpu.range = [0 : index, 31 : index]}) -> tensor<128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // CHECK: tensor.extract %{{.*}} : tensor<16xf32>
  // CHECK: scf.for
  // CHECK-NOT: tensor<16xf32>
  // CHECK: tensor.extract %{{.*}} : tensor<128xf32>
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %out) -> (tensor<128xf32>) {
    %k = xla_gpu.apply_indexing #bucket(%i, %iv)
    %x = tensor.extract %t[%k] : tensor<16xf32>
    %l = xla_gpu.apply_indexing #unit(%i, %iv)
    %own = tensor.extract %acc[%l] : tensor<128xf32>
    %s = arith.addf %x, %own : f32
    %n = tensor.insert %s into %acc[%l] : tensor<128xf32>
    scf.yield %n : tensor<128xf32>
  }
  return %r : tensor<128xf32>
}

// Three elements that start anywhere even: pairs are worth it. Packed elements must fill bytes.
#even = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 6 + d1), domain: d0 in [0, 31], d1 in [0, 5]">
// CHECK-LABEL: func @six(
// CHECK: vector.transfer_read {{.*}} vector<6xf16>
// CHECK: vector.transfer_read {{.*}} vector<6xi4>
// CHECK-NOT: vector.transfer_read
func.func @six(%h: tensor<192xf16>, %n: tensor<192xi4>, %b: tensor<192xi2>, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %z: i4, %y: f16, %w: i2) -> (f16, i4, i2) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %r:3 = scf.for %iv = %c0 to %c6 step %c1 iter_args(%p = %y, %q = %z, %s = %w) -> (f16, i4, i2) {
    %k = xla_gpu.apply_indexing #even(%i, %iv)
    %x0 = tensor.extract %h[%k] : tensor<192xf16>
    %x1 = tensor.extract %n[%k] : tensor<192xi4>
    %x2 = tensor.extract %b[%k] : tensor<192xi2>
    %a = arith.addf %p, %x0 : f16
    %b0 = arith.addi %q, %x1 : i4
    %c = arith.addi %s, %x2 : i2
    scf.yield %a, %b0, %c : f16, i4, i2
  }
  return %r#0, %r#1, %r#2 : f16, i4, i2
}
