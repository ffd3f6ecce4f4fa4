// RUN: hloc opt %s --split-input-file --hloc-convert-complex-to-standard | FileCheck %s

// CHECK-LABEL: func @sum(
func.func @sum(%a: complex<f32>, %b: complex<f32>) -> complex<f32> {
  // CHECK-COUNT-2: arith.addf
  // CHECK-NOT: complex.add
  %c = complex.add %a, %b : complex<f32>
  return %c : complex<f32>
}

// -----

// Without complex numbers nothing is looked at.
// CHECK-LABEL: func @none(
func.func @none(%a: i32) -> i32 {
  // CHECK: arith.muli
  %c1 = arith.constant 1 : i32
  %same = arith.muli %a, %c1 : i32
  return %same : i32
}
