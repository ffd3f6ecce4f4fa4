// The C interface over compileText: objects, and what no call of it may do. A compilation runs where its caller does,
// and where hloc would end the program it is given up instead (Recovery.h).

#include "hloc.h"

#include "hloc/driver/CompileText.h"
#include "hloc/driver/Driver.h"
#include "hloc/support/Recovery.h"

#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

using namespace hloc;

struct hloc_control {
  std::atomic<bool> isCancelled = false;
  hloc_progress *progress = nullptr;
  void *data = nullptr;
};

struct hloc_diagnostic {
  hloc_severity severity;
  std::string kind, message, file;
  size_t line = 0, column = 0;
  std::vector<hloc_diagnostic> notes;
};

struct hloc_compilation {
  hloc_status status = HLOC_OK;
  std::string messages;
  std::vector<CompiledTarget> targets;
  std::vector<hloc_diagnostic> diagnostics;
};

namespace {

/// Asks a control whether to stop, and tells it how far things are.
class ControlObserver : public CompileObserver {
public:
  explicit ControlObserver(hloc_control *control)
      : control(control), report(control ? control->progress : nullptr), data(control ? control->data : nullptr) {}
  bool isCancelled() const override { return control && control->isCancelled; }
  void progress(size_t done, size_t all) override {
    if (report)
      report(data, done, all);
  }

private:
  hloc_control *control;
  hloc_progress *report;
  void *data;
};

hloc_diagnostic placed(hloc_severity severity, std::string kind, std::string message, const SourceFile *file,
                       SourceRange range) {
  hloc_diagnostic result{severity, std::move(kind), std::move(message), "", 0, 0, {}};
  if (file && range.isValid()) {
    result.file = file->name().str();
    const LineColumn place = file->lineColumn(range.begin);
    result.line = place.line;
    result.column = place.column;
  }
  return result;
}

hloc_diagnostic describe(const Diagnostic &diagnostic) {
  const hloc_severity severity = diagnostic.isError()        ? HLOC_ERROR
                                 : isRemark(diagnostic.kind) ? HLOC_REMARK
                                                             : HLOC_WARNING;
  hloc_diagnostic result =
      placed(severity, text(diagnostic.kind).str(), diagnostic.message, diagnostic.file.get(), diagnostic.range);
  for (const DiagnosticNote &note : diagnostic.notes)
    result.notes.push_back(placed(HLOC_NOTE, "", note.message, diagnostic.file.get(), note.range));
  return result;
}

void compileInto(hloc_compilation &result, std::shared_ptr<const SourceFile> source,
                 const std::vector<std::string> &options, ControlObserver &observer) {
  DiagnosticEngine diagnostics;
  result.targets = compileText(std::move(source), options, observer, diagnostics);
  for (const Diagnostic &diagnostic : diagnostics.diagnostics())
    result.diagnostics.push_back(describe(diagnostic));
  llvm::raw_string_ostream stream(result.messages);
  diagnostics.print(stream, /*colour=*/false);
  result.status = observer.isCancelled() ? HLOC_CANCELLED : static_cast<hloc_status>(diagnostics.exitCode());
}

/// The text may be anything; what follows a null byte is part of it.
std::shared_ptr<const SourceFile> sourceOf(const char *name, const char *text, size_t size) {
  return std::make_shared<const SourceFile>(name ? name : "", text ? std::string(text, size) : std::string());
}

hloc_bytes bytesOf(const std::string &text) { return {text.c_str(), text.size()}; }

const CompiledTarget *targetOf(const hloc_compilation *compilation, size_t index) {
  return compilation && index < compilation->targets.size() ? &compilation->targets[index] : nullptr;
}

} // namespace

int hloc_abi_version() { return HLOC_ABI_VERSION; }
const char *hloc_version() { return HLOC_VERSION; }

hloc_control *hloc_control_create() { return new hloc_control; }
void hloc_control_destroy(hloc_control *control) { delete control; }
void hloc_control_on_progress(hloc_control *control, hloc_progress *progress, void *data) {
  if (!control)
    return;
  control->progress = progress;
  control->data = data;
}
void hloc_control_cancel(hloc_control *control) {
  if (control)
    control->isCancelled = true;
}

