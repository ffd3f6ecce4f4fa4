#include "hloc/support/Diagnostics.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

using namespace hloc;

static std::string print(const DiagnosticEngine &engine) {
  std::string text;
  llvm::raw_string_ostream os(text);
  engine.print(os, /*colour=*/false);
  return text;
}

TEST_CASE("diagnostic-shows-line-and-caret") {
  DiagnosticEngine engine;
  engine.setFile(std::make_shared<const SourceFile>("a.hlo", "first\n\tadd(p, q)\nlast"));
  engine.report(DiagnosticKind::UndefinedName, {11, 12}, "no instruction `p`").note({0, 5}, "declared here");
  CHECK(print(engine) == "a.hlo:2:6: error: no instruction `p` [undefined-name]\n   add(p, q)\n       ^\n"
                         "a.hlo:1:1: note: declared here\n  first\n  ^~~~~\n");
}

TEST_CASE("diagnostic-in-a-long-line-shows-a-window") {
  DiagnosticEngine engine;
  engine.setFile(std::make_shared<const SourceFile>("a.hlo", std::string(70000, 'x') + "!"));
  engine.report(DiagnosticKind::BadCharacter, {70000, 70001}, "unexpected character");
  CHECK(print(engine).size() < 400);
}

TEST_CASE("diagnostic-at-end-of-file") {
  DiagnosticEngine engine;
  engine.setFile(std::make_shared<const SourceFile>("a.hlo", "x\n"));
  engine.report(DiagnosticKind::ExpectedToken, {2, 2}, "expected `}`");
  CHECK(print(engine) == "a.hlo:2:1: error: expected `}` [expected-token]\n  \n  ^\n");
}

TEST_CASE("exit-code-is-of-the-first-error-unless-internal") {
  DiagnosticEngine engine;
  CHECK(engine.exitCode() == ExitCode::Success);
  engine.report(DiagnosticKind::ElidedConstant, "warning only");
  CHECK(engine.exitCode() == ExitCode::Success);
  engine.report(DiagnosticKind::UnsupportedOpcode, "a");
  engine.report(DiagnosticKind::ShapeMismatch, "b");
  CHECK(engine.exitCode() == ExitCode::Unsupported);
  engine.report(DiagnosticKind::Internal, "c");
  CHECK(engine.exitCode() == ExitCode::InternalError);
}

TEST_CASE("errors-beyond-the-limit-are-counted") {
  DiagnosticEngine engine;
  for (size_t i = 0; i < DiagnosticEngine::maxErrors + 5; ++i)
    engine.report(DiagnosticKind::BadShape, "e").note("n");
  CHECK(engine.diagnostics().size() == DiagnosticEngine::maxErrors);
  CHECK(print(engine).find("5 more errors") != std::string::npos);
}

TEST_CASE("offset-and-line-column-are-inverse") {
  SourceFile file("f", "ab\n\ncd\n");
  for (uint32_t offset = 0; offset <= 7; ++offset)
    CHECK(file.offsetOf(file.lineColumn(offset)) == offset);
  CHECK(file.offsetOf({99, 99}) == 7);
}

TEST_CASE("what-is-said-twice-of-one-place-is-printed-once") {
  DiagnosticEngine engine;
  for (SourceRange range : {SourceRange{0, 1}, SourceRange{0, 1}, SourceRange{2, 3}})
    engine.report(DiagnosticKind::ElidedConstant, range, "same").note("n");
  engine.report(DiagnosticKind::ElidedConstant, SourceRange{0, 1}, "other");
  std::string text = print(engine);
  auto count = [&](llvm::StringRef part) { return llvm::StringRef(text).count(part); };
  CHECK(count("same") == 2);
  CHECK(count("note") == 2);
  CHECK(count("other") == 1);
}
