// RUN: hloc opt %s --hloc-lower-xla-gpu-to-scf --canonicalize --mlir-print-local-scope | FileCheck %s
// RUN: hloc opt %s --hloc-lower-xla-gpu-to-scf=sm=75 --canonicalize --mlir-print-local-scope | FileCheck %s --check-prefix=SM75
// RUN: hloc opt %s --hloc-lower-xla-gpu-to-scf="sm=100 float-redux" --canonicalize --mlir-print-local-scope | FileCheck %s --check-prefix=SM100A

// The check on d0 alone is outside of both loops, the one with s0 between them; s1 of one value is no loop.
#map = #xla_gpu.indexing_map<"(d0)[s0, s1, s2] -> (d0 * 4 + s0 + s1, s2), domain: d0 in [0, 31], s0 in [0, 3], s1 in [1, 1], s2 in [0, 7], d0 mod 4 in [0, 2], d0 * 4 + s0 in [0, 100]">
// CHECK-LABEL: func @levels(
// CHECK-SAME: %[[D:[^ :]*]]: index
func.func @levels(%d: index {xla_gpu.range = [0 : index, 31 : index]}, %t: tensor<128x8xf32>, %v: f32) -> tensor<128x8xf32> {
  // CHECK: %[[M:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 4)
  // CHECK: %[[OUTER:.*]] = arith.cmpi sle, %[[M]], %c2 : index
  // CHECK: scf.if %[[OUTER]]
  // CHECK: scf.for %[[S0:.*]] = %c0 to %c4 step %c1
  // CHECK: %[[L:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1){{.*}}(%[[D]], %[[S0]])
  // CHECK: %[[INNER:.*]] = arith.cmpi sle, %[[L]], %c100 : index
  // CHECK: scf.if %[[INNER]]
  // CHECK: scf.for %[[S2:.*]] = %c0 to %c8 step %c1
  // CHECK-NOT: scf
  // CHECK: %[[I:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1 + 1){{.*}}(%[[D]], %[[S0]])
  // CHECK: tensor.insert %{{.*}} into %{{.*}}[%[[I]], %[[S2]]]
  %r = xla_gpu.loop (%d)[%i, %j, %k] -> (%x, %y) in #map iter_args(%acc = %t) -> (tensor<128x8xf32>) {
    %n = tensor.insert %v into %acc[%x, %y] : tensor<128x8xf32>
    xla_gpu.yield %n : tensor<128x8xf32>
  }
  return %r : tensor<128x8xf32>
}

// Bounds of a dimension are checked only where its operand is not known to respect them.
#guard = #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 9], d1 in [0, 9]">
// CHECK-LABEL: func @guard(
// CHECK-SAME: %[[D:[^ :]*]]: index
func.func @guard(%d: index, %known: index {xla_gpu.range = [2 : index, 9 : index]}, %x: index) -> index {
  // CHECK: arith.cmpi sge, %[[D]], %c0
  // CHECK: arith.cmpi sle, %[[D]], %c9
  // CHECK-NOT: arith.cmpi
  %r = xla_gpu.loop (%d, %known)[] -> (%i) in #guard iter_args(%a = %x) -> (index) {
    xla_gpu.yield %i : index
  }
  return %r : index
}

// A loop that never runs is its initial value; one that yields arguments hands them on.
#never = #xla_gpu.indexing_map<"(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], s0 in [5, 7]">
#two = #xla_gpu.indexing_map<"()[s0] -> (s0), domain: s0 in [0, 1]">
// CHECK-LABEL: func @edges(
// CHECK-SAME: %{{.*}}: index, %[[X:[^ :]*]]: index, %[[Y:[^ :]*]]: index
func.func @edges(%d: index, %x: index, %y: index) -> (index, index, index) {
  %r = xla_gpu.loop (%d)[%s] -> (%i) in #never iter_args(%a = %x) -> (index) {
    xla_gpu.yield %i : index
  }
  // CHECK: %[[F:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %[[X]], %[[B:.*]] = %[[Y]])
  // CHECK: scf.yield %[[B]], %[[A]]
  %s:2 = xla_gpu.loop ()[%i] -> (%j) in #two iter_args(%a = %x, %b = %y) -> (index, index) {
    xla_gpu.yield %b, %a : index, index
  }
  // CHECK: return %[[X]], %[[F]]#0, %[[F]]#1
  return %r, %s#0, %s#1 : index, index, index
}

