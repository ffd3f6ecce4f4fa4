// Large elementwise results are compared a piece at a time: what is said of them is what a comparison at once says.
#include "hloc/compare/Compare.h"
#include "hloc/parser/Parser.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

constexpr int64_t count = 5 * (1 << 15) + 100;

struct Compared {
  std::unique_ptr<HloModule> module;
  DiagnosticEngine diagnostics;
  std::vector<Literal> arguments;
  Literal expected;

  explicit Compared(const std::string &body) {
    const std::string shape = "f32[" + std::to_string(count) + "]";
    module = parseHloModule(std::make_shared<SourceFile>("test.hlo", "HloModule m\nENTRY e {\n x = " + shape +
                                                                         " parameter(0)\n" + body + " ROOT r = (" +
                                                                         shape + ", s32[" + std::to_string(count) +
                                                                         "]) tuple(e, i)\n}\n"),
                            diagnostics);
    REQUIRE(module);
    arguments.emplace_back(module->entry()->parameters().front()->shape());
    for (int64_t i = 0; i < count; ++i)
      arguments[0].setDouble(i, double((i * 7919) % 2003) / 200 - 5);
    expected = *interpret(*module, arguments, diagnostics);
  }
  CompareResult with(const Literal &actual) {
    llvm::FailureOr<CompareResult> result =
        compareRun(*module, arguments, expected, actual, Backend::Hloc, diagnostics);
    REQUIRE(llvm::succeeded(result));
    return std::move(*result);
  }
};

std::string bodyOf(const std::string &argument) {
  const std::string n = "[" + std::to_string(count) + "]";
  return " e = f32" + n + " exponential(" + argument + ")\n i = s32" + n + " convert(x)\n";
}

} // namespace

TEST_CASE("a comparison in pieces says what one at once says") {
  Compared pieces(bodyOf("x"));
  const std::string shape = "f32[" + std::to_string(count) + "]";
  Compared atOnce(" there = " + shape + " reverse(x), dimensions={0}\n back = " + shape +
                  " reverse(there), dimensions={0}\n" + bodyOf("back"));
  REQUIRE(pieces.expected == atOnce.expected);
  Literal actual = pieces.expected;
  Literal &floats = actual.mutableElements()[0], &integers = actual.mutableElements()[1];
  const int64_t wrong[] = {40000, 3, 163000, 70000, 70001, 100000, 32767, 32768, 131072, count - 1, 90000, 12345, 4};
  for (bool isWrong : {false, true}) {
    for (auto [number, at] : llvm::enumerate(wrong)) {
      const double value = pieces.expected.element(0).getDouble(at);
      floats.setDouble(at, isWrong ? value * (1.25 + double(number % 3)) : std::nextafter(float(value), 9e9f));
      if (isWrong && number % 4 == 0)
        integers.setInt(at, 1000);
    }
    const CompareResult found = pieces.with(actual), wanted = atOnce.with(actual);
    CHECK(found.numMismatches == wanted.numMismatches);
    CHECK(found.numMismatches == (isWrong ? int64_t(std::size(wrong)) + 4 : 0));
    CHECK(found.numCompared == wanted.numCompared);
    CHECK(found.largestUlps == wanted.largestUlps);
    CHECK(found.report == wanted.report);
    CHECK(found.first.index == wanted.first.index);
    CHECK(found.furthest.has_value() == wanted.furthest.has_value());
    if (found.furthest)
      CHECK(found.furthest->index == wanted.furthest->index);
    REQUIRE(found.worst.size() == wanted.worst.size());
    for (size_t i = 0; i < found.worst.size(); ++i)
      CHECK(found.worst[i].index == wanted.worst[i].index);
  }
}
