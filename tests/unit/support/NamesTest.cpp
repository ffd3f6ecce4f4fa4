#include "hloc/support/Names.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("an identifier is as close to the name as PTX allows") {
  CHECK(identifierOf("gelu") == "gelu");
  CHECK(identifierOf("fusion.12") == "fusion_12");
  CHECK(identifierOf("7x") == "k_7x");
  CHECK(identifierOf("") == "k_");
  CHECK(identifierOf("_") == "k__");
  CHECK(identifierOf("WARP_SZ") == "k_WARP_SZ");
  CHECK(identifierOf("a-b$c\xc3\xa4") == "a_b_c__");
}

TEST_CASE("a file name stays in its folder") {
  CHECK(fileNameOf("fusion.1-clone") == "fusion.1-clone");
  CHECK(fileNameOf("../x") == "_.._x");
  CHECK(fileNameOf("..") == "_..");
  CHECK(fileNameOf("") == "_");
}

TEST_CASE("a name that is taken gets a number that is not") {
  UniqueNames names;
  CHECK(names.unique("f") == "f");
  CHECK(names.unique("f_1") == "f_1");
  CHECK(names.unique("f") == "f_2");
  CHECK(names.unique("f") == "f_3");
  CHECK(names.unique("g") == "g");
}
