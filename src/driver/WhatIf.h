#pragma once
// `--force` and `--what-if`: choices as the command line spells them, and what modules would take with them.

#include "Options.h"

#include "hloc/run/WhatIf.h"

namespace llvm::json {
class OStream;
}

namespace hloc {

/// `[KERNEL:]hero=NAME`, `[KERNEL:]tile=TILE`, `[KERNEL:]vector=N`, `[KERNEL:]parts=N`, `[KERNEL:]rounds=N`, `fuse=A,B`
/// or `split=A,B`. Says what is wrong with it, in words that follow the name of the option, or nothing.
std::string readForcedChoice(ForcedChoices &choices, llvm::StringRef text);

inline constexpr unsigned mostOfForcedVector = 32;

/// Options that --what-if takes beside those choices, without `--`.
llvm::ArrayRef<llvm::StringRef> whatIfOptions();
/// Has choices and options, separated by blanks, in addition to what there is. Says what is wrong, as above.
std::string applyWhatIf(CompileOptions &options, llvm::StringRef text);

/// What one --what-if has come to.
struct WhatIf {
  std::string text;
  EstimatedWay then;
};

/// `module` as each --what-if of `options` says, for `target` unless it names another. `assembling`: as what they are
/// compared with has been.
std::vector<WhatIf> estimateWhatIfs(const HloModule &module, const CompileOptions &options, const TargetInfo &target,
                                    const Toolchain &toolchain, const std::optional<AssembleOptions> &assembling);
/// A table for each: the kernels that change.
std::string printWhatIfs(const EstimatedWay &now, llvm::ArrayRef<WhatIf> whatIfs);
/// An attribute of an object of JSON.
void writeWhatIfs(llvm::json::OStream &json, const EstimatedWay &now, llvm::ArrayRef<WhatIf> whatIfs);

} // namespace hloc
