// RUN: hloc opt %s --hloc-expand-math --convert-scf-to-cf --hloc-lower-to-llvm | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: hloc opt %s --hloc-expand-math=sm=70 --convert-scf-to-cf --hloc-lower-to-llvm | FileCheck %s --check-prefixes=CHECK,SM70

// CHECK-DAG: llvm.func @__nv_cbrtf(f32) -> f32
// CHECK-DAG: llvm.func @__nv_exp(f64) -> f64
// CHECK-DAG: llvm.func @__nv_fmodf(f32, f32) -> f32

// Expanded here: one hardware exponential, no call; bf16 is computed in f32.
// CHECK-LABEL: llvm.func @expanded(
// CHECK: llvm.intr.exp2
// CHECK-NOT: llvm.call
// CHECK: llvm.fpext %{{.*}} : bf16 to f32
// CHECK-NOT: llvm.call
// CHECK: llvm.fptrunc %{{.*}} : f32 to bf16
// CHECK-NOT: llvm.call
// CHECK: llvm.return
func.func @expanded(%x: f32, %h: bf16) -> (f32, bf16, f32) {
  %a = math.exp %x : f32
  %b = math.tanh %h : bf16
  %c = math.erf %x : f32
  return %a, %b, %c : f32, bf16, f32
}

// With leave to approximate: the hardware's instructions, tanh only where there is one.
// CHECK-LABEL: llvm.func @approximate(
// CHECK-NOT: llvm.intr.fma
// CHECK: llvm.intr.exp2
// CHECK: llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"
// SM90: llvm.intr.tanh(%{{.*}}) {fastmathFlags = #llvm.fastmath<afn>}
// SM70-NOT: llvm.intr.tanh
// SM70: llvm.fdiv
// CHECK: llvm.return
func.func @approximate(%x: f32) -> (f32, f32, f32) {
  %a = math.exp %x fastmath<afn> : f32
  %b = math.log %x fastmath<afn> : f32
  %c = math.tanh %x fastmath<afn> : f32
  return %a, %b, %c : f32, f32, f32
}