hloc_compilation *hloc_compile(const char *name, const char *text, size_t size, const char *const *options,
                               size_t num_options, hloc_control *control) {
  static std::once_flag once;
  std::call_once(once, hearLlvmFailures);
  auto *result = new hloc_compilation;
  if (size >= SourceRange::npos) {
    result->status = HLOC_WRONG_INPUT;
    result->messages = "hloc: error: the text has 4 GiB or more\n";
    return result;
  }
  // What is given up leaves these as they were: they are not its own.
  const std::shared_ptr<const SourceFile> source = sourceOf(name, text, size);
  std::vector<std::string> words;
  for (size_t i = 0; i < num_options; ++i)
    words.push_back(options[i] ? options[i] : "");
  ControlObserver observer(control);
  if (std::optional<GivenUp> why = runRecoverably([&] { compileInto(*result, source, words, observer); })) {
    // It may have been amidst of changing what it was to fill.
    result = new hloc_compilation;
    result->status = static_cast<hloc_status>(why->code);
    DiagnosticEngine diagnostics;
    diagnostics.report(
        why->code == ExitCode::Unsupported ? DiagnosticKind::UnsupportedFeature : DiagnosticKind::Internal, why->what);
    result->diagnostics.push_back(describe(diagnostics.diagnostics().front()));
    llvm::raw_string_ostream stream(result->messages);
    diagnostics.print(stream, /*colour=*/false);
  }
  return result;
}

void hloc_compilation_destroy(hloc_compilation *compilation) { delete compilation; }

hloc_status hloc_compilation_status(const hloc_compilation *compilation) {
  return compilation ? compilation->status : HLOC_WRONG_INPUT;
}
const char *hloc_compilation_messages(const hloc_compilation *compilation) {
  return compilation ? compilation->messages.c_str() : "";
}
size_t hloc_compilation_num_targets(const hloc_compilation *compilation) {
  return compilation ? compilation->targets.size() : 0;
}
const char *hloc_compilation_target(const hloc_compilation *compilation, size_t target) {
  const CompiledTarget *found = targetOf(compilation, target);
  return found ? found->target.c_str() : nullptr;
}
hloc_bytes hloc_compilation_ptx(const hloc_compilation *compilation, size_t target) {
  const CompiledTarget *found = targetOf(compilation, target);
  return found ? bytesOf(found->ptx) : hloc_bytes();
}
hloc_bytes hloc_compilation_cubin(const hloc_compilation *compilation, size_t target) {
  const CompiledTarget *found = targetOf(compilation, target);
  return found && !found->cubin.empty() ? bytesOf(found->cubin) : hloc_bytes();
}
hloc_bytes hloc_compilation_manifest(const hloc_compilation *compilation, size_t target) {
  const CompiledTarget *found = targetOf(compilation, target);
  return found ? bytesOf(found->manifest) : hloc_bytes();
}

size_t hloc_compilation_num_diagnostics(const hloc_compilation *compilation) {
  return compilation ? compilation->diagnostics.size() : 0;
}
const hloc_diagnostic *hloc_compilation_diagnostic(const hloc_compilation *compilation, size_t index) {
  return index < hloc_compilation_num_diagnostics(compilation) ? &compilation->diagnostics[index] : nullptr;
}
hloc_severity hloc_diagnostic_severity(const hloc_diagnostic *diagnostic) {
  return diagnostic ? diagnostic->severity : HLOC_NOTE;
}
const char *hloc_diagnostic_kind(const hloc_diagnostic *diagnostic) {
  return diagnostic ? diagnostic->kind.c_str() : "";
}
const char *hloc_diagnostic_message(const hloc_diagnostic *diagnostic) {
  return diagnostic ? diagnostic->message.c_str() : "";
}
const char *hloc_diagnostic_file(const hloc_diagnostic *diagnostic) {
  return diagnostic ? diagnostic->file.c_str() : "";
}
size_t hloc_diagnostic_line(const hloc_diagnostic *diagnostic) { return diagnostic ? diagnostic->line : 0; }
size_t hloc_diagnostic_column(const hloc_diagnostic *diagnostic) { return diagnostic ? diagnostic->column : 0; }
size_t hloc_diagnostic_num_notes(const hloc_diagnostic *diagnostic) {
  return diagnostic ? diagnostic->notes.size() : 0;
}
const hloc_diagnostic *hloc_diagnostic_note(const hloc_diagnostic *diagnostic, size_t index) {
  return index < hloc_diagnostic_num_notes(diagnostic) ? &diagnostic->notes[index] : nullptr;
}

int hloc_main(int argc, char **argv) { return runDriver(argc, argv); }
