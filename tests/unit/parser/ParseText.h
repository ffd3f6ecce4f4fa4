#pragma once
// Parsing a text in a test, and what it reported.
#include "hloc/hlo/Printer.h"
#include "hloc/parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hloc::test {

struct Parsed {
  std::shared_ptr<const SourceFile> file;
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module;

  explicit Parsed(std::string text) : file(std::make_shared<SourceFile>("t.hlo", std::move(text))) {
    module = parseHloModule(file, diagnostics);
  }
  /// `line:column [kind] message` of each report.
  std::vector<std::string> reports() const {
    std::vector<std::string> all;
    for (const Diagnostic &report : diagnostics.diagnostics()) {
      LineColumn place = report.range.isValid() ? file->lineColumn(report.range.begin) : LineColumn{};
      all.push_back(
          fmt::format("{}:{} [{}] {}", place.line, place.column, hloc::text(report.kind).str(), report.message));
    }
    return all;
  }
  std::string firstReport() const {
    auto all = reports();
    return all.empty() ? "" : all[0];
  }
};

inline std::string print(const HloModule &module, PrintOptions options = {}) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printHlo(module, os, options);
  return text;
}

/// An ENTRY with these instructions.
inline std::string entry(const std::string &body) { return "HloModule m\nENTRY e {\n" + body + "\n}\n"; }

inline std::string readFile(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

/// The .hlo files below a folder, in order.
inline std::vector<std::filesystem::path> hloFiles(const std::filesystem::path &folder) {
  std::vector<std::filesystem::path> files;
  for (const auto &item : std::filesystem::recursive_directory_iterator(folder))
    if (item.path().extension() == ".hlo")
      files.push_back(item.path());
  std::sort(files.begin(), files.end());
  return files;
}

} // namespace hloc::test
