// RUN: hloc opt %s --split-input-file --hloc-inline | FileCheck %s
// What is called once is moved in; small callees are copied; several different calls of a big callee in one block, and calls
// that ask for it, stay.

// CHECK-LABEL: func @single
// CHECK-NOT: pure_call
// CHECK: arith.negf
func.func @single(%a: f32) -> f32 {
  %r = xla_gpu.pure_call @neg(%a) : (f32) -> f32
  return %r : f32
}
// CHECK-NOT: func private @neg
func.func private @neg(%a: f32) -> f32 {
  %r = arith.negf %a : f32
  return %r : f32
}

// -----

// CHECK-LABEL: func @asked
// CHECK: pure_call @neg(%{{.*}}) noinline
func.func @asked(%a: f32) -> f32 {
  %r = xla_gpu.pure_call @neg(%a) noinline : (f32) -> f32
  return %r : f32
}
func.func private @neg(%a: f32) -> f32 {
  %r = arith.negf %a : f32
  return %r : f32
}

// -----

// Two copies of something small.
// CHECK-LABEL: func @twice
// CHECK-NOT: pure_call
func.func @twice(%a: f32, %b: f32) -> f32 {
  %x = xla_gpu.pure_call @small(%a) : (f32) -> f32
  %y = xla_gpu.pure_call @small(%b) : (f32) -> f32
  %r = arith.addf %x, %y : f32
  return %r : f32
}
func.func private @small(%a: f32) -> f32 {
  %v0 = arith.mulf %a, %a : f32
  %r = arith.addf %v0, %a : f32
  return %r : f32
}

// -----

// Four copies of sixty ops with a branch are too many.
// CHECK-LABEL: func @four_times
// CHECK-COUNT-4: pure_call @big
// CHECK-LABEL: func private @big
func.func @four_times(%a: f32, %b: f32, %c: f32, %d: f32) -> (f32, f32, f32, f32) {
  %x = xla_gpu.pure_call @big(%a) : (f32) -> f32
  %y = xla_gpu.pure_call @big(%b) : (f32) -> f32
  %z = xla_gpu.pure_call @big(%c) : (f32) -> f32
  %w = xla_gpu.pure_call @big(%d) : (f32) -> f32
  return %x, %y, %z, %w : f32, f32, f32, f32
}
func.func private @big(%a: f32) -> f32 {
  %v0 = arith.mulf %a, %a : f32
  %v1 = arith.mulf %v0, %a : f32
  %v2 = arith.mulf %v1, %a : f32
  %v3 = arith.mulf %v2, %a : f32
  %v4 = arith.mulf %v3, %a : f32
  %v5 = arith.mulf %v4, %a : f32
  %v6 = arith.mulf %v5, %a : f32
  %v7 = arith.mulf %v6, %a : f32
  %v8 = arith.mulf %v7, %a : f32
  %v9 = arith.mulf %v8, %a : f32
  %v10 = arith.mulf %v9, %a : f32
  %v11 = arith.mulf %v10, %a : f32
  %v12 = arith.mulf %v11, %a : f32
  %v13 = arith.mulf %v12, %a : f32
  %v14 = arith.mulf %v13, %a : f32
  %v15 = arith.mulf %v14, %a : f32
  %v16 = arith.mulf %v15, %a : f32
  %v17 = arith.mulf %v16, %a : f32
  %v18 = arith.mulf %v17, %a : f32
  %v19 = arith.mulf %v18, %a : f32
  %v20 = arith.mulf %v19, %a : f32
  %v21 = arith.mulf %v20, %a : f32
  %v22 = arith.mulf %v21, %a : f32
  %v23 = arith.mulf %v22, %a : f32
  %v24 = arith.mulf %v23, %a : f32
  %v25 = arith.mulf %v24, %a : f32
  %v26 = arith.mulf %v25, %a : f32
  %v27 = arith.mulf %v26, %a : f32
  %v28 = arith.mulf %v27, %a : f32
  %v29 = arith.mulf %v28, %a : f32
  %v30 = arith.mulf %v29, %a : f32
  %v31 = arith.mulf %v30, %a : f32
  %v32 = arith.mulf %v31, %a : f32
  %v33 = arith.mulf %v32, %a : f32
  %v34 = arith.mulf %v33, %a : f32
  %v35 = arith.mulf %v34, %a : f32
  %v36 = arith.mulf %v35, %a : f32
  %v37 = arith.mulf %v36, %a : f32
  %v38 = arith.mulf %v37, %a : f32
  %v39 = arith.mulf %v38, %a : f32
  %v40 = arith.mulf %v39, %a : f32
  %v41 = arith.mulf %v40, %a : f32
  %v42 = arith.mulf %v41, %a : f32
  %v43 = arith.mulf %v42, %a : f32
  %v44 = arith.mulf %v43, %a : f32
  %v45 = arith.mulf %v44, %a : f32
  %v46 = arith.mulf %v45, %a : f32
  %v47 = arith.mulf %v46, %a : f32
  %v48 = arith.mulf %v47, %a : f32
  %v49 = arith.mulf %v48, %a : f32
  %v50 = arith.mulf %v49, %a : f32
  %v51 = arith.mulf %v50, %a : f32
  %v52 = arith.mulf %v51, %a : f32
  %v53 = arith.mulf %v52, %a : f32
  %v54 = arith.mulf %v53, %a : f32
  %v55 = arith.mulf %v54, %a : f32
  %v56 = arith.mulf %v55, %a : f32
  %v57 = arith.mulf %v56, %a : f32
  %v58 = arith.mulf %v57, %a : f32
  %v59 = arith.mulf %v58, %a : f32
  %positive = arith.cmpf ogt, %a, %v0 : f32
  %r = scf.if %positive -> f32 {
    scf.yield %v59 : f32
  } else {
    %n = arith.negf %v59 : f32
    scf.yield %n : f32
  }
  return %r : f32
}

