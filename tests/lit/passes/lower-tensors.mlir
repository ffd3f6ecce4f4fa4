// RUN: hloc opt %s --hloc-lower-tensors | FileCheck %s
// RUN: hloc opt %s --hloc-lower-tensors=max-vector-bytes=32 | FileCheck %s --check-prefix=WIDE

// CHECK-DAG: llvm.mlir.global internal @kernel__shared_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1056 x f32>
// CHECK-DAG: llvm.mlir.global external @kernel__shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK-DAG: llvm.mlir.global internal constant @kernel__constant_0(dense<[33, 67]> : tensor<2xi8>) {addr_space = 0 : i32, alignment = 16 : i64} : !llvm.array<2 x i8>

#times8 = #xla_gpu.indexing_map<"(d0) -> (d0 * 8), domain: d0 in [0, 31]">
#times4 = #xla_gpu.indexing_map<"(d0) -> (d0 * 4), domain: d0 in [0, 255]">
// Inputs are invariant, results are gone, alignment is what the map proves, limited by the buffer's.
// CHECK-LABEL: func @kernel(
// CHECK-SAME: %[[IN:[^ :]*]]: !llvm.ptr {llvm.align = 16 : index, xla_gpu.invariant}, %[[OUT:[^ :]*]]: !llvm.ptr {llvm.align = 8 : index}, %[[I:[^ :]*]]: index
// CHECK-NOT: ->
func.func @kernel(%in: tensor<1024xf32> {xla_gpu.invariant, llvm.align = 16 : index}, %out: tensor<1024xf32> {llvm.align = 8 : index},
                  %i: index {xla_gpu.range = [0 : index, 255 : index]}, %c: i1) -> tensor<1024xf32> attributes {xla_gpu.entry} {
  // CHECK: llvm.mlir.addressof @kernel__shared_0 : !llvm.ptr<3>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  %k = xla_gpu.apply_indexing #times4(%i)
  // CHECK: %[[K:.*]] = arith.index_castui %{{.*}} : index to i64
  // CHECK: %[[P:.*]] = llvm.getelementptr inbounds %[[IN]][%[[K]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  // CHECK: llvm.load %[[P]] invariant {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
  %v = vector.transfer_read %in[%k], %pad {in_bounds = [true]} : tensor<1024xf32>, vector<4xf32>
  // CHECK-COUNT-2: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr
  %w = vector.transfer_write %v, %out[%k] {in_bounds = [true]} : vector<4xf32>, tensor<1024xf32>
  // CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> f32
  %own = tensor.extract %w[%k] : tensor<1024xf32>
  %sh = xla_gpu.allocate_shared : tensor<1056xf32>
  // CHECK: scf.for
  // CHECK-NOT: iter_args
  %filled = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %sh) -> (tensor<1056xf32>) {
    // CHECK: scf.if %{{.*}} {
    // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
    // CHECK-NEXT: }
    %b = scf.if %c -> (tensor<1056xf32>) {
      %n = tensor.insert %own into %acc[%iv] : tensor<1056xf32>
      scf.yield %n : tensor<1056xf32>
    } else {
      scf.yield %acc : tensor<1056xf32>
    }
    scf.yield %b : tensor<1056xf32>
  }
  // CHECK: gpu.barrier
  %all = xla_gpu.sync_threads %filled : tensor<1056xf32>
  // CHECK: llvm.inline_asm has_side_effects "bar.sync 1, 96;", "~{memory}"
  %some = xla_gpu.sync_threads %all of 96 : tensor<1056xf32>
  // CHECK: llvm.inline_asm has_side_effects "{\0A.reg .b32 %own;\0Amov.u32 %own, %tid.x;\0Ashr.u32 %own, %own, 7;\0Aadd.u32 %own, %own, 2;\0Abar.sync %own, 128;\0A}", "~{memory}"
  %sync = xla_gpu.sync_threads %some of 128 each : tensor<1056xf32>
  // CHECK: %[[G:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr<3> to !llvm.ptr
  // CHECK: call @helper(%[[G]], %[[I]]) : (!llvm.ptr, index) -> f32
  %h = func.call @helper(%sync, %i) : (tensor<1056xf32>, index) -> f32
  // CHECK: llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.f32 [$0], $1;"
  %a = xla_gpu.atomic_rmw %w[%i] : tensor<1024xf32> {
  ^bb0(%cur: f32):
    %n = arith.addf %cur, %h : f32
    xla_gpu.yield %n : f32
  }
  // CHECK: return
  // CHECK-NEXT: }
  return %a : tensor<1024xf32>
}

// CHECK-LABEL: func private @helper(%arg0: !llvm.ptr, %arg1: index) -> f32
func.func private @helper(%t: tensor<1056xf32>, %i: index) -> f32 {
  // CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> f32
  %x = tensor.extract %t[%i] : tensor<1056xf32>
  return %x : f32
}

