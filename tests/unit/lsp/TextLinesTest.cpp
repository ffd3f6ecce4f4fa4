#include "lsp/TextLines.h"

#include <catch2/catch.hpp>

#include <random>

using namespace hloc::lsp;

TEST_CASE("lines end as the protocol says") {
  TextLines lines("a\nbc\r\nd\re\n");
  REQUIRE(lines.numLines() == 5);
  CHECK(lines.line(1) == "bc");
  CHECK(lines.line(2) == "d");
  CHECK(lines.line(3) == "e");
  CHECK(lines.line(4) == "");
  CHECK(lines.offsetOf({1, 2}) == 4);
  CHECK(lines.positionOf(7) == Position{2, 1});
  CHECK(lines.positionOf(8) == Position{3, 0});
}

TEST_CASE("positions count what the client counts") {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z"; // a, 2, 3 and 4 bytes, z
  CHECK(TextLines(text, Encoding::Utf16).positionOf(10) == Position{0, 5});
  CHECK(TextLines(text, Encoding::Utf8).positionOf(10) == Position{0, 10});
  CHECK(TextLines(text, Encoding::Utf32).positionOf(10) == Position{0, 4});
  CHECK(TextLines(text, Encoding::Utf16).offsetOf({0, 5}) == 10);
  CHECK(TextLines(text, Encoding::Utf32).offsetOf({0, 4}) == 10);
  CHECK(TextLines(text, Encoding::Utf16).offsetOf({0, 4}) == 6); // inside the pair: its start
  CHECK(TextLines(text, Encoding::Utf8).offsetOf({0, 8}) == 6);
}

TEST_CASE("positions outside the text are moved to its ends") {
  TextLines lines("ab\ncd");
  CHECK(lines.offsetOf({0, 99}) == 2);
  CHECK(lines.offsetOf({1, 99}) == 5);
  CHECK(lines.offsetOf({99, 0}) == 5);
  CHECK(lines.offsetOf({~0u, ~0u}) == 5);
  CHECK(lines.positionOf(99) == Position{1, 2});
}

TEST_CASE("edits keep the table of lines") {
  std::mt19937 random(1);
  const std::string pieces[] = {"", "\n", "\r", "\r\n", "x", "ab\ncd\r", "\xC3\xA4", "\n\n\n"};
  for (Encoding encoding : {Encoding::Utf8, Encoding::Utf16, Encoding::Utf32}) {
    TextLines lines("first\r\nsecond\n", encoding);
    std::string text = lines.text().str();
    for (int i = 0; i < 3000; ++i) {
      auto place = [&] { return lines.offsetOf({uint32_t(random() % 8), uint32_t(random() % 6)}); };
      uint32_t a = place(), b = place();
      if (a > b)
        std::swap(a, b);
      const std::string &with = pieces[random() % std::size(pieces)];
      lines.replace(a, b, with);
      text.replace(a, b - a, with);
      REQUIRE(lines.text() == text);
      const TextLines fresh(text, encoding);
      REQUIRE(lines.numLines() == fresh.numLines());
      for (uint32_t line = 0; line < fresh.numLines(); ++line)
        REQUIRE(lines.startOf(line) == fresh.startOf(line));
      for (uint32_t line = 0; line < fresh.numLines(); ++line) {
        const Position position = fresh.positionOf(fresh.startOf(line));
        REQUIRE(position.character == 0);
        REQUIRE(lines.offsetOf(lines.positionOf(fresh.startOf(line))) == fresh.startOf(line));
      }
    }
  }
}

TEST_CASE("positions in long lines") {
  std::string line;
  for (int i = 0; i < 2000; ++i)
    line += i % 7 ? "ab" : "\xF0\x9F\x98\x80\xC3\xA4";
  for (Encoding encoding : {Encoding::Utf8, Encoding::Utf16, Encoding::Utf32}) {
    TextLines lines("x\xC3\xA4\n" + line, encoding);
    uint32_t last = 0;
    for (uint32_t character = 0; lines.offsetOf({1, character}) < lines.text().size(); ++character) {
      const uint32_t offset = lines.offsetOf({1, character});
      REQUIRE(offset >= last);
      last = offset;
      REQUIRE(lines.offsetOf(lines.positionOf(offset)) == offset);
      REQUIRE(lines.positionOf(offset).line == 1);
      REQUIRE(lines.positionOf(offset).character <= character);
    }
  }
}
