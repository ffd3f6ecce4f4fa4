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

func.func @barrier_of_some(%t: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %thread = gpu.thread_id x
  %some = arith.cmpi ult, %thread, %n : index
  // expected-note @+1 {{whether this is entered depends on the thread}}
  %r = scf.if %some -> tensor<64xf32> {
    // expected-error @+1 {{must be reached by all threads of the block together}}
    %s = xla_gpu.sync_threads %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  } else {
    scf.yield %t : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// -----

func.func @barrier_of_groups(%t: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @+1 {{has groups of a power of two of threads, of one warp at least}}
  %s = xla_gpu.sync_threads %t of 96 each : tensor<64xf32>
  return %s : tensor<64xf32>
}

// -----

func.func @barrier_of_any_groups(%t: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @+1 {{has groups of a power of two of threads, of one warp at least}}
  %s = xla_gpu.sync_threads %t each : tensor<64xf32>
  return %s : tensor<64xf32>
}

// -----

// The count of iterations is a value that was loaded where a thread says.
func.func @barrier_in_a_loop(%t: tensor<64xindex>, %zero: index, %one: index) -> tensor<64xindex> {
  %thread = gpu.thread_id x
  %count = tensor.extract %t[%thread] : tensor<64xindex>
  // expected-note @+1 {{whether this is entered depends on the thread}}
  %r = scf.for %i = %zero to %count step %one iter_args(%a = %t) -> tensor<64xindex> {
    // expected-error @+1 {{must be reached by all threads of the block together}}
    %s = xla_gpu.sync_threads %a : tensor<64xindex>
    scf.yield %s : tensor<64xindex>
  }
  return %r : tensor<64xindex>
}

// -----

// Of a map's results, the one that is made of the thread.
#both = #xla_gpu.indexing_map<"(d0, d1) -> (d1 floordiv 2, d0 floordiv 2), domain: d0 in [0, 63], d1 in [0, 7]">
func.func @barrier_by_a_map(%t: tensor<64xf32>, %zero: index, %one: index) -> tensor<64xf32> {
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %0:2 = xla_gpu.apply_indexing #both(%thread, %block)
  // expected-note @+1 {{whether this is entered depends on the thread}}
  %r = scf.for %i = %zero to %0#1 step %one iter_args(%a = %t) -> tensor<64xf32> {
    // expected-error @+1 {{must be reached by all threads of the block together}}
    %s = xla_gpu.sync_threads %a : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// -----

// 64 threads, but only those up to 47 enter the loop.
#guarded = #xla_gpu.indexing_map<"(d0)[s0] -> (s0), domain: d0 in [0, 47], s0 in [0, 3]">
func.func @shuffle_under_a_bound(%a: f32) -> f32 {
  %thread = gpu.thread_id x {xla_gpu.range = [0 : index, 63 : index]}
  // expected-note @+1 {{whether this is entered depends on the thread}}
  %r = xla_gpu.loop (%thread)[%s] -> (%i) in #guarded iter_args(%acc = %a) -> (f32) {
    // expected-error @+1 {{must be reached by all threads of the block together}}
    %x = xla_gpu.shuffle_reduce(%acc) to 16 combiner=@add : f32
    xla_gpu.yield %x : f32
  }
  return %r : f32
}
func.func private @add(f32, f32) -> f32

// -----

#odd = #xla_gpu.indexing_map<"(d0)[s0] -> (s0), domain: d0 in [0, 63], s0 in [0, 3], (d0 + s0) mod 2 in [0, 0]">
func.func @shuffle_under_a_constraint(%a: f32) -> f32 {
  %thread = gpu.thread_id x {xla_gpu.range = [0 : index, 63 : index]}
  // expected-note @+1 {{whether this is entered depends on the thread}}
  %r = xla_gpu.loop (%thread)[%s] -> (%i) in #odd iter_args(%acc = %a) -> (f32) {
    // expected-error @+1 {{must be reached by all threads of the block together}}
    %x = xla_gpu.shuffle_reduce(%acc) to 16 combiner=@add : f32
    xla_gpu.yield %x : f32
  }
  return %r : f32
}
func.func private @add(f32, f32) -> f32

// -----

// What a shuffle gives differs from lane to lane, so a condition on it does, too, also through a loop.
func.func @shuffle_of_a_shuffle(%a: f32, %zero: index, %one: index, %n: index) -> f32 {
  %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %a) -> f32 {
    %x = xla_gpu.shuffle_reduce(%acc) to 16 combiner=@add : f32
    scf.yield %x : f32
  }
  %some = arith.cmpf olt, %sum, %a : f32
  // expected-note @+1 {{whether this is entered depends on the thread}}
  %r = scf.if %some -> f32 {
    // expected-error @+1 {{must be reached by all threads of the block together}}
    %x = xla_gpu.shuffle_reduce(%sum) to 16 combiner=@add : f32
    scf.yield %x : f32
  } else {
    scf.yield %a : f32
  }
  return %r : f32
}
func.func private @add(f32, f32) -> f32

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

// -----

