// RUN: hloc opt %s --hloc-merge-pointers-to-same-slice | FileCheck %s

// An in-place update: the output argument stays in the interface, its uses become the input.
// CHECK-LABEL: func @in_place(
// CHECK-SAME: %[[A:[^ :]*]]: !llvm.ptr {llvm.noalias}, %[[B:[^ :]*]]: !llvm.ptr {llvm.noalias}, %[[C:[^ :]*]]: !llvm.ptr {llvm.noalias}
func.func @in_place(%a: !llvm.ptr {xla_gpu.slice_index = 0 : index}, %b: !llvm.ptr {xla_gpu.slice_index = 1 : index}, %c: !llvm.ptr {xla_gpu.slice_index = 0 : index}) attributes {xla_gpu.entry} {
  // CHECK: llvm.load %[[A]]
  // CHECK: llvm.load %[[B]]
  // CHECK: llvm.store %{{.*}}, %[[A]]
  %x = llvm.load %a : !llvm.ptr -> f32
  %y = llvm.load %b : !llvm.ptr -> f32
  %z = arith.addf %x, %y : f32
  llvm.store %z, %c : f32, !llvm.ptr
  return
}

// A pointer nobody knows may be any of the others.
// CHECK-LABEL: func @unknown(
// CHECK-NOT: noalias
func.func @unknown(%a: !llvm.ptr {xla_gpu.slice_index = 0 : index}, %b: !llvm.ptr) attributes {xla_gpu.entry} {
  return
}

// In a helper it is for nothing: what is pasted into the entry reads the entry's arguments.
// CHECK-LABEL: func private @helper(
// CHECK-NOT: noalias
func.func private @helper(%a: !llvm.ptr {xla_gpu.slice_index = 0 : index}) -> f32 {
  %x = llvm.load %a : !llvm.ptr -> f32
  return %x : f32
}
