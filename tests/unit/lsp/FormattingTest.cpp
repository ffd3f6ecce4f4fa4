#include "lsp/Features.h"

#include "hloc/hlo/Printer.h"

#include "Samples.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::lsp;

namespace {

std::string formatted(const std::string &text) {
  std::string out = text;
  std::vector<TextEdit> edits = formattingEdits(scanText(text), 2);
  for (const TextEdit &edit : llvm::reverse(edits))
    out.replace(edit.range.begin, edit.range.end - edit.range.begin, edit.text);
  return out;
}

std::string withoutBlanks(llvm::StringRef text) {
  std::string out;
  for (char c : text)
    if (!isspace(uint8_t(c)))
      out += c;
  return out;
}

std::unique_ptr<HloModule> parsed(const std::string &text) {
  DiagnosticEngine diagnostics;
  return parseHloModule(std::make_shared<const SourceFile>("t.hlo", text), diagnostics);
}

void checkKeepsMeaning(const std::string &text) {
  const std::string once = formatted(text);
  CHECK(withoutBlanks(once) == withoutBlanks(text));
  CHECK(formatted(once) == once);
  std::unique_ptr<HloModule> before = parsed(text), after = parsed(once);
  REQUIRE(before);
  REQUIRE(after);
  std::string why;
  CHECK(equalModules(*before, *after, why));
  CHECK(why == "");
}

} // namespace

TEST_CASE("blanks are those of the printer") {
  CHECK(formatted("HloModule   m\n"
                  "\n\n\n"
                  "sum(a:f32[],b: f32[ ])->f32[]{ a= f32[] parameter( 0 ) b  = f32[] parameter(1) // two\n"
                  "      ROOT r=f32[] add( a ,b )}\n"
                  "ENTRY e {\n"
                  "// first\n"
                  "  /* led */ y =  f32[] constant(2)\n"
                  "  x = f32[4 , 8] {1, 0} parameter(0)   \n"
                  "\n"
                  "\n"
                  "    z = f32[] constant( 1.5 ),metadata={op_name=\"a  b\"}   // kept\n"
                  "  ROOT %r = (f32[4],f32[]) fusion(x,\n"
                  "   z), kind=kLoop ,calls=sum }") ==
        "HloModule m\n"
        "\n"
        "sum (a: f32[], b: f32[]) -> f32[] {\n"
        "  a = f32[] parameter( 0 )\n"
        "  b = f32[] parameter(1) // two\n"
        "  ROOT r = f32[] add(a, b)\n"
        "}\n"
        "\n"
        "ENTRY e {\n"
        "  // first\n"
        "  /* led */ y = f32[] constant(2)\n"
        "  x = f32[4,8]{1,0} parameter(0)\n"
        "\n"
        "  z = f32[] constant( 1.5 ), metadata={op_name=\"a  b\"}   // kept\n"
        "  ROOT %r = (f32[4], f32[]) fusion(x,\n"
        "      z), kind=kLoop, calls=sum\n"
        "}\n");
}

TEST_CASE("what is printed stays as it is") {
  for (const std::string &file : exampleFiles()) {
    INFO(file);
    std::unique_ptr<HloModule> module = parsed(textOf(file));
    REQUIRE(module);
    const std::string text = llvm::StringRef(hloText(*module)).rtrim().str() + "\n";
    CHECK(formatted(text) == text);
  }
}

TEST_CASE("formatting keeps comments and meaning") {
  checkKeepsMeaning(sampleText);
  for (const std::string &file : exampleFiles()) {
    INFO(file);
    checkKeepsMeaning(textOf(file));
  }
}

TEST_CASE("formatting a part of a text changes nothing but blanks") {
  const std::string text = sampleText;
  for (size_t length = 0; length <= text.size(); length += 3) {
    const std::string part = text.substr(0, length);
    REQUIRE(withoutBlanks(formatted(part)) == withoutBlanks(part));
  }
}

TEST_CASE("a string over several lines stays as it is") {
  const std::string text =
      "HloModule m, origin_recovery_table={\n  {\"a\"} : {\"b\"},\n  \"\n    ENTRY e {\n  x =   y\n  }\n\"\n}\n";
  CHECK(formatted(text) == text);
}

TEST_CASE("ends of lines are those of the text") {
  CHECK(formatted("a {\r\n ROOT x = f32[] parameter(0) }\r\n") == "a {\r\n  ROOT x = f32[] parameter(0)\r\n}\r\n");
}
