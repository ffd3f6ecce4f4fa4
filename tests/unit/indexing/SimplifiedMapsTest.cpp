#include "hloc/indexing/SimplifiedMaps.h"
#include "unit/indexing/MapTesting.h"

using namespace hloc;
using namespace hloc::testing;

TEST_CASE("equal maps become what simplify() makes of them, to the text") {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  SimplifiedMaps known;
  for (int round = 0; round < 2; ++round)
    for (
        const char *text : {
            "(d0) -> (d0 mod 8 + (d0 floordiv 8) * 8), domain: d0 in [0, 63]",
            "(d0) -> (d0 mod 8 + (d0 floordiv 8) * 8), domain: d0 in [0, 7]",
            "(th) -> (th mod 8 + (th floordiv 8) * 8), domain: th in [0, 63]",
            "(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 63], s0 in [0, 3]",
            "(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 63], s0 in [0, 3], d0 * 4 + s0 in [0, 99]",
            "(d0, d1) -> (d1 floordiv 2), domain: d0 in [0, 5], d1 in [0, 9], d0 + d1 in [2, 7], d0 * 2 + d1 in [0, 9]",
            "(d0, d1) -> (d1 floordiv 2), domain: d0 in [0, 5], d1 in [0, 9], d0 * 2 + d1 in [0, 9], d0 + d1 in [2, 7]",
            "(d0, d1) -> (d0), domain: d0 in [0, 5], d1 in [0, 9], d0 + d1 in [90, 99]",
        }) {
      IndexingMap expected = parseMap(text, &context), map = expected;
      const bool changes = expected.simplify();
      CHECK(known.simplify(map) == changes);
      CHECK(map.toString() == expected.toString());
      CHECK_FALSE(known.simplify(map));
    }
}

TEST_CASE("more maps than are kept are simplified, too") {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  SimplifiedMaps known;
  mlir::AffineExpr d0 = mlir::getAffineDimExpr(0, &context);
  for (int64_t i = 0; i < 20000; ++i) {
    IndexingMap map = IndexingMap::fromSizes(mlir::AffineMap::get(1, 0, d0.floorDiv(i + 2) + i, &context), {i + 2});
    CHECK(known.simplify(map));
    CHECK(map.result(0) == mlir::getAffineConstantExpr(i, &context));
  }
}
