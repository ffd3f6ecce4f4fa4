#pragma once
// Groups of a ragged-dot, whose sizes are read one after the other.

#include "emitters/CodeBuilder.h"
#include "hloc/hlo/ElementType.h"

namespace hloc {

/// Of a group with a size of this type, of which `rest` elements are left: those that it has. What a size has beyond
/// these, or below zero, is cut off; it is compared in its own range, so that nothing wraps around. i64.
inline mlir::Value elementsOfGroup(CodeBuilder &b, mlir::Value size, ElementType type, mlir::Value rest) {
  mlir::Value wide = b.castI(size, b.getI64Type(), isSigned(type));
  return isSigned(type) ? b.minS(b.maxS(wide, b.integer(b.getI64Type(), 0)), rest) : b.minU(wide, rest);
}

} // namespace hloc