// Elements k of i4: byte k / 2. A lone store must not touch its neighbour; a vector that owns its bytes just stores.
// CHECK-LABEL: func @packed(
// CHECK-SAME: %[[T:[^ :]*]]: !llvm.ptr
func.func @packed(%t: tensor<256xi4> {llvm.align = 16 : index}, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %x: i4) -> i4 {
  // CHECK: llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> i8
  // CHECK: arith.shrui
  // CHECK: arith.trunci %{{.*}} : i8 to i4
  %e = tensor.extract %t[%i] : tensor<256xi4>
  // CHECK: llvm.atomicrmw _and %[[W:.*]], %{{.*}} syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr, i32
  // CHECK: llvm.atomicrmw _or %[[W]], %{{.*}} syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr, i32
  %u = tensor.insert %x into %t[%i] : tensor<256xi4>
  %k = xla_gpu.apply_indexing #times8(%i)
  // CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> i32
  %v = vector.transfer_read %t[%k], %x {in_bounds = [true]} : tensor<256xi4>, vector<8xi4>
  // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr
  // CHECK-NOT: atomicrmw
  %w = vector.transfer_write %v, %u[%k] {in_bounds = [true]} : vector<8xi4>, tensor<256xi4>
  %table = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi4>
  %c = tensor.extract %table[%i] : tensor<4xi4>
  %s = arith.addi %e, %c : i4
  return %s : i4
}

// What an aligned address allows at once: sixteen bytes, or thirty-two.
// CHECK-LABEL: func @split(
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = {{(16|32)}} : i64} : !llvm.ptr -> vector<4xf32>
// CHECK-NOT: llvm.load
// WIDE-LABEL: func @split(
// WIDE-COUNT-1: llvm.load %{{.*}} {alignment = 32 : i64} : !llvm.ptr -> vector<8xf32>
// WIDE-NOT: llvm.load
func.func @split(%t: tensor<256xf32> {llvm.align = 256 : index}, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %pad: f32) -> vector<8xf32> {
  %k = xla_gpu.apply_indexing #times8(%i)
  %v = vector.transfer_read %t[%k], %pad {in_bounds = [true]} : tensor<256xf32>, vector<8xf32>
  return %v : vector<8xf32>
}

// f8 is a byte, complex a pair in one access; a product of floats needs a compare-and-swap loop. What may not be global
// memory is updated by LLVM's own op.
// WIDE-LABEL: func @types(
// CHECK-LABEL: func @types(
func.func @types(%q: tensor<8xf8E4M3FN>, %z: tensor<8xcomplex<f32>> {llvm.align = 16 : index}, %f: tensor<8xf32>, %i: index, %x: f32) -> (f8E4M3FN, complex<f32>) {
  // CHECK: %[[B:.*]] = llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> i8
  // CHECK: arith.bitcast %[[B]] : i8 to f8E4M3FN
  %a = tensor.extract %q[%i] : tensor<8xf8E4M3FN>
  // CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<2xf32>
  // CHECK: complex.create
  %b = tensor.extract %z[%i] : tensor<8xcomplex<f32>>
  // CHECK: scf.while
  // CHECK: arith.mulf
  // CHECK: llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} syncscope("device") monotonic monotonic : !llvm.ptr, i32
  %u = xla_gpu.atomic_rmw %f[%i] : tensor<8xf32> {
  ^bb0(%cur: f32):
    %n = arith.mulf %cur, %x : f32
    xla_gpu.yield %n : f32
  }
  // CHECK: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr, f32
  %v = xla_gpu.atomic_rmw %u[%i] : tensor<8xf32> {
  ^bb0(%cur: f32):
    %n = arith.addf %cur, %x : f32
    xla_gpu.yield %n : f32
  }
  return %a, %b : f8E4M3FN, complex<f32>
}

// CHECK-LABEL: func @fragments(
func.func @fragments(%i: index) -> (vector<4xi32>, vector<4xi32>) {
  %t = xla_gpu.allocate_shared : tensor<1024xbf16>
  // CHECK: %[[P:.*]] = llvm.getelementptr inbounds %{{.*}}[%{{.*}}] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i16
  // CHECK: %[[L:.*]] = llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16"(%[[P]]) : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  // CHECK: llvm.extractvalue %[[L]][3]
  %a = xla_gpu.load_fragments %t[%i] : tensor<1024xbf16>
  // CHECK: "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
  %b = xla_gpu.load_fragments %t[%i] transposed : tensor<1024xbf16>
  return %a, %b : vector<4xi32>, vector<4xi32>
}

// CHECK-LABEL: func @fragments_of_bytes(
func.func @fragments_of_bytes(%i: index) -> vector<4xi32> {
  %t = xla_gpu.allocate_shared : tensor<1024xi8>
  // CHECK: llvm.getelementptr inbounds %{{.*}}[%{{.*}}] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i8
  // CHECK: %[[L:.*]] = llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
  // CHECK: %[[A:.*]] = llvm.extractvalue %[[L]][0]
  // CHECK: %[[B:.*]] = llvm.extractvalue %[[L]][1]
  // CHECK: %[[EVEN:.*]] = llvm.mlir.constant(25632 : i32)
  // CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%[[A]], %[[B]], %[[EVEN]])
  // CHECK: %[[ODD:.*]] = llvm.mlir.constant(30001 : i32)
  // CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%[[A]], %[[B]], %[[ODD]])
  %a = xla_gpu.load_fragments %t[%i] transposed : tensor<1024xi8>
  return %a : vector<4xi32>
}

