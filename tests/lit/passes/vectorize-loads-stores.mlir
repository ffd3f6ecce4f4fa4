// RUN: hloc opt %s --hloc-vectorize-loads-stores --mlir-print-local-scope | FileCheck %s

// Through div and mod: a vector that starts at a multiple of 4 never leaves a bucket of 64.
#swizzled = #xla_gpu.indexing_map<"(d0, d1) -> (((d0 * 4 + d1) floordiv 64) * 128 + (d0 * 4 + d1) mod 64), domain: d0 in [0, 63], d1 in [0, 3]">
// CHECK-LABEL: func @through_div(
func.func @through_div(%t: tensor<512xf32>, %out: tensor<512xf32>, %i: index {xla_gpu.range = [0 : index, 63 : index]}) -> tensor<512xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // CHECK: %[[BASE:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> {{.*}}, domain: d0 in [0, 63]">
  // CHECK: %[[V:.*]] = vector.transfer_read %{{.*}}[%[[BASE]]], %{{.*}} {in_bounds = [true]} : tensor<512xf32>, vector<4xf32>
  // CHECK: %[[LOOP:.*]]:2 = scf.for %[[IV:.*]] = {{.*}} iter_args(%[[T:.*]] = %{{.*}}, %[[ACC:.*]] = %{{.*}}) -> (tensor<512xf32>, vector<4xf32>)
  // CHECK:   vector.extract %[[V]][%[[IV]]]
  // CHECK:   %[[N:.*]] = vector.insert %{{.*}}, %[[ACC]] [%[[IV]]]
  // CHECK:   scf.yield %[[T]], %[[N]]
  // CHECK: vector.transfer_write %[[LOOP]]#1, %{{.*}}[%{{.*}}] {in_bounds = [true]} : vector<4xf32>, tensor<512xf32>
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %out) -> (tensor<512xf32>) {
    %k = xla_gpu.apply_indexing #swizzled(%i, %iv)
    %x = tensor.extract %t[%k] : tensor<512xf32>
    %y = arith.negf %x : f32
    %n = tensor.insert %y into %acc[%k] : tensor<512xf32>
    scf.yield %n : tensor<512xf32>
  }
  return %r : tensor<512xf32>
}

// A vector of 4 may cross a bucket of 6; odd starts have no vector; the iv must step by one.
#crosses = #xla_gpu.indexing_map<"(d0, d1) -> (((d0 * 4 + d1) floordiv 6) * 8 + (d0 * 4 + d1) mod 6), domain: d0 in [0, 31], d1 in [0, 3]">
#odd = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 3 + d1), domain: d0 in [0, 31], d1 in [0, 3]">
#strided = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 16 + d1 * 4), domain: d0 in [0, 31], d1 in [0, 3]">
// CHECK-LABEL: func @not_consecutive(
// CHECK-NOT: vector
func.func @not_consecutive(%t: tensor<512xf32>, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %z: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %z) -> (f32) {
    %k0 = xla_gpu.apply_indexing #crosses(%i, %iv)
    %k1 = xla_gpu.apply_indexing #odd(%i, %iv)
    %k2 = xla_gpu.apply_indexing #strided(%i, %iv)
    %x0 = tensor.extract %t[%k0] : tensor<512xf32>
    %x1 = tensor.extract %t[%k1] : tensor<512xf32>
    %x2 = tensor.extract %t[%k2] : tensor<512xf32>
    %a = arith.addf %acc, %x0 : f32
    %b = arith.addf %a, %x1 : f32
    %c = arith.addf %b, %x2 : f32
    scf.yield %c : f32
  }
  return %r : f32
}

