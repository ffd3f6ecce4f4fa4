// RUN: hloc opt %s --split-input-file --hloc-lower-index | FileCheck %s

// CHECK: xla_gpu.index_bits = 32 : i32
// CHECK-LABEL: func @unsigned(
// CHECK-SAME: %[[D:[^ :]*]]: index, %[[E:[^ :]*]]: index
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 floordiv 12, (d0 + d1 * 3) mod 40), domain: d0 in [0, 100], d1 in [0, 7]">
func.func @unsigned(%d: index, %e: index) -> (index, index) {
  // CHECK: arith.divui %[[D]], %c12
  // CHECK: %[[M:.*]] = arith.muli %[[E]], %c3{{.*}} overflow<nsw, nuw>
  // CHECK: %[[S:.*]] = arith.addi %[[D]], %[[M]] overflow<nsw, nuw>
  // CHECK: arith.remui %[[S]], %c40
  // CHECK-NOT: arith.select
  %r:2 = xla_gpu.apply_indexing #map(%d, %e)
  return %r#0, %r#1 : index, index
}

// -----

// A dividend that may be negative is lifted by whole divisors: 3 * 10 >= 24.
// CHECK-LABEL: func @lifted(
#map = #xla_gpu.indexing_map<"(d0) -> ((d0 - 24) floordiv 10, (-d0) mod 8), domain: d0 in [0, 100]">
func.func @lifted(%d: index) -> (index, index) {
  // CHECK: %[[L:.*]] = arith.addi %{{.*}}, %c6 overflow<nsw, nuw>
  // CHECK: %[[Q:.*]] = arith.divui %[[L]], %c10
  // CHECK: arith.subi %[[Q]], %c3{{.*}} overflow<nsw>
  // CHECK: arith.remui
  // CHECK-NOT: si
  %r:2 = xla_gpu.apply_indexing #map(%d)
  return %r#0, %r#1 : index, index
}

// -----

// What loops do not change is added first, constants last.
// CHECK-LABEL: func @order(
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 128 + d1 * 4 + 7), domain: d0 in [0, 3], d1 in [0, 100]">
func.func @order(%outer: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // CHECK: scf.for %[[IV:.*]] =
  scf.for %iv = %c0 to %c4 step %c1 {
    // CHECK: %[[O:.*]] = arith.muli %arg0, %c4
    // CHECK: %[[I:.*]] = arith.muli %[[IV]], %c128
    // CHECK: %[[S:.*]] = arith.addi %[[O]], %[[I]]
    // CHECK: arith.addi %[[S]], %c7
    %k = xla_gpu.apply_indexing #map(%iv, %outer)
    func.call @use(%k) : (index) -> ()
  }
  return
}
func.func private @use(index)

// -----

// One map needs 64 bits; the other is still computed in 32.
// CHECK: xla_gpu.index_bits = 64 : i32
// CHECK-LABEL: func @wide(
#big = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4096 + d1), domain: d0 in [0, 1048575], d1 in [0, 4095]">
#small = #xla_gpu.indexing_map<"(d0, d1) -> (d1 mod 32), domain: d0 in [0, 1048575], d1 in [0, 4095]">
func.func @wide(%d: index, %e: index) -> (index, index) {
  // CHECK: arith.muli %{{.*}}, %{{.*}} overflow<nsw, nuw> : index
  // CHECK: %[[N:.*]] = arith.index_cast %arg1 : index to i32
  // CHECK: %[[R:.*]] = arith.remui %[[N]], %{{.*}} : i32
  // CHECK: arith.index_castui %[[R]] : i32 to index
  %a = xla_gpu.apply_indexing #big(%d, %e)
  %b = xla_gpu.apply_indexing #small(%d, %e)
  return %a, %b : index, index
}

// -----

// An index that was loaded as 64 bits may be anything, unless its range is known.
// CHECK: xla_gpu.index_bits = 64 : i32
func.func @loaded(%x: i64) -> index {
  %i = arith.index_cast %x : i64 to index
  return %i : index
}

// -----

// CHECK: xla_gpu.index_bits = 32 : i32
func.func @loaded_in_range(%x: i64) -> index {
  %i = arith.index_cast %x {xla_gpu.range = [0 : index, 99 : index]} : i64 to index
  return %i : index
}

// -----

// An address that adds to what may be negative is extended as a signed number: its constant can leave the extension.
// CHECK-LABEL: func @signed_sum(
#map = #xla_gpu.indexing_map<"(d0) -> (d0 * -2 + 766), domain: d0 in [0, 383]">
#unsigned = #xla_gpu.indexing_map<"(d0) -> (d0 * 2 + 766), domain: d0 in [0, 383]">
func.func @signed_sum(%d: index) -> (i64, i64) {
  // CHECK: %[[S:.*]] = arith.addi {{.*}} overflow<nsw>
  // CHECK: arith.index_cast %[[S]] : index to i64
  %r = xla_gpu.apply_indexing #map(%d)
  %a = arith.index_castui %r : index to i64
  // CHECK: %[[U:.*]] = arith.addi {{.*}} overflow<nsw, nuw>
  // CHECK: arith.index_castui %[[U]] : index to i64
  %u = xla_gpu.apply_indexing #unsigned(%d)
  %b = arith.index_castui %u : index to i64
  return %a, %b : i64, i64
}

// -----

// What two maps have in common is computed once.
// CHECK-LABEL: func @common(
#first = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8 * 64 + d0 mod 8), domain: d0 in [0, 100]">
#second = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8 * 64 + d0 mod 8 + 16), domain: d0 in [0, 100]">
func.func @common(%d: index) -> (index, index) {
  // CHECK-COUNT-1: arith.divui
  // CHECK-COUNT-1: arith.remui
  // CHECK: %[[SUM:.*]] = arith.addi
  // CHECK-NOT: arith.divui
  // CHECK: %[[OTHER:.*]] = arith.addi %[[SUM]], %c16
  // CHECK: return %[[SUM]], %[[OTHER]]
  %a = xla_gpu.apply_indexing #first(%d)
  %b = xla_gpu.apply_indexing #second(%d)
  return %a, %b : index, index
}
