#pragma once
// How much work one evaluation of an instruction is, in instructions of one lane: rough figures that tell cheap ops
// from dear ones. They stem from the PTX that hloc emits for f32 on sm_90, counted; wider types are worth more.

#include "hloc/hlo/HloInstruction.h"

namespace hloc {

/// Of one element of the result, what its operands are made of excluded. Of ops that contract, all steps together.
double workPerElement(const HloInstruction &instr);

/// Elements of operand `number` that are read for one element of the result, on average; `select` and the like read
/// all.
double readsPerElement(const HloInstruction &instr, unsigned number);

} // namespace hloc