// Every second element: vectors of twice as many, from which they are picked, also where they are odd ones or backwards.
// Not where the array may end inside of such a vector, or where each would have one element.
#evens = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1 * 2), domain: d0 in [0, 31], d1 in [0, 3]">
#odds = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1 * 2 + 1), domain: d0 in [0, 31], d1 in [0, 3]">
#turned = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 - d1 * 2 + 6), domain: d0 in [0, 31], d1 in [0, 3]">
// CHECK-LABEL: func @every_second(
// CHECK: %[[X:.*]] = vector.transfer_read {{.*}} : tensor<512xf32>, vector<8xf32>
// CHECK: vector.shuffle %[[X]], %[[X]] [0, 2, 4, 6]
// CHECK: %[[Y:.*]] = vector.transfer_read {{.*}} : tensor<512xf32>, vector<8xf32>
// CHECK: vector.shuffle %[[Y]], %[[Y]] [1, 3, 5, 7]
// CHECK: %[[Z:.*]] = vector.transfer_read {{.*}} : tensor<512xf32>, vector<8xf32>
// CHECK: vector.shuffle %[[Z]], %[[Z]] [6, 4, 2, 0]
// CHECK-NOT: vector.transfer_read
// CHECK: tensor.extract {{.*}} : tensor<508xf32>
// CHECK: tensor.extract {{.*}} : tensor<512xf64>
func.func @every_second(%t: tensor<512xf32>, %u: tensor<508xf32>, %w: tensor<512xf64>, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %z: f32, %y: f64) -> (f32, f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:2 = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %z, %wide = %y) -> (f32, f64) {
    %k0 = xla_gpu.apply_indexing #evens(%i, %iv)
    %k1 = xla_gpu.apply_indexing #odds(%i, %iv)
    %k2 = xla_gpu.apply_indexing #turned(%i, %iv)
    %x0 = tensor.extract %t[%k0] : tensor<512xf32>
    %x1 = tensor.extract %t[%k1] : tensor<512xf32>
    %x2 = tensor.extract %t[%k2] : tensor<512xf32>
    %x3 = tensor.extract %u[%k0] : tensor<508xf32>
    %x4 = tensor.extract %w[%k0] : tensor<512xf64>
    %a = arith.addf %acc, %x0 : f32
    %b = arith.addf %a, %x1 : f32
    %c = arith.addf %b, %x2 : f32
    %d = arith.addf %c, %x3 : f32
    %e = arith.addf %wide, %x4 : f64
    scf.yield %d, %e : f32, f64
  }
  return %r#0, %r#1 : f32, f64
}

// The elements of a small window are straight code, so that neighbours' are loaded together; those of a large one stay.
#window = #xla_gpu.indexing_map<"(d0, d1, d2) -> (d0 * 4 + d1 + d2 * 128), domain: d0 in [0, 31], d1 in [0, 3], d2 in [0, 31]">
#result = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 31], d1 in [0, 3]">
// CHECK-LABEL: func @windows(
// CHECK-COUNT-3: vector.transfer_read {{.*}} vector<4xf32>
// CHECK-NOT: vector.transfer_read
// CHECK: scf.for
// CHECK-COUNT-3: arith.addf
// CHECK: scf.for
// CHECK: tensor.extract
// CHECK: vector.transfer_write
func.func @windows(%t: tensor<4096xf32>, %out: tensor<128xf32>, %far: tensor<128xf32>, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %z: f32) -> (tensor<128xf32>, tensor<128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %out) -> (tensor<128xf32>) {
    %sum = scf.for %w = %c0 to %c3 step %c1 iter_args(%part = %z) -> (f32) {
      %k = xla_gpu.apply_indexing #window(%i, %iv, %w)
      %x = tensor.extract %t[%k] : tensor<4096xf32>
      %next = arith.addf %part, %x : f32
      scf.yield %next : f32
    }
    %l = xla_gpu.apply_indexing #result(%i, %iv)
    %n = tensor.insert %sum into %acc[%l] : tensor<128xf32>
    scf.yield %n : tensor<128xf32>
  }
  %q = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %far) -> (tensor<128xf32>) {
    %sum = scf.for %w = %c0 to %c32 step %c1 iter_args(%part = %z) -> (f32) {
      %k = xla_gpu.apply_indexing #window(%i, %iv, %w)
      %x = tensor.extract %t[%k] : tensor<4096xf32>
      %next = arith.addf %part, %x : f32
      scf.yield %next : f32
    }
    %l = xla_gpu.apply_indexing #result(%i, %iv)
    %n = tensor.insert %sum into %acc[%l] : tensor<128xf32>
    scf.yield %n : tensor<128xf32>
  }
  return %r, %q : tensor<128xf32>, tensor<128xf32>
}

// Broadcast: the same element for all iterations is loaded once, as a scalar. A tensor written in the loop stays.
#bucket = #xla_gpu.indexing_map<"(d0, d1) -> ((d0 * 4 + d1) floordiv 8), domain: d0 in [0, 31], d1 in [0, 3]">
#unit = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 31], d1 in [0, 3]">
// CHECK-LABEL: func @broadcast(
func.func @broadcast(%t: tensor<16xf32>, %out: tensor<128xf32>, %i: index {xla_gpu.range = [0 : index, 31 : index]}) -> tensor<128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // CHECK: tensor.extract %{{.*}} : tensor<16xf32>
  // CHECK: scf.for
  // CHECK-NOT: tensor<16xf32>
  // CHECK: tensor.extract %{{.*}} : tensor<128xf32>
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %out) -> (tensor<128xf32>) {
    %k = xla_gpu.apply_indexing #bucket(%i, %iv)
    %x = tensor.extract %t[%k] : tensor<16xf32>
    %l = xla_gpu.apply_indexing #unit(%i, %iv)
    %own = tensor.extract %acc[%l] : tensor<128xf32>
    %s = arith.addf %x, %own : f32
    %n = tensor.insert %s into %acc[%l] : tensor<128xf32>
    scf.yield %n : tensor<128xf32>
  }
  return %r : tensor<128xf32>
}

