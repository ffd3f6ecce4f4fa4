// RUN: hloc opt %s --hloc-optimize-loops --canonicalize | FileCheck %s
// RUN: hloc opt %s --hloc-optimize-loops --canonicalize | FileCheck %s --check-prefix=PARTLY
// RUN: hloc opt %s --hloc-optimize-loops=max-unroll-factor=1 --canonicalize | FileCheck %s --check-prefix=FACTOR

// CHECK-LABEL: func @short(
// CHECK-NOT: scf.for
// CHECK-COUNT-4: arith.addf
func.func @short(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %n = arith.addf %a, %x : f32
    scf.yield %n : f32
  }
  return %r : f32
}

// 100 iterations of 20: the largest divisor of 100 up to 400 / 20.
// CHECK-LABEL: func @long(
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c20
// CHECK-COUNT-20: math.exp
// CHECK-NOT: math.exp
func.func @long(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %r = scf.for %i = %c0 to %c100 step %c1 iter_args(%a = %x) -> (f32) {
    %n = math.exp %a : f32
    scf.yield %n : f32
  }
  return %r : f32
}

// As many as are asked for, and one that is left.
// CHECK-LABEL: func @together(
// CHECK: scf.for %{{.*}} = %c0 to %c99 step %c3
// CHECK-COUNT-3: math.exp
// CHECK-NOT: math.exp
// CHECK: }
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: return
func.func @together(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %r = scf.for %i = %c0 to %c100 step %c1 iter_args(%a = %x) -> (f32) {
    %n = math.exp %a : f32
    scf.yield %n : f32
  } {xla_gpu.unroll = 3 : i64}
  return %r : f32
}

// But not any number.
// CHECK-LABEL: func @many_together(
// CHECK: scf.for %{{.*}} = %c0 to %c1000000 step %c64
// CHECK-LABEL: func @one_by_one(
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c1
func.func @many_together(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 1000000 : index
  %r = scf.for %i = %c0 to %end step %c1 iter_args(%a = %x) -> (f32) {
    %n = math.exp %a : f32
    scf.yield %n : f32
  } {xla_gpu.unroll = 1000000000 : i64}
  return %r : f32
}
func.func @one_by_one(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %r = scf.for %i = %c0 to %c100 step %c1 iter_args(%a = %x) -> (f32) {
    %n = math.exp %a : f32
    scf.yield %n : f32
  } {xla_gpu.unroll = -2 : i64}
  return %r : f32
}

// A power is as long as five of these.
// CHECK-LABEL: func @powers(
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c4
// CHECK-COUNT-4: math.powf
// CHECK-NOT: math.powf
// CHECK: return
func.func @powers(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %r = scf.for %i = %c0 to %c100 step %c1 iter_args(%a = %x) -> (f32) {
    %n = math.powf %a, %x : f32
    scf.yield %n : f32
  }
  return %r : f32
}

// In a loop that stays, the numbers of its iterations join the constants of the maps; who needs more than a map of the
// induction variable gets their sum.
#row = #xla_gpu.indexing_map<"(d0, d1) -> (d1 * 7 + d0), domain: d0 in [0, 6], d1 in [0, 99]">
// PARTLY-DAG: #[[$ROW:.*]] = #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1 * 7), domain: d0 in [0, 6], d1 in [0, 80]">
// PARTLY-DAG: #[[$ROW1:.*]] = #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1 * 7 + 7), domain: d0 in [0, 6], d1 in [0, 80]">
// PARTLY-DAG: #[[$ROW19:.*]] = #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1 * 7 + 133), domain: d0 in [0, 6], d1 in [0, 80]">
// PARTLY-DAG: #[[$NEXT:.*]] = #xla_gpu.indexing_map<"(d0) -> (d0 + 19), domain: d0 in [0, 80]">
// PARTLY-LABEL: func @partly(
// PARTLY: scf.for %[[I:.*]] = %c0 to %c100 step %c20
// PARTLY: xla_gpu.apply_indexing #[[$ROW]](%[[D:.*]], %[[I]])
// PARTLY: xla_gpu.apply_indexing #[[$ROW1]](%[[D]], %[[I]])
// PARTLY: xla_gpu.apply_indexing #[[$NEXT]](%[[I]])
// PARTLY: xla_gpu.apply_indexing #[[$ROW19]](%[[D]], %[[I]])
// PARTLY: return
func.func @partly(%t: tensor<700xf32>, %d: index {xla_gpu.range = [0 : index, 6 : index]}) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %f0 = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c100 step %c1 iter_args(%a = %f0) -> (f32) {
    %k = xla_gpu.apply_indexing #row(%d, %i)
    %v = tensor.extract %t[%k] : tensor<700xf32>
    %n = arith.index_cast %i : index to i32
    %m = arith.sitofp %n : i32 to f32
    %p = arith.mulf %v, %m : f32
    %q = arith.mulf %p, %p : f32
    %w = arith.mulf %q, %p : f32
    %x = arith.mulf %w, %p : f32
    %y = arith.mulf %x, %p : f32
    %z = arith.mulf %y, %p : f32
    %e = arith.addf %a, %z : f32
    %g = arith.mulf %e, %p : f32
    %h = arith.mulf %g, %p : f32
    %j = arith.mulf %h, %p : f32
    %l = arith.mulf %j, %p : f32
    %o = arith.mulf %l, %p : f32
    %s = arith.mulf %o, %p : f32
    %u = arith.mulf %s, %p : f32
    %b = arith.mulf %u, %p : f32
    %c = arith.mulf %b, %p : f32
    scf.yield %c : f32
  }
  return %r : f32
}

