#pragma once
// Kernels of other compilers for `hloc compare`: where they are, or how they are made.

#include "hloc/codegen/Toolchain.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// PTX, and how it is launched (LaunchDescription.h).
struct PeerProgram {
  std::string ptx, launch;
};

/// `f.ptx` for `f.hlo`, if it is there with a description of its launch.
std::vector<std::string> peersBeside(const std::string &hlo);

/// Finds and makes them; what has been made is there for as long as this is.
class PeerFiles {
public:
  explicit PeerFiles(DiagnosticEngine &diagnostics) : diagnostics(diagnostics) {}

  /// `peer`: a .ptx, or a .cu that nvcc compiles for the target, with `NAME.json` or `NAME.launch.json` beside it; or
  /// `xla`. Nothing, with a diagnostic, if there is no such.
  std::optional<PeerProgram> find(const std::string &peer, const std::string &hlo, const TargetInfo &target,
                                  const Toolchain &toolchain);

private:
  std::optional<PeerProgram> compileCuda(const std::string &source, const std::string &launch, const TargetInfo &target,
                                         const Toolchain &toolchain);
  std::optional<PeerProgram> compileByXla(const std::string &hlo, const TargetInfo &target);
  std::optional<std::string> newFolder();
  DiagnosticEngine &diagnostics;
  std::vector<TemporaryFolder> folders;
};

} // namespace hloc
