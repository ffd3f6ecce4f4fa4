// Indexing maps of ops, in two ways: their texts, and against the interpreter, which knows nothing of maps. For ops
// that copy or sum, an element of the result is the sum of the operand's elements that the map reads for it.
#include "hloc/fusion/HloIndexing.h"
#include "hloc/interp/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include "unit/indexing/MapTesting.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

namespace {

mlir::MLIRContext *context() {
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  return &context;
}

/// A module whose entry has parameters p0, p1, ... of these shapes and this root; `sum` and `less` are of s32.
struct OneInstruction : Parsed {
  OneInstruction(llvm::ArrayRef<std::string> parameters, const std::string &root) : Parsed(text(parameters, root)) {
    INFO(firstReport());
    REQUIRE(module);
  }
  static std::string text(llvm::ArrayRef<std::string> parameters, const std::string &root) {
    std::string all =
        "HloModule m\nsum {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT s = s32[] add(a, b)\n}\n"
        "less {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n"
        " ROOT c = pred[] compare(a, b), direction=LT\n}\n"
        "ENTRY e {\n";
    for (auto [i, shape] : llvm::enumerate(parameters))
      all += fmt::format(" p{0} = {1} parameter({0})\n", i, shape);
    return all + " ROOT r = " + root + "\n}\n";
  }
  const HloInstruction &root() { return *module->entry()->root(); }
};

std::string mapText(llvm::ArrayRef<std::string> parameters, const std::string &root, unsigned operand = 0) {
  OneInstruction one(parameters, root);
  std::optional<OperandIndexing> indexing = operandIndexing(one.root(), operand, context());
  return indexing ? indexing->map.toString() : "none";
}

int64_t linear(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> sizes) {
  int64_t at = 0;
  for (auto [i, size] : llvm::zip_equal(index, sizes))
    at = at * size + i;
  return at;
}

/// What parameter i holds: `counting` (1, 2, ...) for the operand under test, else these values, repeated.
struct ReadCase {
  const char *name;
  std::vector<std::string> parameters;
  const char *root;
  unsigned operand;
  std::vector<std::vector<int64_t>> others; ///< by parameter; that of the operand under test is ignored
};

Literal filled(const Shape &shape, llvm::ArrayRef<int64_t> values) {
  Literal literal(shape);
  for (int64_t i = 0; i < literal.numElements(); ++i)
    literal.setInt(i, values.empty() ? i + 1 : values[i % values.size()]);
  return literal;
}

} // namespace

