// Who is to blame, by who agrees with whom: runs are told here.
#include "driver/BisectRoutes.h"

#include "llvm/ADT/STLExtras.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

using Names = std::vector<std::string>;

const char *const reversed = "HloModule m\nENTRY e {\n  x = f32[4]{0} parameter(0)\n"
                             "  ROOT r = f32[4]{0} reverse(x), dimensions={0}\n}\n";
const char *const reversedFloor = "HloModule m\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  f = f32[4]{0} floor(x)\n"
                                  "  ROOT r = f32[4]{0} reverse(f), dimensions={0}\n}\n";

Ending exits(int code) {
  Ending ending;
  ending.kind = Ending::Kind::Exit;
  ending.number = code;
  return ending;
}

/// Runs of the op expressed by others end with these, given the results of kernels and of the reference.
struct Told {
  int ofKernels, ofReference;
  bool onlyByTolerance = false;
  std::vector<Names> interpreted = {};

  RouteTools tools() {
    RouteTools tools;
    tools.run = [](const std::string &, const Names &) { return exits(4); };
    tools.interpret = [this](const std::string &file, const Names &options) {
      interpreted.push_back(options);
      if (file != "otherwise.hlo")
        return exits(0);
      const bool hasTolerance = llvm::is_contained(options, "--tolerance=1e-3");
      if (onlyByTolerance && !hasTolerance)
        return exits(4);
      return exits(llvm::is_contained(options, "--expected=kernels.npz") ? ofKernels : ofReference);
    };
    tools.reduced = [](const std::string &text, const std::string &) { return text; };
    tools.write = [](const std::string &name, const std::string &) { return name; };
    return tools;
  }
};

std::string blameOf(Told told, const std::string &text = reversed) {
  return blameSharedPart(text, "differ in the regime `exact`", told.tools()).blame;
}

} // namespace

TEST_CASE("bisect routes: two against one") {
  CHECK(blameOf({0, 4}) == "the reference, by the interpreter's rule of `reverse`");
  CHECK(llvm::StringRef(blameOf({4, 0})).starts_with("the lowering of `reverse`"));
  CHECK(blameOf({0, 4, /*onlyByTolerance=*/true}) == "the reference, by the interpreter's rule of `reverse`");
}

TEST_CASE("bisect routes: nobody can tell") {
  CHECK(blameOf({0, 0}).empty());
  CHECK(blameOf({4, 4}).empty());
  CHECK(blameOf({0, 2}).empty()); // a run that is refused is no vote
  CHECK(blameOf({0, 4}, "no HLO").empty());
}

TEST_CASE("bisect routes: of several ops the right one may be another") {
  CHECK(blameOf({4, 0}, reversedFloor).empty());
  CHECK(blameOf({0, 4}, reversedFloor) == "the reference, by the interpreter's rule of `floor`");
}

TEST_CASE("bisect routes: in the regime of the error") {
  Told told{0, 4};
  (void)blameSharedPart(reversed, "differ in the regime `exact`", told.tools());
  REQUIRE(told.interpreted.size() == 3);
  for (const Names &options : told.interpreted)
    CHECK(llvm::is_contained(options, "--regimes=exact"));
}