// Three elements that start anywhere even: pairs are worth it. Packed elements must fill bytes.
#even = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 6 + d1), domain: d0 in [0, 31], d1 in [0, 5]">
// CHECK-LABEL: func @six(
// CHECK: vector.transfer_read {{.*}} vector<6xf16>
// CHECK: vector.transfer_read {{.*}} vector<6xi4>
// CHECK-NOT: vector.transfer_read
func.func @six(%h: tensor<192xf16>, %n: tensor<192xi4>, %b: tensor<192xi2>, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %z: i4, %y: f16, %w: i2) -> (f16, i4, i2) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %r:3 = scf.for %iv = %c0 to %c6 step %c1 iter_args(%p = %y, %q = %z, %s = %w) -> (f16, i4, i2) {
    %k = xla_gpu.apply_indexing #even(%i, %iv)
    %x0 = tensor.extract %h[%k] : tensor<192xf16>
    %x1 = tensor.extract %n[%k] : tensor<192xi4>
    %x2 = tensor.extract %b[%k] : tensor<192xi2>
    %a = arith.addf %p, %x0 : f16
    %b0 = arith.addi %q, %x1 : i4
    %c = arith.addi %s, %x2 : i2
    scf.yield %a, %b0, %c : f16, i4, i2
  }
  return %r#0, %r#1, %r#2 : f16, i4, i2
}

