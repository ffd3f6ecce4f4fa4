#include "hloc/support/Diagnostics.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace hloc {

llvm::StringRef text(DiagnosticKind kind) {
  switch (kind) {
#define HLOC_DIAGNOSTIC(name, text, exitCode)                                                                          \
  case DiagnosticKind::name:                                                                                           \
    return text;
#include "hloc/support/DiagnosticKinds.def"
  }
  return "";
}

ExitCode exitCode(DiagnosticKind kind) {
  switch (kind) {
#define HLOC_DIAGNOSTIC(name, text, exitCode)                                                                          \
  case DiagnosticKind::name:                                                                                           \
    return ExitCode::exitCode;
#include "hloc/support/DiagnosticKinds.def"
  }
  return ExitCode::InternalError;
}

bool isRemark(DiagnosticKind kind) {
  constexpr DiagnosticKind remarks[] = {
#define HLOC_DIAGNOSTIC(name, text, exitCode)
#define HLOC_REMARK(name, text) DiagnosticKind::name,
#include "hloc/support/DiagnosticKinds.def"
  };
  return std::ranges::find(remarks, kind) != std::end(remarks);
}

namespace {

struct Severity {
  const char *label, *colour;
};

Severity severityOf(const Diagnostic &diagnostic) {
  if (diagnostic.isError())
    return {"error", "1;31"};
  return isRemark(diagnostic.kind) ? Severity{"remark", "1;34"} : Severity{"warning", "1;35"};
}

} // namespace

Diagnostic &Diagnostic::note(SourceRange where, std::string text) {
  notes.push_back({where, std::move(text)});
  return *this;
}

Diagnostic &DiagnosticEngine::report(DiagnosticKind kind, SourceRange where, std::string message) {
  Diagnostic diagnostic{kind, currentFile, where, std::move(message), {}};
  if (diagnostic.isError() && errorCount++ >= maxErrors) {
    discarded = std::move(diagnostic);
    return discarded;
  }
  reports.push_back(std::move(diagnostic));
  return reports.back();
}

void DiagnosticEngine::append(const DiagnosticEngine &other) {
  for (const Diagnostic &diagnostic : other.reports) {
    if (diagnostic.isError() && errorCount++ >= maxErrors)
      continue;
    reports.push_back(diagnostic);
  }
}

ExitCode DiagnosticEngine::exitCode() const {
  ExitCode code = ExitCode::Success;
  for (const Diagnostic &diagnostic : reports) {
    ExitCode own = hloc::exitCode(diagnostic.kind);
    if (own == ExitCode::InternalError)
      return own;
    if (code == ExitCode::Success)
      code = own;
  }
  return code;
}

namespace {

/// Source lines can be 77 kB long (literals), so only a window around the caret is shown.
constexpr uint32_t contextWidth = 100;

struct Painter {
  llvm::raw_ostream &os;
  bool colour;
  void paint(const char *code, llvm::StringRef text) {
    if (colour)
      os << "\033[" << code << "m";
    os << text;
    if (colour)
      os << "\033[0m";
  }
};

void printSourceLine(Painter &painter, const SourceFile &file, SourceRange range) {
  uint32_t begin = std::min<uint32_t>(range.begin, file.text().size());
  llvm::StringRef line = file.lineAt(begin);
  uint32_t column = file.lineColumn(begin).column - 1;
  column = std::min<uint32_t>(column, line.size());
  uint32_t windowBegin = column > contextWidth ? column - contextWidth / 2 : 0;
  llvm::StringRef window = line.substr(windowBegin, 2 * contextWidth);
  std::string shown;
  for (char c : window)
    shown += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? ' ' : c;
  painter.os << "  " << (windowBegin ? "…" : "") << shown << "\n  " << (windowBegin ? " " : "");
  uint32_t caret = column - windowBegin;
  uint32_t length = range.end > range.begin ? range.end - range.begin : 1;
  length = std::max<uint32_t>(1, std::min<uint32_t>(length, window.size() > caret ? window.size() - caret : 1));
  painter.os << std::string(caret, ' ');
  painter.paint("1;32", "^" + std::string(length - 1, '~'));
  painter.os << "\n";
}

void printLine(Painter &painter, const SourceFile *file, SourceRange range, const char *label, const char *colour,
               llvm::StringRef message, llvm::StringRef kind) {
  if (file && range.isValid()) {
    LineColumn at = file->lineColumn(std::min<uint32_t>(range.begin, file->text().size()));
    painter.os << fmt::format("{}:{}:{}: ", file->name().str(), at.line, at.column);
  } else if (file) {
    painter.os << file->name() << ": ";
  } else {
    painter.os << "hloc: ";
  }
  painter.paint(colour, label);
  painter.os << ": " << message;
  if (!kind.empty())
    painter.os << " [" << kind << "]";
  painter.os << "\n";
  if (file && range.isValid())
    printSourceLine(painter, *file, range);
}

} // namespace

void DiagnosticEngine::print(llvm::raw_ostream &os, bool colour) const {
  Painter painter{os, colour};
  // Several targets, and several users of one instruction, come upon the same thing.
  std::set<std::tuple<const SourceFile *, uint32_t, uint32_t, DiagnosticKind, llvm::StringRef>> said;
  for (const Diagnostic &d : reports) {
    if (!said.insert({d.file.get(), d.range.begin, d.range.end, d.kind, d.message}).second)
      continue;
    Severity severity = severityOf(d);
    printLine(painter, d.file.get(), d.range, severity.label, severity.colour, d.message, text(d.kind));
    for (const DiagnosticNote &note : d.notes)
      printLine(painter, note.range.isValid() ? d.file.get() : nullptr, note.range, "note", "1;36", note.message, "");
  }
  if (errorCount > maxErrors)
    os << fmt::format("hloc: {} more errors not shown\n", errorCount - maxErrors);
}

} // namespace hloc
