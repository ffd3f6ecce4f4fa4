#pragma once
// Diagnostics about what the user gave us: located, several per run, each with a kind that scripts can match.
//
//   gelu.hlo:4:12: error: expected `(` after opcode `add`, found `,` [expected-token]
//     %x = f32[] add, %p
//                   ^
//   gelu.hlo:2:3: note: ...

#include "hloc/support/ExitCode.h"
#include "hloc/support/SourceFile.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace hloc {

enum class DiagnosticKind : uint8_t {
#define HLOC_DIAGNOSTIC(name, text, exitCode) name,
#include "hloc/support/DiagnosticKinds.def"
};

llvm::StringRef text(DiagnosticKind kind);
ExitCode exitCode(DiagnosticKind kind);
bool isRemark(DiagnosticKind kind);

struct DiagnosticNote {
  SourceRange range;
  std::string message;
};

/// One report. Kinds whose exit code is Success are warnings or remarks, all others are errors.
struct Diagnostic {
  DiagnosticKind kind;
  std::shared_ptr<const SourceFile> file; ///< null: not about a place in a file
  SourceRange range;
  std::string message; ///< lower-case start, no final period, code in `backticks`
  std::vector<DiagnosticNote> notes;

  bool isError() const { return exitCode(kind) != ExitCode::Success; }
  Diagnostic &note(SourceRange where, std::string text);
  Diagnostic &note(std::string text) { return note(SourceRange(), std::move(text)); }
};

/// Collects diagnostics in order of report. Not thread safe: give each thread its own and `append` them in order.
class DiagnosticEngine {
public:
  /// More errors than this are counted, not kept.
  static constexpr size_t maxErrors = 100;

  /// The file that ranges of later reports refer to.
  void setFile(std::shared_ptr<const SourceFile> file) { currentFile = std::move(file); }
  const std::shared_ptr<const SourceFile> &file() const { return currentFile; }

  /// The returned reference is valid until the next report.
  Diagnostic &report(DiagnosticKind kind, SourceRange where, std::string message);
  Diagnostic &report(DiagnosticKind kind, std::string message) {
    return report(kind, SourceRange(), std::move(message));
  }
  void append(const DiagnosticEngine &other);

  bool hasErrors() const { return errorCount != 0; }
  size_t numErrors() const { return errorCount; }
  const std::vector<Diagnostic> &diagnostics() const { return reports; }
  /// Success without errors; otherwise the code of the first error (an internal error wins over all).
  ExitCode exitCode() const;

  void print(llvm::raw_ostream &os, bool colour) const;

private:
  std::shared_ptr<const SourceFile> currentFile;
  std::vector<Diagnostic> reports;
  size_t errorCount = 0;
  Diagnostic discarded{};
};

} // namespace hloc