// Sixteen iterations of a long body are not worth sixteen copies of it.
#sixteen = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 16 + d1), domain: d0 in [0, 31], d1 in [0, 15]">
// CHECK-LABEL: func @long_body(
// CHECK-NOT: vector
func.func @long_body(%t: tensor<512xf32>, %i: index {xla_gpu.range = [0 : index, 31 : index]}, %z: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %r = scf.for %iv = %c0 to %c16 step %c1 iter_args(%acc = %z) -> (f32) {
    %k = xla_gpu.apply_indexing #sixteen(%i, %iv)
    %v0 = tensor.extract %t[%k] : tensor<512xf32>
    %v1 = arith.mulf %v0, %v0 : f32
    %v2 = arith.mulf %v1, %v1 : f32
    %v3 = arith.mulf %v2, %v2 : f32
    %v4 = arith.mulf %v3, %v3 : f32
    %v5 = arith.mulf %v4, %v4 : f32
    %v6 = arith.mulf %v5, %v5 : f32
    %v7 = arith.mulf %v6, %v6 : f32
    %v8 = arith.mulf %v7, %v7 : f32
    %v9 = arith.mulf %v8, %v8 : f32
    %v10 = arith.mulf %v9, %v9 : f32
    %v11 = arith.mulf %v10, %v10 : f32
    %v12 = arith.mulf %v11, %v11 : f32
    %v13 = arith.mulf %v12, %v12 : f32
    %v14 = arith.mulf %v13, %v13 : f32
    %v15 = arith.mulf %v14, %v14 : f32
    %v16 = arith.mulf %v15, %v15 : f32
    %v17 = arith.mulf %v16, %v16 : f32
    %v18 = arith.mulf %v17, %v17 : f32
    %v19 = arith.mulf %v18, %v18 : f32
    %v20 = arith.mulf %v19, %v19 : f32
    %v21 = arith.mulf %v20, %v20 : f32
    %v22 = arith.mulf %v21, %v21 : f32
    %v23 = arith.mulf %v22, %v22 : f32
    %v24 = arith.mulf %v23, %v23 : f32
    %v25 = arith.mulf %v24, %v24 : f32
    %v26 = arith.mulf %v25, %v25 : f32
    %v27 = arith.mulf %v26, %v26 : f32
    %v28 = arith.mulf %v27, %v27 : f32
    %v29 = arith.mulf %v28, %v28 : f32
    %v30 = arith.mulf %v29, %v29 : f32
    %v31 = arith.mulf %v30, %v30 : f32
    %v32 = arith.mulf %v31, %v31 : f32
    %v33 = arith.mulf %v32, %v32 : f32
    %v34 = arith.mulf %v33, %v33 : f32
    %v35 = arith.mulf %v34, %v34 : f32
    %v36 = arith.mulf %v35, %v35 : f32
    %v37 = arith.mulf %v36, %v36 : f32
    %v38 = arith.mulf %v37, %v37 : f32
    %v39 = arith.mulf %v38, %v38 : f32
    %v40 = arith.mulf %v39, %v39 : f32
    %v41 = arith.mulf %v40, %v40 : f32
    %v42 = arith.mulf %v41, %v41 : f32
    %v43 = arith.mulf %v42, %v42 : f32
    %v44 = arith.mulf %v43, %v43 : f32
    %v45 = arith.mulf %v44, %v44 : f32
    %v46 = arith.mulf %v45, %v45 : f32
    %v47 = arith.mulf %v46, %v46 : f32
    %v48 = arith.mulf %v47, %v47 : f32
    %v49 = arith.mulf %v48, %v48 : f32
    %v50 = arith.mulf %v49, %v49 : f32
    %v51 = arith.mulf %v50, %v50 : f32
    %v52 = arith.mulf %v51, %v51 : f32
    %v53 = arith.mulf %v52, %v52 : f32
    %v54 = arith.mulf %v53, %v53 : f32
    %v55 = arith.mulf %v54, %v54 : f32
    %v56 = arith.mulf %v55, %v55 : f32
    %v57 = arith.mulf %v56, %v56 : f32
    %v58 = arith.mulf %v57, %v57 : f32
    %v59 = arith.mulf %v58, %v58 : f32
    %v60 = arith.mulf %v59, %v59 : f32
    %v61 = arith.mulf %v60, %v60 : f32
    %v62 = arith.mulf %v61, %v61 : f32
    %v63 = arith.mulf %v62, %v62 : f32
    %v64 = arith.mulf %v63, %v63 : f32
    %v65 = arith.mulf %v64, %v64 : f32
    %v66 = arith.mulf %v65, %v65 : f32
    %v67 = arith.mulf %v66, %v66 : f32
    %v68 = arith.mulf %v67, %v67 : f32
    %v69 = arith.mulf %v68, %v68 : f32
    %v70 = arith.mulf %v69, %v69 : f32
    %v71 = arith.mulf %v70, %v70 : f32
    %v72 = arith.mulf %v71, %v71 : f32
    %v73 = arith.mulf %v72, %v72 : f32
    %v74 = arith.mulf %v73, %v73 : f32
    %v75 = arith.mulf %v74, %v74 : f32
    %v76 = arith.mulf %v75, %v75 : f32
    %v77 = arith.mulf %v76, %v76 : f32
    %v78 = arith.mulf %v77, %v77 : f32
    %v79 = arith.mulf %v78, %v78 : f32
    %v80 = arith.mulf %v79, %v79 : f32
    %v81 = arith.mulf %v80, %v80 : f32
    %v82 = arith.mulf %v81, %v81 : f32
    %v83 = arith.mulf %v82, %v82 : f32
    %v84 = arith.mulf %v83, %v83 : f32
    %v85 = arith.mulf %v84, %v84 : f32
    %v86 = arith.mulf %v85, %v85 : f32
    %v87 = arith.mulf %v86, %v86 : f32
    %v88 = arith.mulf %v87, %v87 : f32
    %v89 = arith.mulf %v88, %v88 : f32
    %v90 = arith.mulf %v89, %v89 : f32
    %v91 = arith.mulf %v90, %v90 : f32
    %v92 = arith.mulf %v91, %v91 : f32
    %v93 = arith.mulf %v92, %v92 : f32
    %v94 = arith.mulf %v93, %v93 : f32
    %v95 = arith.mulf %v94, %v94 : f32
    %v96 = arith.mulf %v95, %v95 : f32
    %v97 = arith.mulf %v96, %v96 : f32
    %v98 = arith.mulf %v97, %v97 : f32
    %v99 = arith.mulf %v98, %v98 : f32
    %v100 = arith.mulf %v99, %v99 : f32
    %v101 = arith.mulf %v100, %v100 : f32
    %v102 = arith.mulf %v101, %v101 : f32
    %v103 = arith.mulf %v102, %v102 : f32
    %v104 = arith.mulf %v103, %v103 : f32
    %v105 = arith.mulf %v104, %v104 : f32
    %v106 = arith.mulf %v105, %v105 : f32
    %v107 = arith.mulf %v106, %v106 : f32
    %v108 = arith.mulf %v107, %v107 : f32
    %v109 = arith.mulf %v108, %v108 : f32
    %v110 = arith.mulf %v109, %v109 : f32
    %v111 = arith.mulf %v110, %v110 : f32
    %v112 = arith.mulf %v111, %v111 : f32
    %v113 = arith.mulf %v112, %v112 : f32
    %v114 = arith.mulf %v113, %v113 : f32
    %v115 = arith.mulf %v114, %v114 : f32
    %v116 = arith.mulf %v115, %v115 : f32
    %v117 = arith.mulf %v116, %v116 : f32
    %v118 = arith.mulf %v117, %v117 : f32
    %v119 = arith.mulf %v118, %v118 : f32
    %v120 = arith.mulf %v119, %v119 : f32
    %v121 = arith.mulf %v120, %v120 : f32
    %v122 = arith.mulf %v121, %v121 : f32
    %v123 = arith.mulf %v122, %v122 : f32
    %v124 = arith.mulf %v123, %v123 : f32
    %v125 = arith.mulf %v124, %v124 : f32
    %v126 = arith.mulf %v125, %v125 : f32
    %v127 = arith.mulf %v126, %v126 : f32
    %v128 = arith.mulf %v127, %v127 : f32
    %v129 = arith.mulf %v128, %v128 : f32
    %v130 = arith.mulf %v129, %v129 : f32
    %v131 = arith.mulf %v130, %v130 : f32
    %v132 = arith.mulf %v131, %v131 : f32
    %v133 = arith.mulf %v132, %v132 : f32
    %v134 = arith.mulf %v133, %v133 : f32
    %v135 = arith.mulf %v134, %v134 : f32
    %v136 = arith.mulf %v135, %v135 : f32
    %v137 = arith.mulf %v136, %v136 : f32
    %v138 = arith.mulf %v137, %v137 : f32
    %v139 = arith.mulf %v138, %v138 : f32
    %v140 = arith.mulf %v139, %v139 : f32
    %v141 = arith.mulf %v140, %v140 : f32
    %v142 = arith.mulf %v141, %v141 : f32
    %v143 = arith.mulf %v142, %v142 : f32
    %v144 = arith.mulf %v143, %v143 : f32
    %v145 = arith.mulf %v144, %v144 : f32
    %v146 = arith.mulf %v145, %v145 : f32
    %v147 = arith.mulf %v146, %v146 : f32
    %v148 = arith.mulf %v147, %v147 : f32
    %v149 = arith.mulf %v148, %v148 : f32
    %v150 = arith.mulf %v149, %v149 : f32
    %v151 = arith.mulf %v150, %v150 : f32
    %v152 = arith.mulf %v151, %v151 : f32
    %v153 = arith.mulf %v152, %v152 : f32
    %v154 = arith.mulf %v153, %v153 : f32
    %v155 = arith.mulf %v154, %v154 : f32
    %v156 = arith.mulf %v155, %v155 : f32
    %v157 = arith.mulf %v156, %v156 : f32
    %v158 = arith.mulf %v157, %v157 : f32
    %v159 = arith.mulf %v158, %v158 : f32
    %v160 = arith.mulf %v159, %v159 : f32
    %v161 = arith.mulf %v160, %v160 : f32
    %v162 = arith.mulf %v161, %v161 : f32
    %v163 = arith.mulf %v162, %v162 : f32
    %v164 = arith.mulf %v163, %v163 : f32
    %v165 = arith.mulf %v164, %v164 : f32
    %v166 = arith.mulf %v165, %v165 : f32
    %v167 = arith.mulf %v166, %v166 : f32
    %v168 = arith.mulf %v167, %v167 : f32
    %v169 = arith.mulf %v168, %v168 : f32
    %v170 = arith.mulf %v169, %v169 : f32
    %v171 = arith.mulf %v170, %v170 : f32
    %v172 = arith.mulf %v171, %v171 : f32
    %v173 = arith.mulf %v172, %v172 : f32
    %v174 = arith.mulf %v173, %v173 : f32
    %v175 = arith.mulf %v174, %v174 : f32
    %v176 = arith.mulf %v175, %v175 : f32
    %v177 = arith.mulf %v176, %v176 : f32
    %v178 = arith.mulf %v177, %v177 : f32
    %v179 = arith.mulf %v178, %v178 : f32
    %v180 = arith.mulf %v179, %v179 : f32
    %v181 = arith.mulf %v180, %v180 : f32
    %v182 = arith.mulf %v181, %v181 : f32
    %v183 = arith.mulf %v182, %v182 : f32
    %v184 = arith.mulf %v183, %v183 : f32
    %v185 = arith.mulf %v184, %v184 : f32
    %v186 = arith.mulf %v185, %v185 : f32
    %v187 = arith.mulf %v186, %v186 : f32
    %v188 = arith.mulf %v187, %v187 : f32
    %v189 = arith.mulf %v188, %v188 : f32
    %v190 = arith.mulf %v189, %v189 : f32
    %v191 = arith.mulf %v190, %v190 : f32
    %v192 = arith.mulf %v191, %v191 : f32
    %v193 = arith.mulf %v192, %v192 : f32
    %v194 = arith.mulf %v193, %v193 : f32
    %v195 = arith.mulf %v194, %v194 : f32
    %v196 = arith.mulf %v195, %v195 : f32
    %v197 = arith.mulf %v196, %v196 : f32
    %v198 = arith.mulf %v197, %v197 : f32
    %v199 = arith.mulf %v198, %v198 : f32
    %v200 = arith.mulf %v199, %v199 : f32
    %v201 = arith.mulf %v200, %v200 : f32
    %v202 = arith.mulf %v201, %v201 : f32
    %v203 = arith.mulf %v202, %v202 : f32
    %v204 = arith.mulf %v203, %v203 : f32
    %v205 = arith.mulf %v204, %v204 : f32
    %v206 = arith.mulf %v205, %v205 : f32
    %v207 = arith.mulf %v206, %v206 : f32
    %v208 = arith.mulf %v207, %v207 : f32
    %v209 = arith.mulf %v208, %v208 : f32
    %v210 = arith.mulf %v209, %v209 : f32
    %v211 = arith.mulf %v210, %v210 : f32
    %v212 = arith.mulf %v211, %v211 : f32
    %v213 = arith.mulf %v212, %v212 : f32
    %v214 = arith.mulf %v213, %v213 : f32
    %v215 = arith.mulf %v214, %v214 : f32
    %v216 = arith.mulf %v215, %v215 : f32
    %v217 = arith.mulf %v216, %v216 : f32
    %v218 = arith.mulf %v217, %v217 : f32
    %v219 = arith.mulf %v218, %v218 : f32
    %v220 = arith.mulf %v219, %v219 : f32
    %v221 = arith.mulf %v220, %v220 : f32
    %v222 = arith.mulf %v221, %v221 : f32
    %v223 = arith.mulf %v222, %v222 : f32
    %v224 = arith.mulf %v223, %v223 : f32
    %v225 = arith.mulf %v224, %v224 : f32
    %v226 = arith.mulf %v225, %v225 : f32
    %v227 = arith.mulf %v226, %v226 : f32
    %v228 = arith.mulf %v227, %v227 : f32
    %v229 = arith.mulf %v228, %v228 : f32
    %v230 = arith.mulf %v229, %v229 : f32
    %v231 = arith.mulf %v230, %v230 : f32
    %v232 = arith.mulf %v231, %v231 : f32
    %v233 = arith.mulf %v232, %v232 : f32
    %v234 = arith.mulf %v233, %v233 : f32
    %v235 = arith.mulf %v234, %v234 : f32
    %v236 = arith.mulf %v235, %v235 : f32
    %v237 = arith.mulf %v236, %v236 : f32
    %v238 = arith.mulf %v237, %v237 : f32
    %v239 = arith.mulf %v238, %v238 : f32
    %v240 = arith.mulf %v239, %v239 : f32
    %v241 = arith.mulf %v240, %v240 : f32
    %v242 = arith.mulf %v241, %v241 : f32
    %v243 = arith.mulf %v242, %v242 : f32
    %v244 = arith.mulf %v243, %v243 : f32
    %v245 = arith.mulf %v244, %v244 : f32
    %v246 = arith.mulf %v245, %v245 : f32
    %v247 = arith.mulf %v246, %v246 : f32
    %v248 = arith.mulf %v247, %v247 : f32
    %v249 = arith.mulf %v248, %v248 : f32
    %v250 = arith.mulf %v249, %v249 : f32
    %v251 = arith.mulf %v250, %v250 : f32
    %v252 = arith.mulf %v251, %v251 : f32
    %v253 = arith.mulf %v252, %v252 : f32
    %v254 = arith.mulf %v253, %v253 : f32
    %v255 = arith.mulf %v254, %v254 : f32
    %v256 = arith.mulf %v255, %v255 : f32
    %v257 = arith.mulf %v256, %v256 : f32
    %v258 = arith.mulf %v257, %v257 : f32
    %v259 = arith.mulf %v258, %v258 : f32
    %v260 = arith.mulf %v259, %v259 : f32
    %v261 = arith.mulf %v260, %v260 : f32
    %v262 = arith.mulf %v261, %v261 : f32
    %v263 = arith.mulf %v262, %v262 : f32
    %v264 = arith.mulf %v263, %v263 : f32
    %v265 = arith.mulf %v264, %v264 : f32
    %v266 = arith.mulf %v265, %v265 : f32
    %v267 = arith.mulf %v266, %v266 : f32
    %v268 = arith.mulf %v267, %v267 : f32
    %v269 = arith.mulf %v268, %v268 : f32
    %v270 = arith.mulf %v269, %v269 : f32
    %v271 = arith.mulf %v270, %v270 : f32
    %v272 = arith.mulf %v271, %v271 : f32
    %v273 = arith.mulf %v272, %v272 : f32
    %v274 = arith.mulf %v273, %v273 : f32
    %v275 = arith.mulf %v274, %v274 : f32
    %v276 = arith.mulf %v275, %v275 : f32
    %v277 = arith.mulf %v276, %v276 : f32
    %v278 = arith.mulf %v277, %v277 : f32
    %v279 = arith.mulf %v278, %v278 : f32
    %v280 = arith.mulf %v279, %v279 : f32
    %v281 = arith.mulf %v280, %v280 : f32
    %v282 = arith.mulf %v281, %v281 : f32
    %v283 = arith.mulf %v282, %v282 : f32
    %v284 = arith.mulf %v283, %v283 : f32
    %v285 = arith.mulf %v284, %v284 : f32
    %v286 = arith.mulf %v285, %v285 : f32
    %v287 = arith.mulf %v286, %v286 : f32
    %v288 = arith.mulf %v287, %v287 : f32
    %v289 = arith.mulf %v288, %v288 : f32
    %v290 = arith.mulf %v289, %v289 : f32
    %v291 = arith.mulf %v290, %v290 : f32
    %v292 = arith.mulf %v291, %v291 : f32
    %v293 = arith.mulf %v292, %v292 : f32
    %v294 = arith.mulf %v293, %v293 : f32
    %v295 = arith.mulf %v294, %v294 : f32
    %v296 = arith.mulf %v295, %v295 : f32
    %v297 = arith.mulf %v296, %v296 : f32
    %v298 = arith.mulf %v297, %v297 : f32
    %v299 = arith.mulf %v298, %v298 : f32
    %s = arith.addf %acc, %v299 : f32
    scf.yield %s : f32
  }
  return %r : f32
}