TEST_CASE("the interpreter reads what the maps say") {
  const std::vector<int64_t> zero{0}, one{1}, none{};
  const ReadCase cases[] = {
      {"copy", {"s32[3,4]"}, "s32[3,4] copy(p0)", 0, {none}},
      {"broadcast", {"s32[3]"}, "s32[2,3,4] broadcast(p0), dimensions={1}", 0, {none}},
      {"transpose", {"s32[2,3,4]"}, "s32[4,2,3] transpose(p0), dimensions={2,0,1}", 0, {none}},
      {"reverse", {"s32[2,3,4]"}, "s32[2,3,4] reverse(p0), dimensions={0,2}", 0, {none}},
      {"slice", {"s32[9,5]"}, "s32[3,2] slice(p0), slice={[1:9:3],[2:4]}", 0, {none}},
      {"reshape", {"s32[6,4]"}, "s32[3,8] reshape(p0)", 0, {none}},
      {"concatenate, first", {"s32[2,3]", "s32[2,4]"}, "s32[2,7] concatenate(p0, p1), dimensions={1}", 0, {none, zero}},
      {"concatenate, second",
       {"s32[2,3]", "s32[2,4]"},
       "s32[2,7] concatenate(p0, p1), dimensions={1}",
       1,
       {zero, none}},
      {"pad", {"s32[4,3]", "s32[]"}, "s32[8,4] pad(p0, p1), padding=2_-1_1x-1_2", 0, {none, zero}},
      {"dynamic-slice",
       {"s32[5,6]", "s32[]", "s32[]"},
       "s32[2,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,3}",
       0,
       {none, {1}, {3}}},
      {"dynamic-slice, start too large",
       {"s32[5,6]", "s32[]", "s32[]"},
       "s32[2,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,3}",
       0,
       {none, {4}, {-7}}},
      {"dynamic-update-slice, update",
       {"s32[5,6]", "s32[2,3]", "s32[]", "s32[]"},
       "s32[5,6] dynamic-update-slice(p0, p1, p2, p3)",
       1,
       {zero, none, {4}, {2}}},
      {"gather of rows",
       {"s32[5,3]", "s32[4,1]"},
       "s32[4,3] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
       "slice_sizes={1,3}",
       0,
       {none, {4, 0, 9, -2}}},
      {"gather of windows",
       {"s32[5,6]", "s32[2,2]"},
       "s32[2,3,2] gather(p0, p1), offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={1,0}, "
       "index_vector_dim=0, slice_sizes={2,3}",
       0,
       {none, {1, 2, 3, 9}}},
      {"gather of batches",
       {"s32[3,5]", "s32[3,2,1]"},
       "s32[3,2] gather(p0, p1), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}",
       0,
       {none, {4, 0, 2, 2, 1, 3}}},
      {"reduce", {"s32[3,4,5]", "s32[]"}, "s32[4] reduce(p0, p1), dimensions={0,2}, to_apply=sum", 0, {none, zero}},
      {"reduce, initial value",
       {"s32[3,4]", "s32[]"},
       "s32[4] reduce(p0, p1), dimensions={0}, to_apply=sum",
       1,
       {zero, none}},
      {"reduce-window",
       {"s32[9,4]", "s32[]"},
       "s32[5,3] reduce-window(p0, p1), window={size=3x2 stride=2x1 pad=1_1x0_0}, to_apply=sum",
       0,
       {none, zero}},
      {"reduce-window, dilated",
       {"s32[5]", "s32[]"},
       "s32[8] reduce-window(p0, p1), window={size=2 pad=1_1 lhs_dilate=2 rhs_dilate=3}, to_apply=sum",
       0,
       {none, zero}},
      {"dot, left",
       {"s32[2,3,4]", "s32[5,2,4]"},
       "s32[2,3,5] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, "
       "rhs_contracting_dims={2}",
       0,
       {none, one}},
      {"dot, right",
       {"s32[2,3,4]", "s32[5,2,4]"},
       "s32[2,3,5] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, "
       "rhs_contracting_dims={2}",
       1,
       {one, none}},
      {"scaled-dot, scales",
       {"s32[2,4]", "s32[4,3]", "s32[2,2]", "s32[]"},
       "s32[2,3] scaled-dot(p0, p1, p2, p3), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       2,
       {one, one, none, one}},
      {"convolution, input",
       {"s32[2,7,9,3]", "s32[3,2,3,4]"},
       "s32[2,4,10,4] convolution(p0, p1), window={size=3x2 stride=2x1 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
       0,
       {none, one}},
      {"convolution, kernel",
       {"s32[7,2,3,9]", "s32[4,3,2,3]"},
       "s32[4,3,4,2] convolution(p0, p1), window={size=3x2 stride=2x2 rhs_reversal=1x0}, "
       "dim_labels=0bf1_oi10->f01b",
       1,
       {one, none}},
      {"convolution, groups of features",
       {"s32[2,5,6]", "s32[2,3,4]"},
       "s32[2,4,4] convolution(p0, p1), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2",
       0,
       {none, one}},
      {"convolution, groups of batches",
       {"s32[6,5,2]", "s32[2,2,9]"},
       "s32[2,4,9] convolution(p0, p1), window={size=2}, dim_labels=b0f_0io->b0f, batch_group_count=3",
       0,
       {none, one}},
      {"convolution, holes in the input",
       {"s32[1,5,2]", "s32[4,2,3]"},
       "s32[1,13,3] convolution(p0, p1), window={size=4 pad=2_1 lhs_dilate=3}, dim_labels=b0f_0io->b0f",
       0,
       {none, one}},
      {"convolution, holes in both, with a common divisor",
       {"s32[1,5,2]", "s32[3,2,3]"},
       "s32[1,25,3] convolution(p0, p1), window={size=3 pad=8_8 lhs_dilate=4 rhs_dilate=6 rhs_reversal=1 stride=1}, "
       "dim_labels=b0f_0io->b0f",
       0,
       {none, one}},
      {"convolution, holes in both, without one",
       {"s32[1,5,2]", "s32[3,2,3]"},
       "s32[1,7,3] convolution(p0, p1), window={size=3 pad=-1_8 lhs_dilate=3 rhs_dilate=5 stride=2}, "
       "dim_labels=b0f_0io->b0f",
       0,
       {none, one}},
  };
  for (const ReadCase &c : cases) {
    INFO(c.name);
    OneInstruction one(c.parameters, c.root);
    const HloInstruction &root = one.root();
    std::vector<Literal> arguments;
    for (auto [i, parameter] : llvm::enumerate(one.module->entry()->parameters()))
      arguments.push_back(filled(parameter->shape(), i == c.operand ? std::vector<int64_t>() : c.others[i]));
    DiagnosticEngine diagnostics;
    auto result = interpret(*one.module, arguments, diagnostics);
    REQUIRE(succeeded(result));
    std::optional<OperandIndexing> indexing = operandIndexing(root, c.operand, context());
    REQUIRE(indexing);
    INFO(indexing->map.toString());
    const IndexingMap &map = indexing->map;
    REQUIRE(indexing->runtimes.size() == map.runtimes().size());
    llvm::ArrayRef<int64_t> read = root.operand(c.operand)->shape().dims();

    std::vector<int64_t> sums(size_t(root.shape().numElements()), 0);
    IndexingMap points = IndexingMap::identity(context(), root.shape().dims());
    testing::forEachPoint(points.dims(), map.ranges(), [&](auto dims, auto ranges) {
      llvm::SmallVector<int64_t> symbols(ranges);
      for (auto [source, variable] : llvm::zip_equal(indexing->runtimes, map.runtimes())) {
        const Literal &values = arguments[source.operand];
        auto at = source.indices.evaluate(dims, {});
        REQUIRE(at);
        int64_t value = values.getInt(linear(*at, values.shape().dims()));
        symbols.push_back(std::clamp(value, variable.bounds.lower, variable.bounds.upper));
      }
      if (auto index = map.evaluate(dims, symbols)) {
        for (auto [i, size] : llvm::zip_equal(*index, read))
          REQUIRE((i >= 0 && i < size));
        sums[size_t(linear(dims, root.shape().dims()))] += arguments[c.operand].getInt(linear(*index, read));
      }
    });
    for (int64_t i = 0; i < result->numElements(); ++i)
      REQUIRE(sums[size_t(i)] == result->getInt(i));
  }
}