func.func @fragments_of_words(%t: tensor<1024xf32>, %i: index) -> vector<4xi32> {
  // expected-error @+1 {{cannot load fragments of 'f32' transposed}}
  %a = xla_gpu.load_fragments %t[%i] transposed : tensor<1024xf32>
  return %a : vector<4xi32>
}

// -----

func.func @fragments_swapped(%t: tensor<1024xbf16>, %i: index, %c: i1) -> vector<4xi32> {
  // expected-error @+1 {{swaps rows of what are no transposed bytes}}
  %a = xla_gpu.load_fragments %t[%i] transposed swapped %c : tensor<1024xbf16>
  return %a : vector<4xi32>
}

// -----

func.func @fragments_of_doubles(%t: tensor<1024xf64>, %i: index) -> vector<4xi32> {
  // expected-error @+1 {{cannot load fragments of 'f64'}}
  %a = xla_gpu.load_fragments %t[%i] : tensor<1024xf64>
  return %a : vector<4xi32>
}

// -----

func.func @fragments_of_matrix(%t: tensor<32x32xf16>, %i: index) -> vector<4xi32> {
  // expected-error @+1 {{needs a flat tensor}}
  %a = xla_gpu.load_fragments %t[%i] : tensor<32x32xf16>
  return %a : vector<4xi32>
}

// -----

func.func @product_of_words(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) -> vector<4xf32> {
  // expected-error @+1 {{cannot multiply fragments of 'f32'}}
  %d = xla_gpu.multiply_fragments %a, %b, %c : f32
  return %d : vector<4xf32>
}

// -----

func.func @product_of_halves_and_bytes(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) -> vector<4xf32> {
  // expected-error @+1 {{cannot multiply fragments of 'f16' by those of 'ui8'}}
  %d = xla_gpu.multiply_fragments %a, %b, %c : f16 by ui8
  return %d : vector<4xf32>
}

// -----

func.func @sums_of_others(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) -> vector<4xf32> {
  // expected-error @+1 {{has other fragments than those of 'si8'}}
  %d = "xla_gpu.multiply_fragments"(%a, %b, %c) {element = si8} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
  return %d : vector<4xf32>
}

// -----

func.func @product_of_some_lanes(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) -> vector<4xf32> {
  %thread = gpu.thread_id x {xla_gpu.range = [0 : index, 127 : index]}
  // expected-note @+1 {{whether this is entered depends on the thread}}
  %r = xla_gpu.loop (%thread)[] -> () in #xla_gpu.indexing_map<"(d0) -> (), domain: d0 in [0, 15]"> iter_args(%s = %c) -> (vector<4xf32>) {
    // expected-error @+1 {{must be reached by all threads of the block together}}
    %d = xla_gpu.multiply_fragments %a, %b, %s : f16
    xla_gpu.yield %d : vector<4xf32>
  }
  return %r : vector<4xf32>
}

// -----

func.func @copy_of_two_bytes(%in: tensor<64xbf16>, %t: tensor<64xbf16>, %i: index) -> tensor<64xbf16> {
  // expected-error @+1 {{copies 4, 8 or 16 bytes, not 16 bits}}
  %a = xla_gpu.copy_async 1 of %in[%i] into %t[%i] : tensor<64xbf16>, tensor<64xbf16>
  return %a : tensor<64xbf16>
}

// -----

func.func @copy_that_converts(%in: tensor<64xf32>, %t: tensor<64xbf16>, %i: index) -> tensor<64xbf16> {
  // expected-error @+1 {{cannot copy 'f32' into a tensor of 'bf16'}}
  %a = xla_gpu.copy_async 4 of %in[%i] into %t[%i] : tensor<64xf32>, tensor<64xbf16>
  return %a : tensor<64xbf16>
}

// -----

func.func @copy_into_matrix(%in: tensor<64xf32>, %t: tensor<8x8xf32>, %i: index) -> tensor<8x8xf32> {
  // expected-error @+1 {{needs a flat tensor to copy into}}
  %a = xla_gpu.copy_async 4 of %in[%i] into %t[%i] : tensor<64xf32>, tensor<8x8xf32>
  return %a : tensor<8x8xf32>
}

// -----

func.func @copy_from_nowhere(%in: tensor<64xf32>, %t: tensor<8xf32>, %i: index) -> tensor<8xf32> {
  // expected-error @+1 {{has 2 indices for a tensor of rank 1}}
  %a = xla_gpu.copy_async 4 of %in[%i, %i] into %t[%i] : tensor<64xf32>, tensor<8xf32>
  return %a : tensor<8xf32>
}

// -----

func.func @copy_of_complex(%in: tensor<64xcomplex<f32>>, %t: tensor<8xcomplex<f32>>, %i: index) -> tensor<8xcomplex<f32>> {
  // expected-error @+1 {{cannot copy 'complex<f32>'}}
  %a = xla_gpu.copy_async 1 of %in[%i] into %t[%i] : tensor<64xcomplex<f32>>, tensor<8xcomplex<f32>>
  return %a : tensor<8xcomplex<f32>>
}
