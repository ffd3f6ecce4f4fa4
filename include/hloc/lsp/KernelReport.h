#pragma once
// Which instruction of a text ends up in which kernel, and what the kernels take by the cost model: what a hover says
// of a compilation. It is made in another process, which may crash or be ended, and comes back as JSON.

#include "hloc/codegen/Toolchain.h"
#include "hloc/compiler/Compiler.h"
#include "hloc/kernel/Estimate.h"
#include "hloc/kernel/TargetInfo.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hloc::lsp {

struct ReportedKernel {
  std::string name, hero;
  std::string fusion;      ///< the instruction that it is made for
  double microseconds = 0; ///< of a launch; 0: not known
  double launches = 0;     ///< how often it is launched; 0: not known
  uint64_t blocks = 0, threads = 0;
  uint64_t bytesRead = 0, bytesWritten = 0;
  bool operator==(const ReportedKernel &) const = default;
};

struct KernelReport {
  std::string refusal = {}; ///< why there are no kernels; empty: there are
  std::string target = {}, device = {};
  std::vector<ReportedKernel> kernels = {};
  /// By the offset at which an instruction's name begins, with its `%`: indices of kernels, ascending. An instruction
  /// that is not there is computed by none: simplified away, or a name for memory.
  std::map<uint32_t, std::vector<uint32_t>> kernelsAt = {};
  double microseconds = 0; ///< of the module: launches, copies and fills
  bool operator==(const KernelReport &) const = default;
};

struct KernelRequest {
  CompilerOptions options;
  TargetInfo target;
  DeviceModel device;
};

/// Compiles the text. `toolchain` is of the process that does it.
KernelReport reportKernels(std::shared_ptr<const SourceFile> file, const KernelRequest &request,
                           const Toolchain &toolchain);

std::string printKernelReport(const KernelReport &report);
/// Nothing if the text is no whole report. Never trusts it.
std::optional<KernelReport> parseKernelReport(llvm::StringRef text);

} // namespace hloc::lsp
