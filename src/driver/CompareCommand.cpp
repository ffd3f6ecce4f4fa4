// Peers become options of a run: PTX with its launch beside it, other options of hloc's, CUDA that nvcc compiles, or
// what XLA makes of the module (Peers.h). The table is of what ComparedKernels.h counts; of several inputs it has their
// ratios.

#include "CompareCommand.h"

#include "Compile.h"
#include "DiagnosticForm.h"
#include "Estimates.h"
#include "Peers.h"
#include "RunCommand.h"

#include "hloc/run/ComparedKernels.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <map>

namespace hloc {

namespace {

constexpr const char *ownName = "hloc";

llvm::StringRef word(RunVerdict verdict) {
  switch (verdict) {
  case RunVerdict::NotRun:
    return "not run";
  case RunVerdict::Wrong:
    return "no";
  case RunVerdict::Executed:
    return "-";
  case RunVerdict::Undecided:
    return "unknown";
  case RunVerdict::Agrees:
    return "yes";
  }
  return "";
}

std::string shown(const std::optional<double> &value) {
  return !value ? "-" : *value == std::floor(*value) ? fmt::format("{:.0f}", *value) : fmt::format("{:.2f}", *value);
}

/// Of one input: hloc's row, and those of its peers.
struct ComparedInput {
  std::string file;
  std::vector<ComparedKernels> rows;

  /// hloc's number over the least of the peers'; nothing if one of them is not known, or they are both 0.
  std::optional<double> ratio(size_t column) const {
    std::optional<double> best;
    for (const ComparedKernels &row : llvm::drop_begin(rows))
      if (!row.values.empty() && row.values[column])
        best = std::min(best.value_or(*row.values[column]), *row.values[column]);
    const std::optional<double> &own = rows.front().values[column];
    if (!own || !best || (*own == 0 && *best == 0))
      return std::nullopt;
    return *best == 0 ? std::numeric_limits<double>::infinity() : *own / *best;
  }
};

std::string ratioText(const std::optional<double> &ratio) {
  return !ratio ? "-" : std::isinf(*ratio) ? "inf" : fmt::format("{:.2f}", *ratio);
}

/// Rows of words, the first left-aligned, in columns as wide as they have to be.
std::string aligned(llvm::ArrayRef<std::vector<std::string>> table) {
  std::vector<size_t> widths;
  for (const auto &row : table)
    for (auto [i, cell] : llvm::enumerate(row)) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], cell.size());
    }
  std::string text;
  for (const auto &row : table) {
    std::string line;
    for (auto [i, cell] : llvm::enumerate(row))
      line += i == 0 ? fmt::format("{:<{}}", cell, widths[i]) : fmt::format("  {:>{}}", cell, widths[i]);
    text += llvm::StringRef(line).rtrim(' ').str() + "\n";
  }
  return text;
}

std::string wholeTable(const ComparedInput &input) {
  std::vector<std::vector<std::string>> table = {{"", "agrees"}};
  for (const ComparedColumn &column : comparedColumns())
    table.front().push_back(column.name.str());
  for (const ComparedKernels &row : input.rows) {
    std::vector<std::string> &cells = table.emplace_back();
    cells = {row.name, word(row.verdict).str()};
    for (const std::optional<double> &value : row.values)
      cells.push_back(shown(value));
  }
  if (input.rows.size() > 1) {
    std::vector<std::string> &cells = table.emplace_back();
    cells = {"hloc / best of the others", ""};
    for (size_t column = 0; column < comparedColumns().size(); ++column)
      cells.push_back(ratioText(input.ratio(column)));
  }
  std::string text = aligned(table);
  for (const ComparedKernels &row : input.rows)
    if (!row.problem.empty())
      text += row.name + ": " + row.problem + "\n";
  return text;
}

/// A line an input, of ratios, and their geometric means by folder.
std::string ratioTable(llvm::ArrayRef<ComparedInput> inputs) {
  std::vector<std::vector<std::string>> table = {{"hloc / best of the others", "agree"}};
  for (const ComparedColumn &column : comparedColumns())
    table.front().push_back(column.name.str());
  std::map<std::string, std::vector<std::pair<double, unsigned>>> means; // sums of logarithms, and of how many
  std::vector<std::string> folders;
  for (const ComparedInput &input : inputs) {
    std::vector<std::string> &cells = table.emplace_back();
    const std::string folder = llvm::sys::path::filename(llvm::sys::path::parent_path(input.file)).str();
    std::vector<std::pair<double, unsigned>> &mean = means[folder];
    if (mean.empty())
      folders.push_back(folder);
    mean.resize(comparedColumns().size());
    const bool agree =
        llvm::all_of(input.rows, [](const ComparedKernels &row) { return row.verdict == RunVerdict::Agrees; });
    cells = {folder + "/" + llvm::sys::path::stem(input.file).str(), agree ? "yes" : "no"};
    for (size_t column = 0; column < comparedColumns().size(); ++column) {
      const std::optional<double> ratio = input.ratio(column);
      cells.push_back(ratioText(ratio));
      if (ratio && *ratio > 0 && std::isfinite(*ratio)) {
        mean[column].first += std::log(*ratio);
        ++mean[column].second;
      }
    }
  }
  for (const std::string &folder : folders) {
    std::vector<std::string> &cells = table.emplace_back();
    cells = {"geometric mean of " + folder, ""};
    for (auto [sum, count] : means[folder])
      cells.push_back(count ? fmt::format("{:.2f}", std::exp(sum / count)) : "-");
  }
  std::string text = aligned(table);
  for (const ComparedInput &input : inputs)
    for (const ComparedKernels &row : input.rows)
      if (!row.problem.empty())
        text += input.file + ": " + row.name + ": " + row.problem + "\n";
  return text;
}