// All of one array to all of another: as vectors both ways it would fold to the array that is read.
// CHECK-LABEL: func @all_of_it(
// CHECK: scf.for
// CHECK: tensor.extract
// CHECK: vector.transfer_write
func.func @all_of_it(%t: tensor<4xi2>, %out: tensor<4xi2>) -> tensor<4xi2> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%o = %out) -> tensor<4xi2> {
    %x = tensor.extract %t[%i] : tensor<4xi2>
    %n = tensor.insert %x into %o[%i] : tensor<4xi2>
    scf.yield %n : tensor<4xi2>
  }
  return %r : tensor<4xi2>
}

// Backwards: a vector that is turned around.
#backwards = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * -4 - d1 + 127), domain: d0 in [0, 31], d1 in [0, 3]">
#forwards = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 31], d1 in [0, 3]">
// CHECK-LABEL: func @backwards(
func.func @backwards(%t: tensor<128xf32>, %out: tensor<128xf32>, %i: index {xla_gpu.range = [0 : index, 31 : index]}) -> tensor<128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // CHECK: %[[LOWEST:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * -4 + 124), domain: d0 in [0, 31]">
  // CHECK: %[[V:.*]] = vector.transfer_read %{{.*}}[%[[LOWEST]]]
  // CHECK: %[[R:.*]] = vector.shuffle %[[V]], %[[V]] [3, 2, 1, 0]
  // CHECK: scf.for %[[IV:[a-z0-9]+]] =
  // CHECK:   vector.extract %[[R]][%[[IV]]]
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %out) -> (tensor<128xf32>) {
    %k = xla_gpu.apply_indexing #backwards(%i, %iv)
    %j = xla_gpu.apply_indexing #forwards(%i, %iv)
    %x = tensor.extract %t[%k] : tensor<128xf32>
    %n = tensor.insert %x into %acc[%j] : tensor<128xf32>
    scf.yield %n : tensor<128xf32>
  }
  return %r : tensor<128xf32>
}

