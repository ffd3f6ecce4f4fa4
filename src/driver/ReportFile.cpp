#include "ReportFile.h"

#include "Compile.h"
#include "Estimates.h"

#include "hloc/report/Report.h"
#include "hloc/support/Files.h"

namespace hloc {

void writeReport(const ReportInput &input, const Toolchain &toolchain, DiagnosticEngine &diagnostics) {
  const CompileOptions &options = input.options;
  const TargetInfo &target = options.targets.front();
  DiagnosticEngine again; // what the compilation beside it has reported
  const ReportRequest request{.file = input.file,
                              .options = compilerOptions(options),
                              .target = target,
                              .device = deviceFor(options, target),
                              .only = options.only,
                              .run = input.run,
                              .reported = &diagnostics};
  std::string error;
  if (!writeFile(options.reportFile, reportPage(request, toolchain, again), error))
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write report `" + options.reportFile + "`: " + error);
}

} // namespace hloc
