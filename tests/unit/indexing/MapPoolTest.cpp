#include "hloc/indexing/MapPool.h"
#include "unit/indexing/MapTesting.h"

using namespace hloc;
using namespace hloc::testing;

namespace {

struct Pool : MapPool {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  unsigned add(llvm::StringRef text) { return intern(parseMap(text, &context)); }
};

} // namespace

TEST_CASE("equal maps are one number, and none is that of no map") {
  Pool pool;
  const unsigned turn = pool.add("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 7]");
  CHECK(turn != MapPool::same);
  CHECK(pool.add("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 7]") == turn);
  CHECK(pool.add("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 8]") != turn);
  CHECK(pool[turn].toString() == "(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 7]");
}

TEST_CASE("compositions are simplified and interned") {
  Pool pool;
  const unsigned turn = pool.add("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 7]");
  const unsigned back = pool.add("(d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 3]");
  const unsigned identity = pool.add("(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 7]");
  CHECK(pool.composed(turn, back).map == identity);
  CHECK(pool.composed(turn, back).map == identity);
  CHECK(pool.composed(MapPool::same, turn).map == turn);
  CHECK(pool.composed(identity, turn).map == turn);
}

TEST_CASE("loops that nothing depends on are dropped, and their points told") {
  Pool pool;
  const unsigned row = pool.add("(d0)[s0, s1] -> (d0, s0, s1), domain: d0 in [0, 3], s0 in [0, 7], s1 in [0, 4]");
  const unsigned first = pool.add("(d0, d1, d2) -> (d0, d2), domain: d0 in [0, 3], d1 in [0, 7], d2 in [0, 4]");
  const unsigned none = pool.add("(d0, d1, d2) -> (d0 + 9), domain: d0 in [0, 3], d1 in [0, 7], d2 in [9, 20]");
  CHECK(pool[pool.composed(row, first).map].toString() == "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 4]");
  CHECK(pool.composed(row, first).kept == 1.0 / 8);
  CHECK(pool[pool.composed(row, none).map].isKnownEmpty());
  CHECK(pool.composed(row, none).kept == 1);
}
