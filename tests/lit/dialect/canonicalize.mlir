// RUN: hloc opt %s --canonicalize --mlir-print-local-scope | FileCheck %s

#add = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0, 4, d0), domain: d0 in [0, 15], s0 in [0, 3]">
// CHECK-LABEL: func @constants(
// CHECK-SAME: %[[I:[^ :]*]]: index
func.func @constants(%i: index {xla_gpu.range = [0 : index, 15 : index]}) -> (index, index, index) {
  %c3 = arith.constant 3 : index
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG: %[[R:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 2 + 3), domain: d0 in [0, 15]">(%[[I]])
  %r:3 = xla_gpu.apply_indexing #add(%i)[%c3]
  // CHECK: return %[[R]], %[[C4]], %[[I]]
  return %r#0, %r#1, %r#2 : index, index, index
}

#seven = #xla_gpu.indexing_map<"(d0) -> (d0 + 7), domain: d0 in [0, 15]">
#mod = #xla_gpu.indexing_map<"(d0) -> (d0 mod 8), domain: d0 in [0, 30]">
// CHECK-LABEL: func @compose_single_use
func.func @compose_single_use(%i: index {xla_gpu.range = [0 : index, 15 : index]}) -> index {
  // CHECK: apply_indexing #xla_gpu.indexing_map<"(d0) -> ((d0 + 7) mod 8), domain: d0 in [0, 15]">
  // CHECK-NOT: apply_indexing
  %a = xla_gpu.apply_indexing #seven(%i)
  %b = xla_gpu.apply_indexing #mod(%a)
  return %b : index
}

#linear = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 7], d1 in [0, 63]">
#delinear = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 64, d0 mod 64), domain: d0 in [0, 511]">
// CHECK-LABEL: func @reshapes_cancel(
// CHECK-SAME: %[[I:[^ :]*]]: index {{.*}}, %[[J:[^ :]*]]: index
func.func @reshapes_cancel(%i: index {xla_gpu.range = [0 : index, 7 : index]}, %j: index {xla_gpu.range = [0 : index, 63 : index]}) -> (index, index, index) {
  // CHECK: %[[L:.*]] = xla_gpu.apply_indexing
  // CHECK-NOT: apply_indexing
  // CHECK: return %[[I]], %[[J]], %[[L]]
  %l = xla_gpu.apply_indexing #linear(%i, %j)
  %d:2 = xla_gpu.apply_indexing #delinear(%l)
  return %d#0, %d#1, %l : index, index, index
}

#same = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 - d1 * 3), domain: d0 in [0, 7], d1 in [0, 7]">
// CHECK-LABEL: func @equal_operands(
// CHECK-SAME: %[[I:[^ :]*]]: index
func.func @equal_operands(%i: index {xla_gpu.range = [0 : index, 7 : index]}) -> index {
  // CHECK: return %[[I]]
  %r = xla_gpu.apply_indexing #same(%i, %i)
  return %r : index
}

// The producer has another user and the composition is no smaller: both stay.
#div = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 3), domain: d0 in [0, 15]">
#pair = #xla_gpu.indexing_map<"(d0) -> (d0 * 7 + d0 mod 2), domain: d0 in [0, 5]">
// CHECK-LABEL: func @shared_producer
func.func @shared_producer(%i: index {xla_gpu.range = [0 : index, 15 : index]}) -> (index, index) {
  // CHECK-COUNT-2: apply_indexing
  %a = xla_gpu.apply_indexing #div(%i)
  %b = xla_gpu.apply_indexing #pair(%a)
  return %a, %b : index, index
}

#loop = #xla_gpu.indexing_map<"(d0, d1, d2)[s0] -> (d0 + s0 + d1), domain: d0 in [0, 28], d1 in [0, 0], d2 in [0, 3], s0 in [0, 3]">
#times4 = #xla_gpu.indexing_map<"(d0) -> (d0 * 4), domain: d0 in [0, 7]">
// CHECK-LABEL: func @loop_dims(
// CHECK-SAME: %[[T:[^ :]*]]: index {xla_gpu.range = [0 : index, 7 : index]}
func.func @loop_dims(%t: index {xla_gpu.range = [0 : index, 7 : index]}, %z: index {xla_gpu.range = [0 : index, 0 : index]},
                     %unused: index {xla_gpu.range = [0 : index, 3 : index]}, %x: index) -> index {
  // CHECK: xla_gpu.loop (%[[T]])[%{{.*}}] -> (%{{.*}}) in #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 7], s0 in [0, 3]">
  %k = xla_gpu.apply_indexing #times4(%t)
  %r = xla_gpu.loop (%k, %z, %unused)[%s] -> (%i) in #loop iter_args(%a = %x) -> (index) {
    %n = arith.addi %a, %i : index
    xla_gpu.yield %n : index
  }
  return %r : index
}

// A dimension that guards the loop stays, even if nothing else uses it.
#guard = #xla_gpu.indexing_map<"(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 3]">
// CHECK-LABEL: func @guard(
// CHECK: xla_gpu.loop (%{{.*}})[%{{.*}}] -> (%{{.*}}) in #xla_gpu.indexing_map<"(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 3]">
func.func @guard(%t: index {xla_gpu.range = [0 : index, 7 : index]}, %x: index) -> index {
  %r = xla_gpu.loop (%t)[%s] -> (%i) in #guard iter_args(%a = %x) -> (index) {
    %n = arith.addi %a, %i : index
    xla_gpu.yield %n : index
  }
  return %r : index
}

// CHECK-LABEL: func @predicated(
// CHECK-SAME: %[[T:[^ :]*]]: tensor<8xf32>
func.func @predicated(%t: tensor<8xf32>, %i: index, %v: f32) -> (tensor<8xf32>, tensor<8xf32>, f32, f32) {
  %yes = arith.constant true
  %no = arith.constant false
  // CHECK: %[[N:.*]] = tensor.insert
  // CHECK: %[[E:.*]] = tensor.extract
  // CHECK: return %[[N]], %[[T]], %[[E]], %{{.*}} : tensor
  %a = xla_gpu.predicated_insert %v into %t[%i] if %yes : tensor<8xf32>
  %b = xla_gpu.predicated_insert %v into %t[%i] if %no : tensor<8xf32>
  %c = xla_gpu.predicated_extract %t[%i] if %yes else %v : tensor<8xf32>
  %d = xla_gpu.predicated_extract %t[%i] if %no else %v : tensor<8xf32>
  return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, f32, f32
}

// What does not depend on the current element is made before the update.
// CHECK-LABEL: func @atomic_invariant(
// CHECK: %[[WIDE:.*]] = arith.extui %{{.*}} : i1 to i8
// CHECK-NEXT: atomic_rmw
// CHECK-NEXT: bb0
// CHECK-NEXT: yield %[[WIDE]] : i8
func.func @atomic_invariant(%t: tensor<8xi8>, %i: index, %x: i1) -> tensor<8xi8> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xi8> {
  ^bb0(%cur: i8):
    %wide = arith.extui %x : i1 to i8
    xla_gpu.yield %wide : i8
  }
  return %r : tensor<8xi8>
}

// CHECK-LABEL: func @atomic_no_op(
// CHECK-SAME: %[[T:[^ :]*]]: tensor<8xf32>
// CHECK: return %[[T]]
func.func @atomic_no_op(%t: tensor<8xf32>, %i: index) -> tensor<8xf32> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xf32> {
  ^bb0(%cur: f32):
    xla_gpu.yield %cur : f32
  }
  return %r : tensor<8xf32>
}
