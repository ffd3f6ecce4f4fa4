#include "PtxasReport.h"

#include "hloc/codegen/Assemble.h"
#include "hloc/support/Diagnostics.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

namespace {

/// The number directly before `unit` in `line`: 4224 for " bytes smem" in "..., 4224 bytes smem". 0 if it is not there.
uint32_t numberBefore(llvm::StringRef line, llvm::StringRef unit) {
  size_t at = line.find(unit);
  if (at == llvm::StringRef::npos)
    return 0;
  llvm::StringRef head = line.take_front(at);
  size_t digits = head.size() - head.rtrim("0123456789").size();
  uint32_t value = 0;
  head.take_back(digits).getAsInteger(10, value);
  return value;
}

/// The text after `word` and before `end`.
llvm::StringRef between(llvm::StringRef text, llvm::StringRef word, char end) {
  size_t at = text.find(word);
  return at == llvm::StringRef::npos ? "" : text.substr(at + word.size()).split(end).first;
}

struct PtxasMessage {
  unsigned line = 0; ///< in the PTX; 0: not about a line
  std::string text;
};

/// `ptxas f.ptx, line 9; error   : Unknown modifier '.bogus'` and `ptxas fatal   : ...`; nothing for other lines.
std::optional<PtxasMessage> parseMessage(llvm::StringRef line) {
  size_t at = line.find("error ");
  if (at == llvm::StringRef::npos)
    at = line.find("fatal ");
  if (!line.starts_with("ptxas") || at == llvm::StringRef::npos)
    return std::nullopt;
  PtxasMessage message;
  between(line.take_front(at), ", line ", ';').getAsInteger(10, message.line);
  message.text = line.substr(at).split(':').second.trim().str();
  return message;
}

DiagnosticKind kindOf(llvm::StringRef text, bool given) {
  if (text.contains("is not defined for option 'gpu-name'") || text.contains("takes no -arch=") ||
      text.contains("Unsupported .version"))
    return DiagnosticKind::UnsupportedTarget;
  if (text.contains("Register allocation failed") || text.contains("Insufficient registers") ||
      text.contains("too much shared data"))
    return DiagnosticKind::UnsupportedFeature;
  return given ? DiagnosticKind::BadModule : DiagnosticKind::Internal;
}

void reportAt(unsigned line, DiagnosticKind kind, std::string message, DiagnosticEngine &diagnostics) {
  const SourceFile &file = *diagnostics.file();
  uint32_t begin = file.offsetOf({line, 1});
  llvm::StringRef text = file.lineAt(begin);
  uint32_t indent = text.size() - text.ltrim().size();
  diagnostics.report(kind, {begin + indent, uint32_t(begin + std::max<size_t>(text.rtrim().size(), indent))},
                     std::move(message));
}

llvm::StringRef lineOf(llvm::StringRef text, unsigned number) {
  for (unsigned i = 1; i < number; ++i)
    text = text.split('\n').second;
  return text.split('\n').first.trim();
}

} // namespace

std::vector<std::pair<std::string, KernelResources>> parsePtxasReport(llvm::StringRef output) {
  std::vector<std::pair<std::string, KernelResources>> report;
  llvm::SmallVector<llvm::StringRef> lines;
  output.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    if (line.contains("Compiling entry function '")) {
      report.push_back({between(line, "entry function '", '\'').str(), {}});
      continue;
    }
    // nvJitLink's summary after linking, `info    : used 8 registers`, counts the driver's shared memory as the
    // kernel's.
    if (report.empty() || line.starts_with("info "))
      continue;
    // Functions that the entry calls have lines of their own; what they spill, it spills.
    KernelResources &resources = report.back().second;
    resources.stackBytes = std::max(resources.stackBytes, numberBefore(line, " bytes stack frame"));
    resources.spillStoreBytes += numberBefore(line, " bytes spill stores");
    resources.spillLoadBytes += numberBefore(line, " bytes spill loads");
    if (line.contains(" registers")) {
      resources.registers = numberBefore(line, " registers");
      resources.barriers = numberBefore(line, " barriers");
      resources.sharedBytes = numberBefore(line, " bytes smem");
      resources.stackBytes = std::max(resources.stackBytes, numberBefore(line, " bytes cumulative stack size"));
    }
  }
  return report;
}

void reportPtxasFailure(const ProcessResult &result, llvm::StringRef ptx, llvm::StringRef kernel,
                        DiagnosticEngine &diagnostics) {
  bool reported = false, given = diagnostics.file() != nullptr;
  llvm::SmallVector<llvm::StringRef> lines;
  std::string output = result.errors + "\n" + result.output;
  llvm::StringRef(output).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    std::optional<PtxasMessage> message = parseMessage(line);
    if (!message || message->text == "Ptx assembly aborted due to errors")
      continue;
    if (diagnostics.file() && message->line) {
      reportAt(message->line, kindOf(message->text, given), "ptxas: " + message->text, diagnostics);
      reported = true;
      continue;
    }
    std::string about = kernel.empty() ? "" : fmt::format(", kernel `{}`", kernel.str());
    Diagnostic &report =
        diagnostics.report(kindOf(message->text, given), fmt::format("ptxas{}: {}", about, message->text));
    if (report.kind == DiagnosticKind::UnsupportedTarget)
      report.note(
          "this ptxas is of a CUDA release without the target; `--emit=ptx` needs none, `--ptxas` names another");
    if (message->line)
      report.note(fmt::format("PTX line {}: `{}`", message->line, lineOf(ptx, message->line).str()));
    reported = true;
  }
  if (!reported && !llvm::StringRef(output).contains("ptxas"))
    diagnostics.report(
        DiagnosticKind::MissingTool,
        fmt::format("what was found as ptxas is none: {}; `hloc --doctor` shows where", result.describe()));
  else if (!reported)
    diagnostics.report(given ? DiagnosticKind::BadModule : DiagnosticKind::Internal,
                       fmt::format("ptxas, kernel `{}`: {}", kernel.str(), result.describe()));
}

} // namespace hloc
