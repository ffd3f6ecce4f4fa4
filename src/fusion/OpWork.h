#pragma once
// How much work one evaluation of an instruction is, in instructions of one lane: rough figures that tell cheap ops
// from dear ones. They stem from the PTX that hloc emits for f32 on sm_90, counted; wider types are worth more.

#include "hloc/hlo/HloInstruction.h"

#include <optional>

namespace hloc {

struct TargetInfo;

/// Of one element of the result, what its operands are made of excluded. Of ops that contract, all steps together.
double workPerElement(const HloInstruction &instr);

/// Instructions of one element that find out which of its terms are there. (In convolutions they are part of a term.)
double testsPerElement(const HloInstruction &instr);

/// A contraction's factor that is stored as 8 bits, converted where it is put into shared memory.
double workOfBytes(ElementType type, const TargetInfo &target);

/// Elements of operand `number` that are read for one element of the result, on average; `select` and the like read
/// all.
double readsPerElement(const HloInstruction &instr, unsigned number);

/// How many elements one of a result is computed from at most, if that is only windows' doing, and not many: then it is
/// straight code, and a thread may compute several neighbours.
std::optional<int64_t> elementsOfStraightCode(llvm::ArrayRef<const HloInstruction *> instructions);

} // namespace hloc
