// RUN: hloc opt %s --hloc-lower-tensors | FileCheck %s

#times8 = #xla_gpu.indexing_map<"(d0) -> (d0 * 8), domain: d0 in [0, 31]">

// The kinds of updates of global memory: exchanges are stores, extrema of floats are those of integers, vectors and
// pairs of halves are updated at once, a half alone together with a -0, the other half of its word.
// CHECK-LABEL: func @updates(
func.func @updates(%f: tensor<64xf32> {llvm.align = 16 : index}, %h: tensor<64xf16> {llvm.align = 16 : index}, %p: tensor<64xi4>, %i: index {xla_gpu.range = [0 : index, 7 : index]},
                   %x: f32, %xs: vector<4xf32>, %y: f16, %ys: vector<8xf16>, %n: i4) -> (tensor<64xf32>, tensor<64xf16>, tensor<64xi4>) attributes {xla_gpu.entry} {
  // CHECK: "st.relaxed.gpu.global.b32 [$0], $1;"
  %f0 = xla_gpu.atomic_rmw %f[%i] : tensor<64xf32> {
  ^bb0(%cur: f32):
    xla_gpu.yield %x : f32
  }
  // CHECK: llvm.load %{{.*}} atomic syncscope("device") monotonic
  // CHECK-DAG: "red.relaxed.gpu.global.max.s32 [$0], $1;"
  // CHECK-DAG: "red.relaxed.gpu.global.min.u32 [$0], $1;"
  %f1 = xla_gpu.atomic_rmw %f0[%i] : tensor<64xf32> {
  ^bb0(%cur: f32):
    %m = arith.maximumf %x, %cur : f32
    xla_gpu.yield %m : f32
  }
  %k = xla_gpu.apply_indexing #times8(%i)
  // CHECK: "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};"
  %f2 = xla_gpu.atomic_rmw %f1[%k] : tensor<64xf32> {
  ^bb0(%cur: vector<4xf32>):
    %m = arith.addf %cur, %xs : vector<4xf32>
    xla_gpu.yield %m : vector<4xf32>
  }
  // CHECK: "st.relaxed.gpu.global.v4.b32 [$0], {$1, $2, $3, $4};"
  %f3 = xla_gpu.atomic_rmw %f2[%k] : tensor<64xf32> {
  ^bb0(%cur: vector<4xf32>):
    xla_gpu.yield %xs : vector<4xf32>
  }
  // CHECK: "red.relaxed.gpu.global.add.noftz.f16x2 [$0], $1;"
  %h0 = xla_gpu.atomic_rmw %h[%i] : tensor<64xf16> {
  ^bb0(%cur: f16):
    %m = arith.addf %cur, %y : f16
    xla_gpu.yield %m : f16
  }
  // CHECK: "red.relaxed.gpu.global.add.noftz.v4.f16x2 [$0], {$1, $2, $3, $4};"
  %h1 = xla_gpu.atomic_rmw %h0[%k] : tensor<64xf16> {
  ^bb0(%cur: vector<8xf16>):
    %m = arith.addf %cur, %ys : vector<8xf16>
    xla_gpu.yield %m : vector<8xf16>
  }
  // Whoever shares the byte may write at the same time.
  // CHECK: llvm.cmpxchg
  %p0 = xla_gpu.atomic_rmw %p[%i] : tensor<64xi4> {
  ^bb0(%cur: i4):
    xla_gpu.yield %n : i4
  }
  return %f3, %h1, %p0 : tensor<64xf32>, tensor<64xf16>, tensor<64xi4>
}
