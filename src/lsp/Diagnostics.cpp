#include "Features.h"

namespace hloc::lsp {

namespace {

/// Of the protocol.
enum Severity { Error = 1, Warning = 2, Information = 3 };

Severity severityOf(const Diagnostic &diagnostic) {
  return diagnostic.isError() ? Error : isRemark(diagnostic.kind) ? Information : Warning;
}

/// What is not about a place is shown at the start.
SourceRange shownRange(SourceRange range, llvm::StringRef text) {
  if (!range.isValid())
    return {0, 0};
  const auto size = uint32_t(text.size());
  return {std::min(range.begin, size), std::max(std::min(range.begin, size), std::min(range.end, size))};
}

void write(Out &out, const Document &document, const Diagnostic &diagnostic) {
  std::string message = diagnostic.message;
  std::vector<const DiagnosticNote *> related;
  for (const DiagnosticNote &note : diagnostic.notes)
    if (note.range.isValid())
      related.push_back(&note);
    else
      message += "\n" + note.message;
  out.object([&] {
    writeRange(out, "range", document.lines(), shownRange(diagnostic.range, document.text()));
    out.attribute("severity", int64_t(severityOf(diagnostic)));
    out.attribute("code", text(diagnostic.kind));
    out.attribute("source", "hloc");
    out.attribute("message", textValue(message));
    if (related.empty())
      return;
    out.attributeArray("relatedInformation", [&] {
      for (const DiagnosticNote *note : related)
        out.object([&] {
          out.attributeBegin("location");
          writeLocation(out, document, shownRange(note->range, document.text()));
          out.attributeEnd();
          out.attribute("message", textValue(note->message));
        });
    });
  });
}

} // namespace

void writeDiagnostics(Document &document, Out &out) {
  out.array([&] {
    for (const Diagnostic &diagnostic : document.analysis().diagnostics.diagnostics())
      write(out, document, diagnostic);
  });
}

} // namespace hloc::lsp
