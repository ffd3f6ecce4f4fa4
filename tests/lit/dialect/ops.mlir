// RUN: hloc opt %s | FileCheck %s
// RUN: hloc opt %s | hloc opt - | FileCheck %s
// Every op of the dialect parses and prints as in the published description.

// CHECK-DAG: #[[$LOOP:.*]] = #xla_gpu.indexing_map<"(d0)[s0, s1] -> (d0 * 4 + s0, s1), domain: d0 in [0, 7], s0 in [0, 3], s1 in [0, 9], s0 + s1 in [0, 10]">
// CHECK-DAG: #[[$APPLY:.*]] = #xla_gpu.indexing_map<"(th_x, d1)[s0] -> (th_x * 4 + s0, d1 mod 8), domain: th_x in [0, 31], d1 in [0, 63], s0 in [0, 3]">
#loop = #xla_gpu.indexing_map<"(d0)[s0, s1] -> (d0 * 4 + s0, s1), "
                              "domain: d0 in [0, 7], s0 in [0, 3], s1 in [0, 9], s0 + s1 in [0, 10]">
#apply = #xla_gpu.indexing_map<"(th_x, d1)[s0] -> (th_x * 4 + s0, d1 mod 8), domain: th_x in [0, 31], d1 in [0, 63], s0 in [0, 3]">

// CHECK-LABEL: func @all_ops
func.func @all_ops(%a: index, %b: index, %v: f32, %c: i1, %t: tensor<32x10xf32>) -> tensor<32x10xf32> {
  // CHECK: %[[A:.*]]:2 = xla_gpu.apply_indexing #[[$APPLY]](%arg0, %arg1)[%arg0]
  %x:2 = xla_gpu.apply_indexing #apply(%a, %b)[%a]
  // CHECK: xla_gpu.loop (%arg0)[%{{.*}}, %{{.*}}] -> (%[[X:.*]], %[[Y:.*]]) in #[[$LOOP]] iter_args(%[[I:.*]] = %arg4) -> (tensor<32x10xf32>) {
  %r = xla_gpu.loop (%a)[%i, %j] -> (%p, %q) in #loop iter_args(%acc = %t) -> (tensor<32x10xf32>) {
    // CHECK: xla_gpu.pure_call @f(%[[I]], %[[X]]) : (tensor<32x10xf32>, index) -> f32
    %w = xla_gpu.pure_call @f(%acc, %p) : (tensor<32x10xf32>, index) -> f32
    // CHECK: xla_gpu.predicated_insert %{{.*}} into %[[I]][%[[X]], %[[Y]]] if %arg3 : tensor<32x10xf32>
    %n = xla_gpu.predicated_insert %w into %acc[%p, %q] if %c : tensor<32x10xf32>
    // CHECK: xla_gpu.yield %{{.*}} : tensor<32x10xf32>
    xla_gpu.yield %n : tensor<32x10xf32>
  }
  // CHECK: xla_gpu.loop (%arg0)[%{{.*}}, %{{.*}}] -> (%{{.*}}, %{{.*}}) in #[[$LOOP]] {
  xla_gpu.loop (%a)[%i, %j] -> (%p, %q) in #loop {
  }
  // CHECK: %[[SHMEM:.*]] = xla_gpu.allocate_shared : tensor<32x33xf32>
  %s = xla_gpu.allocate_shared : tensor<32x33xf32>
  // CHECK: xla_gpu.sync_threads %[[SHMEM]], %{{.*}} : tensor<32x33xf32>, tensor<32x10xf32>
  %sync:2 = xla_gpu.sync_threads %s, %r : tensor<32x33xf32>, tensor<32x10xf32>
  // CHECK: xla_gpu.sync_threads %[[SHMEM]] of 256 : tensor<32x33xf32>
  %some = xla_gpu.sync_threads %s of 256 : tensor<32x33xf32>
  // CHECK: xla_gpu.sync_threads %[[SHMEM]] of 128 each : tensor<32x33xf32>
  %groups = xla_gpu.sync_threads %s of 128 each : tensor<32x33xf32>
  // CHECK: xla_gpu.predicated_extract %{{.*}}[%arg0, %arg1] if %arg3 else %arg2 : tensor<32x33xf32>
  %e = xla_gpu.predicated_extract %sync#0[%a, %b] if %c else %v : tensor<32x33xf32>
  // CHECK: xla_gpu.shuffle_reduce(%{{.*}}, %arg2) to 16 combiner=@pair : f32, f32
  %red:2 = xla_gpu.shuffle_reduce(%e, %v) to 16 combiner=@pair : f32, f32
  // CHECK: xla_gpu.shuffle_reduce(%arg2) to 8 to_all combiner=@one : f32
  %all = xla_gpu.shuffle_reduce(%v) to 8 to_all combiner=@one : f32
  // CHECK: xla_gpu.atomic_rmw %{{.*}}[%[[A]]#0, %[[A]]#1] : tensor<32x10xf32> {
  // CHECK-NEXT: ^bb0(%[[CUR:.*]]: f32):
  %u = xla_gpu.atomic_rmw %sync#1[%x#0, %x#1] : tensor<32x10xf32> {
  ^bb0(%cur: f32):
    %next = arith.addf %cur, %red#0 : f32
    xla_gpu.yield %next : f32
  }
  return %u : tensor<32x10xf32>
}
func.func private @f(tensor<32x10xf32>, index) -> f32
func.func private @pair(f32, f32, f32, f32) -> (f32, f32)
func.func private @one(f32, f32) -> f32

