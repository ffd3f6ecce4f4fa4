// RUN: hloc opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{bad indexing map}}
#map = #xla_gpu.indexing_map<"(d0) -> (d0 +), domain: d0 in [0, 7]">

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 + s0), domain: d0 in [0, 7], s0 in [0, 3]">
func.func @operands(%a: index) -> index {
  // expected-error @+1 {{has 1 operands, its map has 2 variables}}
  %r = xla_gpu.apply_indexing #map(%a)
  return %r : index
}

// -----

#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0), domain: d0 in [0, 7], d1 in [0, 3], d0 + d1 in [0, 8]">
func.func @constraints(%a: index) -> index {
  // expected-error @+1 {{must not have constraints in its map}}
  %r = xla_gpu.apply_indexing #map(%a, %a)
  return %r : index
}

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 + s0), domain: d0 in [0, 7], s0 in [0, 3]">
func.func @arguments(%a: index) {
  // expected-error @+1 {{needs 1 range variables, 1 map results and 0 iteration arguments, its body has 3 arguments}}
  xla_gpu.loop (%a)[%i, %j] -> (%x) in #map {
  }
  return
}

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 + s0), domain: d0 in [0, 7], s0 in [0, 3]">
func.func @dims() {
  // expected-error @+1 {{has 0 dimension operands, its map has 1 dimensions}}
  xla_gpu.loop ()[%i] -> (%x) in #map {
  }
  return
}

// -----

func.func @callee(%a: f32) -> f32 {
  // expected-error @+1 {{calls `nowhere`, which is no function}}
  %r = xla_gpu.pure_call @nowhere(%a) : (f32) -> f32
  return %r : f32
}

// -----

func.func @callee_type(%a: f32) -> f32 {
  // expected-error @+1 {{calls `g` of type}}
  %r = xla_gpu.pure_call @g(%a) : (f32) -> f32
  return %r : f32
}
func.func private @g(i32) -> f32

// -----

func.func @distance(%a: f32) -> f32 {
  // expected-error @+1 {{needs a distance that is a power of two below 32, not 12}}
  %r = xla_gpu.shuffle_reduce(%a) to 12 combiner=@add : f32
  return %r : f32
}
func.func private @add(f32, f32) -> f32

// -----

func.func @combiner(%a: f32) -> f32 {
  // expected-error @+1 {{needs a combiner of type}}
  %r = xla_gpu.shuffle_reduce(%a) to 16 combiner=@neg : f32
  return %r : f32
}
func.func private @neg(f32) -> f32

// -----

func.func @rank(%t: tensor<4x8xf32>, %i: index, %v: f32, %c: i1) -> tensor<4x8xf32> {
  // expected-error @+1 {{has 1 indices for a tensor of rank 2}}
  %r = xla_gpu.predicated_insert %v into %t[%i] if %c : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

func.func @atomic(%t: tensor<8xf32>, %i: index) -> tensor<8xf32> {
  // expected-error @+1 {{updates elements of type 'f32', its body has an argument of type 'i32'}}
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xf32> {
  ^bb0(%cur: i32):
    xla_gpu.yield %cur : i32
  }
  return %r : tensor<8xf32>
}

// -----

// expected-error @+1 {{`xla_gpu.range` must be [lower : index, upper : index] with lower <= upper}}
func.func @range(%a: index {xla_gpu.range = [3 : index, 1 : index]}) {
  return
}

// -----

// expected-error @+1 {{`xla_gpu.block` must be array<i32: x, y, z> of positive sizes}}
func.func @block() attributes {xla_gpu.block = array<i32: 128, 0, 1>} {
  return
}
