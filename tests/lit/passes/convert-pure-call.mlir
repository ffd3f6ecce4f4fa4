// RUN: hloc opt %s --hloc-convert-pure-call | FileCheck %s

// CHECK-LABEL: func @caller(
func.func @caller(%x: f32) -> (f32, f32) {
  // CHECK: call @f(%{{.*}}) : (f32) -> f32
  // CHECK: call @f(%{{.*}}) {no_inline} : (f32) -> f32
  %a = xla_gpu.pure_call @f(%x) : (f32) -> f32
  %b = xla_gpu.pure_call @f(%a) noinline : (f32) -> f32
  return %a, %b : f32, f32
}
func.func private @f(f32) -> f32
