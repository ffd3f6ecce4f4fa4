#include "VerdictFile.h"

#include "Estimates.h"

#include "hloc/support/Files.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace hloc {

namespace {

llvm::StringRef nameOf(RunVerdict verdict) {
  switch (verdict) {
  case RunVerdict::NotRun:
    return "not-run";
  case RunVerdict::Wrong:
    return "wrong";
  case RunVerdict::Executed:
    return "executed";
  case RunVerdict::Undecided:
    return "undecided";
  case RunVerdict::Agrees:
    return "agrees";
  }
  return "";
}

/// JSON has no infinity: null.
void writeNumber(llvm::json::OStream &json, llvm::StringRef key, double number) {
  if (std::isfinite(number))
    json.attribute(key, number);
  else
    json.attribute(key, nullptr);
}

void writeElement(llvm::json::OStream &json, llvm::StringRef key, const Mismatch &element) {
  json.attributeObject(key, [&] {
    json.attributeArray("leaf", [&] {
      for (int64_t number : element.leaf)
        json.value(number);
    });
    json.attributeArray("index", [&] {
      for (int64_t number : element.index)
        json.value(number);
    });
    json.attribute("expected", element.expected);
    json.attribute("actual", element.actual);
    json.attribute("admissible", element.admissible);
    writeNumber(json, "ulps", element.ulps);
  });
}

void writeCompared(llvm::json::OStream &json, llvm::StringRef key, const CompareResult &result) {
  json.attributeObject(key, [&] {
    json.attribute("elements", result.numElements);
    json.attribute("comparisons", result.numCompared);
    json.attribute("with_several_admissible_values", result.numBranched);
    json.attribute("undecided", result.numUndecided);
    json.attribute("undecided_but_equal", result.numUndecidedEqual);
    writeNumber(json, "largest_ulps", result.largestUlps);
    writeNumber(json, "widest_ulps", result.widestBound.ulps);
    writeNumber(json, "widest_of_largest", result.widestBound.ofLargest);
    if (result.furthest)
      writeElement(json, "furthest", *result.furthest);
    if (result.firstUnknown)
      writeElement(json, "first_unknown", *result.firstUnknown);
  });
}

void writeMeasured(llvm::json::OStream &json, const MeasuredRun &measured) {
  json.attribute("device", llvm::json::fixUTF8(measured.device));
  json.attribute("target", measured.target);
  json.attribute("repeats", int64_t(measured.measurement.repeats));
  json.attribute("median_ms", measured.measurement.median);
  json.attribute("least_ms", measured.measurement.least);
  json.attribute("bytes_moved", int64_t(measured.measurement.bytesMoved));
  json.attribute("copy_median_ms", measured.measurement.copyMedian);
  if (const std::optional<GraphMeasurement> &graph = measured.measurement.graph) {
    json.attribute("graph_nodes", int64_t(graph->nodes));
    json.attribute("graph_median_ms", graph->median);
    json.attribute("graph_least_ms", graph->least);
  }
}

void writeRun(llvm::json::OStream &json, const ProgramRun &run, const RunCommandOptions &options) {
  if (run.regime)
    json.attribute("regime", regimeName(*run.regime));
  auto whole = [&](llvm::StringRef key, llvm::StringRef text) {
    json.attributeBegin(key);
    json.rawValue(text.rtrim());
    json.attributeEnd();
  };
  if (run.counters && !options.counters.empty()) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printJson(*run.counters, os);
    whole("counters", text);
  }
  if (run.estimate)
    whole("estimate", printEstimates(*run.estimate, deviceFor(options.compile, options.target), /*asJson=*/true));
  if (run.measured)
    json.attributeObject("measured", [&] { writeMeasured(json, *run.measured); });
}

} // namespace

std::string printVerdict(const RunReport &report, const RunCommandOptions &options, ExitCode code) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("verdict", nameOf(report.verdict));
    json.attribute("exit_code", int64_t(code));
    json.attribute("agreement", llvm::json::fixUTF8(llvm::StringRef(report.agreement).rtrim()));
    if (report.verdict == RunVerdict::Agrees || report.verdict == RunVerdict::Undecided) {
      writeCompared(json, "results", report.compared.atEnd);
      if (report.compared.numSteps)
        writeCompared(json, "steps", report.compared.inSteps);
    }
    json.attributeArray("shrunk", [&] {
      for (auto [from, to] : report.shrunkSizes)
        json.object([&, from = from, to = to] {
          json.attribute("from", from);
          json.attribute("to", to);
        });
    });
    json.attributeArray("notes", [&] {
      for (const std::string &note : report.notes)
        json.value(llvm::json::fixUTF8(note));
    });
    json.attributeArray("runs", [&] {
      for (const ProgramRun &run : report.runs)
        json.object([&] { writeRun(json, run, options); });
    });
  });
  os << "\n";
  return text;
}

void writeVerdict(const RunReport &report, const RunCommandOptions &options, DiagnosticEngine &diagnostics) {
  if (options.verdictFile.empty())
    return;
  const std::string text = printVerdict(report, options, diagnostics.exitCode());
  if (options.verdictFile == "-") {
    llvm::outs() << text;
    return;
  }
  std::string error;
  if (!writeFile(options.verdictFile, text, error))
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write verdict `" + options.verdictFile + "`: " + error);
}

} // namespace hloc