// CHECK-LABEL: func @fragments_of_bytes_swapped(
// CHECK-SAME: %[[C:[^ :]*]]: i1
func.func @fragments_of_bytes_swapped(%i: index, %c: i1) -> vector<4xi32> {
  %t = xla_gpu.allocate_shared : tensor<1024xi8>
  // CHECK: %[[EVEN:.*]] = llvm.mlir.constant(25632 : i32)
  // CHECK: %[[SWAPPED:.*]] = llvm.mlir.constant(8292 : i32)
  // CHECK: %[[S:.*]] = arith.select %[[C]], %[[SWAPPED]], %[[EVEN]]
  // CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%{{.*}}, %{{.*}}, %[[S]])
  %a = xla_gpu.load_fragments %t[%i] transposed swapped %c : tensor<1024xi8>
  return %a : vector<4xi32>
}

// What was read before a phase was over is not what is there then.
// CHECK-LABEL: func @phases(
func.func @phases(%i: index, %p: i32) -> f32 {
  %t = xla_gpu.allocate_shared : tensor<128xf32>
  %b = xla_gpu.allocate_shared : tensor<4xi64>
  // CHECK: mbarrier.try_wait.parity
  %first = xla_gpu.await_phase %b[%i], %p for %t : tensor<4xi64>, tensor<128xf32>
  // CHECK: %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> f32
  %x = tensor.extract %first[%i] : tensor<128xf32>
  // CHECK: mbarrier.try_wait.parity
  %second = xla_gpu.await_phase %b[%i], %p for %t : tensor<4xi64>, tensor<128xf32>
  // CHECK: %[[Y:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> f32
  %y = tensor.extract %second[%i] : tensor<128xf32>
  // CHECK: arith.addf %[[X]], %[[Y]]
  %z = arith.addf %x, %y : f32
  return %z : f32
}

#times2 = #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 31]">
// CHECK-LABEL: func @copies(
// CHECK-SAME: %[[IN:[^ :]*]]: !llvm.ptr {{[^,]*}}, %[[I:[^ :]*]]: index {{[^,]*, [^,]*}}, %[[C:[^ :]*]]: i1
func.func @copies(%in: tensor<256xbf16> {llvm.align = 16 : index}, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %c: i1) -> bf16 {
  %t = xla_gpu.allocate_shared : tensor<256xbf16>
  %eight = xla_gpu.apply_indexing #times8(%i)
  %two = xla_gpu.apply_indexing #times2(%i)
  // CHECK: %[[TO:.*]] = llvm.getelementptr inbounds %{{.*}}[%{{.*}}] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, bf16
  // CHECK: %[[AT:.*]] = llvm.getelementptr inbounds %[[IN]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
  // CHECK: %[[FROM:.*]] = llvm.addrspacecast %[[AT]] : !llvm.ptr to !llvm.ptr<1>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.cg.shared.global.16"(%[[TO]], %[[FROM]]) : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  %a = xla_gpu.copy_async 8 of %in[%eight] into %t[%eight] : tensor<256xbf16>, tensor<256xbf16>
  // CHECK: %[[SIZE:.*]] = arith.select %[[C]], %{{.*}}, %{{.*}} : i32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.ca.shared.global.4.s"(%{{.*}}, %{{.*}}, %[[SIZE]]) : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  %b = xla_gpu.copy_async 2 of %in[%two] into %a[%two] if %c : tensor<256xbf16>, tensor<256xbf16>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.commit.group"() : () -> ()
  %d = xla_gpu.commit_copies %b : tensor<256xbf16>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.wait.group"(%{{.*}}) : (i32) -> ()
  %e = xla_gpu.await_copies %d but 1 : tensor<256xbf16>
  %x = tensor.extract %e[%i] : tensor<256xbf16>
  return %x : bf16
}

// Shared memory that the launch asks for is one array, of which each tensor has a part.
// CHECK-LABEL: func @dynamic(
func.func @dynamic(%i: index {xla_gpu.range = [0 : index, 31 : index]}) -> f32 attributes {xla_gpu.dynamic_shared = 70000 : i32} {
  // CHECK-DAG: %[[ALL:.*]] = llvm.mlir.addressof @kernel__shared : !llvm.ptr<3>
  // CHECK-DAG: %[[SECOND:.*]] = llvm.getelementptr inbounds %{{.*}}[4112] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %t = xla_gpu.allocate_shared : tensor<1025xf32>
  %u = xla_gpu.allocate_shared : tensor<16384xf32>
  %four = xla_gpu.apply_indexing #times8(%i)
  // Both begin where the widest access may.
  // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
  %v = arith.constant dense<1.0> : vector<4xf32>
  %w = vector.transfer_write %v, %u[%four] {in_bounds = [true]} : vector<4xf32>, tensor<16384xf32>
  %x = tensor.extract %t[%i] : tensor<1025xf32>
  %y = tensor.extract %w[%i] : tensor<16384xf32>
  %z = arith.addf %x, %y : f32
  return %z : f32
}