// -----

// Of straight code they are not: what they have in common is computed once.
// CHECK-LABEL: func @four_straight
// CHECK-NOT: pure_call
// CHECK-NOT: func private
func.func @four_straight(%a: f32, %b: f32, %c: f32, %d: f32) -> (f32, f32, f32, f32) {
  %x = xla_gpu.pure_call @straight(%a) : (f32) -> f32
  %y = xla_gpu.pure_call @straight(%b) : (f32) -> f32
  %z = xla_gpu.pure_call @straight(%c) : (f32) -> f32
  %w = xla_gpu.pure_call @straight(%d) : (f32) -> f32
  return %x, %y, %z, %w : f32, f32, f32, f32
}
func.func private @straight(%a: f32) -> f32 {
  %v0 = arith.mulf %a, %a : f32
  %v1 = arith.mulf %v0, %a : f32
  %v2 = arith.mulf %v1, %a : f32
  %v3 = arith.mulf %v2, %a : f32
  %v4 = arith.mulf %v3, %a : f32
  %v5 = arith.mulf %v4, %a : f32
  %v6 = arith.mulf %v5, %a : f32
  %v7 = arith.mulf %v6, %a : f32
  %v8 = arith.mulf %v7, %a : f32
  %v9 = arith.mulf %v8, %a : f32
  %v10 = arith.mulf %v9, %a : f32
  %v11 = arith.mulf %v10, %a : f32
  %v12 = arith.mulf %v11, %a : f32
  %v13 = arith.mulf %v12, %a : f32
  %v14 = arith.mulf %v13, %a : f32
  %v15 = arith.mulf %v14, %a : f32
  %v16 = arith.mulf %v15, %a : f32
  %v17 = arith.mulf %v16, %a : f32
  %v18 = arith.mulf %v17, %a : f32
  %v19 = arith.mulf %v18, %a : f32
  %v20 = arith.mulf %v19, %a : f32
  %v21 = arith.mulf %v20, %a : f32
  %v22 = arith.mulf %v21, %a : f32
  %v23 = arith.mulf %v22, %a : f32
  %v24 = arith.mulf %v23, %a : f32
  %v25 = arith.mulf %v24, %a : f32
  %v26 = arith.mulf %v25, %a : f32
  %v27 = arith.mulf %v26, %a : f32
  %v28 = arith.mulf %v27, %a : f32
  %v29 = arith.mulf %v28, %a : f32
  %v30 = arith.mulf %v29, %a : f32
  %v31 = arith.mulf %v30, %a : f32
  %v32 = arith.mulf %v31, %a : f32
  %v33 = arith.mulf %v32, %a : f32
  %v34 = arith.mulf %v33, %a : f32
  %v35 = arith.mulf %v34, %a : f32
  %v36 = arith.mulf %v35, %a : f32
  %v37 = arith.mulf %v36, %a : f32
  %v38 = arith.mulf %v37, %a : f32
  %v39 = arith.mulf %v38, %a : f32
  %v40 = arith.mulf %v39, %a : f32
  %v41 = arith.mulf %v40, %a : f32
  %v42 = arith.mulf %v41, %a : f32
  %v43 = arith.mulf %v42, %a : f32
  %v44 = arith.mulf %v43, %a : f32
  %v45 = arith.mulf %v44, %a : f32
  %v46 = arith.mulf %v45, %a : f32
  %v47 = arith.mulf %v46, %a : f32
  %v48 = arith.mulf %v47, %a : f32
  %v49 = arith.mulf %v48, %a : f32
  %v50 = arith.mulf %v49, %a : f32
  %v51 = arith.mulf %v50, %a : f32
  %v52 = arith.mulf %v51, %a : f32
  %v53 = arith.mulf %v52, %a : f32
  %v54 = arith.mulf %v53, %a : f32
  %v55 = arith.mulf %v54, %a : f32
  %v56 = arith.mulf %v55, %a : f32
  %v57 = arith.mulf %v56, %a : f32
  %v58 = arith.mulf %v57, %a : f32
  %v59 = arith.mulf %v58, %a : f32
  return %v59 : f32
}

