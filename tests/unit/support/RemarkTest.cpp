#include "hloc/support/Diagnostics.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("remarks are neither errors nor warnings") {
  DiagnosticEngine diagnostics;
  diagnostics.report(DiagnosticKind::SerialReduction, "one thread");
  diagnostics.report(DiagnosticKind::IgnoredInput, "not read");
  CHECK_FALSE(diagnostics.hasErrors());
  CHECK(diagnostics.exitCode() == ExitCode::Success);
  CHECK(isRemark(DiagnosticKind::Recomputation));
  CHECK_FALSE(isRemark(DiagnosticKind::IgnoredInput));
  std::string text;
  llvm::raw_string_ostream os(text);
  diagnostics.print(os, false);
  CHECK(text == "hloc: remark: one thread [serial-reduction]\nhloc: warning: not read [ignored-input]\n");
}