// Vectors in a branch that four elements take together; not in one that some of them take, nor of small floats.
#part = #xla_gpu.indexing_map<"(d0, d1) -> ((d0 * 4 + d1) mod 64), domain: d0 in [0, 31], d1 in [0, 3]">
#second = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1 - 32), domain: d0 in [0, 31], d1 in [0, 3]">
// CHECK-LABEL: func @branches(
func.func @branches(%t: tensor<128xf32>, %u: tensor<128xf32>, %s: tensor<128xf8E4M3FN>, %z: f32, %e: f8E4M3FN, %i: index {xla_gpu.range = [0 : index, 31 : index]}) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c33 = arith.constant 33 : index
  // CHECK: %[[PLACE:.*]] = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> ((d0 mod 16) * 4), domain: d0 in [0, 31]">
  // CHECK: %[[BOTH:.*]] = arith.cmpi ult, %[[PLACE]], %{{.*}} : index
  // CHECK: %[[A:.*]] = scf.if %[[BOTH]] -> (vector<4xf32>) {
  // CHECK:   vector.transfer_read
  // CHECK: } else {
  // CHECK:   ub.poison : vector<4xf32>
  // CHECK: %[[NOT:.*]] = arith.xori %[[BOTH]]
  // CHECK: %[[B:.*]] = scf.if %[[NOT]] -> (vector<4xf32>) {
  // CHECK-NOT: transfer_read {{.*}}f8E4M3FN
  // CHECK: scf.for %[[IV:[a-z0-9]+]] =
  // CHECK:   vector.extract %[[A]][%[[IV]]]
  // CHECK:   vector.extract %[[B]][%[[IV]]]
  // CHECK:   scf.if %[[BOTH]] -> (f32)
  // CHECK:   scf.if %{{.*}} -> (f32) {
  // CHECK-NEXT: tensor.extract
  // CHECK:   scf.if %{{.*}} -> (f8E4M3FN) {
  // CHECK-NEXT: tensor.extract
  %r = scf.for %iv = %c0 to %c4 step %c1 iter_args(%acc = %z) -> (f32) {
    %k = xla_gpu.apply_indexing #part(%i, %iv)
    %j = xla_gpu.apply_indexing #second(%i, %iv)
    %first = arith.cmpi ult, %k, %c32 : index
    %x = scf.if %first -> (f32) {
      %a = tensor.extract %t[%k] : tensor<128xf32>
      scf.yield %a : f32
    } else {
      %b = tensor.extract %u[%j] : tensor<128xf32>
      scf.yield %b : f32
    }
    %some = arith.cmpi ult, %k, %c33 : index
    %y = scf.if %some -> (f32) {
      %a = tensor.extract %t[%k] : tensor<128xf32>
      scf.yield %a : f32
    } else {
      scf.yield %z : f32
    }
    %w = scf.if %first -> (f8E4M3FN) {
      %a = tensor.extract %s[%k] : tensor<128xf8E4M3FN>
      scf.yield %a : f8E4M3FN
    } else {
      scf.yield %e : f8E4M3FN
    }
    %v = arith.extf %w : f8E4M3FN to f32
    %p = arith.addf %acc, %x : f32
    %q = arith.addf %p, %y : f32
    %n = arith.addf %q, %v : f32
    scf.yield %n : f32
  }
  return %r : f32
}

