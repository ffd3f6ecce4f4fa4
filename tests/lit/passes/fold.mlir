// RUN: hloc opt %s --hloc-fold | FileCheck %s

// Each op is looked at once, after its operands.
// CHECK-LABEL: func @known(
// CHECK-SAME: %[[A:[^ :]*]]: i32, %[[B:[^ :]*]]: i32
func.func @known(%a: i32, %b: i32) -> (i32, i32) {
  // CHECK-NOT: muli
  // CHECK-NOT: vector.extract
  %c1 = arith.constant 1 : i32
  %same = arith.muli %a, %c1 : i32
  %pair = vector.from_elements %same, %b : vector<2xi32>
  %first = vector.extract %pair[0] : i32 from vector<2xi32>
  %second = vector.extract %pair[1] : i32 from vector<2xi32>
  // CHECK: return %[[A]], %[[B]]
  return %first, %second : i32, i32
}

// Constants are made where they were computed.
// CHECK-LABEL: func @constants(
func.func @constants(%condition: i1) -> i32 {
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  // CHECK: scf.if
  // CHECK-NEXT: %[[FIVE:.*]] = arith.constant 5 : i32
  // CHECK-NEXT: scf.yield %[[FIVE]]
  %r = scf.if %condition -> i32 {
    %sum = arith.addi %c2, %c3 : i32
    scf.yield %sum : i32
  } else {
    scf.yield %c2 : i32
  }
  return %r : i32
}

// What writes memory, or cannot be known, stays.
// CHECK-LABEL: func @stays(
func.func @stays(%a: i32, %p: !llvm.ptr) {
  // CHECK: arith.addi
  // CHECK: llvm.store
  %sum = arith.addi %a, %a : i32
  llvm.store %sum, %p : i32, !llvm.ptr
  return
}