// Calls and bounds that are not known stay loops.
// CHECK-LABEL: func @calls(
// CHECK-COUNT-2: scf.for
func.func @calls(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %v = xla_gpu.pure_call @f(%a) : (f32) -> f32
    scf.yield %v : f32
  }
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %r) -> (f32) {
    %v = arith.addf %a, %x : f32
    scf.yield %v : f32
  }
  return %s : f32
}
func.func private @f(f32) -> f32

// Lanes of a vector are always unrolled, whatever the factor; indices fold on the way.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 7], d1 in [0, 3]">
// FACTOR-LABEL: func @lanes(
// FACTOR-NOT: scf.for
// FACTOR: vector.extract %{{.*}}[0]
// FACTOR: xla_gpu.apply_indexing
// FACTOR: vector.extract %{{.*}}[3]
func.func @lanes(%v: vector<4xindex>, %d: index {xla_gpu.range = [0 : index, 7 : index]}, %x: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (index) {
    %e = vector.extract %v[%i] : index from vector<4xindex>
    %k = xla_gpu.apply_indexing #map(%d, %i)
    %s = arith.addi %e, %k : index
    %n = arith.addi %a, %s : index
    scf.yield %n : index
  }
  return %r : index
}

// An index that goes up by one through a division is simplified once; one that does not is simplified in each lane.
// RUN: hloc opt %s --hloc-optimize-loops | FileCheck %s --check-prefix=STRIDE
#wrap = #xla_gpu.indexing_map<"(d0, d1) -> ((d0 * 4 + d1) mod 64, (d0 * 2 + d1) / 4), domain: d0 in [0, 31], d1 in [0, 3]">
#even = #xla_gpu.indexing_map<"(d0, d1) -> ((d0 * 4 + d1) mod 64, (d0 * 8 + d1) / 4), domain: d0 in [0, 31], d1 in [0, 3]">
// STRIDE-DAG: #[[$EVEN3:.*]] = #xla_gpu.indexing_map<"(d0) -> ((d0 mod 16) * 4 + 3, d0 * 2), domain: d0 in [0, 31]">
// STRIDE-DAG: #[[$WRAP3:.*]] = #xla_gpu.indexing_map<"(d0) -> ((d0 mod 16) * 4 + 3, (d0 + 1) / 2), domain: d0 in [0, 31]">
// STRIDE-LABEL: func @strides(
// STRIDE: xla_gpu.apply_indexing #[[$EVEN3]](
// STRIDE: xla_gpu.apply_indexing #[[$WRAP3]](
func.func @strides(%d: index {xla_gpu.range = [0 : index, 31 : index]}, %x: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (index) {
    %e:2 = xla_gpu.apply_indexing #even(%d, %i)
    %w:2 = xla_gpu.apply_indexing #wrap(%d, %i)
    %s = arith.addi %e#0, %e#1 : index
    %t = arith.addi %w#0, %w#1 : index
    %u = arith.addi %s, %t : index
    %n = arith.addi %a, %u : index
    scf.yield %n : index
  }
  return %r : index
}

// Of a vector's lanes there are never so many: what cannot be right is left as it is.
// CHECK-LABEL: func @endless(
// CHECK: scf.for
func.func @endless(%v: vector<4xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %most = arith.constant 9223372036854775807 : index
  %r = scf.for %i = %c0 to %most step %c1 iter_args(%a = %x) -> (f32) {
    %e = vector.extract %v[%i] : f32 from vector<4xf32>
    %s = arith.addf %a, %e : f32
    scf.yield %s : f32
  }
  return %r : f32
}

// A loop that copies a vector lane by lane is that vector; what nobody uses is not copied.
// CHECK-LABEL: func @copied(
// CHECK-SAME: %[[VECTOR:[^ :]*]]: vector<8xf32>
// CHECK-NEXT: return %[[VECTOR]]
#unused = #xla_gpu.indexing_map<"(d0) -> (d0 * 3), domain: d0 in [0, 7]">
func.func @copied(%vector: vector<8xf32>, %before: vector<8xf32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %before) -> (vector<8xf32>) {
    %index = xla_gpu.apply_indexing #unused(%i)
    %lane = vector.extract %vector[%i] : f32 from vector<8xf32>
    %n = vector.insert %lane, %a[%i] : f32 into vector<8xf32>
    scf.yield %n : vector<8xf32>
  }
  return %r : vector<8xf32>
}
