// hloc-parse-bench: parses many HLO files in one process; for scripts/lab/bench-parse and scripts/lab/check-parse.
//
//   hloc-parse-bench time FILE...     MB/s of each file (best of several runs) and of all of them
//   hloc-parse-bench verdict FILE...  `ok|rejected <tab> file <tab> first error`, one line a file
//   hloc-parse-bench roundtrip FILE...  what does not print to text that parses to an equal module; exit code 1 if any
#include "hloc/hlo/Printer.h"
#include "hloc/parser/Parser.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <fstream>
#include <sstream>

using namespace hloc;

namespace {

std::string readFile(const char *path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::unique_ptr<HloModule> parse(std::string name, std::string text, DiagnosticEngine &diagnostics) {
  return parseHloModule(std::make_shared<SourceFile>(std::move(name), std::move(text)), diagnostics);
}

/// Seconds of the fastest parse; repeats until 200 ms have passed.
double bestTime(const std::shared_ptr<const SourceFile> &file) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9, total = 0;
  while (total < 0.2) {
    auto start = Clock::now();
    DiagnosticEngine diagnostics;
    if (!parseHloModule(file, diagnostics))
      return std::numeric_limits<double>::infinity(); // 0 MB/s: rejected
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

void time(llvm::ArrayRef<char *> paths) {
  double bytes = 0, seconds = 0;
  for (const char *path : paths) {
    auto file = std::make_shared<SourceFile>(path, readFile(path));
    double best = bestTime(file);
    llvm::outs() << fmt::format("{:8.1f} MB/s {:9} bytes {:8.3f} ms  {}\n", file->text().size() / best / 1e6,
                                file->text().size(), best * 1e3, path);
    bytes += file->text().size();
    seconds += best;
  }
  llvm::outs() << fmt::format("{:8.1f} MB/s over all {:.1f} MB\n", bytes / seconds / 1e6, bytes / 1e6);
}

void verdicts(llvm::ArrayRef<char *> paths) {
  for (const char *path : paths) {
    DiagnosticEngine diagnostics;
    bool ok = parse(path, readFile(path), diagnostics) != nullptr;
    llvm::outs() << (ok ? "ok" : "rejected") << "\t" << path << "\t";
    for (const Diagnostic &report : diagnostics.diagnostics())
      if (report.isError()) {
        llvm::outs() << report.message << " [" << text(report.kind) << "]";
        break;
      }
    llvm::outs() << "\n";
  }
}

/// Empty, or what differs after printing and parsing again.
std::string roundTrip(const char *path) {
  DiagnosticEngine diagnostics;
  auto first = parse(path, readFile(path), diagnostics);
  if (!first)
    return "";
  auto print = [](const HloModule &module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printHlo(module, os, PrintOptions());
    return text;
  };
  std::string once = print(*first), why;
  DiagnosticEngine again;
  auto second = parse(path, once, again);
  if (!second)
    return "printed text is rejected: " + (again.diagnostics().empty() ? "" : again.diagnostics()[0].message);
  if (!equalModules(*first, *second, why))
    return why;
  return print(*second) == once ? "" : "printing again gives other text";
}

} // namespace

int main(int argc, char **argv) {
  llvm::StringRef mode = argc > 1 ? argv[1] : "";
  llvm::ArrayRef<char *> paths(argv + std::min(argc, 2), argv + argc);
  if (mode == "time") {
    time(paths);
  } else if (mode == "verdict") {
    verdicts(paths);
  } else if (mode == "roundtrip") {
    bool failed = false;
    for (const char *path : paths)
      if (std::string why = roundTrip(path); !why.empty()) {
        llvm::outs() << path << ": " << why << "\n";
        failed = true;
      }
    return failed;
  } else {
    llvm::errs() << "usage: hloc-parse-bench time|verdict|roundtrip FILE...\n";
    return 2;
  }
  return 0;
}
