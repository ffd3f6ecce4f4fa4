// Text that hloc prints parses to the same module: of generated modules, and of every file of $HLOC_CORPUS that parses.
#include "fuzz/ModuleGenerator.h"

#include "hloc/hlo/Printer.h"
#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Files.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

using namespace hloc;

namespace {

std::unique_ptr<HloModule> parse(const std::string &text, std::string &messages) {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("printed.hlo", text), diagnostics);
  llvm::raw_string_ostream os(messages);
  diagnostics.print(os, /*colour=*/false);
  return module;
}

std::string print(const HloModule &module, bool full) {
  std::string text;
  llvm::raw_string_ostream os(text);
  PrintOptions options;
  options.full = full;
  printHlo(module, os, options);
  return text;
}

/// Empty if the printed module parses to an equal one that prints the same.
std::string roundTripFailure(const HloModule &module, bool full) {
  std::string text = print(module, full), why;
  auto again = parse(text, why);
  if (!again)
    return why + text;
  if (full && !equalModules(module, *again, why))
    return why + "\n" + text;
  return print(*again, full) == text ? "" : "prints differently the second time:\n" + text;
}

} // namespace

TEST_CASE("generated modules round-trip through text") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    GeneratorOptions options;
    options.singleDeviceOnly = seed % 2;
    auto module = generateModule(seed, options);
    INFO("seed " << seed);
    for (bool full : {true, false})
      CHECK(roundTripFailure(*module, full) == "");
  }
}

TEST_CASE("generated modules verify again after a round trip") {
  for (uint64_t seed = 1000; seed < 1100; ++seed) {
    std::string messages;
    auto module = parse(print(*generateModule(seed), true), messages);
    INFO("seed " << seed << messages);
    REQUIRE(module);
    DiagnosticEngine diagnostics;
    CHECK(verify(*module, diagnostics));
  }
}

TEST_CASE("files of the corpus round-trip through text") {
  const char *corpus = std::getenv("HLOC_CORPUS");
  if (!corpus)
    return;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(corpus)) {
    std::string error, messages;
    std::optional<std::string> bytes;
    if (entry.path().extension() != ".hlo" || !(bytes = readFile(entry.path(), error)))
      continue;
    if (auto module = parse(*bytes, messages)) {
      INFO(entry.path());
      CHECK(roundTripFailure(*module, true) == "");
    }
  }
}
