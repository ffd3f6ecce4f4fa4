// What is said of results of which bounds tell nothing: a map that doubles its error at each step makes them.
#include "hloc/compare/Compare.h"
#include "hloc/interp/Disturbed.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/parser/Parser.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace hloc;

namespace {

constexpr int64_t size = 128;

struct Chaos {
  std::unique_ptr<HloModule> module;
  DiagnosticEngine diagnostics;
  std::vector<Literal> arguments;
  Literal expected;

  Chaos() {
    module = parseHloModule(std::make_shared<SourceFile>(
                                "chaos.hlo",
                                "HloModule chaos\n"
                                "step { s = (s32[], f32[128]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
                                " x = f32[128] get-tuple-element(s), index=1\n one = s32[] constant(1)\n"
                                " next = s32[] add(i, one)\n three = f32[] constant(3)\n"
                                " k = f32[128] broadcast(three), dimensions={}\n a = f32[128] multiply(k, x)\n"
                                " f = f32[128] sine(a)\n y = f32[128] multiply(k, f)\n"
                                " ROOT t = (s32[], f32[128]) tuple(next, y) }\n"
                                "more { s = (s32[], f32[128]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
                                " n = s32[] constant(40)\n ROOT c = pred[] compare(i, n), direction=LT }\n"
                                "ENTRY e { x = f32[128] parameter(0)\n zero = s32[] constant(0)\n"
                                " s = (s32[], f32[128]) tuple(zero, x)\n"
                                " w = (s32[], f32[128]) while(s), condition=more, body=step\n"
                                " ROOT r = f32[128] get-tuple-element(w), index=1 }"),
                            diagnostics);
    REQUIRE(module);
    Literal x(Shape::array(ElementType::F32, {size}));
    for (int64_t i = 0; i < size; ++i)
      x.setDouble(i, 0.01 + double(i) / size);
    arguments.push_back(std::move(x));
    llvm::FailureOr<Literal> value = interpret(*module, arguments, diagnostics);
    REQUIRE(succeeded(value));
    expected = *value;
  }

  /// What a right kernel may give.
  Literal kernel(uint64_t seed) {
    llvm::FailureOr<DisturbedResult> result =
        interpretDisturbed(*module, arguments, Backend::Hloc, {seed}, diagnostics);
    REQUIRE(succeeded(result));
    return result->value;
  }

  CompareResult compare(const Literal &actual, const Literal *proven) {
    llvm::FailureOr<CompareResult> result = compareRun(*module, arguments, expected, actual, Backend::Other,
                                                       diagnostics, {}, WeakCheck::OpenOrWide, proven);
    REQUIRE(succeeded(result));
    return *result;
  }
};

Literal withOther(Literal array, int64_t element, int64_t stride = size) {
  for (int64_t i = element; i < size; i += stride)
    array.setDouble(i, array.getDouble(i) + (array.getDouble(i) < 0 ? 1.5 : -1.5)); // 3 sin(x) is within [-3, 3]
  return array;
}

} // namespace

TEST_CASE("nothing tells a wrong element from chaos but that all others are those of a right kernel") {
  Chaos chaos;
  const Literal one = chaos.kernel(100), other = chaos.kernel(101);
  REQUIRE_FALSE(one == other);
  CHECK(chaos.compare(withOther(one, 77), nullptr).equal());

  const CompareResult same = chaos.compare(one, &one);
  CHECK((same.equal() && same.numUnknown == 0));
  CHECK(chaos.compare(other, &one).equal()); // another right kernel

  const CompareResult wrong = chaos.compare(withOther(one, 77), &one);
  CHECK((wrong.numMismatches == 1 && wrong.first.index[0] == 77));
  CHECK(wrong.report.find("by the roundings of all others") != std::string::npos);
  // The reference itself is as good as a kernel.
  CHECK(chaos.compare(withOther(chaos.expected, 5), &one).numMismatches == 1);
  // As many as may come of other roundings.
  CHECK(chaos.compare(withOther(one, 0, 8), &one).equal());
}

TEST_CASE("a series that ends where fused multiply-adds see that all its terms have converged ends rightly") {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(
      std::make_shared<SourceFile>(
          "any.hlo", "HloModule any\nor { x = pred[] parameter(0)\n y = pred[] parameter(1)\n"
                     " ROOT r = pred[] or(x, y) }\n"
                     "ENTRY e { x = f64[128] parameter(0)\n one = f64[] constant(1)\n"
                     " ones = f64[128] broadcast(one), dimensions={}\n y = f64[128] divide(ones, x)\n"
                     " p = f64[128] multiply(x, y)\n d = f64[128] subtract(p, ones)\n a = f64[128] abs(d)\n"
                     " eps = f64[] constant(1.1102230246251565e-16)\n"
                     " e = f64[128] broadcast(eps), dimensions={}\n c = pred[128] compare(a, e), direction=GE\n"
                     " no = pred[] constant(false)\n ROOT r = pred[] reduce(c, no), dimensions={0}, to_apply=or }"),
      diagnostics);
  REQUIRE(module);
  Literal x(Shape::array(ElementType::F64, {size}));
  for (int64_t i = 0; i < size; ++i)
    x.setDouble(i, 1 + double(i) / 97);
  llvm::FailureOr<Literal> expected = interpret(*module, {x}, diagnostics);
  REQUIRE(succeeded(expected));
  REQUIRE(expected->getInt(0) == 1); // of a rounding: (1 - 2^-53) - 1
  Literal converged(*expected);
  converged.setInt(0, 0);
  llvm::FailureOr<CompareResult> result =
      compareRun(*module, {x}, *expected, converged, Backend::Hloc, diagnostics, {}, WeakCheck::Open);
  REQUIRE(succeeded(result));
  CHECK((result->equal() && result->numUnknown == 0));
}

