#pragma once
// The mark of tanh that nothing reads but sums with 1, as a gelu's (decisions/0039): 1 + tanh(x) is 2 / (1 + e^-2x), a
// few instructions where tanh alone, right near 0 as well, takes twenty. What is read decides, before any pass changes
// it, so that kernels and reference say the same of it.

namespace hloc {

class HloInstruction;
class HloModule;

/// Marks all of a module's that are of f32.
void markTanhBesideOne(HloModule &module);

/// Of f32, with the mark.
bool isTanhBesideOne(const HloInstruction &instr);

} // namespace hloc