// 1 + tanh where nothing else reads tanh, which `reassoc` allows: half of it is 1 / (1 + e^-2x), and a gelu takes half.
// CHECK-LABEL: llvm.func @beside_one(
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: %[[HALF:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// CHECK-NOT: llvm.fdiv
// CHECK: %[[OTHER:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// CHECK: %[[WHOLE:.*]] = llvm.fmul %[[OTHER]]
// CHECK: llvm.insertvalue %[[HALF]]
// CHECK: llvm.insertvalue %[[WHOLE]]
func.func @beside_one(%x: f32, %y: f32) -> (f32, f32) {
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %tanh = math.tanh %x fastmath<contract,reassoc> : f32
  %sum = arith.addf %tanh, %one fastmath<contract> : f32
  %gelu = arith.mulf %sum, %half fastmath<contract> : f32
  %again = math.tanh %y fastmath<contract,reassoc> : f32
  %other = arith.addf %one, %again fastmath<contract> : f32
  return %gelu, %other : f32, f32
}

// Not without leave, and not where anything else reads it.
// CHECK-LABEL: llvm.func @beside_others(
// CHECK-NOT: ex2
// CHECK-COUNT-2: llvm.fdiv
// CHECK-NOT: ex2
// CHECK: return
func.func @beside_others(%x: f32, %y: f32) -> (f32, f32) {
  %one = arith.constant 1.0 : f32
  %tanh = math.tanh %x fastmath<contract> : f32
  %sum = arith.addf %tanh, %one fastmath<contract> : f32
  %again = math.tanh %y fastmath<contract,reassoc> : f32
  %other = arith.addf %one, %again fastmath<contract> : f32
  %product = arith.mulf %again, %other fastmath<contract> : f32
  return %sum, %product : f32, f32
}

// A difference that says nothing of `contract` is of numbers rounded as they are; one with leave may become an fma.
// CHECK-LABEL: llvm.func @difference(
// CHECK: %[[TIMES:.*]] = llvm.fmul
// CHECK: %[[MINUS:.*]] = llvm.fneg
// CHECK: llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[TIMES]], %[[MINUS]])
// CHECK: llvm.fsub
// CHECK: llvm.return
func.func @difference(%x: f32, %y: f32) -> (f32, f32) {
  %times = arith.mulf %x, %x fastmath<contract> : f32
  %rounded = arith.subf %times, %y : f32
  %fused = arith.subf %times, %y fastmath<contract> : f32
  return %rounded, %fused : f32, f32
}

// CHECK-LABEL: llvm.func @instructions(
// CHECK: llvm.intr.fabs
// CHECK: llvm.intr.floor
// CHECK: llvm.intr.sqrt
// CHECK: llvm.intr.fma
// CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
// CHECK: llvm.intr.roundeven
// CHECK: "llvm.intr.ctlz"(%{{.*}}) <{is_zero_poison = false}>
// CHECK-NOT: llvm.call @
func.func @instructions(%x: f32, %i: i32) -> (f32, i32) {
  %a = math.absf %x : f32
  %b = math.floor %a : f32
  %c = math.sqrt %b : f32
  %d = math.fma %a, %b, %c : f32
  %e = math.rsqrt %d : f32
  %f = math.roundeven %e : f32
  %g = math.ctlz %i : i32
  return %f, %g : f32, i32
}

// CHECK-LABEL: llvm.func @libdevice(
// CHECK: llvm.call @__nv_cbrtf(%{{.*}}) : (f32) -> f32
// CHECK: %[[W:.*]] = llvm.fpext %{{.*}} : f16 to f32
// CHECK: %[[S:.*]] = llvm.call @__nv_cbrtf(%[[W]]) : (f32) -> f32
// CHECK: llvm.fptrunc %[[S]] : f32 to f16
// CHECK: llvm.call @__nv_exp(%{{.*}}) : (f64) -> f64
// CHECK: llvm.call @__nv_fmodf
func.func @libdevice(%x: f32, %h: f16, %d: f64) -> (f32, f16, f64, f32) {
  %a = math.cbrt %x : f32
  %b = math.cbrt %h : f16
  %c = math.exp %d : f64
  %r = arith.remf %x, %a : f32
  return %a, %b, %c, %r : f32, f16, f64, f32
}

// Sine and cosine of one number: one reduction of the argument, with a branch for the large ones; no local memory.
// CHECK-LABEL: llvm.func @sine_and_cosine(
// CHECK: llvm.cond_br
// CHECK: llvm.intr.fshl
// CHECK-NOT: llvm.cond_br
// CHECK-NOT: llvm.call
func.func @sine_and_cosine(%x: f32) -> (f32, f32) {
  %a = math.sin %x : f32
  %b = math.cos %x : f32
  return %a, %b : f32, f32
}

// Quotients of f16 numbers: a reciprocal, and a correction unless nothing is left or nothing is a number.
// CHECK-LABEL: llvm.func @quotient(
// CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%arg1)
// CHECK: %[[Q:.*]] = llvm.fmul %arg0, %[[R]]
// CHECK: %[[NEGATIVE:.*]] = llvm.fneg %[[Q]]
// CHECK: %[[REST:.*]] = llvm.intr.fma(%[[NEGATIVE]], %arg1, %arg0)
// CHECK: %[[BETTER:.*]] = llvm.intr.fma(%[[REST]], %[[R]], %[[Q]])
// CHECK: %[[DIFFERS:.*]] = llvm.fcmp "one" %[[REST]]
// CHECK: llvm.select %[[DIFFERS]], %[[BETTER]], %[[Q]]
// CHECK: llvm.fdiv
func.func @quotient(%x: f32, %y: f32) -> (f32, f32) {
  %a = arith.divf %x, %y fastmath<arcp> : f32
  %b = arith.divf %x, %y : f32
  return %a, %b : f32, f32
}

// Of bf16: the quotient of f32, put on multiples of eight of its smallest units, with its own sign.
// CHECK-LABEL: llvm.func @quotient_of_bf16(
// CHECK: %[[X:.*]] = llvm.fpext %arg0
// CHECK: %[[Y:.*]] = llvm.fpext %arg1
// CHECK: %[[Q:.*]] = llvm.fdiv %[[X]], %[[Y]]
// CHECK: %[[LAST:.*]] = llvm.mlir.constant(1.41059322E-37 : f32)
// CHECK: %[[UP:.*]] = llvm.fadd %[[Q]], %[[LAST]]
// CHECK: %[[NEGATIVE:.*]] = llvm.fneg %[[LAST]]
// CHECK: "llvm.nvvm.add.rn.f"(%[[UP]], %[[NEGATIVE]])
// CHECK: %[[BITS:.*]] = llvm.bitcast %[[Q]]
// CHECK: %[[SIGN:.*]] = llvm.and %[[BITS]]
// CHECK: llvm.or %{{.*}}, %[[SIGN]]
// CHECK: llvm.fptrunc
func.func @quotient_of_bf16(%x: bf16, %y: bf16) -> bf16 {
  %a = arith.divf %x, %y : bf16
  return %a : bf16
}

// A divisor of several is inverted once; what is divided by a constant is multiplied by its inverse, and by that of a
// power of two in bf16 itself, which LLVM does.
// CHECK-LABEL: llvm.func @quotients_of_bf16(
// CHECK-NOT: llvm.fdiv {{.*}} : f32
// CHECK-COUNT-1: rcp.approx.ftz
// CHECK-NOT: rcp.approx.ftz
// CHECK-NOT: llvm.fdiv {{.*}} : f32
// CHECK: llvm.fdiv {{.*}} : bf16
// CHECK-NOT: llvm.fdiv
// CHECK: llvm.return
func.func @quotients_of_bf16(%x: bf16, %y: bf16) -> (bf16, bf16, bf16, bf16) {
  %three = arith.constant 3.0 : bf16
  %four = arith.constant 4.0 : bf16
  %a = arith.divf %x, %y : bf16
  %b = arith.divf %three, %y : bf16
  %c = arith.divf %x, %three : bf16
  %d = arith.divf %x, %four : bf16
  return %a, %b, %c, %d : bf16, bf16, bf16, bf16
}

// That of a loop which it is not part of is one of several.
// CHECK-LABEL: llvm.func @quotients_in_a_loop(
// CHECK: rcp.approx.ftz
// CHECK: llvm.cond_br
// CHECK-NOT: rcp.approx.ftz
// CHECK: llvm.return
func.func @quotients_in_a_loop(%x: bf16, %y: bf16, %n: index) -> bf16 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> bf16 {
    %q = arith.divf %v, %y : bf16
    scf.yield %q : bf16
  }
  return %r : bf16
}