TEST_CASE("elementwise ops read in place; scalar operands of select and clamp do not depend on the index") {
  CHECK(mapText({"f32[2,3]", "f32[2,3]"}, "f32[2,3] add(p0, p1)", 1) ==
        "(d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 2]");
  CHECK(mapText({"f32[]", "f32[4]", "f32[]"}, "f32[4] clamp(p0, p1, p2)", 2) == "(d0) -> (), domain: d0 in [0, 3]");
  CHECK(readsOperandsInPlace(OneInstruction({"f32[4]"}, "f32[4] negate(p0)").root()));
  CHECK(readsOperandsInPlace(OneInstruction({"f32[4]"}, "s32[4] bitcast-convert(p0)").root()));
  CHECK_FALSE(readsOperandsInPlace(OneInstruction({"f32[4]"}, "s16[4,2] bitcast-convert(p0)").root()));
  CHECK_FALSE(readsOperandsInPlace(OneInstruction({"f32[4]"}, "f32[4] reverse(p0), dimensions={0}").root()));
}

TEST_CASE("index operands") {
  CHECK(mapText({"s32[5,6]", "s32[]", "s32[]"}, "s32[2,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,3}", 2) ==
        "(d0, d1) -> (), domain: d0 in [0, 1], d1 in [0, 2]");
  CHECK(mapText({"s32[5,3]", "s32[4,1]"},
                "s32[4,3] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
                "index_vector_dim=1, slice_sizes={1,3}",
                1) == "(d0, d1) -> (d0, 0), domain: d0 in [0, 3], d1 in [0, 2]");
  CHECK(mapText({"s32[5,6]", "s32[2,2]"},
                "s32[2,3,2] gather(p0, p1), offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={1,0}, "
                "index_vector_dim=0, slice_sizes={2,3}",
                1) == "(d0, d1, d2)[s0] -> (s0, d2), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 1], s0 in [0, 1]");
  CHECK(mapText({"s32[5]", "s32[2]", "s32[]"}, "s32[5] dynamic-update-slice(p0, p1, p2)") ==
        "(d0) -> (d0), domain: d0 in [0, 4]");
}

TEST_CASE("a bitcast between widths, and one between layouts") {
  CHECK(mapText({"f32[4]"}, "s16[4,2] bitcast-convert(p0)") == "(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 1]");
  CHECK(mapText({"s16[4,2]"}, "f32[4] bitcast-convert(p0)") ==
        "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 1]");
  CHECK(mapText({"f32[2,3]{0,1}"}, "f32[3,2]{1,0} bitcast(p0)") ==
        "(d0, d1) -> (d1, d0), domain: d0 in [0, 2], d1 in [0, 1]");
  CHECK(memoryOrderIndexing(OneInstruction({"f32[2,3]{0,1}"}, "f32[2,3]{0,1} copy(p0)").root().shape(), context())
            .toString() == "(d0) -> (d0 mod 2, d0 / 2), domain: d0 in [0, 5]");
}

