// Printed text parses to an equal module and prints the same again; damaged text is refused without a crash.
#include "ParseText.h"

#include <catch2/catch.hpp>

#include <random>

using namespace hloc;
using namespace hloc::test;

namespace {

/// False if the text is refused (nothing to check).
bool roundTrips(const std::string &text) {
  Parsed first(text);
  if (!first.module)
    return false;
  std::string once = print(*first.module), why;
  Parsed second(once);
  INFO(once);
  INFO(second.firstReport());
  REQUIRE(second.module);
  CHECK(equalModules(*first.module, *second.module, why));
  CHECK(why == "");
  CHECK(print(*second.module) == once);
  PrintOptions brief;
  brief.full = false;
  std::string shortText = print(*first.module, brief);
  Parsed third(shortText);
  INFO(shortText);
  REQUIRE(third.module);
  CHECK(print(*third.module, brief) == shortText);
  return true;
}

std::vector<std::string> exampleTexts() {
  std::vector<std::string> texts;
  for (const auto &path : hloFiles(std::filesystem::path(HLOC_SOURCE_DIR) / "hlo_examples"))
    texts.push_back(readFile(path));
  REQUIRE(texts.size() > 5);
  return texts;
}

} // namespace

TEST_CASE("canonical text is printed byte for byte") {
  const std::string text =
      "HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }, "
      "entry_computation_layout={(f32[8]{0}, s32[])->f32[8]{0}}, num_partitions=2\n\n"
      "%fused (param_0: f32[8]) -> f32[8] {\n  %param_0 = f32[8]{0} parameter(0)\n"
      "  ROOT %neg = f32[8]{0} negate(%param_0), metadata={op_name=\"f/neg\" source_file=\"a.py\" source_line=3}\n}\n\n"
      "ENTRY %main (p0: f32[8], p1: s32[]) -> f32[8] {\n  %p0 = f32[8]{0} parameter(0)\n  %p1 = s32[] parameter(1)\n"
      "  ROOT %fusion = f32[8]{0} fusion(%p0), kind=kLoop, calls=%fused\n}\n\n";
  Parsed parsed(text);
  REQUIRE(parsed.module);
  CHECK(print(*parsed.module) == text);
}

TEST_CASE("literals are printed exactly") {
  for (auto [shape, value] :
       std::initializer_list<std::pair<const char *, const char *>>{{"s32[2,3]{1,0}", "{ { 1, 2, 3 }, { 4, 5, 6 } }"},
                                                                    {"f32[]", "0.1"},
                                                                    {"f32[]", "3.40282347e+38"},
                                                                    {"f32[]", "-nan"},
                                                                    {"f32[]", "nan(0x7)"},
                                                                    {"f32[]", "-inf"},
                                                                    {"f32[]", "-0"},
                                                                    {"f32[]", "1.4013e-45"},
                                                                    {"f64[]", "0.1"},
                                                                    {"pred[]", "true"},
                                                                    {"pred[2]{0}", "{1, 0}"},
                                                                    {"c64[]", "(1, -2)"},
                                                                    {"u64[]", "18446744073709551615"},
                                                                    {"f32[0,2]{1,0}", "{}"},
                                                                    {"f32[2,0]{1,0}", "{ {}, {} }"},
                                                                    {"bf16[2]{0}", "{1.5, 2}"}}) {
    std::string line = std::string(shape) + " constant(" + value + ")";
    Parsed parsed(entry("ROOT c = " + line));
    INFO(line);
    REQUIRE(parsed.module);
    CHECK(print(*parsed.module).find(line) != std::string::npos);
    CHECK(roundTrips(entry("ROOT c = " + line)));
  }
}