// CHECK-LABEL: func @predicated(
func.func @predicated(%t: tensor<8xf32>, %i: index, %v: f32, %c: i1) -> (tensor<8xf32>, f32) {
  // CHECK: scf.if %{{.*}} -> (tensor<8xf32>, f32) {
  // CHECK:   %[[N:.*]] = tensor.insert
  // CHECK:   %[[E:.*]] = tensor.extract
  // CHECK:   scf.yield %[[N]], %[[E]]
  // CHECK: } else {
  // CHECK:   scf.yield %arg0, %arg2 : tensor<8xf32>, f32
  %a = xla_gpu.predicated_insert %v into %t[%i] if %c : tensor<8xf32>
  %b = xla_gpu.predicated_extract %a[%i] if %c else %v : tensor<8xf32>
  return %a, %b : tensor<8xf32>, f32
}

// CHECK-LABEL: func @shuffle_f32(
// CHECK-SAME: %[[X:.*]]: f32
func.func @shuffle_f32(%x: f32) -> f32 {
  // CHECK: %[[W:.*]] = arith.bitcast %[[X]] : f32 to i32
  // CHECK: %[[S:.*]], %{{.*}} = gpu.shuffle down %[[W]], %c2_i32, %c32_i32 : i32
  // CHECK: %[[F:.*]] = arith.bitcast %[[S]] : i32 to f32
  // CHECK: %[[Y:.*]] = xla_gpu.pure_call @add(%[[X]], %[[F]])
  // CHECK: gpu.shuffle down %{{.*}}, %c1_i32, %c32_i32 : i32
  // CHECK-NOT: gpu.shuffle
  %r = xla_gpu.shuffle_reduce(%x) to 2 combiner=@add : f32
  return %r : f32
}
func.func private @add(f32, f32) -> f32

// To all lanes: with the lane that differs by one bit.
// CHECK-LABEL: func @shuffle_to_all(
func.func @shuffle_to_all(%x: f32) -> f32 {
  // CHECK: gpu.shuffle xor %{{.*}}, %c2_i32, %c32_i32 : i32
  // CHECK: gpu.shuffle xor %{{.*}}, %c1_i32, %c32_i32 : i32
  // CHECK-NOT: gpu.shuffle
  %r = xla_gpu.shuffle_reduce(%x) to 2 to_all combiner=@add : f32
  return %r : f32
}

// Narrow values travel in a word of 32 bits, wide ones in one of 64, complex ones by parts.
// CHECK-LABEL: func @shuffle_others(
func.func @shuffle_others(%h: bf16, %d: f64, %c: complex<f32>, %q: f8E4M3FN) -> (bf16, f64, complex<f32>, f8E4M3FN) {
  // CHECK: arith.extui %{{.*}} : i16 to i32
  // CHECK: gpu.shuffle
  // CHECK: arith.trunci %{{.*}} : i32 to i16
  // CHECK: gpu.shuffle down %{{.*}}, %c1_i32, %c32_i32 : i64
  // CHECK-DAG: complex.re
  // CHECK-DAG: complex.im
  // CHECK: complex.create
  // CHECK: arith.extui %{{.*}} : i8 to i32
  // CHECK: xla_gpu.pure_call @all(
  %r:4 = xla_gpu.shuffle_reduce(%h, %d, %c, %q) to 1 combiner=@all : bf16, f64, complex<f32>, f8E4M3FN
  return %r#0, %r#1, %r#2, %r#3 : bf16, f64, complex<f32>, f8E4M3FN
}
func.func private @all(bf16, f64, complex<f32>, f8E4M3FN, bf16, f64, complex<f32>, f8E4M3FN) -> (bf16, f64, complex<f32>, f8E4M3FN)

