#include "DiagnosticForm.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <set>

namespace hloc {

namespace {

DiagnosticForm processForm = DiagnosticForm::Text;

llvm::StringRef severityOf(const Diagnostic &diagnostic) {
  if (diagnostic.isError())
    return "error";
  return isRemark(diagnostic.kind) ? "remark" : "warning";
}

void writePlace(llvm::json::OStream &json, const SourceFile *file, SourceRange range) {
  if (!file || !range.isValid())
    return;
  const uint32_t size = uint32_t(file->text().size());
  const LineColumn begin = file->lineColumn(std::min(range.begin, size));
  const LineColumn end = file->lineColumn(std::clamp(range.end, std::min(range.begin, size), size));
  json.attribute("line", int64_t(begin.line));
  json.attribute("column", int64_t(begin.column));
  json.attribute("end_line", int64_t(end.line));
  json.attribute("end_column", int64_t(end.column));
}

/// As it is printed for people.
std::string rendered(const Diagnostic &diagnostic) {
  DiagnosticEngine one;
  one.setFile(diagnostic.file);
  one.report(diagnostic.kind, diagnostic.range, diagnostic.message).notes = diagnostic.notes;
  std::string text;
  llvm::raw_string_ostream os(text);
  one.print(os, /*colour=*/false);
  return text;
}

std::string jsonLine(const Diagnostic &diagnostic) {
  std::string line;
  llvm::raw_string_ostream os(line);
  llvm::json::OStream json(os);
  auto words = [&](llvm::StringRef key, llvm::StringRef value) { json.attribute(key, llvm::json::fixUTF8(value)); };
  json.object([&] {
    json.attribute("severity", severityOf(diagnostic));
    json.attribute("kind", text(diagnostic.kind));
    json.attribute("exit_code", int64_t(exitCode(diagnostic.kind)));
    words("message", diagnostic.message);
    if (diagnostic.file)
      words("file", diagnostic.file->name());
    writePlace(json, diagnostic.file.get(), diagnostic.range);
    json.attributeArray("notes", [&] {
      for (const DiagnosticNote &note : diagnostic.notes)
        json.object([&] {
          words("message", note.message);
          writePlace(json, diagnostic.file.get(), note.range);
        });
    });
    words("rendered", rendered(diagnostic));
  });
  return line + "\n";
}

} // namespace

void setDiagnosticForm(DiagnosticForm form) { processForm = form; }

void printDiagnostics(const DiagnosticEngine &diagnostics, bool colour) {
  if (processForm == DiagnosticForm::Text)
    return diagnostics.print(llvm::errs(), colour);
  std::set<std::string> said; // several targets come upon the same thing
  for (const Diagnostic &diagnostic : diagnostics.diagnostics())
    if (std::string line = jsonLine(diagnostic); said.insert(line).second)
      llvm::errs() << line;
  if (diagnostics.numErrors() > DiagnosticEngine::maxErrors)
    llvm::errs() << diagnostics.numErrors() - DiagnosticEngine::maxErrors << " more errors not shown\n";
}

void printError(DiagnosticKind kind, const std::string &message) {
  DiagnosticEngine one;
  one.report(kind, message);
  printDiagnostics(one, /*colour=*/false);
}

} // namespace hloc
