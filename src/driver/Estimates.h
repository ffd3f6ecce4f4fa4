#pragma once
// `--estimate`: times of kernels by the cost model of hloc/kernel/Estimate.h, as a table or JSON.

#include "Options.h"

#include "hloc/run/EstimatedModule.h"

namespace hloc {

/// What --device names, or the device of the target.
const DeviceModel &deviceFor(const CompileOptions &options, const TargetInfo &target);

struct WhatIf;

/// Microseconds, a line a kernel, and the sum over all launches, copies and fills; or JSON. Then what it would be
/// otherwise. `fused`: what it was made of.
std::string printEstimates(const EstimatedModule &module, const DeviceModel &device, bool asJson,
                           llvm::ArrayRef<WhatIf> whatIfs = {}, const HloModule *fused = nullptr);

} // namespace hloc