// What one instruction makes of a warp's integers: words, truth values, and bits of two words apart from each other.
// CHECK-LABEL: func @whole_warp(
// SM75-LABEL: func @whole_warp(
func.func @whole_warp(%x: i32, %y: i1, %z: i64) -> (i32, i1, i64) {
  // CHECK-NOT: gpu.shuffle
  // CHECK-DAG: gpu.subgroup_reduce maxsi %{{.*}} uniform : (i32) -> i32
  // CHECK-DAG: gpu.subgroup_reduce and %{{.*}} uniform : (i1) -> i1
  // CHECK-COUNT-2: gpu.subgroup_reduce xor %{{.*}} uniform : (i32) -> i32
  // CHECK: return
  // SM75: gpu.subgroup_reduce and %{{.*}} uniform : (i1) -> i1
  // SM75-NOT: gpu.subgroup_reduce
  // SM75-COUNT-10: gpu.shuffle down
  // SM75-NOT: gpu.s
  // SM75: return
  %r:3 = xla_gpu.shuffle_reduce(%x, %y, %z) to 16 combiner=@words : i32, i1, i64
  return %r#0, %r#1, %r#2 : i32, i1, i64
}
func.func private @words(%a: i32, %b: i1, %c: i64, %d: i32, %e: i1, %f: i64) -> (i32, i1, i64) {
  %x = arith.maxsi %d, %a : i32
  %y = arith.andi %b, %e : i1
  %z = arith.xori %c, %f : i64
  return %x, %y, %z : i32, i1, i64
}

// Few targets compare floats of all lanes.
// CHECK-LABEL: func @floats(
// CHECK-NOT: gpu.subgroup_reduce
// CHECK: return
// SM100A-LABEL: func @floats(
// SM100A-DAG: gpu.subgroup_reduce minimumf %{{.*}} uniform : (f32) -> f32
// SM100A-DAG: arith.extf %{{.*}} : bf16 to f32
// SM100A-DAG: gpu.subgroup_reduce maximumf %{{.*}} uniform : (f32) -> f32
// SM100A-DAG: arith.truncf %{{.*}} : f32 to bf16
func.func @floats(%x: f32, %y: bf16) -> (f32, bf16) {
  %r:2 = xla_gpu.shuffle_reduce(%x, %y) to 16 combiner=@compare : f32, bf16
  return %r#0, %r#1 : f32, bf16
}
func.func private @compare(%a: f32, %b: bf16, %c: f32, %d: bf16) -> (f32, bf16) {
  %x = arith.minimumf %a, %c : f32
  %y = arith.maximumf %b, %d : bf16
  return %x, %y : f32, bf16
}

// A vote is older than sm_80.
// CHECK-LABEL: func @vote(
// CHECK: gpu.subgroup_reduce or %{{.*}} uniform : (i1) -> i1
// SM75-LABEL: func @vote(
// SM75: gpu.subgroup_reduce or %{{.*}} uniform : (i1) -> i1
func.func @vote(%x: i1) -> i1 {
  %r = xla_gpu.shuffle_reduce(%x) to 16 combiner=@any : i1
  return %r : i1
}
func.func private @any(%a: i1, %b: i1) -> i1 {
  %x = arith.ori %a, %b : i1
  return %x : i1
}

// Of several results each goes its own way.
// CHECK-LABEL: func @each(
// CHECK-SAME: %[[W:[^ :]*]]: i32, %[[X:[^ :]*]]: f32
func.func @each(%w: i32, %x: f32) -> (i32, f32) {
  // CHECK: %[[R:.*]] = gpu.subgroup_reduce add %[[W]] uniform : (i32) -> i32
  // CHECK: %[[B:.*]] = arith.bitcast %[[X]]
  // CHECK: gpu.shuffle down %[[B]], %c16_i32
  // CHECK: %[[F:.*]] = arith.bitcast
  // CHECK: xla_gpu.pure_call @mixed(%[[R]], %[[X]], %[[R]], %[[F]])
  // CHECK-COUNT-4: gpu.shuffle
  // CHECK-NOT: gpu.shuffle
  // CHECK: return %[[R]],
  %r:2 = xla_gpu.shuffle_reduce(%w, %x) to 16 combiner=@mixed : i32, f32
  return %r#0, %r#1 : i32, f32
}
func.func private @mixed(%a: i32, %b: f32, %c: i32, %d: f32) -> (i32, f32) {
  %x = arith.addi %a, %c : i32
  %y = arith.addf %b, %d : f32
  return %x, %y : i32, f32
}

