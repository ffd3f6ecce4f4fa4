// Every HLO text that hloc prints reads back: after parsing and after each HLO pass, of generated modules and of every
// file of $HLOC_CORPUS (skipped without it). Files that do not verify are listed in tests/unit/hlo/CorpusRejected.txt.
#include "fuzz/ModuleGenerator.h"

#include "hloc/hlo/Printer.h"
#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Files.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

using namespace hloc;

namespace {

std::string print(const HloModule &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printHlo(module, os, PrintOptions());
  return text;
}

std::unique_ptr<HloModule> parseVerified(const std::string &text, std::string &messages) {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("printed.hlo", text), diagnostics);
  if (module && !verify(*module, diagnostics))
    module = nullptr;
  llvm::raw_string_ostream os(messages);
  diagnostics.print(os, /*colour=*/false);
  return module;
}

/// Empty if the module's text parses, verifies and is printed the same again.
std::string readBackFailure(const HloModule &module) {
  std::string text = print(module), messages;
  auto again = parseVerified(text, messages);
  if (!again)
    return messages;
  return print(*again) == text ? "" : "prints differently the second time";
}

/// The pass after which the text does not read back, and why; empty if all do. `passes` counts what was looked at.
std::string failureAfterPasses(const HloModule &module, size_t &passes) {
  std::unique_ptr<HloModule> current = cloneModule(module);
  for (const HloPass &pass : hloPipeline()) {
    DiagnosticEngine diagnostics;
    HloPassContext context(diagnostics);
    // What stops a pass is said to the user; only what is not supported may stop a module that verifies.
    if (pass.run(*current, context) == PassResult::Failed)
      return diagnostics.exitCode() == ExitCode::Unsupported ? "" : pass.name.str() + " refuses a valid module";
    ++passes;
    std::string failure = readBackFailure(*current);
    if (!failure.empty())
      return "after " + pass.name.str() + ": " + failure;
  }
  return "";
}

} // namespace

TEST_CASE("a module whose fusions were formed reads back") {
  const char *text = "HloModule m\n"
                     "ENTRY e {\n p = f32[4] parameter(0)\n e = f32[4] exponential(p)\n ROOT n = f32[4] negate(e)\n}\n";
  std::string messages;
  auto module = parseVerified(text, messages);
  REQUIRE(module);
  size_t passes = 0;
  CHECK(failureAfterPasses(*module, passes) == "");
  CHECK(passes == hloPipeline().size());
}

TEST_CASE("generated modules read back after every pass") {
  size_t passes = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    GeneratorOptions options;
    options.singleDeviceOnly = seed % 2;
    INFO("seed " << seed);
    CHECK(failureAfterPasses(*generateModule(seed, options), passes) == "");
  }
  CHECK(passes > 60);
}

TEST_CASE("files of the corpus read back after every pass") {
  const char *corpus = std::getenv("HLOC_CORPUS");
  if (!corpus)
    return;
  size_t files = 0, passes = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(corpus)) {
    std::string error, messages;
    std::optional<std::string> bytes;
    if (entry.path().extension() != ".hlo" || !(bytes = readFile(entry.path(), error)))
      continue;
    auto module = parseVerified(*bytes, messages);
    if (!module)
      continue;
    ++files;
    INFO(entry.path());
    CHECK(readBackFailure(*module) == "");
    CHECK(failureAfterPasses(*module, passes) == "");
  }
  WARN(files << " files, " << passes << " modules after passes");
}
