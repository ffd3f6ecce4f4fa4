#include "hloc/reduce/Suspects.h"

#include "llvm/ADT/STLExtras.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

using Names = std::vector<std::string>;

/// All is well without any of `one`, and without all of `together`.
Blame blame(const Names &one, const Names &together = {}) {
  return findBlame({"a", "b", "c", "d", "e"}, [&](llvm::ArrayRef<Names> sets) {
    std::vector<bool> well;
    for (const Names &set : sets) {
      auto isLeftOut = [&](const std::string &name) { return llvm::is_contained(set, name); };
      well.push_back(llvm::any_of(one, isLeftOut) || (!together.empty() && llvm::all_of(together, isLeftOut)));
    }
    return well;
  });
}

} // namespace

TEST_CASE("the pass without which all is well is to blame; of several the last") {
  CHECK(blame({"c"}).guilty == Names{"c"});
  CHECK(blame({"b", "d"}).guilty == Names{"d"});
  CHECK(blame({"b", "d"}).alsoHide == Names{"b"});
}

TEST_CASE("passes of which none alone is enough are to blame together") {
  CHECK(blame({}, {"b", "e"}).guilty == Names{"b", "e"});
  CHECK(blame({}).guilty.empty());
}
