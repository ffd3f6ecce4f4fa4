// How well index maps of kernels simplify: what div and mod are left decides what a kernel costs and whether its
// accesses vectorize. Thread maps are 128 threads times 4 elements over the shape; `flat` is the index into memory.

#include "unit/indexing/KernelMaps.h"

using namespace hloc;
using namespace hloc::testing;

namespace {

struct Fixture {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};

  IndexingMap reshape(Sizes to, Sizes from) { return reshapeMap(to, from, &context); }
  IndexingMap transpose(Sizes permutation, Sizes sizes) { return permutationMap(permutation, sizes, &context); }
  IndexingMap flat(Sizes sizes) { return flattenMap(sizes, &context); }
  IndexingMap threads(Sizes sizes) { return threadMap(sizes, 4, &context); }
  IndexingMap bounds(Sizes sizes) { return IndexingMap::identity(&context, sizes); }
  IndexingMap text(llvm::StringRef map) { return fromText(map, &context); }
};

/// The text of the results only.
std::string resultsOf(const IndexingMap &map) {
  std::string text = map.toString();
  llvm::StringRef results = llvm::StringRef(text).split(" -> ").second.split(", domain:").first;
  return results.str();
}

/// The text of the constraints only: what follows the last variable.
std::string constraintsOf(const IndexingMap &map, llvm::StringRef lastVariable) {
  std::string text = map.toString();
  llvm::StringRef rest = llvm::StringRef(text).split((lastVariable + " in [").str()).second.split(']').second;
  return rest.ltrim(", ").str();
}

} // namespace

TEST_CASE_METHOD(Fixture, "power-of-two shapes leave no division by anything but the block") {
  Sizes shape{6, 512, 4096};
  IndexingMap map = threads(shape);
  CHECK(map.toString() == "(th_x, bl_x)[s0] -> (bl_x / 4096, (bl_x / 8) mod 512, th_x * 4 + (bl_x mod 8) * 512 + s0), "
                          "domain: th_x in [0, 127], bl_x in [0, 24575], s0 in [0, 3]");
  CHECK(resultsOf(chain({map, flat(shape)})) == "(th_x * 4 + bl_x * 512 + s0)");
  CHECK(resultsOf(chain({map, reshape(shape, {3072, 4096})})) == "(bl_x / 8, th_x * 4 + (bl_x mod 8) * 512 + s0)");
  CHECK(resultsOf(chain({map, transpose({0, 2, 1}, shape), flat({6, 4096, 512})})) ==
        "(th_x * 2048 + (bl_x / 4096) * 2097152 + (bl_x mod 8) * 262144 + (bl_x / 8) mod 512 + s0 * 512)");
}

TEST_CASE_METHOD(Fixture, "digits of shapes that are no powers of two add up again") {
  Sizes shape{20, 40, 300};
  IndexingMap map = threads(shape);
  CHECK(map.toString() == "(th_x, bl_x)[s0] -> ((th_x + bl_x * 128) / 3000, ((th_x + bl_x * 128) / 75) mod 40, "
                          "((th_x + bl_x * 128) mod 75) * 4 + s0), domain: th_x in [0, 127], bl_x in [0, 468], "
                          "s0 in [0, 3], th_x + bl_x * 128 in [0, 59999]");
  CHECK(resultsOf(chain({map, flat(shape)})) == "(th_x * 4 + bl_x * 512 + s0)");
  CHECK(resultsOf(chain({map, reshape(shape, {800, 300})})) ==
        "((th_x + bl_x * 128) / 75, ((th_x + bl_x * 128) mod 75) * 4 + s0)");
  CHECK(chain({threads({800, 300}), reshape({800, 300}, shape)}) == map);
  CHECK(resultsOf(chain({map, reshape(shape, {20, 12000}), reshape({20, 12000}, {24, 10000}), flat({24, 10000})})) ==
        "(th_x * 4 + bl_x * 512 + s0)");
}

