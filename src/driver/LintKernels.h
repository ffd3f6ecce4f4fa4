#pragma once
// `--lint`: what is known of kernels beside their text, and findings as diagnostics.

#include "Options.h"

#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/LaunchDescription.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/support/Diagnostics.h"

namespace hloc {

struct LintInput {
  std::shared_ptr<const SourceFile> ptx;
  const Manifest &manifest; ///< of PTX that was given: names and resources
  const TargetInfo &target;
  const HloModule *fused; ///< what the kernels were made of; null: not known
};

/// What --launch names. Nothing, after a diagnostic, if it cannot be read or says nothing that can be launched.
std::optional<LaunchDescription> readLaunches(const std::string &path, DiagnosticEngine &diagnostics);

/// Reports findings, as diagnostics or as JSON at the end of `listing`. False if the PTX cannot be read.
bool lintKernels(const LintInput &input, const CompileOptions &options, std::string &listing,
                 DiagnosticEngine &diagnostics);

} // namespace hloc
