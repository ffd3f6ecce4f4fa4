#include "unit/indexing/MapTesting.h"

using namespace hloc;
using namespace hloc::testing;

TEST_CASE("the text form of an indexing map") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string text =
      "(th_x, bl_x)[s0, vector]{rt0} -> (bl_x * 4 + th_x / 32 - rt0, (th_x mod 32) * -2 + vector), domain: "
      "th_x in [0, 127], bl_x in [0, 49], s0 in [0, 3], vector in [0, 1], rt0 in [0, 9], "
      "th_x mod 32 + s0 in [-600, 60]";
  IndexingMap map = parseMap(text, &context);
  CHECK(map.dims()[1].name == "bl_x");
  CHECK(map.ranges()[0].name == "");
  CHECK(map.ranges()[1].name == "vector");
  CHECK(map.runtimes()[0].bounds == Interval{0, 9});
  CHECK(*map.evaluate({70, 3}, {1, 1, 5}) == llvm::SmallVector<int64_t>{4 * 3 + 2 - 5, 6 * -2 + 1});
  IndexingMap again = parseMap(map.toString(), &context);
  CHECK(again == map);
  CHECK(again.toString() == map.toString());
}

TEST_CASE("spellings of the operators, and precedence") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto value = [&](std::string expression) {
    IndexingMap map = parseMap("(d0, d1) -> (" + expression + "), domain: d0 in [0, 99], d1 in [0, 99]", &context);
    return (*map.evaluate({23, 7}, {}))[0];
  };
  CHECK(value("d0 / 4") == 5);
  CHECK(value("d0 floordiv 4") == 5);
  CHECK(value("d0 floorDiv 4") == 5);
  CHECK(value("d0 ceildiv 4") == 6);
  CHECK(value("d0 + d1 * 2 mod 4") == 25);
  CHECK(value("-d0 / 4") == -6);
  CHECK(value("-d0 mod 4") == 1);
  CHECK(value("149 - d0 - d1") == 119);
  CHECK(value("d0 - (d1 - 2)") == 18);
  CHECK(value("d0 mod 16 mod 4") == 3);
  CHECK(value("3 * d0") == 69);
}

TEST_CASE("names that clash after a composition stay apart in the text") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  IndexingMap map = parseMap("(d0)[vector] -> (d0 + vector), domain: d0 in [0, 9], vector in [0, 3]", &context);
  IndexingMap both = compose(map, map);
  CHECK(both.toString() == "(d0)[vector, s1] -> (d0 + s1 + vector), domain: d0 in [0, 9], vector in [0, 3], "
                           "s1 in [0, 3], d0 + s1 in [0, 9]");
  CHECK(parseMap(both.toString(), &context) == both);
}

TEST_CASE("malformed text is refused with a message and an offset") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto errorOf = [&](const std::string &text) {
    std::string error;
    CHECK_FALSE(parseIndexingMap(text, &context, error));
    return error;
  };
  using Catch::Contains;
  CHECK(errorOf("") == "at offset 0: expected '('");
  CHECK_THAT(errorOf("(d0) -> (d1), domain: d0 in [0, 1]"), Contains("at offset 9: unknown variable 'd1'"));
  CHECK_THAT(errorOf("(d0) -> (d0)"), Contains("expected ','"));
  CHECK_THAT(errorOf("(d0, d1) -> (d0), domain: d0 in [0, 1]"), Contains("a variable has no bounds"));
  CHECK_THAT(errorOf("(d0, d0) -> (d0), domain: d0 in [0, 1]"), Contains("declared twice"));
  CHECK_THAT(errorOf("(mod) -> (mod), domain: mod in [0, 1]"), Contains("cannot name a variable"));
  CHECK_THAT(errorOf("(d0) -> (d0 * d0), domain: d0 in [0, 1]"), Contains("not affine"));
  CHECK_THAT(errorOf("(d0) -> (d0 / d0), domain: d0 in [0, 1]"), Contains("positive constant"));
  CHECK_THAT(errorOf("(d0) -> (d0 mod 0), domain: d0 in [0, 1]"), Contains("positive constant"));
  CHECK_THAT(errorOf("(d0) -> (d0 / -2), domain: d0 in [0, 1]"), Contains("positive constant"));
  CHECK_THAT(errorOf("(d0) -> (min(d0, 2)), domain: d0 in [0, 1]"), Contains("'min' is not supported"));
  CHECK_THAT(errorOf("(d0) -> (d0), domain: d0 in [0, 99999999999999999999]"), Contains("integer out of range"));
  CHECK_THAT(errorOf("(d0) -> (d0) , domain: d0 in [0, 1] x"), Contains("unexpected text"));
  CHECK_THAT(errorOf("(d0) -> (d0 * 4611686018427387904), domain: d0 in [0, 1]"), Contains("too large"));
  std::string power = "d0";
  for (int i = 0; i < 80; ++i)
    power += " * 65536";
  CHECK_THAT(errorOf("(d0) -> (" + power + "), domain: d0 in [0, 1]"), Contains("too large"));
  std::string deep(100000, '(');
  CHECK_THAT(errorOf("(d0) -> (" + deep), Contains("nested too deeply"));
  std::string minus(100000, '-');
  CHECK_THAT(errorOf("(d0) -> (" + minus), Contains("nested too deeply"));
  std::string sum = "d0 mod 2";
  for (int i = 0; i < 10000; ++i)
    sum += " + d0 mod " + std::to_string(i + 3);
  CHECK_THAT(errorOf("(d0) -> (" + sum + "), domain: d0 in [0, 1]"), Contains("too large"));
}

TEST_CASE("damaged text never does worse than an error") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  const std::string text =
      "(d0, bl_x)[s0]{rt0} -> (bl_x * 4 + d0 / 32 - rt0, (d0 mod 32) * -2 + s0), domain: d0 in [0, 127], "
      "bl_x in [0, 49], s0 in [0, 3], rt0 in [0, 9], d0 mod 32 + s0 in [-600, 60]";
  const std::string alphabet = "()[]{}-+*/,:09 dsmodin_";
  std::mt19937 random(9);
  unsigned parsedCount = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = text;
    for (unsigned k = 0; k <= random() % 4; ++k) {
      size_t position = random() % damaged.size();
      if (random() % 3 == 0)
        damaged.erase(position, 1 + random() % 3);
      else
        damaged[position] = alphabet[random() % alphabet.size()];
    }
    std::string error;
    std::optional<IndexingMap> map = parseIndexingMap(damaged, &context, error);
    REQUIRE(map.has_value() == error.empty());
    if (!map)
      continue;
    ++parsedCount;
    map->simplify();
    if (!map->isKnownEmpty())
      REQUIRE(parseMap(map->toString(), &context) == *map);
  }
  CHECK(parsedCount > 100);
}
