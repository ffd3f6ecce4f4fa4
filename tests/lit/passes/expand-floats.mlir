// RUN: hloc opt %s --hloc-expand-floats=sm=90 | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: hloc opt %s --hloc-expand-floats=sm=80 | FileCheck %s --check-prefixes=CHECK,SM80

// Two conversions share an instruction; the older target has integer arithmetic. Neither keeps a small conversion.
// CHECK-LABEL: func @pair(
// SM90: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"
// SM90-NOT: e4m3x2.to
// SM90: llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"
// SM90-NOT: ff.to
// SM80-NOT: call_intrinsic
// CHECK-NOT: f8E4M3FN to f32
// CHECK-NOT: f32 to f8E4M3FN
// CHECK: return
func.func @pair(%a: f8E4M3FN, %b: f8E4M3FN) -> (f8E4M3FN, f8E4M3FN) {
  %x = arith.extf %a : f8E4M3FN to f32
  %p = arith.addf %x, %x : f32
  %r = arith.truncf %p : f32 to f8E4M3FN
  %y = arith.extf %b : f8E4M3FN to f32
  %q = arith.addf %y, %y : f32
  %s = arith.truncf %q : f32 to f8E4M3FN
  return %r, %s : f8E4M3FN, f8E4M3FN
}

// Formats without an instruction; conversions between narrow types meet in f32; signs are bits.
// CHECK-LABEL: func @others(
// CHECK-NOT: call_intrinsic
// CHECK: arith.andi %{{.*}}, %{{.*}} : i4
// CHECK-NOT: math.absf
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: return
func.func @others(%a: f4E2M1FN, %b: f8E5M2FNUZ, %c: bf16) -> (f4E2M1FN, f6E3M2FN, f8E8M0FNU) {
  %x = math.absf %a : f4E2M1FN
  %d = arith.extf %b : f8E5M2FNUZ to f64
  %e = arith.truncf %d : f64 to f6E3M2FN
  %f = arith.truncf %c : bf16 to f8E8M0FNU
  return %x, %e, %f : f4E2M1FN, f6E3M2FN, f8E8M0FNU
}

// Arithmetic is done in f32.
// CHECK-LABEL: func @arithmetic(
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: arith.cmpf olt, %{{.*}}, %{{.*}} : f32
func.func @arithmetic(%a: f8E5M2FNUZ, %b: f8E5M2FNUZ) -> (f8E5M2FNUZ, i1) {
  %s = arith.addf %a, %b : f8E5M2FNUZ
  %c = arith.cmpf olt, %a, %b : f8E5M2FNUZ
  return %s, %c : f8E5M2FNUZ, i1
}
