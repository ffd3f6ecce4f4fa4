#include "run/NumpyFiles.h"

#include "hloc/npz/Npz.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Files.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Program {
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module;
  TemporaryFolder folder;

  explicit Program(const char *text) : folder(makeFolder()) {
    auto file = std::make_shared<const SourceFile>("m.hlo", text);
    diagnostics.setFile(file);
    module = parseHloModule(file, diagnostics);
    REQUIRE(module);
  }
  static TemporaryFolder makeFolder() {
    std::string error;
    auto made = TemporaryFolder::create("npz", error);
    REQUIRE(made);
    return std::move(*made);
  }
  std::string file() const { return folder.path() + "/in.npz"; }
  /// Arrays of one s32 each, valued 10, 11, ... in the order of the names.
  std::optional<std::vector<Literal>> read(std::vector<std::string> names) {
    std::vector<NpzArray> arrays;
    for (std::string &name : names)
      arrays.push_back({std::move(name), "<i4", {}, {uint8_t(10 + arrays.size()), 0, 0, 0}});
    std::string error;
    REQUIRE(writeFile(file(), writeNpz(arrays), error));
    return readArguments(file(), *module, diagnostics);
  }
  std::string message() const {
    REQUIRE_FALSE(diagnostics.diagnostics().empty());
    return diagnostics.diagnostics().back().message;
  }
};

constexpr const char *sum = "HloModule m ENTRY e { x.1 = s32[] parameter(0) mask = s32[] parameter(1) "
                            "ROOT r = s32[] add(x.1, mask) }";

} // namespace

TEST_CASE("arguments are found by number, by savez's names and by the parameters' names, in any order") {
  for (std::vector<std::string> names :
       {std::vector<std::string>{"0", "1"}, {"arr_0", "arr_1"}, {"x.1", "mask"}, {"mask", "x.1"}}) {
    Program p(sum);
    auto arguments = p.read(names);
    REQUIRE(arguments);
    bool turned = names[0] == "mask";
    CHECK((*arguments)[0].getInt(0) == (turned ? 11 : 10));
    CHECK((*arguments)[1].getInt(0) == (turned ? 10 : 11));
  }
}

TEST_CASE("leaves of tuples are counted through, or named after their parameter") {
  constexpr const char *tuples = "HloModule m ENTRY e { p = (s32[], (s32[])) parameter(0) q = s32[] parameter(1) "
                                 "ROOT r = s32[] add(q, q) }";
  for (std::vector<std::string> names : {std::vector<std::string>{"arr_0", "arr_1", "arr_2"}, {"p.0", "p.1.0", "q"}}) {
    Program p(tuples);
    auto arguments = p.read(names);
    REQUIRE(arguments);
    CHECK((*arguments)[0].element(1).element(0).getInt(0) == 11);
    CHECK((*arguments)[1].getInt(0) == 12);
  }
}

TEST_CASE("arrays too many, too few and of other names are errors that say what there is") {
  Program extra(sum);
  CHECK_FALSE(extra.read({"0", "1", "2"}));
  CHECK(extra.message() == "`" + extra.file() +
                               "` does not fit the program: it has arrays `0`, `1`, `2`, of which `2` is unknown; "
                               "expected are `0`, `1` (as --outputs writes them), or `arr_0`, `arr_1` (as numpy.savez "
                               "does), or `x.1`, `mask` (the names of the parameters)");
  CHECK(exitCode(extra.diagnostics.diagnostics().back().kind) == ExitCode::InvalidInput);
  Program few(sum);
  CHECK_FALSE(few.read({"mask"}));
  CHECK(few.message().find("it has array `mask`, but not `x.1`; expected are") != std::string::npos);
  Program mixed(sum); // which of the two is meant is not ours to guess
  CHECK_FALSE(mixed.read({"0", "mask"}));
  Program twice(sum);
  CHECK_FALSE(twice.read({"0", "0"}));
  Program none("HloModule m ENTRY e { ROOT r = s32[] constant(1) }");
  CHECK(none.read({}));
  CHECK_FALSE(none.read({"0"}));
  CHECK(none.message().find("it has array `0`, of which `0` is unknown; expected are none") != std::string::npos);
}

TEST_CASE("an array that does not fit is named") {
  Program p("HloModule m ENTRY e { x = f32[] parameter(0) ROOT r = f32[] negate(x) }");
  CHECK_FALSE(p.read({"arr_0"}));
  CHECK(p.message().find("array `arr_0`: numpy type `<i4` does not fit f32[]") != std::string::npos);
}

TEST_CASE("results are read as they were written") {
  Literal x(Shape::array(ElementType::BF16, {2})), y(Shape::array(ElementType::S4, {3}));
  x.setDouble(1, 1.5);
  y.setInt(2, -3);
  std::vector<Literal> inner{y};
  Literal result = Literal::tuple({x, Literal::tuple(std::move(inner))});
  Program p("HloModule m ENTRY e { x = bf16[2] parameter(0) y = s4[3] parameter(1) t = (s4[3]) tuple(y) "
            "ROOT r = (bf16[2], (s4[3])) tuple(x, t) }");
  REQUIRE(writeResult(p.file(), result, p.diagnostics));
  std::optional<Literal> read = readResult(p.file(), *p.module, p.diagnostics);
  REQUIRE(read);
  CHECK(*read == result);
}
