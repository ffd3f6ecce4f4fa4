#include "hloc/dialect/AppliedMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

/// A function of index arguments with known ranges, to put ops in.
struct Fixture {
  explicit Fixture(ArrayRef<Interval> ranges) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, XlaGpuDialect>();
    builder.setInsertionPointToStart(module->getBody());
    SmallVector<Type> types(ranges.size(), builder.getIndexType());
    function = func::FuncOp::create(builder, loc, "f", builder.getFunctionType(types, {}));
    Block *block = function.addEntryBlock();
    for (auto [i, range] : llvm::enumerate(ranges))
      function.setArgAttr(i, attr::range, rangeAttr(&context, range));
    builder.setInsertionPointToStart(block);
  }

  Value argument(unsigned i) { return function.getArgument(i); }
  IndexingMap map(StringRef text) {
    std::string error;
    std::optional<IndexingMap> parsed = parseIndexingMap(text, &context, error);
    INFO(error);
    REQUIRE(parsed);
    return *parsed;
  }
  Value apply(StringRef text, ValueRange operands) {
    return ApplyIndexingOp::create(builder, loc, operands, map(text)).getResult(0);
  }

  MLIRContext context;
  OpBuilder builder{&context};
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module{ModuleOp::create(loc)};
  func::FuncOp function;
};

} // namespace

TEST_CASE("AppliedMap: a chain of ops becomes one map of what it starts from") {
  Fixture f({{0, 7}, {0, 63}});
  Value linear =
      f.apply("(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 7], d1 in [0, 63]", {f.argument(0), f.argument(1)});
  Value row = f.apply("(d0) -> (d0 floordiv 64), domain: d0 in [0, 511]", linear);
  AppliedMap traced = AppliedMap::identity(row, &f.context);
  CHECK(traced.composeProducers());
  REQUIRE(traced.operands.size() == 1);
  CHECK(traced.operands[0] == f.argument(0));
  CHECK(traced.map.result(0) == getAffineDimExpr(0, &f.context));
}

TEST_CASE("AppliedMap: constants are bound, equal operands merged, known ranges used") {
  Fixture f({{0, 7}});
  Value three = arith::ConstantIndexOp::create(f.builder, f.loc, 3);
  AppliedMap applied = {
      f.map("(d0, d1, d2) -> (d0 * 8 + d1 + d2 mod 8), domain: d0 in [0, 7], d1 in [0, 7], d2 in [0, 100]"),
      {f.argument(0), three, f.argument(0)}};
  CHECK(applied.simplify());
  REQUIRE(applied.operands.size() == 1);
  CHECK(applied.map.result(0) == getAffineDimExpr(0, &f.context) * 9 + 3);
  CHECK_FALSE(applied.simplify());
}

TEST_CASE("AppliedMap: composition stops where expressions would grow without bound") {
  Fixture f({{0, 1000}});
  Value value = f.argument(0);
  // Each step uses its operand twice: forty of them would be a tree of 2^40 nodes.
  for (int i = 0; i < 40; ++i)
    value = f.apply("(d0) -> ((d0 mod 1000) floordiv 7 + d0 mod 13), domain: d0 in [0, 1000]", value);
  AppliedMap traced = AppliedMap::identity(value, &f.context);
  traced.composeProducers();
  CHECK(expressionSize(traced.map.result(0)) <= AppliedMap::maxExpressionSize);
}

TEST_CASE("AppliedMap: unreachable code is left alone") {
  Fixture f({{10, 20}});
  AppliedMap applied = {f.map("(d0) -> (d0 * 2), domain: d0 in [0, 5]"), {f.argument(0)}};
  applied.simplify();
  REQUIRE(applied.operands.size() == 1);
  CHECK_FALSE(applied.map.isKnownEmpty());
}

TEST_CASE("rangeOf: what ops and arguments say about themselves") {
  Fixture f({{2, 9}});
  CHECK(rangeOf(f.argument(0)) == Interval{2, 9});
  CHECK(rangeOf(arith::ConstantIndexOp::create(f.builder, f.loc, 5)) == Interval{5, 5});
  CHECK(rangeOf(f.apply("(d0) -> (d0 * 3 + 1), domain: d0 in [2, 9]", f.argument(0))) == Interval{7, 28});
  CHECK_FALSE(rangeOf(arith::AddIOp::create(f.builder, f.loc, f.argument(0), f.argument(0))).has_value());
}

TEST_CASE("folding finds constants and operands, also where an expression only comes to one") {
  Fixture f({{0, 7}, {0, 63}});
  Value three = arith::ConstantIndexOp::create(f.builder, f.loc, 3);
  auto fold = [&](StringRef text, ValueRange operands) {
    SmallVector<OpFoldResult> results;
    Value value = f.apply(text, operands);
    return succeeded(value.getDefiningOp()->fold(results)) ? results.front() : OpFoldResult();
  };
  Value i = f.argument(0), j = f.argument(1);
  CHECK(fold("(d0) -> ((d0 floordiv 4) * 4 + d0 mod 4), domain: d0 in [0, 7]", i) == OpFoldResult(i));
  CHECK(fold("(d0, d1) -> (d0 * 2 + d1 - d0 * 2), domain: d0 in [0, 7], d1 in [0, 63]", {i, j}) == OpFoldResult(j));
  CHECK(fold("(d0, d1) -> (d0 * 2 + d1 - d0 * 2), domain: d0 in [0, 7], d1 in [0, 63]", {i, three}) ==
        OpFoldResult(f.builder.getIndexAttr(3)));
  CHECK_FALSE(fold("(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 7], d1 in [0, 63]", {i, j}));
  CHECK_FALSE(fold("(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 7], d1 in [0, 63]", {i, three}));
  CHECK_FALSE(fold("(d0) -> (d0 floordiv 4), domain: d0 in [0, 7]", i));
}
