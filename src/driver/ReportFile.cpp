#include "ReportFile.h"

#include "Compile.h"
#include "Estimates.h"

#include "hloc/report/Report.h"
#include "hloc/report/ReportDifference.h"
#include "hloc/support/Files.h"

namespace hloc {

static std::string pageOf(const ReportInput &input, const Toolchain &toolchain, const DiagnosticEngine *reported,
                          DiagnosticEngine &diagnostics) {
  const CompileOptions &options = input.options;
  const TargetInfo &target = options.targets.front();
  ReportRequest request;
  request.file = input.file;
  request.options = compilerOptions(options);
  request.target = target;
  request.device = deviceFor(options, target);
  request.only = options.only;
  request.run = input.run;
  request.reported = reported;
  return reportPage(request, toolchain, diagnostics);
}

static void writePage(const std::string &path, llvm::StringRef page, DiagnosticEngine &diagnostics) {
  std::string error;
  if (!writeFile(path, page, error))
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write report `" + path + "`: " + error);
}

void writeReport(const ReportInput &input, const Toolchain &toolchain, DiagnosticEngine &diagnostics) {
  DiagnosticEngine again; // what the compilation beside it has reported
  writePage(input.options.reportFile, pageOf(input, toolchain, &diagnostics, again), diagnostics);
}

void writeReportDifference(const CompileOptions &options, const Toolchain &toolchain, DiagnosticEngine &diagnostics) {
  std::string pages[2];
  CompileObserver unheard;
  for (auto [page, path] : {std::pair(&pages[0], &options.reportBefore), {&pages[1], &options.inputs.front()}}) {
    std::shared_ptr<const SourceFile> file = readSource(*path, unheard, diagnostics);
    if (!file)
      return;
    const bool isReport = llvm::StringRef(*path).ends_with(".html");
    *page = isReport ? file->text().str() : pageOf({options, file}, toolchain, nullptr, diagnostics);
  }
  std::string error;
  if (std::optional<std::string> page = reportDifference(pages[0], pages[1], error))
    writePage(options.reportFile, *page, diagnostics);
  else
    diagnostics.report(DiagnosticKind::NotReport,
                       "cannot compare `" + options.reportBefore + "` with `" + options.inputs.front() + "`: " + error);
}

} // namespace hloc