// A shuffle needs all threads of a warp, not of the block.
// CHECK-LABEL: func.func @shuffle_of_whole_warps
// CHECK: xla_gpu.shuffle_reduce
func.func private @larger_of_two(%x: f32, %y: f32) -> f32 {
  %r = arith.maximumf %x, %y : f32
  return %r : f32
}
func.func @shuffle_of_whole_warps(%x: f32) -> f32 {
  %thread = gpu.thread_id x {xla_gpu.range = [0 : index, 127 : index]}
  %r = xla_gpu.loop (%thread)[] -> () in #xla_gpu.indexing_map<"(d0) -> (), domain: d0 in [0, 63]"> iter_args(%c = %x) -> (f32) {
    %s = xla_gpu.shuffle_reduce(%c) to 16 combiner=@larger_of_two : f32
    xla_gpu.yield %s : f32
  }
  return %r : f32
}

// CHECK-LABEL: func.func @fragments
func.func @fragments(%t: tensor<1024xbf16>, %i: index, %c: vector<4xf32>) -> vector<4xf32> {
  // CHECK: %[[A:.*]] = xla_gpu.load_fragments %arg0[%arg1] : tensor<1024xbf16>
  %a = xla_gpu.load_fragments %t[%i] : tensor<1024xbf16>
  // CHECK: xla_gpu.load_fragments %arg0[%arg1] transposed : tensor<1024xbf16>
  %b = xla_gpu.load_fragments %t[%i] transposed : tensor<1024xbf16>
  %half = vector.extract_strided_slice %b {offsets = [0], sizes = [2], strides = [1]} : vector<4xi32> to vector<2xi32>
  // CHECK: xla_gpu.multiply_fragments %[[A]], %{{.*}}, %arg2 : bf16
  %d = xla_gpu.multiply_fragments %a, %half, %c : bf16
  return %d : vector<4xf32>
}

// CHECK-LABEL: func.func @fragments_of_bytes
func.func @fragments_of_bytes(%t: tensor<1024xi8>, %i: index, %c: i1) -> vector<4xi32> {
  // CHECK: xla_gpu.load_fragments %arg0[%arg1] transposed swapped %arg2 : tensor<1024xi8>
  %a = xla_gpu.load_fragments %t[%i] transposed swapped %c : tensor<1024xi8>
  return %a : vector<4xi32>
}

// CHECK-LABEL: func.func @held_rows
func.func @held_rows(%t: tensor<1024xi8>, %i: index, %w: i32, %s: f32, %b: tensor<4xi64>, %c: i1) -> f32 {
  // CHECK: xla_gpu.multiply_held(%arg2, %arg2, %arg2, %arg2), %arg0[%arg1], (%arg3, %arg3, %arg3, %arg3) {anew, element = f8E4M3FN, rhsElement = f8E5M2,
  %r:4 = xla_gpu.multiply_held(%w, %w, %w, %w), %t[%i], (%s, %s, %s, %s) {anew, element = f8E4M3FN, rhsElement = f8E5M2,
      rhsLayout = array<i64: 16, 1024, 128, 0>, rhsSteps = array<i64: 0>} : tensor<1024xi8>, f32, f32, f32, f32
  // CHECK: xla_gpu.arrive %arg4[%arg1] in 2 for_warp if %arg5 : tensor<4xi64>
  xla_gpu.arrive %b[%i] in 2 for_warp if %c : tensor<4xi64>
  return %r#0 : f32
}