TEST_CASE_METHOD(Fixture, "a vector that straddles rows keeps its divisions, and they still add up") {
  Sizes shape{10, 10, 10};
  IndexingMap rows = threads({10, 100});
  CHECK(resultsOf(chain({rows, reshape({10, 100}, shape)})) ==
        "((th_x + bl_x * 128) / 25, ((th_x * 4 + bl_x * 512 + s0) / 10) mod 10, (th_x * 4 + bl_x * 512 + s0) mod 10)");
  CHECK(resultsOf(chain({rows, reshape({10, 100}, shape), flat(shape)})) == "(th_x * 4 + bl_x * 512 + s0)");
}

TEST_CASE_METHOD(Fixture, "slices, concatenations and pads of leading dimensions are offsets") {
  Sizes shape{20, 40, 300};
  std::string domain = ", domain: d0 in [0, 19], d1 in [0, 39], d2 in [0, 299]";
  CHECK(resultsOf(chain({threads(shape), text("(d0, d1, d2) -> (d0 + 1, d1, d2)" + domain), flat({22, 40, 300})})) ==
        "(th_x * 4 + bl_x * 512 + s0 + 12000)");
  // Operand of a concatenation that covers [2, 4) of dimension 0.
  IndexingMap concat = chain(
      {threads(shape), text("(d0, d1, d2) -> (d0 - 2, d1, d2)" + domain), bounds({2, 40, 300}), flat({2, 40, 300})});
  CHECK(resultsOf(concat) == "(th_x * 4 + bl_x * 512 + s0 - 24000)");
  CHECK(constraintsOf(concat, "s0") == "th_x + bl_x * 128 in [6000, 11999]");
  // The inner dimension of a slice needs its digits, the outer two join.
  CHECK(resultsOf(chain({threads(shape), text("(d0, d1, d2) -> (d0, d1, d2 + 4)" + domain), flat({20, 40, 308})})) ==
        "(((th_x + bl_x * 128) / 75) * 308 + ((th_x + bl_x * 128) mod 75) * 4 + s0 + 4)");
}

TEST_CASE_METHOD(Fixture, "attention: reshape and transpose there and back vanish") {
  Sizes shape{8, 128, 768}, heads{8, 128, 12, 64}, transposed{8, 12, 128, 64};
  IndexingMap split = chain({threads(shape), reshape(shape, heads), transpose({0, 2, 1, 3}, heads)});
  CHECK(resultsOf(split) == "(bl_x / 192, (bl_x * 8 + th_x / 16) mod 12, ((th_x + bl_x * 128) / 192) mod 128, "
                            "(th_x mod 16) * 4 + s0)");
  IndexingMap back = chain({split, reshape(transposed, {96, 128, 64}), reshape({96, 128, 64}, transposed),
                            transpose({0, 2, 1, 3}, transposed), flat(heads)});
  CHECK(resultsOf(back) == "(th_x * 4 + bl_x * 512 + s0)");
  // The upper half of each head, as rotary embeddings read it.
  IndexingMap half = chain({threads(shape), reshape(shape, heads),
                            text("(d0, d1, d2, d3) -> (d0, d1, d2, d3 - 32), domain: d0 in [0, 7], d1 in [0, 127], "
                                 "d2 in [0, 11], d3 in [32, 63]"),
                            flat({8, 128, 12, 32})});
  CHECK(resultsOf(half) == "(bl_x * 256 + (th_x / 16) * 32 + (th_x mod 16) * 4 + s0 - 32)");
  CHECK(constraintsOf(half, "s0") == "th_x mod 16 in [8, 15]");
}

