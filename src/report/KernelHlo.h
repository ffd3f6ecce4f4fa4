#pragma once
// The HLO that a kernel was made of.

#include "IrText.h"
#include "hloc/hlo/HloModule.h"

namespace hloc {

/// A fusion and the computations that it calls, callees first, with the lines of `file` that its instructions stem
/// from.
std::vector<ShownLine> hloOf(const HloInstruction &fusion, const SourceFile &file);

} // namespace hloc