// One loop of 32 powers may be unrolled, which a vector forces; three in one kernel may not. What is small may in both.
// CHECK-LABEL: func @one_sum_of_powers(
func.func @one_sum_of_powers(%t0: tensor<32xf32>, %e: f32, %z: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  // CHECK: vector.transfer_read {{.*}}vector<32xf32>
  %s0 = scf.for %iv = %c0 to %c32 step %c1 iter_args(%acc = %z) -> (f32) {
    %x = tensor.extract %t0[%iv] : tensor<32xf32>
    %p = math.powf %x, %e : f32
    %n = arith.addf %acc, %p : f32
    scf.yield %n : f32
  }
  return %s0 : f32
}

// CHECK-LABEL: func @sums_of_powers(
func.func @sums_of_powers(%t0: tensor<32xf32>, %t1: tensor<32xf32>, %t2: tensor<32xf32>, %u: tensor<32xf32>, %e: f32, %z: f32) -> (f32, f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  // CHECK-NOT: transfer_read
  %s0 = scf.for %iv = %c0 to %c32 step %c1 iter_args(%acc = %z) -> (f32) {
    %x = tensor.extract %t0[%iv] : tensor<32xf32>
    %p = math.powf %x, %e : f32
    %n = arith.addf %acc, %p : f32
    scf.yield %n : f32
  }
  %s1 = scf.for %iv = %c0 to %c32 step %c1 iter_args(%acc = %z) -> (f32) {
    %x = tensor.extract %t1[%iv] : tensor<32xf32>
    %p = math.powf %x, %e : f32
    %n = arith.addf %acc, %p : f32
    scf.yield %n : f32
  }
  %s2 = scf.for %iv = %c0 to %c32 step %c1 iter_args(%acc = %z) -> (f32) {
    %x = tensor.extract %t2[%iv] : tensor<32xf32>
    %p = math.powf %x, %e : f32
    %n = arith.addf %acc, %p : f32
    scf.yield %n : f32
  }
  // CHECK: vector.transfer_read %arg3{{.*}}vector<32xf32>
  %sum = scf.for %iv = %c0 to %c32 step %c1 iter_args(%acc = %z) -> (f32) {
    %x = tensor.extract %u[%iv] : tensor<32xf32>
    %n = arith.addf %acc, %x : f32
    scf.yield %n : f32
  }
  return %s0, %s1, %s2, %sum : f32, f32, f32, f32
}

// Iterations with a barrier follow each other: loops in them are vectors of their own.
// CHECK-LABEL: func @barrier(
func.func @barrier(%t: tensor<64xf32>, %s: tensor<8xf32>, %v: vector<8xf32>) -> (tensor<8xf32>, vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // CHECK: scf.for
  // CHECK: vector.transfer_read {{.*}} vector<8xf32>
  // CHECK-NOT: tensor.extract
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%shared = %s, %carried = %v) -> (tensor<8xf32>, vector<8xf32>) {
    %w = scf.for %j = %c0 to %c8 step %c1 iter_args(%made = %carried) -> (vector<8xf32>) {
      %at = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 7], d1 in [0, 7]">(%i, %j)
      %x = tensor.extract %t[%at] : tensor<64xf32>
      %n = vector.insert %x, %made[%j] : f32 into vector<8xf32>
      scf.yield %n : vector<8xf32>
    }
    %x = vector.extract %w[0] : f32 from vector<8xf32>
    %put = tensor.insert %x into %shared[%i] : tensor<8xf32>
    %met = xla_gpu.sync_threads %put : tensor<8xf32>
    scf.yield %met, %w : tensor<8xf32>, vector<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, vector<8xf32>
}
