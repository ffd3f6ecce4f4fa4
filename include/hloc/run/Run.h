#pragma once
// A module from its text to a verdict: parsed, compiled or given as PTX, executed on the emulator, a GPU or by the
// interpreter, and compared with a reference. Nothing is printed, and nothing is asked of the environment.
//
//   DiagnosticEngine diagnostics;
//   CompileObserver unheard;
//   RunObserver nobody;
//   RunOptions options;
//   options.target = *findTarget("sm_90");
//   RunReport report = runModule(file, options, Toolchain::discover({}), unheard, nobody, diagnostics);
//   if (report.verdict == RunVerdict::Agrees) os << report.agreement;

#include "hloc/run/RunObserver.h"
#include "hloc/run/RunOptions.h"

namespace hloc {

/// `file` is HLO text; diagnostics point into it. `compileObserver` is told of the stages of the run, too.
RunReport runModule(std::shared_ptr<const SourceFile> file, const RunOptions &options, const Toolchain &toolchain,
                    CompileObserver &compileObserver, RunObserver &observer, DiagnosticEngine &diagnostics);

} // namespace hloc