// -----

// CHECK-LABEL: func @moves_only
// CHECK-NOT: pure_call
// CHECK-COUNT-3: tensor.extract
func.func @moves_only(%t: tensor<8xf32>, %i: index, %j: index, %k: index) -> (f32, f32, f32) {
  %x = xla_gpu.pure_call @param(%t, %i) : (tensor<8xf32>, index) -> f32
  %y = xla_gpu.pure_call @param(%t, %j) : (tensor<8xf32>, index) -> f32
  %z = xla_gpu.pure_call @param(%t, %k) : (tensor<8xf32>, index) -> f32
  return %x, %y, %z : f32, f32, f32
}
func.func private @param(%t: tensor<8xf32>, %i: index) -> f32 attributes {xla_gpu.no_compute} {
  %r = tensor.extract %t[%i] : tensor<8xf32>
  return %r : f32
}

// -----

// Helpers that share a helper, read through the same map, share one copy of it in the entry.
// CHECK-LABEL: func @shared
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
// CHECK-NOT: pure_call
func.func @shared(%t: tensor<8xf32>, %i: index) -> f32 {
  %x = xla_gpu.pure_call @f(%t, %i) : (tensor<8xf32>, index) -> f32
  %y = xla_gpu.pure_call @g(%t, %i) : (tensor<8xf32>, index) -> f32
  %r = arith.addf %x, %y : f32
  return %r : f32
}
func.func private @f(%t: tensor<8xf32>, %i: index) -> f32 {
  %h = xla_gpu.pure_call @h(%t, %i) : (tensor<8xf32>, index) -> f32
  %r = arith.negf %h : f32
  return %r : f32
}
func.func private @g(%t: tensor<8xf32>, %i: index) -> f32 {
  %h = xla_gpu.pure_call @h(%t, %i) : (tensor<8xf32>, index) -> f32
  %r = math.absf %h : f32
  return %r : f32
}
func.func private @h(%t: tensor<8xf32>, %i: index) -> f32 {
  %e = tensor.extract %t[%i] : tensor<8xf32>
  %r = math.exp %e : f32
  return %r : f32
}

// -----

// A copy made before a branch serves the branch; what one branch computes does not serve the other.
// CHECK-LABEL: func @branches
// CHECK: math.exp
// CHECK: scf.if
// CHECK-NOT: math.exp
// CHECK: math.absf
// CHECK: else
// CHECK: math.absf
func.func @branches(%a: f32, %c: i1) -> f32 {
  %x = xla_gpu.pure_call @e(%a) : (f32) -> f32
  %r = scf.if %c -> f32 {
    %y = xla_gpu.pure_call @p(%a) : (f32) -> f32
    scf.yield %y : f32
  } else {
    %z = xla_gpu.pure_call @p(%a) : (f32) -> f32
    %w = arith.negf %z : f32
    scf.yield %w : f32
  }
  %s = arith.addf %x, %r : f32
  return %s : f32
}
func.func private @p(%a: f32) -> f32 {
  %x = xla_gpu.pure_call @e(%a) : (f32) -> f32
  %r = math.absf %x : f32
  return %r : f32
}
func.func private @e(%a: f32) -> f32 {
  %r = math.exp %a : f32
  return %r : f32
}

// -----

