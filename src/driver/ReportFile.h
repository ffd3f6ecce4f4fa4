#pragma once
// `--report`: the file of a page about a compilation or a run.

#include "Options.h"

#include "hloc/run/RunReport.h"

namespace hloc {

struct ReportInput {
  const CompileOptions &options;
  std::shared_ptr<const SourceFile> file;
  const RunReport *run = nullptr; ///< null: nothing ran
};

/// Writes the page, whatever `diagnostics` has of errors: they are in it. Reports a file that cannot be written.
void writeReport(const ReportInput &input, const Toolchain &toolchain, DiagnosticEngine &diagnostics);

/// `--report-diff`: the page of two reports, which are read, or made of modules. Reports what cannot be read or is
/// none.
void writeReportDifference(const CompileOptions &options, const Toolchain &toolchain, DiagnosticEngine &diagnostics);

} // namespace hloc
