#pragma once
// What kernels and reference both run where a choice is the user's: dots of f32 as tf32, a softmax that is divided
// behind its dot. And what of it other compilers' kernels may have that differ.

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/transforms/HloPass.h"

#include <memory>
#include <string>
#include <vector>

namespace hloc {

struct FormChoice {
  FusionMode fusion = FusionMode::Keep; ///< that the compiler has: what fusions hide is not found
  F32Dots f32Dots = F32Dots::F32;
  SoftmaxChoice softmax = SoftmaxChoice::Strict;
  bool isAsWritten() const { return f32Dots == F32Dots::F32 && softmax == SoftmaxChoice::Strict; }
};

/// Calls of libraries that are such dots are given as what they mean, and a softmax is found behind calls as well. Null
/// after a diagnostic.
std::unique_ptr<HloModule> inChosenForms(const HloModule &module, FormChoice choice, DiagnosticEngine &diagnostics);

/// For whoever made kernels of the module as it was chosen, and has other results: options that admit more, where the
/// module has what they are about.
std::vector<std::string> otherForms(const HloModule &module, FormChoice chosen);

} // namespace hloc