TEST_CASE("holes in the input of a convolution are stepped over") {
  CHECK(mapText({"f32[1,9,4]", "f32[5,4,8]"},
                "f32[1,17,8] convolution(p0, p1), window={size=5 pad=2_2 lhs_dilate=2}, dim_labels=b0f_0io->b0f") ==
        "(d0, d1, d2)[s0, s1] -> (0, (d1 + (-d1) mod 2) / 2 + s0 - 1, s1), domain: d0 in [0, 0], d1 in [0, 16], "
        "d2 in [0, 7], s0 in [0, 2], s1 in [0, 3], (-d1) mod 2 + s0 * 2 in [0, 4], (d1 + (-d1) mod 2) / 2 + s0 in [1, "
        "9]");
}

TEST_CASE("sources of an element, in their order, and elements of a source") {
  OneInstruction one({"s32[9]", "s32[4]", "s32[]"},
                     "s32[9] select-and-scatter(p0, p1, p2), window={size=3 stride=2}, select=less, scatter=sum");
  CHECK(sourcesOfElement(one.root(), context()).toString() ==
        "(d0)[s0] -> ((d0 + s0) / 2 - 1), domain: d0 in [0, 8], s0 in [0, 2], (d0 + s0) mod 2 in [0, 0], "
        "d0 + s0 in [2, 9]");
  CHECK(elementsOfSource(one.root(), context()).toString() ==
        "(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 3], s0 in [0, 2]");
}

TEST_CASE("the ragged dimension of a ragged-dot: rows have their group's right side, or groups a result each") {
  const std::vector<std::string> rows = {"f32[64,9]", "f32[4,9,8]", "s32[4]"},
                                 depth = {"f32[9,64]", "f32[64,8]", "s32[4]"};
  const std::string ofRows = "f32[64,8] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
                             "lhs_ragged_dims={0}, rhs_group_dims={0}";
  const std::string ofDepth =
      "f32[4,9,8] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}";
  CHECK(mapText(rows, ofRows) == "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 63], d1 in [0, 7], s0 in [0, 8]");
  CHECK(mapText(rows, ofRows, 1) == "none");
  OneInstruction one(rows, ofRows);
  CHECK(raggedDims(one.root()).kind == RaggedDims::Kind::Free);
  CHECK(raggedDotMap(one.root(), 1, context()).toString() ==
        "(d0, d1)[s0]{rt0} -> (rt0, s0, d1), domain: d0 in [0, 63], d1 in [0, 7], s0 in [0, 8], rt0 in [0, 3]");
  CHECK(raggedDims(OneInstruction(depth, ofDepth).root()).kind == RaggedDims::Kind::Contracted);
  CHECK(mapText(depth, ofDepth, 1) ==
        "(d0, d1, d2)[s0] -> (s0, d2), domain: d0 in [0, 3], d1 in [0, 8], d2 in [0, 7], s0 in [0, 63]");
  CHECK(mapText(depth, ofDepth, 2) == "none");
}

TEST_CASE("what no map describes has none") {
  CHECK(mapText({"s32[4]"}, "s32[4] sort(p0), dimensions={0}, to_apply=less", 0) == "none");
}

TEST_CASE("the value behind tuples") {
  Parsed p(entry("x = f32[] parameter(0)\n y = f32[] negate(x)\n t = (f32[], f32[]) tuple(x, y)\n"
                 "o = (f32[], f32[]) opt-barrier(t)\n g = f32[] get-tuple-element(o), index=1\n"
                 "u = ((f32[], f32[]), f32[]) tuple(t, g)\n v = (f32[], f32[]) get-tuple-element(u), index=0\n"
                 "w = f32[] get-tuple-element(v), index=0\n q = (f32[]) parameter(1)\n"
                 "z = f32[] get-tuple-element(q), index=0\n ROOT r = (f32[], f32[]) tuple(w, z)"));
  REQUIRE(p.module);
  auto named = [&](llvm::StringRef name) -> const HloInstruction & {
    return **llvm::find_if(p.module->entry()->instructions(), [&](auto *instr) { return instr->name() == name; });
  };
  CHECK(behindTuple(named("g")).name() == "y");
  CHECK(behindTuple(named("w")).name() == "x");
  CHECK(behindTuple(named("z")).name() == "z"); // nothing is known of a parameter
  CHECK(behindTuple(named("y")).name() == "y");
}
