#include "LintKernels.h"

#include "hloc/emulator/Ptx.h"
#include "hloc/lint/Lint.h"
#include "hloc/run/LintFacts.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// Grids, and the bytes of the arguments, of which a kernel may move fewer: those of slices that it only reads, and of
/// as many that it writes and nothing else has filled.
bool addLaunches(const std::string &path, std::map<std::string, lint::KernelFacts> &facts,
                 DiagnosticEngine &diagnostics) {
  std::optional<LaunchDescription> description = readLaunches(path, diagnostics);
  if (!description)
    return false;
  std::vector<bool> isFilled(description->buffers.size());
  for (const Step &step : description->steps) {
    if (const auto *copy = std::get_if<CopyStep>(&step.action))
      isFilled[copy->to.buffer] = true;
    if (const auto *fill = std::get_if<FillStep>(&step.action))
      isFilled[fill->to.buffer] = true;
    const auto *launch = std::get_if<LaunchStep>(&step.action);
    if (!launch)
      continue;
    const LaunchKernel &kernel = description->kernels[launch->kernel];
    uint64_t bytes = 0;
    auto use = [&](const BufferSlice &slice, bool isRead) {
      if (isRead || !isFilled[slice.buffer])
        bytes += slice.bytes;
      if (!isRead)
        isFilled[slice.buffer] = true;
    };
    for (auto [i, argument] : llvm::enumerate(launch->arguments)) {
      if (const auto *slice = sliceOf(argument))
        use(*slice, i < kernel.inputs);
      else if (const auto *structure = std::get_if<StructureValue>(&argument))
        for (const AddressPiece &piece : structure->pieces)
          use(piece.slice, !piece.written);
    }
    lint::KernelFacts &known = facts[kernel.name];
    if (!known.grid || known.bytesMoved < bytes) {
      known.grid = kernel.grid;
      known.block = kernel.block;
      known.bytesMoved = bytes;
    }
  }
  return true;
}

lint::LintOptions lintOptions(const CompileOptions &options, const TargetInfo &target) {
  lint::LintOptions result;
  result.target = target;
  for (const lint::RuleRow &row : lint::rules()) {
    auto isNamed = [&](const std::vector<std::string> &names) { return llvm::is_contained(names, row.name); };
    if (isNamed(options.lintDisabled) || (!options.lintRules.empty() && !isNamed(options.lintRules)))
      result.disabled.push_back(row.rule);
  }
  return result;
}

void report(llvm::ArrayRef<lint::Finding> findings, DiagnosticEngine &diagnostics) {
  for (const lint::Finding &finding : findings) {
    const lint::RuleRow &row = lint::row(finding.rule);
    Diagnostic &diagnostic = diagnostics.report(
        row.severity == lint::Severity::Error ? DiagnosticKind::LintFinding : DiagnosticKind::LintWarning,
        finding.where, fmt::format("{}: kernel `{}`: {}", row.name.str(), finding.kernel, finding.message));
    if (!finding.source.empty())
      diagnostic.note("made for " + finding.source);
  }
}

} // namespace

std::optional<LaunchDescription> readLaunches(const std::string &path, DiagnosticEngine &diagnostics) {
  std::string error;
  std::optional<std::string> text = readFile(path, error);
  if (!text) {
    diagnostics.report(DiagnosticKind::UnreadableFile, "cannot read `" + path + "`: " + error);
    return std::nullopt;
  }
  DiagnosticEngine ofLaunch;
  ofLaunch.setFile(std::make_shared<SourceFile>(path, std::move(*text)));
  std::optional<LaunchDescription> description = parseLaunchDescription(ofLaunch);
  diagnostics.append(ofLaunch);
  return description;
}

bool lintKernels(const LintInput &input, const CompileOptions &options, std::string &listing,
                 DiagnosticEngine &diagnostics) {
  std::map<std::string, lint::KernelFacts> facts = lintFactsOf(input.manifest, input.fused);
  if (!options.launchFile.empty() && !addLaunches(options.launchFile, facts, diagnostics))
    return false;
  std::shared_ptr<const SourceFile> before = diagnostics.file();
  diagnostics.setFile(input.ptx);
  std::optional<ptx::Module> module = ptx::parse(diagnostics);
  if (module) {
    std::vector<lint::Finding> findings = lint::lint(*module, facts, lintOptions(options, input.target));
    report(findings, diagnostics);
    if (options.lintAsJson)
      listing += lint::printJson(findings, *input.ptx);
  }
  diagnostics.setFile(before);
  return module.has_value();
}

} // namespace hloc
