// RUN: hloc opt %s --hloc-cse | FileCheck %s

// Attributes, and both operands in either order where that is the same.
// CHECK-LABEL: func @equal(
func.func @equal(%a: i32, %b: i32) -> (i32, i32, i32, i1, i1) {
  // CHECK: %[[SUM:.*]] = arith.addi
  // CHECK-NOT: arith.addi
  %s = arith.addi %a, %b : i32
  %t = arith.addi %b, %a : i32
  // CHECK-COUNT-2: arith.subi
  %d = arith.subi %a, %b : i32
  %e = arith.subi %b, %a : i32
  // CHECK-COUNT-2: arith.cmpi
  %p = arith.cmpi slt, %s, %t : i32
  %q = arith.cmpi sle, %s, %t : i32
  %r = arith.cmpi slt, %t, %s : i32
  // CHECK: arith.muli %[[SUM]], %[[SUM]]
  %m = arith.muli %s, %t : i32
  return %m, %d, %e, %q, %r : i32, i32, i32, i1, i1
}

// A block knows what is before it, not what is in the block beside it.
// CHECK-LABEL: func @branches(
func.func @branches(%a: i32, %c: i1) -> i32 {
  // CHECK: %[[OUTER:.*]] = arith.muli
  %m = arith.muli %a, %a : i32
  %r = scf.if %c -> i32 {
    // CHECK: arith.addi %[[OUTER]], %[[OUTER]]
    %n = arith.muli %a, %a : i32
    %s = arith.addi %m, %n : i32
    scf.yield %s : i32
  } else {
    // CHECK: arith.addi %[[OUTER]], %[[OUTER]]
    %n = arith.muli %a, %a : i32
    %s = arith.addi %n, %m : i32
    scf.yield %s : i32
  }
  return %r : i32
}

// Loads are one until something is written. What nobody needs goes, unless it writes.
// CHECK-LABEL: func @memory(
func.func @memory(%p: !llvm.ptr, %a: i32) -> (i32, i32, i32) {
  // CHECK: %[[FIRST:.*]] = llvm.load
  // CHECK-NEXT: llvm.store
  // CHECK-NEXT: %[[SECOND:.*]] = llvm.load
  // CHECK-NEXT: return %[[FIRST]], %[[FIRST]], %[[SECOND]]
  %x = llvm.load %p : !llvm.ptr -> i32
  %y = llvm.load %p : !llvm.ptr -> i32
  llvm.store %a, %p : i32, !llvm.ptr
  %z = llvm.load %p : !llvm.ptr -> i32
  %unused = arith.addi %a, %a : i32
  return %x, %y, %z : i32, i32, i32
}

// Each function has its own.
// CHECK-LABEL: func @other(
func.func @other() -> i32 {
  // CHECK-NEXT: arith.constant 7
  // CHECK-NEXT: return
  %c = arith.constant 7 : i32
  %d = arith.constant 7 : i32
  return %d : i32
}
