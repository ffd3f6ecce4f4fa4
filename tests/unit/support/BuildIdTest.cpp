#include "hloc/support/BuildId.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("the id is the one that the linker wrote", "[build-id]") {
  const std::string id = buildId();
  REQUIRE(id.size() >= 16);
  CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(buildId() == id);
}
