#pragma once
// Which fusions of a module `--only=NAME` means, and what their kernels are called.

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

#include <string>
#include <vector>

namespace hloc {

class UniqueNames;

/// Of each fusion that is work, of the entry and of what control flow in it runs: what its first kernel is called if it
/// gets one of its own. It depends on the module alone, not on what of it is compiled.
llvm::DenseMap<const HloInstruction *, std::string> kernelNames(const HloModule &fused, UniqueNames &names);

/// In the order of their computation, which must be one, each once. A name is that of an instruction, of a kernel, or
/// of a computation (all fusions that call it), tried in this order, with or without `%`. Reports those that name
/// nothing, and what they may mean; the result is empty then.
std::vector<const HloInstruction *> selectFusions(const HloModule &fused, llvm::ArrayRef<std::string> names,
                                                  DiagnosticEngine &diagnostics);

} // namespace hloc