// CHECK-LABEL: func.func @phases
func.func @phases(%b: tensor<4xi64>, %i: index, %p: i32, %t: tensor<128xf32>, %u: tensor<64xi8>) -> tensor<128xf32> {
  // CHECK: xla_gpu.await_phase %arg0[%arg1], %arg2 : tensor<4xi64>
  xla_gpu.await_phase %b[%i], %p : tensor<4xi64>
  // CHECK: %[[T:.*]]:2 = xla_gpu.await_phase %arg0[%arg1], %arg2 for %arg3, %arg4 : tensor<4xi64>, tensor<128xf32>, tensor<64xi8>
  %now:2 = xla_gpu.await_phase %b[%i], %p for %t, %u : tensor<4xi64>, tensor<128xf32>, tensor<64xi8>
  // CHECK: return %[[T]]#0
  return %now#0 : tensor<128xf32>
}

// CHECK-LABEL: func.func @fragments_of_other_widths
func.func @fragments_of_other_widths(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xi32>, %f: vector<4xf32>,
                                     %x: vector<4xf64>, %y: vector<2xf64>) -> (vector<4xi32>, vector<4xf32>, vector<4xf64>) {
  // CHECK: xla_gpu.multiply_fragments %arg0, %arg1, %arg2 : si8 by ui8
  %d = xla_gpu.multiply_fragments %a, %b, %c : si8 by ui8
  // CHECK: xla_gpu.multiply_fragments %arg0, %arg1, %arg3 : tf32
  %e = xla_gpu.multiply_fragments %a, %b, %f : tf32
  // CHECK: xla_gpu.multiply_fragments %arg4, %arg5, %arg4 : f64
  %g = xla_gpu.multiply_fragments %x, %y, %x : f64
  return %d, %e, %g : vector<4xi32>, vector<4xf32>, vector<4xf64>
}

// CHECK-LABEL: func.func @copies
func.func @copies(%in: tensor<8x32xbf16>, %i: index, %c: i1) -> (tensor<64xbf16>, tensor<4xf32>) {
  %t = xla_gpu.allocate_shared : tensor<64xbf16>
  %u = xla_gpu.allocate_shared : tensor<4xf32>
  // CHECK: %[[A:.*]] = xla_gpu.copy_async 8 of %arg0[%arg1, %arg1] into %{{.*}}[%arg1] if %arg2 : tensor<8x32xbf16>, tensor<64xbf16>
  %a = xla_gpu.copy_async 8 of %in[%i, %i] into %t[%i] if %c : tensor<8x32xbf16>, tensor<64xbf16>
  // CHECK: %[[B:.*]] = xla_gpu.copy_async 2 of %arg0[%arg1, %arg1] into %[[A]][%arg1] : tensor<8x32xbf16>, tensor<64xbf16>
  %b = xla_gpu.copy_async 2 of %in[%i, %i] into %a[%i] : tensor<8x32xbf16>, tensor<64xbf16>
  // CHECK: %[[D:.*]]:2 = xla_gpu.commit_copies %[[B]], %{{.*}} : tensor<64xbf16>, tensor<4xf32>
  %d:2 = xla_gpu.commit_copies %b, %u : tensor<64xbf16>, tensor<4xf32>
  // CHECK: xla_gpu.await_copies %[[D]]#0, %[[D]]#1 but 2 : tensor<64xbf16>, tensor<4xf32>
  %e:2 = xla_gpu.await_copies %d#0, %d#1 but 2 : tensor<64xbf16>, tensor<4xf32>
  return %e#0, %e#1 : tensor<64xbf16>, tensor<4xf32>
}

// A result of a map is the same for all threads if what it is made of is.
#ofBlock = #xla_gpu.indexing_map<"(d0, d1) -> (d1 floordiv 2, d0 floordiv 2), domain: d0 in [0, 63], d1 in [0, 7]">
// CHECK-LABEL: func.func @barrier_by_a_map
func.func @barrier_by_a_map(%t: tensor<64xf32>, %zero: index, %one: index) -> tensor<64xf32> {
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %0:2 = xla_gpu.apply_indexing #ofBlock(%thread, %block)
  // CHECK: scf.for
  // CHECK-NEXT: xla_gpu.sync_threads
  %r = scf.for %i = %zero to %0#0 step %one iter_args(%a = %t) -> tensor<64xf32> {
    %s = xla_gpu.sync_threads %a : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