TEST_CASE("a number where all runs have none is no proof where it is one of many that may be") {
  DiagnosticEngine diagnostics;
  auto module =
      parseHloModule(std::make_shared<SourceFile>("rare.hlo", "HloModule rare\nENTRY e { x = f32[256] parameter(0)\n"
                                                              " s = f32[256] sine(x)\n large = f32[] constant(1e7)\n"
                                                              " k = f32[256] broadcast(large), dimensions={}\n"
                                                              " t = f32[256] multiply(s, k)\n c = f32[256] cosine(t)\n"
                                                              " ROOT r = f32[256] acosh(c) }"),
                     diagnostics);
  REQUIRE(module);
  Literal x(Shape::array(ElementType::F32, {256}));
  for (int64_t i = 0; i < 256; ++i)
    x.setDouble(i, 0.1 + double(i) / 512);
  llvm::FailureOr<Literal> expected = interpret(*module, {x}, diagnostics);
  llvm::FailureOr<BoundedResult> bounds = interpretBounds(*module, {x}, Backend::Hloc, diagnostics);
  REQUIRE((succeeded(expected) && succeeded(bounds)));
  std::vector<int64_t> open;
  for (int64_t i = 0; i < 256; ++i)
    if (bounds->leaves[0].isUndecided(i) && std::isnan(expected->getDouble(i)))
      open.push_back(i);
  REQUIRE(open.size() >= 64);
  auto compare = [&](size_t numOthers, WeakCheck check = WeakCheck::Open) {
    Literal actual(*expected);
    for (size_t i = 0; i < numOthers; ++i)
      actual.setDouble(open[i * open.size() / numOthers], 0);
    llvm::FailureOr<CompareResult> result =
        compareRun(*module, {x}, *expected, actual, Backend::Hloc, diagnostics, {}, check);
    REQUIRE(succeeded(result));
    return *result;
  };
  const CompareResult one = compare(1), all = compare(open.size());
  CHECK((one.numMismatches == 0 && one.numUnknown == 1));
  CHECK(all.numMismatches > int64_t(open.size() / 16));
  // To make fewer runs where accepting is no better than not to know does not reject less.
  CHECK(compare(open.size(), WeakCheck::OpenToReject).numMismatches == all.numMismatches);
  CHECK(compare(1, WeakCheck::OpenToReject).equal());
}

TEST_CASE("integers that wrap around are as far off as they were before") {
  DiagnosticEngine diagnostics;
  auto module =
      parseHloModule(std::make_shared<SourceFile>("wrap.hlo", "HloModule wrap\nENTRY e { x = f32[128] parameter(0)\n"
                                                              " y = s32[128] parameter(1)\n s = f32[128] sine(x)\n"
                                                              " large = f32[] constant(1e9)\n"
                                                              " k = f32[128] broadcast(large), dimensions={}\n"
                                                              " t = f32[128] multiply(s, k)\n c = s32[128] convert(t)\n"
                                                              " ROOT r = s32[128] add(c, y) }"),
                     diagnostics);
  REQUIRE(module);
  Literal x(Shape::array(ElementType::F32, {size})), zeros(Shape::array(ElementType::S32, {size})), largest(zeros);
  for (int64_t i = 0; i < size; ++i)
    x.setDouble(i, 0.1 + double(i) / 512);
  llvm::FailureOr<Literal> converted = interpret(*module, {x, zeros}, diagnostics);
  REQUIRE(succeeded(converted));
  for (int64_t i = 0; i < size; ++i)
    largest.setInt(i, std::numeric_limits<int32_t>::max() - converted->getInt(i));
  llvm::FailureOr<Literal> expected = interpret(*module, {x, largest}, diagnostics);
  llvm::FailureOr<DisturbedResult> kernel =
      interpretDisturbed(*module, {x, largest}, Backend::Hloc, {/*seed=*/100}, diagnostics);
  REQUIRE((succeeded(expected) && succeeded(kernel)));
  int64_t numWrapped = 0;
  for (int64_t i = 0; i < size; ++i)
    numWrapped += kernel->value.getInt(i) < 0;
  REQUIRE(numWrapped > 16);
  llvm::FailureOr<CompareResult> result =
      compareRun(*module, {x, largest}, *expected, kernel->value, Backend::Hloc, diagnostics, {}, WeakCheck::Open);
  REQUIRE(succeeded(result));
  CHECK(result->numMismatches == 0);
}

TEST_CASE("a zero of the other sign, of the narrow types in which it is as good, has no bounds to be wide") {
  DiagnosticEngine diagnostics;
  auto module =
      parseHloModule(std::make_shared<SourceFile>("zero.hlo", "HloModule zero\nENTRY e { x = f4e2m1fn[2] parameter(0)\n"
                                                              " y = f32[2] convert(x)\n z = f32[2] multiply(y, y)\n"
                                                              " ROOT r = f4e2m1fn[2] convert(z) }"),
                     diagnostics);
  REQUIRE(module);
  Literal x(Shape::array(ElementType::F4E2M1FN, {2})), other(x);
  other.setDouble(0, -0.0);
  for (WeakCheck check : {WeakCheck::Open, WeakCheck::OpenOrWide}) {
    llvm::FailureOr<CompareResult> result = compareRun(*module, {x}, x, other, Backend::Other, diagnostics, {}, check);
    REQUIRE(succeeded(result));
    CHECK(result->numUnknown == 0);
  }
}
