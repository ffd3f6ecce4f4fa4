// RUN: hloc opt %s --hloc-propagate-slice-indices | FileCheck %s

func.func @entry(%a: tensor<8xf32> {xla_gpu.slice_index = 0 : index, xla_gpu.invariant, llvm.align = 16 : index},
                 %b: tensor<8xf32> {xla_gpu.slice_index = 1 : index, llvm.align = 256 : index}, %i: index, %v: f32) -> tensor<8xf32>
    attributes {xla_gpu.entry} {
  %x = xla_gpu.pure_call @outer(%a, %b, %i) : (tensor<8xf32>, tensor<8xf32>, index) -> f32
  %n = tensor.insert %x into %b[%i] : tensor<8xf32>
  %s = xla_gpu.allocate_shared : tensor<8xf32>
  %y = xla_gpu.pure_call @mixed(%a, %n) : (tensor<8xf32>, tensor<8xf32>) -> f32
  %z = xla_gpu.pure_call @mixed(%s, %b) : (tensor<8xf32>, tensor<8xf32>) -> f32
  return %n : tensor<8xf32>
}
// Through a chain of helpers, and whatever their order in the module.
// CHECK: func private @inner(%arg0: tensor<8xf32> {llvm.align = 16 : index, xla_gpu.invariant, xla_gpu.slice_index = 0 : index}, %arg1: index)
func.func private @inner(%t: tensor<8xf32>, %i: index) -> f32 {
  %x = tensor.extract %t[%i] : tensor<8xf32>
  return %x : f32
}
// CHECK: func private @outer(%arg0: tensor<8xf32> {{{.*}}xla_gpu.slice_index = 0 : index}, %arg1: tensor<8xf32> {llvm.align = 256 : index, xla_gpu.slice_index = 1 : index}, %arg2: index)
func.func private @outer(%t: tensor<8xf32>, %u: tensor<8xf32>, %i: index) -> f32 {
  %x = xla_gpu.pure_call @inner(%t, %i) : (tensor<8xf32>, index) -> f32
  return %x : f32
}
// Callers that disagree, or hand over shared memory, give no identity; a written output keeps its own.
// CHECK: func private @mixed(tensor<8xf32>, tensor<8xf32> {llvm.align = 256 : index, xla_gpu.slice_index = 1 : index})
func.func private @mixed(tensor<8xf32>, tensor<8xf32>) -> f32
