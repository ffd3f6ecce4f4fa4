// Inputs that no program should be: parsed (and verified) to a located error or the right answer, in linear time.
#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <chrono>

using namespace hloc;

namespace {

struct Outcome {
  std::unique_ptr<HloModule> module;
  bool verified = false;
  std::string firstKind; ///< of the first error
  double seconds = 0;
};

Outcome read(std::string text) {
  Outcome outcome;
  auto start = std::chrono::steady_clock::now();
  DiagnosticEngine diagnostics;
  outcome.module = parseHloModule(std::make_shared<SourceFile>("hostile.hlo", std::move(text)), diagnostics);
  outcome.verified = outcome.module && verify(*outcome.module, diagnostics);
  std::string rendered;
  llvm::raw_string_ostream os(rendered);
  diagnostics.print(os, /*colour=*/false);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const Diagnostic &diagnostic : diagnostics.diagnostics())
    if (outcome.firstKind.empty() && diagnostic.isError())
      outcome.firstKind = hloc::text(diagnostic.kind).str();
  return outcome;
}

std::string repeat(llvm::StringRef what, size_t count) {
  std::string text;
  text.reserve(what.size() * count);
  for (size_t i = 0; i < count; ++i)
    text += what;
  return text;
}

std::string entry(const std::string &body) { return "HloModule m\nENTRY e { " + body + " }\n"; }

} // namespace

TEST_CASE("100,000 levels of nesting are an error, not a stack overflow") {
  constexpr size_t levels = 100'000;
  std::string opening = repeat("(", levels), braces = repeat("{", levels);
  const std::string texts[] = {
      entry("ROOT p = " + opening + "f32[]" + repeat(")", levels) + " parameter(0)"),
      entry("ROOT c = " + repeat("(", 900) + "s32[]" + repeat(")", 900) + " constant(" + opening + ")"),
      entry("ROOT c = f32[2] constant(" + braces + ")"),
      entry("ROOT n = f32[] " + repeat("negate(f32[] ", levels) + "constant(1)" + repeat(")", levels)),
      entry("ROOT r = f32[] call(), to_apply=" + repeat("{ r = f32[] call(), to_apply=", levels)),
      entry("ROOT p = f32[] parameter(0), sharding=" + braces),
      entry("ROOT p = f32[] parameter(0), backend_config=" + braces),
      "HloModule m, input_output_alias=" + braces,
      repeat("/*", levels),
  };
  for (const std::string &text : texts) {
    INFO(text.substr(0, 60));
    Outcome outcome = read(text);
    CHECK_FALSE(outcome.module);
    CHECK(outcome.firstKind != "");
    CHECK(outcome.seconds < 10);
  }
}

TEST_CASE("a constant of a million elements is read") {
  Outcome outcome = read(entry("ROOT c = s32[1000000] constant({" + repeat("7, ", 999'999) + "8})"));
  REQUIRE(outcome.verified);
  CHECK(outcome.module->entry()->root()->literal().getInt(0) == 7);
  CHECK(outcome.module->entry()->root()->literal().getInt(999'999) == 8);
  CHECK(outcome.seconds < 10);
}

TEST_CASE("a chain of 200,000 instructions is read and verified") {
  std::string body = "x0 = f32[8] parameter(0)\n";
  for (size_t i = 1; i <= 200'000; ++i)
    body += "x" + std::to_string(i) + " = f32[8] negate(x" + std::to_string(i - 1) + ")\n";
  Outcome outcome = read(entry(body));
  REQUIRE(outcome.verified);
  CHECK(outcome.module->entry()->instructions().size() == 200'001);
  CHECK(outcome.seconds < 20);
}

TEST_CASE("instructions with 20,000 operands and users are no quadratic work") {
  std::string operands = "p0", types = "f32[]", body = "p0 = f32[] parameter(0)\n";
  for (size_t i = 1; i < 20'000; ++i) {
    operands += ", p" + std::to_string(i);
    types += ", f32[]";
    body += "p" + std::to_string(i) + " = f32[] parameter(" + std::to_string(i) + ")\n";
  }
  Outcome outcome = read("HloModule m\nf { " + body + "ROOT t = (" + types + ") tuple(" + operands + ") }\nENTRY e { " +
                         body + "ROOT r = (" + types + ") fusion(" + operands + "), kind=kLoop, calls=f }");
  CHECK(outcome.verified);
  CHECK(outcome.seconds < 20);
}

TEST_CASE("sizes of 2^63 and beyond, and products that overflow, are refused") {
  for (const char *shape : {"f32[9223372036854775808]", "f32[9223372036854775807]", "f32[18446744073709551616]",
                            "f32[3037000500,3037000500]", "f32[4294967296,4294967296,0]", "f32[-1]"}) {
    INFO(shape);
    Outcome outcome = read(entry(std::string("ROOT p = ") + shape + " parameter(0)"));
    CHECK_FALSE(outcome.module);
    CHECK(outcome.firstKind != "");
  }
}

TEST_CASE("a few bytes cannot ask for a literal that fills the memory") {
  Outcome outcome = read(entry("ROOT c = f32[1000000000000] constant(1)"));
  CHECK_FALSE(outcome.module);
  CHECK(outcome.firstKind != "");
  // Elided values take none.
  Outcome elided = read(entry("ROOT c = f32[1000000000000] constant({...})"));
  REQUIRE(elided.module);
  CHECK(elided.module->entry()->root()->literal().bytes().empty());
}

TEST_CASE("bytes that are no text are located errors") {
  const std::string texts[] = {std::string("HloModule m\0ENTRY", 17), std::string(1000, '\0'), "HloModule \xED\xA0\x80",
                               "\xFF\xFE",
                               "HloModule m ENTRY e { ROOT p = f32[] parameter(0), metadata={op_name=\"\xED\xA0\x80"};
  for (const std::string &text : texts) {
    Outcome outcome = read(text);
    CHECK_FALSE(outcome.module);
    CHECK(outcome.firstKind != "");
  }
}

TEST_CASE("100 MB of blanks, of comment, of one line") {
  for (const char *filler : {" ", "\n", "// comment\n"}) {
    size_t count = 100'000'000 / std::string(filler).size();
    Outcome outcome = read(repeat(filler, count) + entry("ROOT p = f32[] parameter(0)"));
    CHECK(outcome.verified);
    CHECK(outcome.seconds < 30);
  }
}
