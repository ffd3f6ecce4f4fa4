#pragma once
// HLO lets the types of floats differ between what a reduction is given and what its reducer takes.

#include "interp/BoundedValue.h"

#include "hloc/hlo/HloInstruction.h"

namespace hloc::interp {

/// Of an op that combines its operands by a computation: the types in which this takes them, one for each operand; of
/// the operand's own type where it does not matter. Empty if they have these types.
llvm::SmallVector<ElementType, 4> typesTaken(const HloInstruction &instr);

/// Rounded to another type, as `convert` does; and what a value may be if it is, within the bounds of the operand.
Value converted(const Value &array, ElementType type);
Bounded converted(const Bounded &array, ElementType type);

} // namespace hloc::interp