// The combiner of a reduction is called only when that is lowered: it stays, and its own helpers go into it.
// CHECK-LABEL: func.func @reduces
func.func @reduces(%x: f32) -> f32 attributes {xla_gpu.entry} {
  // CHECK: xla_gpu.shuffle_reduce(%{{.*}}) to 16 combiner=@combine : f32
  %r = xla_gpu.shuffle_reduce(%x) to 16 combiner=@combine : f32
  return %r : f32
}
// CHECK: func.func private @combine(%[[A:.*]]: f32, %[[B:.*]]: f32) -> f32
// CHECK-NEXT: arith.maximumf %[[A]], %[[B]]
func.func private @combine(%a: f32, %b: f32) -> f32 {
  %r = xla_gpu.pure_call @greater(%a, %b) : (f32, f32) -> f32
  return %r : f32
}
func.func private @greater(%a: f32, %b: f32) -> f32 {
  %r = arith.maximumf %a, %b : f32
  return %r : f32
}

// -----

// Results that share big helpers, some of them in branches: one copy of each is all, and what is computed anyway is not
// computed in the branches again.
// CHECK-LABEL: func @shared
// CHECK-NOT: pure_call
// CHECK: arith.cmpi
// CHECK: scf.if
// CHECK-NOT: arith.mulf
// CHECK: return
// CHECK-NOT: func private
func.func @shared(%a: f32, %i: index, %j: index) -> (f32, f32, f32, f32) attributes {xla_gpu.entry} {
  %r:4 = xla_gpu.pure_call @all(%a, %i, %j) : (f32, index, index) -> (f32, f32, f32, f32)
  return %r#0, %r#1, %r#2, %r#3 : f32, f32, f32, f32
}
func.func private @all(%a: f32, %i: index, %j: index) -> (f32, f32, f32, f32) attributes {xla_gpu.no_compute} {
  %x = xla_gpu.pure_call @choose(%a, %i) : (f32, index) -> f32
  %y = xla_gpu.pure_call @choose(%a, %j) : (f32, index) -> f32
  %z = xla_gpu.pure_call @products(%a) : (f32) -> f32
  %w = xla_gpu.pure_call @sums(%a) : (f32) -> f32
  return %x, %y, %z, %w : f32, f32, f32, f32
}
func.func private @choose(%a: f32, %i: index) -> f32 {
  %c1 = arith.constant 1 : index
  %first = arith.cmpi ult, %i, %c1 : index
  %r = scf.if %first -> (f32) {
    %x = xla_gpu.pure_call @products(%a) : (f32) -> f32
    %y = arith.negf %x : f32
    scf.yield %y : f32
  } else {
    %x = xla_gpu.pure_call @sums(%a) : (f32) -> f32
    scf.yield %x : f32
  }
  return %r : f32
}
func.func private @products(%a: f32) -> f32 {
  %v0 = arith.mulf %a, %a : f32
  %v1 = arith.mulf %v0, %a : f32
  %v2 = arith.mulf %v1, %a : f32
  %v3 = arith.mulf %v2, %a : f32
  %v4 = arith.mulf %v3, %a : f32
  %v5 = arith.mulf %v4, %a : f32
  %v6 = arith.mulf %v5, %a : f32
  %v7 = arith.mulf %v6, %a : f32
  %v8 = arith.mulf %v7, %a : f32
  %v9 = arith.mulf %v8, %a : f32
  %v10 = arith.mulf %v9, %a : f32
  %v11 = arith.mulf %v10, %a : f32
  %v12 = arith.mulf %v11, %a : f32
  %v13 = arith.mulf %v12, %a : f32
  %v14 = arith.mulf %v13, %a : f32
  %v15 = arith.mulf %v14, %a : f32
  %v16 = arith.mulf %v15, %a : f32
  %v17 = arith.mulf %v16, %a : f32
  %v18 = arith.mulf %v17, %a : f32
  %v19 = arith.mulf %v18, %a : f32
  %v20 = arith.mulf %v19, %a : f32
  %v21 = arith.mulf %v20, %a : f32
  %v22 = arith.mulf %v21, %a : f32
  %v23 = arith.mulf %v22, %a : f32
  %v24 = arith.mulf %v23, %a : f32
  %v25 = arith.mulf %v24, %a : f32
  %v26 = arith.mulf %v25, %a : f32
  %v27 = arith.mulf %v26, %a : f32
  %v28 = arith.mulf %v27, %a : f32
  %v29 = arith.mulf %v28, %a : f32
  %v30 = arith.mulf %v29, %a : f32
  %v31 = arith.mulf %v30, %a : f32
  %v32 = arith.mulf %v31, %a : f32
  %v33 = arith.mulf %v32, %a : f32
  %v34 = arith.mulf %v33, %a : f32
  %v35 = arith.mulf %v34, %a : f32
  %v36 = arith.mulf %v35, %a : f32
  %v37 = arith.mulf %v36, %a : f32
  %v38 = arith.mulf %v37, %a : f32
  %v39 = arith.mulf %v38, %a : f32
  %v40 = arith.mulf %v39, %a : f32
  %v41 = arith.mulf %v40, %a : f32
  %v42 = arith.mulf %v41, %a : f32
  %v43 = arith.mulf %v42, %a : f32
  %v44 = arith.mulf %v43, %a : f32
  %v45 = arith.mulf %v44, %a : f32
  %v46 = arith.mulf %v45, %a : f32
  %v47 = arith.mulf %v46, %a : f32
  %v48 = arith.mulf %v47, %a : f32
  %v49 = arith.mulf %v48, %a : f32
  %v50 = arith.mulf %v49, %a : f32
  %v51 = arith.mulf %v50, %a : f32
  %v52 = arith.mulf %v51, %a : f32
  %v53 = arith.mulf %v52, %a : f32
  %v54 = arith.mulf %v53, %a : f32
  %v55 = arith.mulf %v54, %a : f32
  %v56 = arith.mulf %v55, %a : f32
  %v57 = arith.mulf %v56, %a : f32
  %v58 = arith.mulf %v57, %a : f32
  %v59 = arith.mulf %v58, %a : f32
  return %v59 : f32
}
func.func private @sums(%a: f32) -> f32 {
  %v0 = arith.addf %a, %a : f32
  %v1 = arith.addf %v0, %a : f32
  %v2 = arith.addf %v1, %a : f32
  %v3 = arith.addf %v2, %a : f32
  %v4 = arith.addf %v3, %a : f32
  %v5 = arith.addf %v4, %a : f32
  %v6 = arith.addf %v5, %a : f32
  %v7 = arith.addf %v6, %a : f32
  %v8 = arith.addf %v7, %a : f32
  %v9 = arith.addf %v8, %a : f32
  %v10 = arith.addf %v9, %a : f32
  %v11 = arith.addf %v10, %a : f32
  %v12 = arith.addf %v11, %a : f32
  %v13 = arith.addf %v12, %a : f32
  %v14 = arith.addf %v13, %a : f32
  %v15 = arith.addf %v14, %a : f32
  %v16 = arith.addf %v15, %a : f32
  %v17 = arith.addf %v16, %a : f32
  %v18 = arith.addf %v17, %a : f32
  %v19 = arith.addf %v18, %a : f32
  %v20 = arith.addf %v19, %a : f32
  %v21 = arith.addf %v20, %a : f32
  %v22 = arith.addf %v21, %a : f32
  %v23 = arith.addf %v22, %a : f32
  %v24 = arith.addf %v23, %a : f32
  %v25 = arith.addf %v24, %a : f32
  %v26 = arith.addf %v25, %a : f32
  %v27 = arith.addf %v26, %a : f32
  %v28 = arith.addf %v27, %a : f32
  %v29 = arith.addf %v28, %a : f32
  %v30 = arith.addf %v29, %a : f32
  %v31 = arith.addf %v30, %a : f32
  %v32 = arith.addf %v31, %a : f32
  %v33 = arith.addf %v32, %a : f32
  %v34 = arith.addf %v33, %a : f32
  %v35 = arith.addf %v34, %a : f32
  %v36 = arith.addf %v35, %a : f32
  %v37 = arith.addf %v36, %a : f32
  %v38 = arith.addf %v37, %a : f32
  %v39 = arith.addf %v38, %a : f32
  %v40 = arith.addf %v39, %a : f32
  %v41 = arith.addf %v40, %a : f32
  %v42 = arith.addf %v41, %a : f32
  %v43 = arith.addf %v42, %a : f32
  %v44 = arith.addf %v43, %a : f32
  %v45 = arith.addf %v44, %a : f32
  %v46 = arith.addf %v45, %a : f32
  %v47 = arith.addf %v46, %a : f32
  %v48 = arith.addf %v47, %a : f32
  %v49 = arith.addf %v48, %a : f32
  %v50 = arith.addf %v49, %a : f32
  %v51 = arith.addf %v50, %a : f32
  %v52 = arith.addf %v51, %a : f32
  %v53 = arith.addf %v52, %a : f32
  %v54 = arith.addf %v53, %a : f32
  %v55 = arith.addf %v54, %a : f32
  %v56 = arith.addf %v55, %a : f32
  %v57 = arith.addf %v56, %a : f32
  %v58 = arith.addf %v57, %a : f32
  %v59 = arith.addf %v58, %a : f32
  return %v59 : f32
}