std::string jsonText(llvm::ArrayRef<ComparedInput> inputs, const DeviceModel &device) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("device", device.name);
    json.attributeArray("inputs", [&] {
      for (const ComparedInput &input : inputs)
        json.object([&] {
          json.attribute("file", llvm::json::fixUTF8(input.file));
          json.attributeArray("rows", [&] {
            for (const ComparedKernels &row : input.rows)
              json.object([&] {
                json.attribute("name", llvm::json::fixUTF8(row.name));
                json.attribute("agrees", word(row.verdict));
                if (!row.problem.empty())
                  json.attribute("problem", llvm::json::fixUTF8(row.problem));
                for (auto [column, value] : llvm::zip(comparedColumns(), row.values))
                  if (value)
                    json.attribute(column.key, *value);
              });
          });
        });
    });
  });
  os << "\n";
  return text;
}

class CompareCommand {
public:
  explicit CompareCommand(const CompareOptions &options) : options(options) {}

  int run() {
    std::vector<ComparedInput> inputs;
    for (const std::string &file : options.inputs)
      if (std::optional<ComparedInput> compared = compare(file))
        inputs.push_back(std::move(*compared));
    if (!inputs.empty())
      llvm::outs() << (options.asJson       ? jsonText(inputs, *device)
                       : inputs.size() == 1 ? wholeTable(inputs.front())
                                            : ratioTable(inputs));
    printDiagnostics(diagnostics, useColour(options.colour));
    return static_cast<int>(diagnostics.hasErrors() ? diagnostics.exitCode() : exitCodeOf(inputs));
  }

private:
  static ExitCode exitCodeOf(llvm::ArrayRef<ComparedInput> inputs) {
    auto any = [&](RunVerdict verdict) {
      return llvm::any_of(inputs, [&](const ComparedInput &input) {
        return llvm::any_of(input.rows, [&](const ComparedKernels &row) { return row.verdict == verdict; });
      });
    };
    return any(RunVerdict::Wrong)       ? ExitCode::Mismatch
           : any(RunVerdict::NotRun)    ? ExitCode::Unsupported
           : any(RunVerdict::Undecided) ? ExitCode::CannotTell
                                        : ExitCode::Success;
  }

  /// hloc's options of a run of `file`, with some more; nothing, with a diagnostic, if they are none.
  std::optional<RunCommandOptions> runOptions(const std::string &file, llvm::ArrayRef<std::string> more) {
    std::vector<const char *> words = {"hloc", "run", file.c_str()};
    for (const std::string &argument : options.arguments)
      words.push_back(argument.c_str());
    for (const std::string &argument : more)
      words.push_back(argument.c_str());
    Command command;
    if (!parseCommandLine(words, command, diagnostics))
      return std::nullopt;
    return settledRun(command.run);
  }

  std::optional<ComparedInput> compare(const std::string &path) {
    CompileObserver unheard;
    std::shared_ptr<const SourceFile> file = readSource(path, unheard, diagnostics);
    std::optional<RunCommandOptions> own = file ? runOptions(path, {}) : std::nullopt;
    if (!own)
      return std::nullopt;
    if (!toolchain)
      toolchain = Toolchain::discover(own->compile.toolchain);
    device = &deviceFor(own->compile, own->target);
    ComparedInput result{path, {compareKernels(ownName, file, *own, *device, *toolchain)}};
    PeerFiles peers(diagnostics);
    for (const std::string &name : options.peers.empty() ? peersBeside(path) : options.peers) {
      std::optional<RunCommandOptions> other;
      if (llvm::StringRef(name).starts_with("hloc:")) {
        llvm::SmallVector<llvm::StringRef> words;
        llvm::StringRef(name).drop_front(5).split(words, ' ', -1, /*KeepEmpty=*/false);
        other = runOptions(path, std::vector<std::string>(words.begin(), words.end()));
      } else if (std::optional<PeerProgram> program = peers.find(name, path, own->target, *toolchain)) {
        other = own;
        other->ptxFile = program->ptx;
        other->launchFile = program->launch;
      }
      if (!other)
        return std::nullopt;
      result.rows.push_back(compareKernels(llvm::sys::path::filename(name).str(), file, *other, *device, *toolchain));
    }
    return result;
  }

  const CompareOptions &options;
  DiagnosticEngine diagnostics;
  std::optional<Toolchain> toolchain;
  const DeviceModel *device = nullptr;
};

} // namespace

int runCompare(const CompareOptions &options) { return CompareCommand(options).run(); }

} // namespace hloc