TEST_CASE("equalModules sees every difference") {
  const std::string base = "HloModule m\nENTRY e {\n p = f32[4]{0} parameter(0)\n c = f32[2]{0} constant({1, 2})\n r = "
                           "f32[4]{0} reverse(p), dimensions={0}\n ROOT t = (f32[4]{0}, f32[2]{0}) tuple(r, c)\n}\n";
  auto differs = [&](const std::string &from, const std::string &to) {
    std::string other = base, why;
    other.replace(other.find(from), from.size(), to);
    Parsed a(base), b(other);
    INFO(other);
    REQUIRE(a.module);
    REQUIRE(b.module);
    CHECK(!equalModules(*a.module, *b.module, why));
    CHECK(!why.empty());
  };
  differs("HloModule m", "HloModule n");
  differs("HloModule m", "HloModule m, is_scheduled=true");
  differs("{1, 2}", "{1, -2}");
  differs("dimensions={0}", "dimensions={}");
  differs("r = f32[4]{0} reverse(p), dimensions={0}", "r = f32[4]{0} negate(p)");
  differs("ROOT t = (f32[4]{0}, f32[2]{0}) tuple(r, c)", "ROOT t = (f32[4]{0}, f32[2]{0}) tuple(p, c)");
  differs("c = f32[2]{0} constant({1, 2})", "c = f32[2]{0:S(5)} constant({1, 2})");
  std::string why;
  CHECK(equalModules(*Parsed(base).module, *Parsed(base).module, why));
}

TEST_CASE("examples round-trip") {
  for (const std::string &text : exampleTexts())
    CHECK(roundTrips(text));
}

TEST_CASE("attributes that the examples lack round-trip") {
  for (const char *body : {
           "p = f32[4,3]{1,0} parameter(0)\n ROOT r = f32[12]{0} reshape(p), inferred_dimension=0",
           "t = token[] parameter(0)\n ROOT r = ((f32[]), token[]) infeed(t), infeed_config=\"a\\\"b\"",
           "a = f32[2,2]{1,0} parameter(0)\n b = f32[2,2]{1,0} parameter(1)\n ROOT r = f32[2,2]{1,0} "
           "triangular-solve(a, "
           "b), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE",
           "p = f32[4]{0} parameter(0)\n ROOT r = f32[4]{0} reverse(p), dimensions={0}, "
           "frontend_attributes={a=\"b\",c=\"d\"}, sharding={devices=[2]<=[2]}",
       }) {
    INFO(body);
    CHECK(roundTrips(entry(body)));
  }
}

TEST_CASE("the corpus parses and round-trips") {
  const char *corpus = std::getenv("HLOC_CORPUS");
  if (!corpus) {
    WARN("HLOC_CORPUS is not set: skipped");
    return;
  }
  for (const auto &path : hloFiles(corpus)) {
    INFO(path.string());
    bool parsed = roundTrips(readFile(path));
    if (path.string().find("/modules/") == std::string::npos) // those hold invalid text on purpose
      CHECK(parsed);
  }
}

TEST_CASE("damaged examples never crash the parser, and what still parses round-trips") {
  std::mt19937 random(20260801);
  std::vector<std::string> texts = exampleTexts();
  auto below = [&](size_t n) { return size_t(random() % std::max<size_t>(n, 1)); };
  const std::string interesting = "{}[]()%=,:#\"'-\\/*<>.?0179\n\0\xff";
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = texts[below(texts.size())];
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      size_t at = below(text.size()), other = below(text.size());
      switch (below(5)) {
      case 0:
        text[at] = char(random());
        break;
      case 1:
        text[at] = interesting[below(interesting.size())];
        break;
      case 2: // a line goes
        text.erase(at, text.find('\n', at) - at);
        break;
      case 3: // two pieces change places
        for (size_t k = 0; k < 8 && std::max(at, other) + k < text.size(); ++k)
          std::swap(text[at + k], text[other + k]);
        break;
      default:
        text.insert(at, text.substr(other, below(40)));
      }
      if (text.empty())
        text = " ";
    }
    accepted += roundTrips(text);
  }
  CHECK(accepted > 100); // else the damage is too great to test anything
  CHECK(accepted < 2900);
}
