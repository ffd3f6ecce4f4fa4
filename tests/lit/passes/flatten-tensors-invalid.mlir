// RUN: hloc opt %s --hloc-flatten-tensors --split-input-file --verify-diagnostics

#layout = dense<[0, 0]> : tensor<2xi64>
func.func @layout(%t: tensor<4x8xf32, #layout>, %i: index) -> f32 {
  // expected-error @+1 {{whose shape or layout is not static}}
  %x = tensor.extract %t[%i, %i] : tensor<4x8xf32, #layout>
  return %x : f32
}

// -----

func.func @dynamic(%t: tensor<?x8xf32>, %i: index) -> f32 {
  // expected-error @+1 {{whose shape or layout is not static}}
  %x = tensor.extract %t[%i, %i] : tensor<?x8xf32>
  return %x : f32
}

// -----

func.func @slice(%t: tensor<4x8xf32>) -> tensor<2x8xf32> {
  // expected-error @+1 {{cannot access a tensor that is not rank 1 in the default layout}}
  %x = tensor.extract_slice %t[0, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
  return %x : tensor<2x8xf32>
}
