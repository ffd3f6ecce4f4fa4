// RUN: hloc opt %s --hloc-lower-tensors --split-input-file --verify-diagnostics

func.func @rank(%t: tensor<4x8xf32>, %i: index) -> f32 {
  // expected-error @+1 {{tensors must be flat before they are lowered}}
  %x = tensor.extract %t[%i, %i] : tensor<4x8xf32>
  return %x : f32
}

// -----

func.func @branches(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  // expected-error @+1 {{yields different buffers from its branches}}
  %r = scf.if %c -> (tensor<8xf32>) {
    scf.yield %a : tensor<8xf32>
  } else {
    scf.yield %b : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

func.func @swap(%a: tensor<8xf32>, %b: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{exchanges the buffers it iterates over}}
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %y, %x : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0 : tensor<8xf32>
}

// -----

func.func @wide_atomic(%t: tensor<8xcomplex<f64>>, %i: index, %v: complex<f64>) -> tensor<8xcomplex<f64>> {
  // expected-error @+1 {{for which there is no atomic instruction}}
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xcomplex<f64>> {
  ^bb0(%cur: complex<f64>):
    %n = complex.mul %cur, %v : complex<f64>
    xla_gpu.yield %n : complex<f64>
  }
  return %r : tensor<8xcomplex<f64>>
}

// -----

func.func @select(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  // expected-error @+1 {{makes a tensor that is no memory of the kernel}}
  %r = arith.select %c, %a, %b : tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @unwritten(%a: tensor<8xf32> {xla_gpu.invariant}, %b: tensor<8xf32>) -> tensor<8xf32> attributes {xla_gpu.entry} {
  // expected-error @+1 {{returns a buffer that is only read}}
  return %a : tensor<8xf32>
}

// -----

// The last word would reach behind the 3 bytes.
func.func @bytes(%t: tensor<3xi8>, %i: index, %x: i8) -> tensor<3xi8> {
  // expected-error @+1 {{updates part of a word that is not all inside of 'tensor<3xi8>'}}
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<3xi8> {
  ^bb0(%current: i8):
    %next = arith.addi %current, %x : i8
    xla_gpu.yield %next : i8
  }
  return %r : tensor<3xi8>
}

// -----

func.func @copy_of_pieces_that_are_not_aligned(%in: tensor<64xf32>, %i: index) -> f32 {
  %t = xla_gpu.allocate_shared : tensor<64xf32>
  // expected-error @+1 {{copies 16 bytes from or to where fewer are aligned}}
  %a = xla_gpu.copy_async 4 of %in[%i] into %t[%i] : tensor<64xf32>, tensor<64xf32>
  %x = tensor.extract %a[%i] : tensor<64xf32>
  return %x : f32
}

// -----

func.func @copy_into_global_memory(%in: tensor<64xf32>, %out: tensor<64xf32>, %i: index) -> tensor<64xf32> {
  // expected-error @+1 {{copies into a tensor that is not shared}}
  %a = xla_gpu.copy_async 1 of %in[%i] into %out[%i] : tensor<64xf32>, tensor<64xf32>
  return %a : tensor<64xf32>
}

// -----

func.func @more_than_the_launch_asks_for(%i: index) -> f32 attributes {xla_gpu.dynamic_shared = 128 : i32} {
  // expected-error @+1 {{ends at byte 132 of shared memory, of which there are 128}}
  %t = xla_gpu.allocate_shared : tensor<33xf32>
  %x = tensor.extract %t[%i] : tensor<33xf32>
  return %x : f32
}