TEST_CASE_METHOD(Fixture, "a reduction's input map: constraints tell that rows do not overlap") {
  IndexingMap row = text("(th_x, bl_x)[s0, s1] -> (bl_x * 4 + th_x / 64, (s0 * 64 + th_x mod 64) * 2 + s1), domain: "
                         "th_x in [0, 255], bl_x in [0, 767], s0 in [0, 7], s1 in [0, 1], "
                         "(s0 * 64 + th_x mod 64) * 2 + s1 in [0, 999]");
  row.simplify();
  CHECK(constraintsOf(row, "s1") == "th_x mod 64 + s0 * 64 in [0, 499]");
  IndexingMap split = chain({row, reshape({3072, 1000}, {64, 48, 10, 100})});
  CHECK(resultsOf(chain({split, flat({64, 48, 10, 100})})) ==
        "(bl_x * 4000 + (th_x / 64) * 1000 + (th_x mod 64) * 2 + s0 * 128 + s1)");
  CHECK(constraintsOf(split, "s1") == "th_x mod 64 + s0 * 64 in [0, 499]");
}

TEST_CASE_METHOD(Fixture, "a column reduction's bounds checks are not repeated after a reshape") {
  IndexingMap column = text(
      "(th_x, bl_x)[s0, s1] -> (bl_x / 5, th_x / 32 + s0 * 32, ((bl_x mod 5) * 32 + th_x mod 32) * 2 + s1), domain: "
      "th_x in [0, 1023], bl_x in [0, 49], s0 in [0, 15], s1 in [0, 1], th_x / 32 + s0 * 32 in [0, 499], "
      "((bl_x mod 5) * 32 + th_x mod 32) * 2 + s1 in [0, 299]");
  column.simplify();
  IndexingMap split = chain({column, reshape({10, 500, 300}, {10, 5, 100, 300}), flat({10, 5, 100, 300})});
  CHECK(split == chain({column, flat({10, 500, 300})}));
  CHECK(constraintsOf(split, "s1") == "th_x / 32 + s0 * 32 in [0, 499], th_x mod 32 + (bl_x mod 5) * 32 in [0, 149]");
}

TEST_CASE_METHOD(Fixture, "dynamic-slice and dynamic-update-slice offsets stay apart from the digits") {
  Sizes shape{20, 40, 300};
  std::string domain = ", domain: d0 in [0, 19], d1 in [0, 39], d2 in [0, 299], a in [0, 3], b in [0, 4]";
  CHECK(resultsOf(chain(
            {threads(shape), text("(d0, d1, d2){a, b} -> (d0 + a, d1, d2 + b)" + domain), flat({23, 40, 304})})) ==
        "(((th_x + bl_x * 128) / 75) * 304 + ((th_x + bl_x * 128) mod 75) * 4 + s0 + a * 12160 + b)");
  IndexingMap update = chain({threads(shape), text("(d0, d1, d2){a, b} -> (d0 - a, d1, d2 - b)" + domain),
                              bounds({17, 40, 296}), flat({17, 40, 296})});
  CHECK(constraintsOf(update, "b") == "((th_x + bl_x * 128) mod 75) * 4 + s0 - b in [0, 295], "
                                      "(th_x + bl_x * 128) / 3000 - a in [0, 16], th_x + bl_x * 128 in [0, 59999]");
  // Only the leading dimension moves: the whole index is linear again.
  std::string leading = ", domain: d0 in [0, 19], d1 in [0, 39], d2 in [0, 299], a in [0, 3]";
  CHECK(resultsOf(chain({threads(shape), text("(d0, d1, d2){a} -> (d0 + a, d1, d2)" + leading),
                         flat({23, 40, 300})})) == "(th_x * 4 + bl_x * 512 + s0 + a * 12000)");
}

TEST_CASE_METHOD(Fixture, "loops are cut to the iterations that can pass the constraint") {
  IndexingMap map = text("(th_x)[s0] -> (th_x + s0 * 128), domain: th_x in [0, 127], s0 in [0, 31], "
                         "th_x + s0 * 128 in [0, 299]");
  map.simplify();
  CHECK(map.ranges()[0].bounds == Interval{0, 2});
  CHECK(map.dims()[0].bounds == Interval{0, 127});
}
