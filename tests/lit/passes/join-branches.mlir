// RUN: hloc opt %s --hloc-join-branches | FileCheck %s

// What the second branch needs moves before the first; the other sense of a condition is the other branch.
// CHECK-LABEL: func @elements(
// CHECK-SAME: %[[C:.*]]: i1, %[[X:.*]]: f32, %[[Y:.*]]: f32
// CHECK: xori
// CHECK: %[[SUM:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK: %[[R:.*]]:3 = scf.if %[[C]] -> (f32, f32, f32)
// CHECK: math.absf %[[X]]
// CHECK: math.absf %[[SUM]]
// CHECK: math.sqrt %[[Y]]
// CHECK: else
// CHECK: math.ceil %[[Y]]
// CHECK: math.floor %[[X]]
// CHECK-NOT: scf.if
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @elements(%c: i1, %x: f32, %y: f32) -> (f32, f32, f32) {
  %true = arith.constant true
  %not = arith.xori %c, %true : i1
  %a = scf.if %c -> f32 {
    %r = math.absf %x : f32
    scf.yield %r : f32
  } else {
    %r = math.ceil %y : f32
    scf.yield %r : f32
  }
  %sum = arith.addf %x, %y : f32
  %b = scf.if %c -> f32 {
    %r = math.absf %sum : f32
    scf.yield %r : f32
  } else {
    scf.yield %x : f32
  }
  %d = scf.if %not -> f32 {
    %r = math.floor %x : f32
    scf.yield %r : f32
  } else {
    %r = math.sqrt %y : f32
    scf.yield %r : f32
  }
  return %a, %b, %d : f32, f32, f32
}

// One that needs what the other gives stays; so do writes, what reads after them, and what only chooses.
// CHECK-LABEL: func @stay(
// CHECK-COUNT-5: scf.if
func.func @stay(%c: i1, %x: f32, %t: tensor<4xf32>) -> (f32, f32, f32, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %a = scf.if %c -> f32 {
    %r = math.absf %x : f32
    scf.yield %r : f32
  } else {
    scf.yield %x : f32
  }
  %n = arith.negf %a : f32
  %b = scf.if %c -> f32 {
    %r = math.absf %n : f32
    scf.yield %r : f32
  } else {
    scf.yield %x : f32
  }
  %u = scf.if %c -> tensor<4xf32> {
    %r = tensor.insert %x into %t[%c0] : tensor<4xf32>
    scf.yield %r : tensor<4xf32>
  } else {
    scf.yield %t : tensor<4xf32>
  }
  %v = tensor.insert %x into %u[%c0] : tensor<4xf32>
  %d = scf.if %c -> f32 {
    %r = tensor.extract %v[%c0] : tensor<4xf32>
    scf.yield %r : f32
  } else {
    scf.yield %x : f32
  }
  %e = scf.if %c -> f32 {
    scf.yield %d : f32
  } else {
    scf.yield %x : f32
  }
  return %b, %d, %e, %v : f32, f32, f32, tensor<4xf32>
}

// Branches inside of what was joined are joined, too.
// CHECK-LABEL: func @inside(
// CHECK-COUNT-2: scf.if
// CHECK-NOT: scf.if
// CHECK: return
func.func @inside(%c: i1, %d: i1, %x: f32, %y: f32) -> (f32, f32) {
  %a = scf.if %c -> f32 {
    %i = scf.if %d -> f32 {
      %r = math.absf %x : f32
      scf.yield %r : f32
    } else {
      scf.yield %x : f32
    }
    scf.yield %i : f32
  } else {
    scf.yield %y : f32
  }
  %b = scf.if %c -> f32 {
    %i = scf.if %d -> f32 {
      %r = math.absf %y : f32
      scf.yield %r : f32
    } else {
      scf.yield %y : f32
    }
    scf.yield %i : f32
  } else {
    scf.yield %x : f32
  }
  return %a, %b : f32, f32
}
