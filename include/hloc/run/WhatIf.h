#pragma once
// What a module would take if it were compiled otherwise: it is, from the same HLO, and both are estimated by the cost
// model of hloc/kernel/Estimate.h.
//
//   EstimatedWay now = estimateWay(module, {options, target, &device}, toolchain);
//   options.dots = Multiplier::Library;
//   EstimatedWay then = estimateWay(module, {options, target, &device}, toolchain);
//   for (const KernelChange &change : changesBetween(now, then)) ...

#include "hloc/compiler/Compiler.h"
#include "hloc/run/EstimatedModule.h"

#include <map>

namespace hloc {

/// A way to compile a module.
struct CompiledWay {
  CompilerOptions options;
  TargetInfo target;
  const DeviceModel *device;                                ///< that times are estimated for
  std::vector<std::string> only = {};                       ///< kernels, by name; empty: all
  std::optional<AssembleOptions> assembling = std::nullopt; ///< with it registers are known; nothing: they are not
};

struct EstimatedWay {
  std::optional<EstimatedModule> module; ///< nothing: it cannot be compiled so
  std::vector<KernelEstimate> times;     ///< of the module's kernels
  double seconds = 0;                    ///< of all launches, copies, fills and calls
  std::string refusal;                   ///< why it cannot
  /// By fusion: the instructions that it makes for others. What changes around a fusion may change its name.
  std::map<std::string, std::vector<std::string>> makes;
};

/// `fused`: what the kernels are made of; null: not known.
EstimatedWay timesOf(EstimatedModule module, const DeviceModel &device, const HloModule *fused);
/// Compiles the module and says nothing; what goes wrong is the refusal. `module` is verified.
EstimatedWay estimateWay(const HloModule &module, const CompiledWay &way, const Toolchain &toolchain);

/// What a kernel, a call of a library, or all copies and fills take in two ways, over all launches.
struct KernelChange {
  struct Side {
    double seconds;
    std::string bound; ///< what bounds it; of a call its function
  };
  std::string name;               ///< of the kernel, as it is now if there is one
  std::vector<std::string> makes; ///< instructions
  std::optional<Side> now, then;  ///< nothing: there is none
  bool isSame() const;
};

/// By what kernels make: first all that there is now, in its order, then what there would be in addition.
std::vector<KernelChange> changesBetween(const EstimatedWay &now, const EstimatedWay &then);

} // namespace hloc
