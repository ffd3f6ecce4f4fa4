#pragma once
// A compilation, and a run of it, as one page: HTML that a browser opens from disk and that fetches nothing.
//
//   DiagnosticEngine diagnostics;
//   std::string page = reportPage({file, compilerOptions, target, deviceOf(target)}, toolchain, diagnostics);
//
// The page compiles the module once more, with places in all texts: what is compiled beside it stays as it is, and who
// asks for no report pays nothing. What goes wrong is part of the page.

#include "hloc/compiler/Compiler.h"
#include "hloc/kernel/Estimate.h"
#include "hloc/run/RunReport.h"

#include <memory>
#include <string>

namespace hloc {

struct ReportRequest {
  std::shared_ptr<const SourceFile> file; ///< HLO text
  CompilerOptions options;
  TargetInfo target;
  DeviceModel device;                         ///< that times are estimated for
  std::vector<std::string> only;              ///< kernels that are the program; empty: all
  const RunReport *run = nullptr;             ///< what a run has found; null: there was none
  const DiagnosticEngine *reported = nullptr; ///< what the run has reported
};

/// `diagnostics`: what the compilation reports, errors too. There is a page in any case.
std::string reportPage(const ReportRequest &request, const Toolchain &toolchain, DiagnosticEngine &diagnostics);

} // namespace hloc
