// RUN: hloc opt %s --hloc-expand-floats=sm=90 | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: hloc opt %s --hloc-expand-floats=sm=80 | FileCheck %s --check-prefixes=CHECK,SM80

// Two conversions share an instruction. The older target has arithmetic, of both as halves of a word from bytes, of each
// by itself to bytes. Neither keeps a small conversion.
// CHECK-LABEL: func @pair(
// SM90: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"
// SM90-NOT: e4m3x2.to
// SM90: llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"
// SM90-NOT: ff.to
// SM80: llvm.call_intrinsic "llvm.nvvm.prmt"
// SM80: math.fma %{{.*}} : vector<2xf16>
// SM80-NOT: call_intrinsic
// SM80-NOT: math.fma
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

// What unpacks and packs neighbours moves with them, so that they still share an instruction.
// CHECK-LABEL: func @packed(
// SM90-COUNT-1: llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"
// SM90-NOT: e5m2x2.to
// SM90-COUNT-1: llvm.call_intrinsic "llvm.nvvm.ff.to.e5m2x2.rn"
// SM90-NOT: ff.to
// CHECK: return
func.func @packed(%word: i16, %empty: vector<2xi8>) -> vector<2xi8> {
  %c8 = arith.constant 8 : i16
  %raw = arith.trunci %word : i16 to i8
  %a = arith.bitcast %raw : i8 to f8E5M2
  %x = arith.extf %a : f8E5M2 to f32
  %p = arith.addf %x, %x : f32
  %r = arith.truncf %p : f32 to f8E5M2
  %low = arith.bitcast %r : f8E5M2 to i8
  %half = vector.insert %low, %empty[0] : i8 into vector<2xi8>
  %shifted = arith.shrui %word, %c8 : i16
  %upper = arith.trunci %shifted : i16 to i8
  %b = arith.bitcast %upper : i8 to f8E5M2
  %y = arith.extf %b : f8E5M2 to f32
  %q = arith.addf %y, %y : f32
  %s = arith.truncf %q : f32 to f8E5M2
  %high = arith.bitcast %s : f8E5M2 to i8
  %full = vector.insert %high, %half[1] : i8 into vector<2xi8>
  return %full : vector<2xi8>
}

// A number that the second conversion is made of cannot wait for it.
// CHECK-LABEL: func @chain(
// SM90-COUNT-2: llvm.call_intrinsic "llvm.nvvm.ff.to.e5m2x2.rn"
// CHECK: return
func.func @chain(%x: f32) -> f8E5M2 {
  %a = arith.truncf %x : f32 to f8E5M2
  %y = arith.extf %a : f8E5M2 to f32
  %z = arith.mulf %y, %x : f32
  %b = arith.truncf %z : f32 to f8E5M2
  return %b : f8E5M2
}

// Without hardware four neighbours are a word, whose bytes are the upper ones of f16; the fifth has a word of its own.
// CHECK-LABEL: func @four(
// SM80-COUNT-3: llvm.call_intrinsic "llvm.nvvm.prmt"
// SM80-NOT: call_intrinsic
// SM90-COUNT-3: llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"
// SM90-NOT: call_intrinsic
// CHECK: return
func.func @four(%bytes: vector<5xf8E5M2>) -> (f32, f32, f32, f32, f32) {
  %a = vector.extract %bytes[0] : f8E5M2 from vector<5xf8E5M2>
  %p = arith.extf %a : f8E5M2 to f32
  %x = arith.addf %p, %p : f32
  %b = vector.extract %bytes[1] : f8E5M2 from vector<5xf8E5M2>
  %q = arith.extf %b : f8E5M2 to f32
  %y = arith.addf %q, %x : f32
  %c = vector.extract %bytes[2] : f8E5M2 from vector<5xf8E5M2>
  %r = arith.extf %c : f8E5M2 to f32
  %d = vector.extract %bytes[3] : f8E5M2 from vector<5xf8E5M2>
  %s = arith.extf %d : f8E5M2 to f32
  %e = vector.extract %bytes[4] : f8E5M2 from vector<5xf8E5M2>
  %t = arith.extf %e : f8E5M2 to f32
  return %x, %y, %r, %s, %t : f32, f32, f32, f32, f32
}

// What the next conversion is made of is not moved before the one that it is made of.
// CHECK-LABEL: func @chain_of_bytes(
// SM80-COUNT-2: llvm.call_intrinsic "llvm.nvvm.prmt"
// SM80-NOT: call_intrinsic
// CHECK: return
func.func @chain_of_bytes(%a: f8E5M2, %b: f8E5M2) -> (f32, f32) {
  %x = arith.extf %a : f8E5M2 to f32
  %y = arith.extf %b : f8E5M2 to f32
  %n = arith.truncf %y : f32 to f8E5M2
  %z = arith.extf %n : f8E5M2 to f32
  return %x, %z : f32, f32
}
