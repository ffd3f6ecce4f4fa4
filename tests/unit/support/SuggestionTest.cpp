#include "hloc/support/Suggestion.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("the nearest name is suggested, if one is near") {
  const llvm::StringRef names[] = {"subtract", "add", "and", "reduce", "reduce-window"};
  CHECK(nearestName("ad", names) == "add");
  CHECK(nearestName("redcue", names) == "reduce");
  CHECK(nearestName("reduce_windw", names) == "reduce-window");
  CHECK(nearestName("ald", names) == "add"); // as near as `and`
  CHECK(nearestName("convolution", names) == "");
  CHECK(nearestName("x", names) == "");
  CHECK(nearestName("ade", names) == "add");
  CHECK(nearestName("aee", names) == ""); // two changes make anything of three letters
  CHECK(nearestName(std::string(101, 'a'), names) == "");
  CHECK(nearestName("ad", {}) == "");
}

TEST_CASE("a suggestion is a question, none is nothing") {
  CHECK(suggestion("add") == "; did you mean `add`?");
  CHECK(suggestion("") == "");
}
