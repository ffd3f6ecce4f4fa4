// Parses and verifies every .hlo file under $HLOC_CORPUS (skipped without it). What is rejected must be listed, with
// the kind of its first error, in CorpusRejected.txt; what is listed must be rejected. HLOC_CORPUS_REPORT=1 prints the
// first error of each rejected file.
#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Files.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

using namespace hloc;

namespace {

std::vector<std::string> filesUnder(const std::string &folder) {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".hlo")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Lines of path, exit code and, for the reader, the reason.
std::map<std::string, int> expectedRejections() {
  std::map<std::string, int> expected;
  std::ifstream list(std::string(HLOC_SOURCE_DIR) + "/tests/unit/hlo/CorpusRejected.txt");
  std::string path, reason;
  int code = 0;
  while (list >> path >> code && std::getline(list, reason))
    expected[path] = code;
  return expected;
}

/// The exit code and the first error.
std::pair<int, std::string> firstError(const std::string &path) {
  std::string readError;
  std::optional<std::string> bytes = readFile(path, readError);
  REQUIRE(bytes);
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>(path, std::move(*bytes)), diagnostics);
  if (module)
    verify(*module, diagnostics);
  CHECK((module || diagnostics.hasErrors()));
  for (const Diagnostic &diagnostic : diagnostics.diagnostics())
    if (diagnostic.isError())
      return {static_cast<int>(diagnostics.exitCode()), diagnostic.message + " [" + text(diagnostic.kind).str() + "]"};
  return {0, ""};
}

} // namespace

TEST_CASE("every file of the corpus verifies or is rejected as listed") {
  const char *corpus = std::getenv("HLOC_CORPUS");
  if (!corpus)
    return;
  std::map<std::string, int> expected = expectedRejections();
  size_t files = 0, rejected = 0;
  for (const std::string &path : filesUnder(corpus)) {
    std::string name = std::filesystem::relative(path, corpus);
    auto [code, message] = firstError(path);
    ++files;
    rejected += code != 0;
    if (std::getenv("HLOC_CORPUS_REPORT") && code != 0)
      llvm::outs() << name << '\t' << code << '\t' << message << '\n';
    INFO(name << ": " << message);
    CHECK(code == (expected.count(name) ? expected[name] : 0));
    expected.erase(name);
  }
  for (const auto &[name, code] : expected)
    FAIL_CHECK(name << " is listed but not there");
  WARN(files << " files, " << rejected << " rejected as listed");
}
