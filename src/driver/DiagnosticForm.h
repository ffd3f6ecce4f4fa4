#pragma once
// How diagnostics are printed on standard error: for people, or with --diagnostics=json a line of JSON each, for
// programs that start hloc.
//
//   {"severity":"error","kind":"expected-token","exit_code":1,"message":"expected `(` after opcode
//   `add`","file":"g.hlo",
//    "line":4,"column":12,"end_line":4,"end_column":13,"notes":[{"message":"..."}],"rendered":"g.hlo:4:12: error: ..."}
//
// Other lines may stand between them; they never begin with `{"severity":`.

#include "hloc/support/Diagnostics.h"

namespace hloc {

enum class DiagnosticForm { Text, Json };

/// Of the whole process, also of what is said without a DiagnosticEngine when it ends in the middle of something.
void setDiagnosticForm(DiagnosticForm form);

/// To standard error. JSON has no colours.
void printDiagnostics(const DiagnosticEngine &diagnostics, bool colour);

/// One error that is about no place in a file, from any thread.
void printError(DiagnosticKind kind, const std::string &message);

} // namespace hloc