// Half a warp, two results of one, sums of two words, floats, and what depends on another value go by shuffles.
// CHECK-LABEL: func @by_shuffles(
// CHECK-NOT: gpu.subgroup_reduce
// CHECK: return
func.func @by_shuffles(%x: i1, %y: i64, %z: f32, %a: i32, %b: i32) -> (i1, i64, f32, i32, i32) {
  %0 = xla_gpu.shuffle_reduce(%x) to 8 combiner=@any : i1
  %1 = xla_gpu.shuffle_reduce(%y) to 16 combiner=@long_sum : i64
  %2 = xla_gpu.shuffle_reduce(%z) to 16 combiner=@float_sum : f32
  %3:2 = xla_gpu.shuffle_reduce(%a, %b) to 16 combiner=@crossed : i32, i32
  return %0, %1, %2, %3#0, %3#1 : i1, i64, f32, i32, i32
}
func.func private @long_sum(%a: i64, %b: i64) -> i64 {
  %x = arith.addi %a, %b : i64
  return %x : i64
}
func.func private @float_sum(%a: f32, %b: f32) -> f32 {
  %x = arith.addf %a, %b : f32
  return %x : f32
}
func.func private @crossed(%a: i32, %b: i32, %c: i32, %d: i32) -> (i32, i32) {
  %x = arith.addi %a, %c : i32
  %y = arith.addi %b, %c : i32
  return %x, %y : i32, i32
}

// CHECK-LABEL: func @fragments(
func.func @fragments(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
  // CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"({{.*}}) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %d = xla_gpu.multiply_fragments %a, %b, %c : bf16
  // CHECK: llvm.bitcast %{{.*}} : i32 to vector<2xf16>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
  %e = xla_gpu.multiply_fragments %a, %b, %d : f16
  return %d, %e : vector<4xf32>, vector<4xf32>
}

// The first that there are take half of the terms, and of bytes half of the rows.
// SM75-LABEL: func @fragments_of_first_tensor_cores(
func.func @fragments_of_first_tensor_cores(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>, %d: vector<4xi32>) -> (vector<4xf32>, vector<4xi32>) {
  // SM75: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.f32.f32"({{.*}}) : (vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  // SM75: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.f32.f32"
  %e = xla_gpu.multiply_fragments %a, %b, %c : f16
  // SM75-COUNT-4: llvm.call_intrinsic "llvm.nvvm.mma.m8n8k16.row.col.s8"({{.*}}) : (i32, i32, i32, i32) -> !llvm.struct<(i32, i32)>
  %f = xla_gpu.multiply_fragments %a, %b, %d : si8
  return %e, %f : vector<4xf32>, vector<4xi32>
}

// CHECK-LABEL: func @fragments_of_other_widths(
func.func @fragments_of_other_widths(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xi32>, %f: vector<4xf32>,
                                     %x: vector<4xf64>, %y: vector<2xf64>) -> (vector<4xi32>, vector<4xi32>, vector<4xf32>, vector<4xf64>) {
  // CHECK: "llvm.nvvm.mma.m16n8k32.row.col.u8"
  %d = xla_gpu.multiply_fragments %a, %b, %c : ui8
  // CHECK: "llvm.nvvm.mma.m16n8k32.row.col.s8.u8"
  %e = xla_gpu.multiply_fragments %a, %b, %d : si8 by ui8
  // CHECK: "llvm.nvvm.mma.m16n8k8.row.col.tf32"
  %g = xla_gpu.multiply_fragments %a, %b, %f : tf32
  // CHECK: "llvm.nvvm.mma.m16n8k8.row.col.f64"
  %h = xla_gpu.multiply_fragments %x, %y, %x : f64
  return %d, %e, %g, %h : vector<4xi32>, vector<4xi32>, vector<4xf32>, vector<4xf64>
}

// Sums that go from one product to the next are not put together in between, and fragments are taken apart once.
// CHECK-LABEL: func @products(
func.func @products(%a: vector<4xi32>, %b: vector<2xi32>, %s: f32) -> (f32, f32) {
  // CHECK-NOT: vector.from_elements
  // CHECK-COUNT-6: vector.extract
  // CHECK: llvm.call_intrinsic
  // CHECK-NOT: vector
  // CHECK: llvm.call_intrinsic
  // CHECK-NOT: vector
  // CHECK: return
  %c = vector.from_elements %s, %s, %s, %s : vector<4xf32>
  %d = xla_gpu.multiply_fragments %a, %b, %c : bf16
  %e = xla_gpu.multiply_fragments %a, %b, %d : bf16
  %x = vector.extract %e[0] : f32 from vector<4xf32>
  %y = vector.extract %e[3] : f32 from vector<4xf32>
  return %x, %y : f32, f32
}
